package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// How much one commit of a prune lets go and tells at most, where nothing else is said.
const (
	PruneEvents = 5_000
	PruneRows   = 1_000
)

// PlanEvents is how many events a plan looks through at most, where nothing else is said: others wait for their turn meanwhile.
const PlanEvents = 100_000

// lookAgain is how often a commit is tried whose locks change hands meanwhile.
const lookAgain = 10

// Prune is one run over the beginning of the log: what is old enough goes, page by page, each page one commit. What is open, or may come back,
// stays: it tells its state once more. Nothing goes that a durable projection has not passed.
type Prune struct {
	Store     store.Store // an engine that is a store.Pruner
	Decide    Decide
	Caller    events.ID     // the incarnation that prunes; zero where it has none
	Term      int           // under which it leads; 0 where somebody asked
	Retention time.Duration // how old what goes must be; where it is 0, Before says
	Before    time.Time     // when what goes was decided at the latest
	By        string        // who asked; empty where the beat did
	Detail    string

	Events  int         // a commit lets go of so many at most, but of one whole commit at least; 0 is PruneEvents, of a plan PlanEvents
	Rows    int         // a commit tells so many at most; 0 is PruneRows
	Commits int         // at most; 0 goes on until nothing is left that may go
	Enough  func() bool // asked between commits whether to leave the rest to the next run; nil never is
}

// Pruned is what came of a prune.
type Pruned struct {
	Commits int
	Told    int       // entities that told their state once more
	Events  int       // that went
	Through int64     // the position of the last of them; 0 where none went
	UntilAt time.Time // when its commit was decided
	Done    bool      // nothing is left that may go now
	More    bool      // of a plan: it has not looked through all that may go
	// Held is the projection whose newest checkpoint keeps what is old enough from going. Its name is empty where none does.
	Held store.CheckpointKey
}

// Run lets go of what may go. A run that is broken off, or two at once, have the effect of one: the next goes on where it ended. An engine that keeps
// its whole log is store.ErrNoPruner.
func (p Prune) Run(ctx context.Context) (Pruned, error) {
	bound, err := p.look(ctx)
	if err != nil {
		return Pruned{}, fmt.Errorf("prune: %w", err)
	}
	report := Pruned{}
	for !bound.shut && !report.Done && (p.Commits == 0 || report.Commits < p.Commits) {
		if report.Commits > 0 && p.Enough != nil && p.Enough() {
			return report, nil
		}
		receipt, _, err := p.commit(ctx, &bound)
		if err != nil {
			return report, fmt.Errorf("prune: %w", err)
		}
		report.count(receipt)
	}
	if report.Done || bound.shut {
		report.Done = true
		if report.Held, err = p.held(ctx, bound, 0); err != nil {
			return report, fmt.Errorf("prune: %w", err)
		}
	}
	return report, nil
}

// Plan is what Run would do now: it writes nothing. Told is at most PruneRows, and Commits is not known before.
func (p Prune) Plan(ctx context.Context) (Pruned, error) {
	bound, err := p.look(ctx)
	if err != nil {
		return Pruned{}, fmt.Errorf("plan of a prune: %w", err)
	}
	p.Events, p.Rows = cmp.Or(p.Events, PlanEvents), PruneRows
	report := Pruned{Done: true}
	if !bound.shut {
		seen, err := p.peek(ctx, bound)
		if err != nil {
			return Pruned{}, fmt.Errorf("plan of a prune: %w", err)
		}
		report.Told, report.Events, report.Through, report.UntilAt = len(seen.Rows), seen.Events, seen.Through, seen.At
	}
	if report.Events > max(0, p.Events-store.MaxEvents) { // another commit may have been one too many
		report.More, err = p.old(ctx, bound, p.Store.After(events.Recorded{Position: report.Through}))
		report.Done = !report.More
	}
	if err == nil && report.Done {
		report.Held, err = p.held(ctx, bound, report.Through)
	}
	if err != nil {
		return report, fmt.Errorf("plan of a prune: %w", err)
	}
	return report, nil
}

// bound is what nothing goes beyond.
type bound struct {
	calls.Known
	before time.Time
	last   store.Checkpoint // the one that has come least far; without a name where there is none
	shut   bool             // it has passed nothing yet
}

// look reads the clock, and how far the durable projections have come.
func (p Prune) look(ctx context.Context) (bound, error) {
	var b bound
	if _, ok := store.As[store.Pruner](p.Store); !ok {
		return b, store.ErrNoPruner
	}
	var err error
	if b.Now, err = p.Store.Now(ctx); err != nil {
		return b, err
	}
	if b.Clock, err = calls.Clock(ctx, p.Store); err != nil {
		return b, err
	}
	b.before = p.command().Bound(b.Clock, b.Now)
	if b.last, err = p.last(ctx); err != nil {
		return b, err
	}
	b.Upto, b.shut = b.last.Cursor, b.last.Name != "" && b.last.Cursor == ""
	return b, nil
}

