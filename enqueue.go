package foundling

import (
	"context"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// MaxDrafts is how many drafts one EnqueueMany may have: they are one commit.
const MaxDrafts = 900

// Enqueued says which message stands for a draft.
type Enqueued struct {
	ID    ID
	Known bool // it was there before, under the same id or key
}

// EnqueueMany makes all the messages or none of them, in one commit, and gives one answer per draft in their order. All are durable when it
// returns without error. It blocks for one commit.
func (c *Client) EnqueueMany(ctx context.Context, drafts ...Draft) ([]Enqueued, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	if len(drafts) > MaxDrafts {
		return nil, fmt.Errorf("enqueue: %d drafts, at most %d in one commit: %w: split them", len(drafts), MaxDrafts, ErrTooLarge)
	}
	command, payloads, err := c.prepare(ctx, drafts, c.mint)
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	var answers *[]fsm.Answer
	_, err = c.decide(ctx, func(o calls.Origin) store.Call {
		var call store.Call
		call, answers = calls.Enqueue(o, command, payloads)
		return call
	})
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	for topic := range command.Topics {
		c.topics.learn(topic)
	}
	list := make([]Enqueued, len(drafts))
	for i, answer := range *answers {
		list[i] = Enqueued(answer)
	}
	return list, nil
}

// prepare resolves everything that is random, inherited or encoded, so that the rules see plain values.
func (c *Client) prepare(ctx context.Context, drafts []Draft, mint minter) (fsm.Enqueue, []store.Payload, error) {
	command := fsm.Enqueue{Drafts: make([]fsm.Draft, len(drafts)), Topics: map[string]fsm.TopicStart{}}
	payloads := make([]store.Payload, len(drafts))
	trace := c.injected(ctx)
	for i, d := range drafts {
		if err := d.start.validate(d.topic); err != nil {
			return command, nil, err
		}
		if err := d.opts.validate(); err != nil {
			return command, nil, err
		}
		payload, err := encode(c.opts.Codec, "payload for topic "+d.topic, d.payload)
		if err != nil {
			return command, nil, err
		}
		if len(payload.bytes) == 0 {
			return command, nil, fmt.Errorf("payload for topic %s: 0 bytes, want 1 to %d: %w", d.topic, c.opts.MaxPayload, ErrInvalid)
		}
		if n := len(payload.bytes); n > c.opts.MaxPayload {
			return command, nil, fmt.Errorf("payload for topic %s: %d bytes, at most %d: %w", d.topic, n, c.opts.MaxPayload, ErrTooLarge)
		}
		facts, err := c.seal(payload, &payloads[i])
		if err != nil {
			return command, nil, err
		}
		id, err := d.id(ctx, mint)
		if err != nil {
			return command, nil, err
		}
		command.Drafts[i] = fsm.Draft{ID: id, Given: d.opts.ID != ID{}, EnqueueMessage: fsm.EnqueueMessage{
			Topic: d.topic, DueAt: d.opts.At, Delay: d.opts.Delay, Priority: d.opts.Priority,
			Key: d.opts.Key, UniqueFor: d.opts.UniqueFor, Limits: d.limits(), Lock: d.opts.Lock, OnLocked: d.opts.OnLocked,
			Payload: facts, Trace: trace,
		}}
		if !c.topics.known(d.topic) {
			command.Topics[d.topic] = fsm.TopicStart{Limit: d.start.Limit}
		}
	}
	return command, payloads, nil
}

// seal salts what is to be kept beside the log, and gives what the log keeps of it.
func (c *Client) seal(v coded, p *store.Payload) (events.Facts, error) {
	if err := c.source.Fill(p.Salt[:]); err != nil {
		return events.Facts{}, err
	}
	p.Bytes = v.bytes
	return events.Facts{Size: len(v.bytes), Codec: v.codec, Commitment: events.Commitment(p.Salt, v.bytes)}, nil
}

// minter makes ids.
type minter func(context.Context) (ID, error)

// id is the draft's, which mint makes where the caller gave none.
func (d Draft) id(ctx context.Context, mint minter) (ID, error) {
	if d.opts.ID == (ID{}) {
		return mint(ctx)
	}
	if d.opts.ID.Version() != 7 {
		return ID{}, fmt.Errorf("message id %s: want a UUID of version 7: %w", d.opts.ID, ErrInvalid)
	}
	return d.opts.ID, nil
}
