package foundling

import (
	"context"
	"fmt"

	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// PauseTopic stops claims of a topic, for all processes. What runs goes on, and messages can be enqueued. The reason goes into the log. A topic that
// is paused already, or that nobody has seen, is refused. It blocks for one commit.
func (c *Client) PauseTopic(ctx context.Context, topic, reason string) error {
	return c.operateTopic(ctx, topic, fsm.PauseTopic{By: c.opts.Actor, Detail: errorText(reason)})
}

// ResumeTopic lets claims of a paused topic go on. The reason goes into the log. A topic that is not paused, or that nobody has seen, is refused. It
// blocks for one commit.
func (c *Client) ResumeTopic(ctx context.Context, topic, reason string) error {
	return c.operateTopic(ctx, topic, fsm.ResumeTopic{By: c.opts.Actor, Detail: errorText(reason)})
}

func (c *Client) operateTopic(ctx context.Context, topic string, command fsm.TopicCommand) error {
	if err := checkName("topic", topic); err != nil {
		return fmt.Errorf("%s: %w", command.Name(), err)
	}
	_, err := c.decide(ctx, func(o calls.Origin) store.Call {
		return calls.OperateTopic(o, fsm.OperateTopic{Topic: topic, Command: command})
	})
	if err != nil {
		return fmt.Errorf("%s topic %s: %w", command.Name(), topic, err)
	}
	return nil
}
