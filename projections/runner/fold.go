package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/store"
)

// fold is a projection on its way through the log.
type fold struct {
	place
	what projections.Durable
	head head
	lost int // messages of which the log had lost what the projection asked of them
}

// panicked is the error of a projection whose code panicked.
type panicked struct{ halt Halt }

// Error tells where.
func (p *panicked) Error() string { return p.halt.String() }

// maxHalt is how much of what a projection panicked with is kept, in bytes.
const maxHalt = 1 << 10

// guard runs a projection's code. A panic is an error.
func guard(at Halt, code func()) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			at.Text = halting(fmt.Sprint(cause))
			err = &panicked{at}
		}
	}()
	code()
	return nil
}

// halting is a text of why something stopped, cut.
func halting(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxHalt)], "")
	if text == "" {
		return "no text"
	}
	return text
}

// begin is a projection before the first event behind a cursor.
func begin(s store.Store, what projections.Durable, at store.Cursor) *fold {
	return &fold{place: place{store: s, cursor: at}, what: what}
}

// restore is a projection as a kept view says it was.
func restore(s store.Store, what projections.Durable, v View) (*fold, error) {
	var err error
	if halt := guard(Halt{}, func() { err = what.Restore(v.Version, v.Bytes) }); halt != nil {
		return nil, halt
	}
	if err != nil {
		return nil, fmt.Errorf("restore checkpoint %d of version %d: %w", v.Sequence, v.Version, err)
	}
	at := place{store: s, cursor: v.Cursor, position: max(v.AsOf.Position, v.Passed.Last), passed: v.Passed}
	return &fold{place: at, what: what, head: head{asOf: v.AsOf, since: v.Since}}, nil
}

// take applies up to n events, and reports how many there were, with those that were passed over: fewer is that the end of the log was reached, up to
// the cursor if one is given.
func (f *fold) take(ctx context.Context, n int, upto store.Cursor) (int, error) {
	return f.each(ctx, n, upto, func(r events.Recorded) error { return f.apply(ctx, r) })
}

// apply takes the next event.
func (f *fold) apply(ctx context.Context, r events.Recorded) error {
	at := Halt{Position: r.Position, Entity: r.Entity, Type: r.Event.Type()}
	lacks := false
	learner, learns := f.what.(projections.Learner)
	if learns {
		if err := guard(at, func() { lacks = learner.Lacks(r) }); err != nil {
			return err
		}
	}
	topic := ""
	if lacks {
		var err error
		topic, err = f.topic(ctx, r.Entity)
		if err != nil && !errors.As(err, new(*events.Corrupt)) { // what is damaged there is passed over in its own place
			return err
		}
		if topic == "" {
			f.lost++
		}
	}
	err := guard(at, func() {
		if lacks {
			learner.Learn(r.Entity.ID, topic)
		}
		f.what.Apply(r)
	})
	if err != nil {
		return err
	}
	if f.head.asOf == (projections.Mark{}) && f.head.since == (projections.Mark{}) && f.cursor != "" {
		f.head.since = projections.Mark{Position: r.Position, At: r.At()}
	}
	f.head.asOf = projections.Mark{Position: r.Position, At: r.At()}
	return nil
}

// topic is the topic of a message by its first event that is kept and tells it, or where none is, as it was kept when that went; empty where it is lost.
func (f *fold) topic(ctx context.Context, message events.Entity) (string, error) {
	for range tries {
		from, err := store.Oldest(ctx, f.store)
		if err != nil {
			return "", err
		}
		topic := ""
		says := []events.Type{events.TypeMessageEnqueued, events.TypeMessageClaimed, events.TypeMessageSnapshotted}
		for r, readErr := range f.store.Read(ctx, from, store.Filter{Entity: message, Types: says, Limit: 1}) {
			if err = readErr; err == nil {
				topic, _ = projections.TopicOf(r)
			}
		}
		if errors.Is(err, store.ErrPruned) {
			continue
		}
		if topic != "" || err != nil && !errors.As(err, new(*events.Corrupt)) {
			return topic, err
		}
		kept, err := f.store.Contents(ctx, message.ID)
		return kept.Topic, err
	}
	return "", fmt.Errorf("%s: the log was pruned again and again while it was looked for: %w", message, store.ErrPruned)
}

// now is what stands before the projection's bytes as they are now.
func (f *fold) now() head {
	h := f.head
	h.passed = f.passed
	return h
}

// view is the projection's bytes as they are now.
func (f *fold) view() ([]byte, error) {
	var view []byte
	var err error
	if halt := guard(Halt{}, func() { view, err = f.what.View() }); halt != nil {
		return nil, halt
	}
	if err != nil {
		return nil, fmt.Errorf("view: %w", err)
	}
	return view, nil
}