// last is the checkpoint that has come least far, of the newest one of the newest version of every durable projection.
func (p Prune) last(ctx context.Context) (store.Checkpoint, error) {
	shelf, ok := store.As[store.Shelf](p.Store)
	if !ok {
		return store.Checkpoint{}, nil
	}
	list, err := shelf.Checkpoints(ctx, store.CheckpointFilter{})
	if err != nil && !errors.As(err, new(*events.Corrupt)) { // one of which not even this is left is passed over by its projection, too
		return store.Checkpoint{}, err
	}
	var last store.Checkpoint
	for first := 0; first < len(list); { // by name, then version
		behind := first
		for behind < len(list) && list[behind].Name == list[first].Name {
			behind++
		}
		newest, err := readable(ctx, shelf, list[first:behind])
		if err != nil {
			return last, err
		}
		if last.Name != "" {
			earlier, err := last.Cursor.Earlier(newest.Cursor)
			if err != nil {
				return last, fmt.Errorf("checkpoint of %s: %w", newest.Name, err)
			}
			if earlier == last.Cursor {
				first = behind
				continue
			}
		}
		last, first = newest, behind
	}
	return last, nil
}

// readable is the newest checkpoint of a projection's newest version that can be read: its runner would go on from there. Where none can, it is
// one that has passed nothing: what it runs begins again.
func readable(ctx context.Context, shelf store.Shelf, list []store.Checkpoint) (store.Checkpoint, error) {
	newest := list[len(list)-1]
	for _, c := range slices.Backward(list) {
		if c.Version != newest.Version {
			break
		}
		_, err := shelf.View(ctx, c.CheckpointKey)
		switch {
		case err == nil:
			return c, nil
		case !errors.As(err, new(*events.Corrupt)) && !errors.Is(err, store.ErrMoved):
			return c, err
		}
	}
	newest.Cursor = ""
	return newest, nil
}

func (p Prune) command() fsm.Prune {
	c := fsm.Prune{
		Retention: p.Retention, Before: p.Before, Events: p.Events, Rows: p.Rows, Decider: p.Caller, Term: p.Term, By: p.By, Detail: p.Detail,
	}
	if c.Events == 0 {
		c.Events = PruneEvents
	}
	if c.Rows == 0 {
		c.Rows = PruneRows
	}
	return c
}

// commit is one page. Where locks are to be told it is tried again with their permits.
func (p Prune) commit(ctx context.Context, b *bound) (store.Receipt, *fsm.Pruned, error) {
	for range lookAgain {
		var seen *fsm.Pruned
		receipt, err := p.Decide(ctx, func(o calls.Origin) (call store.Call) {
			call, seen = calls.Prune(o, p.command(), b.Known)
			return call
		})
		if err != nil || len(receipt.Events) > 0 || len(seen.Unseen) == 0 {
			return receipt, seen, err
		}
		b.Known = b.See(seen.Unseen)
	}
	return store.Receipt{}, nil, errors.New("the locks that are to be told of change hands all the time: the next run tries again")
}

// peek is what a page would be, of which nothing is kept.
func (p Prune) peek(ctx context.Context, b bound) (fsm.Pruned, error) {
	var seen *fsm.Pruned
	_, err := p.Decide(ctx, func(o calls.Origin) store.Call {
		var call store.Call
		call, seen = calls.Prune(o, p.command(), b.Known)
		decide := call.Fn
		call.Fn = func(view store.View) (store.Changes, error) {
			_, err := decide(view)
			return store.Changes{}, err
		}
		return call
	})
	if err != nil {
		return fsm.Pruned{}, err
	}
	return *seen, nil
}

// held is the checkpoint that keeps the oldest event from going though it is old enough, or where it is planned that some go, the next behind the
// last of them; without a name where none does.
func (p Prune) held(ctx context.Context, b bound, through int64) (store.CheckpointKey, error) {
	if b.last.Name == "" {
		return store.CheckpointKey{}, nil
	}
	after, err := store.Oldest(ctx, p.Store)
	if err != nil {
		return store.CheckpointKey{}, err
	}
	if through > 0 {
		after = p.Store.After(events.Recorded{Position: through})
	}
	if old, err := p.old(ctx, b, after); err != nil || !old {
		return store.CheckpointKey{}, err
	}
	return b.last.CheckpointKey, nil
}

// old reports whether the next event behind a cursor is old enough to go. Of one that is damaged nobody can tell: then the next that is not says.
func (p Prune) old(ctx context.Context, b bound, after store.Cursor) (bool, error) {
	asked := store.Prunable{Before: b.before, Ahead: b.Clock.StepAt}
	for range lookAgain {
		var spoilt *events.Corrupt
		for r, err := range p.Store.Read(ctx, after, store.Filter{Limit: 1}) {
			switch {
			case err == nil:
				return asked.Old(r.At(), b.Now), nil
			case errors.Is(err, store.ErrPruned):
				return false, nil // somebody else is at it
			case !errors.As(err, &spoilt):
				return false, err
			}
		}
		switch {
		case spoilt == nil:
			return false, nil // there is none
		case spoilt.Position == 0:
			return true, nil
		}
		after = p.Store.After(events.Recorded{Position: spoilt.Position})
	}
	return true, nil
}

func (r *Pruned) count(receipt store.Receipt) {
	if len(receipt.Events) == 0 {
		r.Done = true
		return
	}
	r.Commits++
	for _, e := range receipt.Events {
		if pruned, ok := e.Event.(*events.LogPruned); ok {
			r.Events += pruned.Events
			r.Through, r.UntilAt = pruned.Through, pruned.UntilAt
			continue
		}
		r.Told++
	}
}
