package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/store"
)

// ErrNoShelf says that the store keeps no checkpoints.
var ErrNoShelf = errors.New("the store keeps no checkpoints")

// View is a view of a projection as it is kept.
type View struct {
	store.CheckpointKey
	Cursor  store.Cursor     // behind the last event that it has taken
	SavedAt time.Time        // by the store's clock
	AsOf    projections.Mark // the last event that it has taken
	Since   projections.Mark // the first event that it has taken, where older ones had been let go; zero where it counts from the beginning
	Passed  Passed           // what it has not taken since it could not be read
	Current bool             // it had come to the end of the log once
	Halt    Halt             // zero unless the projection's code panicked behind it, or the log could be read no further
	Bytes   []byte           // see projections.Durable.View
}

// Halt says where the code of a projection panicked, or the log could be read no further. Its zero is nowhere.
type Halt struct {
	Position int64         // of the event that it was to take; 0 where it was none of Apply
	Entity   events.Entity // of that event
	Type     events.Type   // of that event
	Text     string        // what it panicked with, or what is wrong with the log, cut to 1 KiB
	Unread   bool          // the log could be read no further: the code did not panic
}

// Halted reports whether it is one.
func (h Halt) Halted() bool { return h.Text != "" }

// String is the halt in words, on one line.
func (h Halt) String() string {
	text := events.Printable(h.Text, 0)
	if h.Unread {
		return "the log cannot be read: " + text
	}
	if h.Position == 0 {
		return "its view: panic: " + text
	}
	return fmt.Sprintf("%s of %s at position %d: panic: %s", h.Type, events.Printable(h.Entity.String(), 0), h.Position, text)
}

// head is what stands before the projection's own bytes in a kept view: one line of canonical JSON.
type head struct {
	asOf, since projections.Mark
	current     bool
	halt        Halt
	passed      Passed
}

// VisitFields names the fields.
func (h *head) VisitFields(f *events.Fields) {
	f.Int64("position", &h.asOf.Position)
	f.Time("at", &h.asOf.At)
	f.Int64("since_position", &h.since.Position)
	f.Time("since", &h.since.At)
	f.Flag("current", &h.current)
	f.Int64("halt_position", &h.halt.Position)
	entity, typ := "", int(h.halt.Type)
	if h.halt.Entity != (events.Entity{}) {
		entity = h.halt.Entity.String()
	}
	f.Text("halt_entity", &entity)
	f.Int("halt_type", &typ)
	f.Text("halt", &h.halt.Text)
	f.Flag("halt_unread", &h.halt.Unread)
	f.Int("passed", &h.passed.Events)
	f.Int64("passed_first", &h.passed.First)
	f.Int64("passed_last", &h.passed.Last)
	h.halt.Type = events.Type(typ)
	if known, err := events.ParseEntity(entity); err == nil { // that of a kind that this version does not know stays zero
		h.halt.Entity = known
	}
}

func (h *head) seal(view []byte) []byte {
	return append(append(events.AppendFields(nil, h), '\n'), view...)
}

// open reads a kept checkpoint.
func open(c store.Checkpoint) (View, error) {
	line, view, ok := bytes.Cut(c.View, []byte{'\n'})
	var h head
	err := errors.New("it has no head")
	if ok {
		err = events.ReadFields(line, &h)
	}
	if err != nil {
		return View{}, fmt.Errorf("checkpoint %d of %s version %d: %w", c.Sequence, c.Name, c.Version, err)
	}
	return View{
		CheckpointKey: c.CheckpointKey, Cursor: c.Cursor, SavedAt: c.At,
		AsOf: h.asOf, Since: h.since, Passed: h.passed, Current: h.current, Halt: h.halt, Bytes: view,
	}, nil
}

// head is what stands before the view's bytes.
func (v *View) head() head {
	return head{asOf: v.AsOf, since: v.Since, current: v.Current, halt: v.Halt, passed: v.Passed}
}

// load gives a kept view, and false where it is not there any more.
func load(ctx context.Context, shelf store.Shelf, k store.CheckpointKey) (View, bool, error) {
	c, err := shelf.View(ctx, k)
	if errors.Is(err, store.ErrMoved) {
		return View{}, false, nil
	}
	if err != nil {
		return View{}, false, err
	}
	v, err := open(c)
	return v, err == nil, err
}

