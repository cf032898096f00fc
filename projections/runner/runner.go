package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/store"
)

// Options are a runner's settings. The zero value works.
type Options struct {
	// Events is how many events may come until a checkpoint is saved; 0 is 10,000.
	Events int
	// Every is how much time may pass until one is saved, where anything has come; 0 is 10 s.
	Every time.Duration
	// Poll is how often Run looks for events; 0 is 1 s.
	Poll time.Duration
	// Page is how many events a step takes of each projection at most; 0 is 5,000.
	Page int
	// Keep is how much of the history stays.
	Keep Keep
}

func (o Options) withDefaults() (Options, error) {
	for _, n := range []struct {
		name         string
		value        *int
		usual, least int
	}{{"Events", &o.Events, 10_000, 1}, {"Page", &o.Page, 5000, 1}} {
		if *n.value == 0 {
			*n.value = n.usual
		}
		if *n.value < n.least {
			return o, fmt.Errorf("option %s is %d: want %d or more", n.name, *n.value, n.least)
		}
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		usual time.Duration
	}{{"Every", &o.Every, 10 * time.Second}, {"Poll", &o.Poll, time.Second}} {
		if *d.value == 0 {
			*d.value = d.usual
		}
		if *d.value < time.Millisecond {
			return o, fmt.Errorf("option %s is %s: want 1ms or more", d.name, *d.value)
		}
	}
	o.Keep = o.Keep.withDefaults()
	return o, nil
}

// Runner follows the log for some projections. Its methods are for one goroutine, but for Status.
type Runner struct {
	options Options
	list    []*follower

	mu     sync.Mutex
	status []Status
}

// Status is how far a projection has come in this process.
type Status struct {
	Name    string
	Version int
	Phase   Phase
	AsOf    projections.Mark // the last event that it has taken
	Since   projections.Mark // the first event that it has taken, where older ones had been let go; zero where it counts from the beginning
	Cursor  store.Cursor     // behind AsOf; the zero before the first event, and while it is halted. See LagOf
	Saved   projections.Mark // the last event of its newest checkpoint
	Passed  Passed           // what it has not taken since it could not be read
	Spoilt  int              // the newest checkpoints that were not what was saved when it began: it went on from an older one
	Halt    Halt             // where its code panicked, or the log could be read no further; while it is not Halted, where that was before it was tried again
	Err     error            // of the last step; nil where that went well
}

// Phase is what a projection is at.
type Phase uint8

// The phases. The zero has not begun.
const (
	Waiting   Phase = iota
	Building        // on its way to the end of the log: readers still see an older version, or none
	Following       // current
	Halted          // its code panicked, the log can be read no further, or its checkpoint is refused: it is tried again by the next process
)

// String is the phase's word.
func (p Phase) String() string {
	switch p {
	case Waiting:
		return "waiting"
	case Building:
		return "building"
	case Following:
		return "following"
	case Halted:
		return "halted"
	}
	return fmt.Sprintf("phase(%d)", uint8(p))
}

// New is a runner of projections over a store that keeps checkpoints; else it is ErrNoShelf. Each function makes a new value of a projection, as it
// is before the first event; they may be called often.
func New(s store.Store, o Options, list ...func() projections.Durable) (*Runner, error) {
	shelf, ok := store.As[store.Shelf](s)
	if !ok {
		return nil, fmt.Errorf("projection runner: %w", ErrNoShelf)
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("projection runner: %w", err)
	}
	r := &Runner{options: o}
	names := map[string]bool{}
	for _, empty := range list {
		what := empty()
		name, version := what.Name(), what.Version()
		switch {
		case name == "" || len(name) > store.MaxName:
			return nil, fmt.Errorf("projection runner: name %q: want 1 to %d bytes", name, store.MaxName)
		case version < 1:
			return nil, fmt.Errorf("projection runner: %s: version %d: want 1 or more", name, version)
		case names[name]:
			return nil, fmt.Errorf("projection runner: %s is there twice", name)
		}
		names[name] = true
		r.list = append(r.list, newFollower(s, shelf, empty, o))
	}
	r.tell()
	return r, nil
}

// Step takes what has come for each projection, at most a page, and saves what is due. It reports whether there was more than that for any of
// them. An error is the store's: a projection that it befell is tried again by the next step, and the others have gone on. What stops one for
// good is in Status alone.
func (r *Runner) Step(ctx context.Context) (more bool, err error) {
	return r.each(func(f *follower) (bool, error) { return f.step(ctx) })
}

// CatchUp steps until every projection that goes on has come to the end of the log and what is new is saved.
func (r *Runner) CatchUp(ctx context.Context) error {
	for {
		more, err := r.Step(ctx)
		if err == nil && !more {
			more, err = r.each(func(f *follower) (bool, error) { return f.finish(ctx) })
		}
		if err != nil || !more {
			return err
		}
	}
}

func (r *Runner) each(do func(*follower) (bool, error)) (more bool, err error) {
	var faults []error
	for _, f := range r.list {
		again, err := do(f)
		more = more || again
		if err != nil {
			faults = append(faults, fmt.Errorf("projection %s: %w", f.name, err))
		}
		r.tell()
	}
	return more, errors.Join(faults...)
}

// Run steps until ctx ends, whose error it gives, or the store is closed. A store out of reach is tried again every Poll; Status tells. It saves
// nothing at its end: what it has not saved is read again.
func (r *Runner) Run(ctx context.Context) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause.C:
		}
		more, err := r.Step(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, store.ErrClosed):
			return err
		case more && err == nil:
			pause.Reset(0)
		default:
			pause.Reset(r.options.Poll)
		}
	}
}

// Status is how far each projection has come, in the order in which they were given. It may be called while others run.
func (r *Runner) Status() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Status(nil), r.status...)
}

func (r *Runner) tell() {
	status := make([]Status, len(r.list))
	for i, f := range r.list {
		status[i] = f.status()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}
