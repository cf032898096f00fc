package reaper

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

// How much one commit of a prune lets go and tells at most, where nothing else is said.
const (
	PruneEvents = 5_000
	PruneRows   = 1_000
)

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

	Events  int         // a commit lets go of so many at most, but of one whole commit at least; 0 is PruneEvents
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
		if report.Held, err = p.held(ctx, bound); err != nil {
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
	p.Events, p.Rows = all, PruneRows
	report := Pruned{Done: true}
	if !bound.shut {
		seen, err := p.peek(ctx, bound)
		if err != nil {
			return Pruned{}, fmt.Errorf("plan of a prune: %w", err)
		}
		report.Told, report.Events, report.Through, report.UntilAt = len(seen.Rows), seen.Events, seen.Through, seen.At
	}
	if report.Held, err = p.held(ctx, bound); err != nil {
		return report, fmt.Errorf("plan of a prune: %w", err)
	}
	return report, nil
}

// all is more events than a log has.
const all = 1 << 60

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
	for row, err := range p.Store.Rows(ctx, store.RowFilter{Entities: []events.Entity{events.ClockEntity()}}) {
		if err != nil {
			return b, err
		}
		v, err := calls.Value(row)
		if err != nil {
			return b, err
		}
		if clock, ok := v.(*fsm.Clock); ok {
			b.Clock = *clock
		}
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
	list, err := shelf.Checkpoints(ctx, store.CheckpointFilter{Newest: true})
	if err != nil {
		return store.Checkpoint{}, err
	}
	newest := map[string]store.Checkpoint{}
	for _, c := range list {
		if c.Version >= newest[c.Name].Version {
			newest[c.Name] = c
		}
	}
	var last store.Checkpoint
	for _, c := range list {
		if newest[c.Name].CheckpointKey != c.CheckpointKey {
			continue
		}
		if last.Name != "" {
			first, err := last.Cursor.Earlier(c.Cursor)
			if err != nil {
				return last, fmt.Errorf("checkpoint of %s: %w", c.Name, err)
			}
			if first == last.Cursor {
				continue
			}
		}
		last = c
	}
	return last, nil
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

// held is the checkpoint that keeps the next event from going though it is old enough; without a name where none does.
func (p Prune) held(ctx context.Context, b bound) (store.CheckpointKey, error) {
	if b.last.Name == "" {
		return store.CheckpointKey{}, nil
	}
	for r, err := range p.Store.Read(ctx, b.Upto, store.Filter{Limit: 1}) {
		switch {
		case errors.Is(err, store.ErrPruned):
			return b.last.CheckpointKey, nil // it has not even come to what is kept
		case err != nil:
			return store.CheckpointKey{}, err
		case r.At().Before(b.before):
			return b.last.CheckpointKey, nil
		}
	}
	return store.CheckpointKey{}, nil
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
