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
	store  store.Store
	what   projections.Durable
	cursor store.Cursor
	head   head
	lost   int // messages of which the log had lost what the projection asked of them
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
			at.Text = fmt.Sprint(cause)
			at.Text = strings.ToValidUTF8(at.Text[:min(len(at.Text), maxHalt)], "")
			if at.Text == "" {
				at.Text = "no text"
			}
			err = &panicked{at}
		}
	}()
	code()
	return nil
}

// begin is a projection before the first event behind a cursor.
func begin(s store.Store, what projections.Durable, at store.Cursor) *fold {
	return &fold{store: s, what: what, cursor: at}
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
	return &fold{store: s, what: what, cursor: v.Cursor, head: head{asOf: v.AsOf, since: v.Since}}, nil
}

// take applies up to n events, and reports how many there were: fewer is that the end of the log was reached, up to the cursor if one is given.
func (f *fold) take(ctx context.Context, n int, upto store.Cursor) (int, error) {
	taken := 0
	if upto != "" && f.cursor == upto {
		return 0, nil
	}
	for r, err := range f.store.Read(ctx, f.cursor, store.Filter{Limit: n}) {
		if err == nil {
			err = f.apply(ctx, r)
		}
		if err != nil {
			return taken, err
		}
		if taken++; upto != "" && f.cursor == upto {
			break
		}
	}
	return taken, nil
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
		if topic, err = f.topic(ctx, r.Entity); err != nil {
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
	f.cursor = f.store.After(r)
	return nil
}

// topic is the topic of a message, empty where the log has lost it.
func (f *fold) topic(ctx context.Context, message events.Entity) (string, error) {
	for range tries {
		from, err := store.Oldest(ctx, f.store)
		if err != nil {
			return "", err
		}
		topic := ""
		says := []events.Type{events.TypeMessageEnqueued, events.TypeMessageSnapshotted}
		for r, readErr := range f.store.Read(ctx, from, store.Filter{Entity: message, Types: says, Limit: 1}) {
			if err = readErr; err == nil {
				topic, _ = projections.TopicOf(r)
			}
		}
		if !errors.Is(err, store.ErrPruned) {
			return topic, err
		}
	}
	return "", fmt.Errorf("%s: the log was pruned again and again while it was looked for: %w", message, store.ErrPruned)
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
