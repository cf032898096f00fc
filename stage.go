package foundling

import (
	"context"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// Stage makes of drafts what is to be kept in a transaction of the caller's own, and gives it to keep, with the client's store. It gives the ids of the
// messages to be, in the order of the drafts. It is for engines, which know how to keep it there: see postgres.EnqueueTx.
func (c *Client) Stage(ctx context.Context, drafts []Draft, keep func(ctx context.Context, s store.Store, list []store.Staged) error) ([]ID, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	if len(drafts) > MaxDrafts {
		return nil, fmt.Errorf("enqueue: %d drafts, at most %d at once: %w: split them", len(drafts), MaxDrafts, ErrTooLarge)
	}
	command, payloads, err := c.prepare(ctx, drafts, c.mintNear)
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	ids := make([]ID, len(drafts))
	list := make([]store.Staged, len(drafts))
	for i, d := range command.Drafts {
		ids[i] = d.ID
		list[i] = calls.Stage(calls.Staging{Draft: d, Start: fsm.TopicStart{Limit: drafts[i].start.Limit}, Actor: c.opts.Actor}, payloads[i])
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := keep(ctx, c.store, list); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	return ids, nil
}

// mintNear makes an id at about the store's time, which is not asked for it: at what is known of it, else at this process's.
func (c *Client) mintNear(context.Context) (ID, error) {
	now := c.near()
	if now.IsZero() {
		now = time.Now()
	}
	return c.source.ID(now)
}

// stagedInfo is a message that is staged; its state is Staged only then.
func (c *Client) stagedInfo(ctx context.Context, stager store.Stager, id ID) (MessageInfo, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	for kept, err := range stager.Staged(ctx, store.StagedFilter{Messages: []ID{id}, Limit: 1}) {
		if err != nil {
			return MessageInfo{}, err
		}
		return c.infoOf(kept)
	}
	return MessageInfo{}, nil
}

// infoOf is what is known of a staged message. What it counts from is when it was staged.
func (c *Client) infoOf(kept store.Staged) (MessageInfo, error) {
	s, err := calls.Unstaged(kept)
	if err != nil {
		return MessageInfo{}, err
	}
	info := newInfo(fsm.Message{
		ID: s.ID, State: events.Staged, Topic: s.Topic, Priority: s.Priority, Key: s.Key, Lock: s.Lock, Trace: events.Traceparent(s.Trace),
		EnqueuedAt: kept.At, DueAt: s.DueFrom(kept.At), Limits: s.Limits, Payload: s.Payload,
	})
	var whole bool
	if info.Payload, whole = c.content(info.Payload, s.Payload, &kept.Payload); !whole {
		return MessageInfo{}, &events.Corrupt{Entity: events.MessageEntity(s.ID), Detail: "what is staged of it has another payload than was enqueued"}
	}
	return info, nil
}
