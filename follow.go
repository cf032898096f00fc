package foundling

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/store"
)

// Cursor is a place in a store's log, behind an event. It is opaque: keep it, hand it back. Its zero is the beginning.
type Cursor = store.Cursor

// Stop says where a reading of the log ends.
type Stop uint8

// The zero does not end.
const (
	StopNever  Stop = iota // it goes on with what is still to come, until its context ends
	StopAtHead             // it ends where the log does by then
)

// EventFilter selects events. Its zero passes all, and never ends.
type EventFilter struct {
	Types  []events.Type // of these types alone, unless empty
	Topic  string        // of this topic and its messages alone, unless empty
	Entity events.Entity // of this entity alone, unless zero: an index read, up to the head
	Stop   Stop
}

func (f EventFilter) validate() error {
	for _, t := range f.Types {
		if t.Kind() == events.KindNone {
			return fmt.Errorf("event filter: %s is no type of event: %w", t, ErrInvalid)
		}
	}
	if f.Topic != "" {
		if err := checkName("topic", f.Topic); err != nil {
			return fmt.Errorf("event filter: %w", err)
		}
	}
	if f.Entity != (events.Entity{}) && !slices.Contains(events.Kinds(), f.Entity.Kind) {
		return fmt.Errorf("event filter: Entity of kind %s: %w", f.Entity.Kind, ErrInvalid)
	}
	if f.Stop > StopAtHead {
		return fmt.Errorf("event filter: Stop %d, want StopNever or StopAtHead: %w", f.Stop, ErrInvalid)
	}
	return nil
}

// Events yields the recorded events behind a cursor, each once and in the order of the log, whichever process wrote them, and goes on with those
// that come until ctx ends, whose error is then the last that it yields. Keep [Client.After] of the last event that you are done with, in one commit
// with what you made of it where you can, and begin there again: nothing is missed.
//
// A store out of reach is waited for, and logged. An error ends it: [store.ErrPruned] where retention has let go of what follows the cursor (see
// [Client.Oldest]), [store.ErrCursor] where it is none of this store, [store.ErrAhead] where it lies behind the end of the log, as after a backup was
// restored, a *events.Corrupt where stored bytes are not what was written. It looks at the store from within the loop: nothing is held and
// nothing runs while the loop's body does.
func (c *Client) Events(ctx context.Context, after Cursor, f EventFilter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		err := f.validate()
		if err == nil {
			err = (&following{client: c, filter: f, topics: map[ID]string{}}).run(ctx, after, yield)
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(events.Recorded{}, fmt.Errorf("events: %w", err))
		}
	}
}

// After is the cursor behind an event that Events has yielded.
func (c *Client) After(r events.Recorded) Cursor { return c.store.After(r) }

// Head is the cursor behind the newest event: from there on [Client.Events] yields what is still to come.
func (c *Client) Head(ctx context.Context) (Cursor, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	return c.store.Head(ctx)
}

// Oldest is the cursor before the oldest event that is kept.
func (c *Client) Oldest(ctx context.Context) (Cursor, error) {
	pruner, ok := store.As[store.Pruner](c.store)
	if !ok {
		return "", nil
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	return pruner.First(ctx)
}

// errEnough says that the loop's body has ended the reading.
var errEnough = errors.New("enough")

// maxTopics bounds how many messages a following remembers the topics of.
const maxTopics = 10_000

// following is one reading of the log by a filter.
type following struct {
	client *Client
	filter EventFilter
	topics map[ID]string // of open messages, as far as it knows and needs them
	passed int64         // the position up to which events of the filter's entity were yielded
}

func (f *following) run(ctx context.Context, after Cursor, yield func(events.Recorded, error) bool) error {
	if f.filter.Entity != (events.Entity{}) {
		var err error
		if after, err = f.catchUp(ctx, after, yield); err != nil || f.filter.Stop == StopAtHead {
			return err
		}
	}
	for page, err := range f.client.pages(ctx, after, reading{stop: f.filter.Stop}) {
		if err != nil {
			return err
		}
		if err := f.give(ctx, page, yield); err != nil {
			return err
		}
	}
	return nil
}

// catchUp yields the events of the filter's entity that there are by an index, and gives a cursor behind which all others are.
func (f *following) catchUp(ctx context.Context, after Cursor, yield func(events.Recorded, error) bool) (Cursor, error) {
	var head Cursor
	err := f.client.patiently(ctx, "read the log", func() (err error) {
		head, err = f.client.Head(ctx)
		return err
	})
	if err != nil {
		return "", err
	}
	for page, err := range f.client.pages(ctx, after, reading{entity: f.filter.Entity, stop: StopAtHead}) {
		if err != nil {
			return "", err
		}
		if err := f.give(ctx, page, yield); err != nil {
			return "", err
		}
		f.passed = page[len(page)-1].Position
	}
	return head, nil
}

// give yields those of some events that pass the filter and were not yielded before.
func (f *following) give(ctx context.Context, page []events.Recorded, yield func(events.Recorded, error) bool) error {
	for _, r := range page {
		if r.Position <= f.passed {
			continue
		}
		if err := ctx.Err(); err != nil { // in the middle of a page as well
			return err
		}
		passes, err := f.passes(ctx, r)
		if err != nil {
			return err
		}
		if passes && !yield(r, nil) {
			return errEnough
		}
	}
	return nil
}

func (f *following) passes(ctx context.Context, r events.Recorded) (bool, error) {
	if f.filter.Entity != (events.Entity{}) && r.Entity != f.filter.Entity {
		return false, nil
	}
	if len(f.filter.Types) > 0 && !slices.Contains(f.filter.Types, r.Event.Type()) {
		return false, nil
	}
	if f.filter.Topic == "" {
		return true, nil
	}
	topic, err := f.topicOf(ctx, r)
	return topic == f.filter.Topic, err
}

// topicOf is the topic that an event is about; empty where it is about none.
func (f *following) topicOf(ctx context.Context, r events.Recorded) (string, error) {
	switch r.Entity.Kind {
	case events.KindTopic:
		return r.Entity.Name, nil
	case events.KindMessage:
	default:
		return "", nil
	}
	topic, known := f.topics[r.Entity.ID]
	if told, says := projections.TopicOf(r); says {
		topic, known = told, true
	}
	if !known {
		err := f.client.patiently(ctx, "read a message's topic", func() error {
			told, err := f.client.chronicle(ctx, r.Entity.ID)
			topic = told.info.Topic
			return err
		})
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, errBeginningLost) {
			return "", err
		}
	}
	if len(f.topics) == maxTopics {
		clear(f.topics)
	}
	if f.topics[r.Entity.ID] = topic; hasEnded(r.To) {
		delete(f.topics, r.Entity.ID)
	}
	return topic, nil
}
