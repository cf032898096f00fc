package foundling

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// Get reads a message, staged, open or ended, with its payload and its result. One that the store does not know is an ErrNotFound, which is an
// ErrPruned as well where the id is so old that retention has let go of messages of its time. It blocks for two reads of the store, of which the
// first is as long as the message's history.
func (c *Client) Get(ctx context.Context, id ID) (MessageInfo, error) {
	info, err := c.get(ctx, id)
	if err != nil {
		return MessageInfo{}, fmt.Errorf("get message %s: %w", id, err)
	}
	return info, nil
}

func (c *Client) get(ctx context.Context, id ID) (MessageInfo, error) {
	told, err := c.chronicle(ctx, id)
	if stager, ok := store.As[store.Stager](c.store); ok && errors.Is(err, ErrNotFound) {
		info, wrong := c.stagedInfo(ctx, stager, id)
		if info.State == Staged || wrong != nil {
			return info, wrong
		}
		told, err = c.chronicle(ctx, id) // it may have been moved between the two looks
		if errors.Is(err, ErrNotFound) {
			told, err = c.unread(ctx, id, err)
		}
	}
	if err != nil {
		return MessageInfo{}, err
	}
	bounded, cancel := c.within(ctx)
	defer cancel()
	contents, err := c.store.Contents(bounded, id)
	if err != nil {
		return MessageInfo{}, err
	}
	info := told.info
	var whole [2]bool
	info.Payload, whole[0] = c.content(info.Payload, told.payload, contents.Payload)
	info.Result, whole[1] = c.content(info.Result, told.result, contents.Result)
	if told.headless && contents.Payload != nil { // what it was went with its beginning, and its bytes stay until its end goes
		info.Payload = Content{Size: len(contents.Payload.Bytes), Bytes: contents.Payload.Bytes, codec: c.opts.Codec}
	}
	if whole != [2]bool{true, true} {
		return MessageInfo{}, &events.Corrupt{Entity: events.MessageEntity(id), Detail: "its payload or result has other bytes than were enqueued or set"}
	}
	return info, nil
}

// unread is a message that is open, as its row has it. Its history may be there and cannot be read yet: a commit before its own takes long.
func (c *Client) unread(ctx context.Context, id ID, notFound error) (chronicle, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	v, _, err := calls.Kept(ctx, c.store, events.MessageEntity(id))
	if err != nil {
		return chronicle{}, err
	}
	m, ok := v.(*fsm.Message)
	if !ok {
		return chronicle{}, notFound
	}
	return chronicle{info: newInfo(*m), payload: m.Payload}, nil
}

// chronicle folds the history of a message.
func (c *Client) chronicle(ctx context.Context, id ID) (chronicle, error) {
	history, err := c.history(ctx, events.MessageEntity(id))
	if err != nil {
		return chronicle{}, err
	}
	if len(history) == 0 {
		return chronicle{}, c.notFound(ctx, id)
	}
	told, err := newChronicle(history)
	if err != nil || !told.headless {
		return told, err
	}
	bounded, cancel := c.within(ctx)
	defer cancel()
	contents, err := c.store.Contents(bounded, id)
	told.info.Topic = contents.Topic
	return told, err
}

// maxOvertaken bounds how often a reading begins again since retention has overtaken it.
const maxOvertaken = 10

// history is what is kept of the events of an entity.
func (c *Client) history(ctx context.Context, entity events.Entity) ([]events.Recorded, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	var after Cursor
	for n := 0; ; n++ {
		list, err := c.readAll(ctx, after, store.Filter{Entity: entity})
		var pruned *store.PrunedError
		if n == maxOvertaken || !errors.As(err, &pruned) {
			return list, err
		}
		after = pruned.First
	}
}

// readAll is the events behind a cursor, and those before an error with it.
func (c *Client) readAll(ctx context.Context, after Cursor, f store.Filter) ([]events.Recorded, error) {
	var list []events.Recorded
	for r, err := range c.store.Read(ctx, after, f) {
		if err != nil {
			return list, err
		}
		list = append(list, r)
	}
	return list, nil
}

// notFound is the error of an id that no event speaks of.
func (c *Client) notFound(ctx context.Context, id ID) error {
	since, err := c.keptSince(ctx)
	if err != nil {
		return errors.Join(ErrNotFound, err)
	}
	if made := idTime(id); !since.IsZero() && made.Before(since) {
		return fmt.Errorf("%w: it is of %s, and what ended before %s may have been let go: %w", ErrNotFound,
			made.Format(time.RFC3339), since.Format(time.RFC3339), store.ErrPruned)
	}
	return ErrNotFound
}

// keptSince is the time of the oldest event that is kept; zero where none was let go.
func (c *Client) keptSince(ctx context.Context) (time.Time, error) {
	pruner, ok := store.As[store.Pruner](c.store)
	if !ok {
		return time.Time{}, nil
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	first, err := pruner.First(ctx)
	if err != nil || first == "" {
		return time.Time{}, err
	}
	list, err := c.readAll(ctx, first, store.Filter{Limit: 1})
	if err != nil {
		return time.Time{}, err
	}
	if len(list) == 0 { // the commit that says so is kept always
		return time.Time{}, errors.New("the log is empty behind what was let go")
	}
	return list[0].At(), nil
}

// content is a payload or a result as it is kept. It is false where that is not what the log says it was.
func (c *Client) content(v Content, facts events.Facts, kept *store.Payload) (Content, bool) {
	switch {
	case v.Size == 0:
		return v, true
	case kept == nil:
		v.Erased = true
		return v, true
	}
	v.Bytes, v.Erased, v.codec = kept.Bytes, false, c.opts.Codec
	return v, events.Commitment(kept.Salt, kept.Bytes) == facts.Commitment
}

// idTime is the time that an id of version 7 carries, in whole milliseconds.
func idTime(id ID) time.Time {
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms).UTC()
}

// firstID is the lowest id of a time, rounded up to whole milliseconds: all ids of earlier ones are lower. What an id cannot tell, such as a time
// before 1970, is the nearest that it can.
func firstID(t time.Time) ID {
	ms := min(max(t.Add(time.Millisecond-1).UnixMilli(), 0), 1<<48-1)
	var id ID
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}