// listed is the checkpoints that pass a filter, without those of which not even that is left.
func listed(ctx context.Context, shelf store.Shelf, f store.CheckpointFilter) ([]store.Checkpoint, error) {
	list, err := shelf.Checkpoints(ctx, f)
	if errors.As(err, new(*events.Corrupt)) {
		err = nil
	}
	return list, err
}

// kept is the newest view of a version that can be read.
type kept struct {
	View                         // without a name where there is none
	last   int                   // the sequence of the newest checkpoint, which the next one must follow; 0 where there is none
	spoilt []store.CheckpointKey // newer ones, that are not what was saved
}

// newest gives the newest kept view of a version that can be read, and false where there is none. An older one is as good: more events are taken
// again.
func newest(ctx context.Context, shelf store.Shelf, name string, version int) (kept, bool, error) {
	for range tries {
		list, err := listed(ctx, shelf, store.CheckpointFilter{Name: name, Version: version})
		if err != nil || len(list) == 0 {
			return kept{}, false, err
		}
		k := kept{last: list[len(list)-1].Sequence}
		k.View, k.spoilt, err = readable(ctx, shelf, list)
		if !errors.Is(err, store.ErrMoved) {
			return k, err == nil && k.Name != "", err
		}
	}
	return kept{}, false, fmt.Errorf("%s version %d: its newest checkpoint went while it was looked at: %w", name, version, store.ErrMoved)
}

// readable is the last of some checkpoints that can be read, with those behind it. Where none can, it has no name. ErrMoved is that one is not there
// any more.
func readable(ctx context.Context, shelf store.Shelf, list []store.Checkpoint) (v View, spoilt []store.CheckpointKey, err error) {
	for _, c := range slices.Backward(list) {
		v, ok, err := load(ctx, shelf, c.CheckpointKey)
		switch {
		case errors.As(err, new(*events.Corrupt)):
			spoilt = append(spoilt, c.CheckpointKey)
			continue
		case err == nil && !ok:
			err = store.ErrMoved
		}
		return v, spoilt, err
	}
	return View{}, spoilt, nil
}

// tries bounds how often a look is repeated that others have overtaken.
const tries = 10

// Current is the newest view of a projection's current version: the highest one that has come to the end of the log once. False is that there is
// none, as while the first version is being built.
func Current(ctx context.Context, s store.Store, name string) (View, bool, error) {
	v, ok, err := believed(ctx, s, name, time.Time{})
	if err != nil {
		return View{}, false, fmt.Errorf("current view of %s: %w", name, err)
	}
	return v, ok, nil
}

// Believed is the view that was current at a time of the store's clock, as far as its history is kept: the newest one that was saved by then. The
// zero time is now. It is behind the log by what had come since it was saved; its AsOf says up to where it had come.
func Believed(ctx context.Context, s store.Store, name string, at time.Time) (View, bool, error) {
	v, ok, err := believed(ctx, s, name, at)
	if err != nil {
		return View{}, false, fmt.Errorf("what %s believed: %w", name, err)
	}
	return v, ok, nil
}

func believed(ctx context.Context, s store.Store, name string, at time.Time) (View, bool, error) {
	shelf, ok := store.As[store.Shelf](s)
	if !ok {
		return View{}, false, ErrNoShelf
	}
	for range tries {
		list, err := listed(ctx, shelf, store.CheckpointFilter{Name: name})
		if err != nil {
			return View{}, false, err
		}
		list = slices.DeleteFunc(list, func(c store.Checkpoint) bool { return !at.IsZero() && c.At.After(at) })
		v, ok, err := current(ctx, shelf, list)
		if !errors.Is(err, store.ErrMoved) {
			return v, ok, err
		}
	}
	return View{}, false, fmt.Errorf("its checkpoints went while they were looked at: %w", store.ErrMoved)
}

// current is the current view among some checkpoints, which are in order. ErrMoved is that one is not there any more.
func current(ctx context.Context, shelf store.Shelf, list []store.Checkpoint) (View, bool, error) {
	for len(list) > 0 {
		first := slices.IndexFunc(list, func(c store.Checkpoint) bool { return c.Version == list[len(list)-1].Version })
		v, _, err := readable(ctx, shelf, list[first:])
		if err != nil || v.Current {
			return v, err == nil, err
		}
		list = list[:first] // where the newest of a version was not current, no older one was
	}
	return View{}, false, nil
}
