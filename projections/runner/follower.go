package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/store"
)

// follower runs one projection.
type follower struct {
	store   store.Store
	shelf   store.Shelf
	empty   func() projections.Durable
	options Options
	name    string
	version int

	fold  *fold     // nil until it has begun, and again after it was beaten to a checkpoint
	saved int       // the sequence of the newest checkpoint that it knows; 0 is none
	kept  head      // of that, or of the one from which it went on
	since time.Time // when that was saved, by this process's clock
	fresh int       // events that were taken since

	spoilt []store.CheckpointKey // the newest checkpoints, which were not what was saved when it began: they go when it has saved one
	seen   int                   // how many there were in all

	phase  Phase
	halt   Halt
	untold bool // the halt is still to be kept
	err    error
}

func newFollower(s store.Store, shelf store.Shelf, empty func() projections.Durable, o Options) *follower {
	what := empty()
	return &follower{store: s, shelf: shelf, empty: empty, options: o, name: what.Name(), version: what.Version()}
}

func (f *follower) status() Status {
	s := Status{Name: f.name, Version: f.version, Phase: f.phase, Saved: f.kept.asOf, Passed: f.kept.passed, Spoilt: f.seen, Halt: f.halt, Err: f.err}
	if f.fold != nil {
		s.AsOf, s.Since, s.Passed, s.Cursor = f.fold.head.asOf, f.fold.head.since, f.fold.passed, f.fold.cursor
	}
	return s
}

// step takes up to a page and saves what is due. It reports whether there may be more.
func (f *follower) step(ctx context.Context) (more bool, err error) {
	if f.phase == Halted {
		if f.untold {
			f.err = f.record(ctx)
			return false, f.err
		}
		return false, nil
	}
	more, err = f.advance(ctx)
	if err != nil {
		return f.settle(ctx, err)
	}
	f.err = nil
	return more, nil
}

// finish saves what is new. It reports whether there may be more to take.
func (f *follower) finish(ctx context.Context) (more bool, err error) {
	if err := f.flush(ctx); err != nil {
		return f.settle(ctx, err)
	}
	return false, nil
}

// settle makes of an error what follows from it: the projection stops, begins again, or leaves it to the next step.
func (f *follower) settle(ctx context.Context, err error) (more bool, _ error) {
	panics, damage := (*panicked)(nil), (*unreadable)(nil)
	switch {
	case errors.As(err, &panics):
		f.err = f.stop(ctx, panics.halt)
		return false, f.err
	case errors.As(err, &damage):
		f.err = f.stop(ctx, damage.halt())
		return false, f.err
	case errors.Is(err, store.ErrAhead), errors.Is(err, store.ErrCursor):
		f.fold, f.phase, f.err = nil, Halted, err
		return false, nil
	case errors.Is(err, store.ErrMoved), errors.Is(err, store.ErrPruned):
		// Somebody was faster, and what he saved is what counts; or what was to be read next has gone.
		f.fold, f.phase, f.err = nil, Waiting, nil
		return true, nil
	}
	f.err = err
	return false, err
}

func (f *follower) advance(ctx context.Context) (more bool, err error) {
	if f.fold == nil {
		if err := f.begin(ctx); err != nil {
			return false, err
		}
	}
	n, err := f.fold.take(ctx, f.options.Page, "")
	f.fresh += n
	if errors.As(err, new(*unreadable)) { // what was taken until there is good
		if unsaved := f.flush(ctx); unsaved != nil {
			return false, unsaved
		}
	}
	if err != nil {
		return false, err
	}
	if f.halt.Halted() && f.fold.position >= f.halt.Position {
		f.halt = Halt{} // it has passed the place
	}
	end := n < f.options.Page
	if end {
		f.fold.head.current, f.phase = true, Following
	}
	if f.due() {
		err = f.flush(ctx)
	}
	return !end, err
}

// due reports whether a checkpoint is to be saved, if anything is new. The first of a version is at once: it holds retention back.
func (f *follower) due() bool {
	return f.saved == 0 || f.fold.head.current != f.kept.current || f.fresh >= f.options.Events || time.Since(f.since) >= f.options.Every
}

// flush saves what is new.
func (f *follower) flush(ctx context.Context) error {
	if f.fold == nil || f.fold.cursor == "" || f.fresh == 0 && f.fold.head.current == f.kept.current {
		return nil
	}
	return f.save(ctx)
}

func (f *follower) save(ctx context.Context) error {
	view, err := f.fold.view()
	if err != nil {
		return err
	}
	if err := f.keep(ctx, f.fold.now(), store.Checkpoint{Cursor: f.fold.cursor, View: view}); err != nil {
		return err
	}
	f.fresh = 0
	if len(f.spoilt) > 0 {
		if err := f.shelf.Drop(ctx, f.spoilt...); err != nil {
			return fmt.Errorf("drop what is spoilt: %w", err)
		}
		f.spoilt = nil
	}
	if f.saved%thinEvery != 0 {
		return nil
	}
	return thin(ctx, f.shelf, f.key(f.saved), f.options.Keep)
}

// keep saves a view behind the newest checkpoint that is known.
func (f *follower) keep(ctx context.Context, h head, c store.Checkpoint) error {
	c.CheckpointKey, c.View = f.key(f.saved+1), h.seal(c.View)
	if _, err := f.shelf.Save(ctx, c); err != nil {
		return fmt.Errorf("save checkpoint %d: %w", c.Sequence, err)
	}
	f.saved, f.kept, f.since = c.Sequence, h, time.Now()
	return nil
}

func (f *follower) key(sequence int) store.CheckpointKey {
	return store.CheckpointKey{Name: f.name, Version: f.version, Sequence: sequence}
}

// stop ends a projection whose code has panicked, or whose log can be read no further, and keeps that with the newest checkpoint: what code that
// panicked left is not to be trusted.
func (f *follower) stop(ctx context.Context, halt Halt) error {
	f.fold, f.phase, f.halt, f.untold = nil, Halted, halt, true
	return f.record(ctx)
}

// record keeps where it stopped.
func (f *follower) record(ctx context.Context) error {
	for range tries {
		own, ok, err := newest(ctx, f.shelf, f.name, f.version)
		if err != nil {
			return err
		}
		if ok && own.Halt == f.halt {
			break
		}
		f.saved = own.last
		h := own.head()
		h.halt = f.halt
		c := store.Checkpoint{Cursor: own.Cursor, View: own.Bytes}
		if !ok {
			if c, err = f.blank(ctx); err != nil {
				return err
			}
		}
		if err := f.keep(ctx, h, c); err == nil {
			break
		} else if !errors.Is(err, store.ErrMoved) {
			return err
		}
	}
	f.untold = false
	return nil
}

// blank is the checkpoint of a projection that has taken nothing.
func (f *follower) blank(ctx context.Context) (store.Checkpoint, error) {
	fresh := begin(f.store, f.empty(), "")
	var err error
	if fresh.cursor, err = store.Oldest(ctx, f.store); err != nil {
		return store.Checkpoint{}, err
	}
	view, err := fresh.view()
	if panics := (*panicked)(nil); errors.As(err, &panics) {
		view, err = nil, nil
	}
	return store.Checkpoint{Cursor: fresh.cursor, View: view}, err
}
