package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// ErrNoPruner says that an engine keeps its log for ever.
var ErrNoPruner = errors.New("engine does not prune its log")

// Pruner is offered by engines that can let go of the beginning of their log. What goes, goes in a commit that says so: see Changes.Prune.
type Pruner interface {
	// First is the cursor before the oldest event that is kept; the zero while none has gone.
	First(ctx context.Context) (Cursor, error)
}

// Oldest is the cursor before the oldest event that a store keeps: where whoever wants all that there is begins to read.
func Oldest(ctx context.Context, s Store) (Cursor, error) {
	pruner, ok := As[Pruner](s)
	if !ok {
		return "", nil
	}
	return pruner.First(ctx)
}

// Prunable asks how much of the beginning of the log may go. Its zero asks for nothing.
type Prunable struct {
	Before time.Time // only commits that were decided before this time, up to the first that was not
	// Ahead is the time as which commits count that were decided after View.Now, when the clock was ahead. Where it is zero they never go.
	Ahead time.Time
	// Upto lets only events go that this cursor has passed, where it is not the zero. And none goes of a message that has no row and was moved
	// behind the cursor for the last time: who reads on from there must still learn what it was. What Read refuses refuses the call, but for
	// ErrPruned.
	Upto   Cursor
	Events int // at most so many, but at least one commit; 0 asks for nothing
	Rows   int // at most so many rows in Pruning.Rows
}

// Old reports whether a commit that was decided at a time may go by its age, in a view of another time.
func (p Prunable) Old(at, now time.Time) bool {
	if !at.After(now) {
		return at.Before(p.Before)
	}
	return !p.Ahead.IsZero() && p.Ahead.Before(p.Before)
}

// Asks reports whether it asks for anything.
func (p Prunable) Asks() bool { return p.Events > 0 }

// NoPruner is the answer of an engine that is no Pruner to a call that asks for a prune. It calls this of every call, before it does anything.
func (c Call) NoPruner() error {
	if !c.Need.Prune.Asks() && c.Need.Prune.Rows == 0 {
		return nil
	}
	return fmt.Errorf("command %q of commit %s asks for a prune: %w", c.Command.Name, c.ID, ErrNoPruner)
}

// Pruning is what an engine says to it.
type Pruning struct {
	Through int64     // the position of the last event that may go, which is the last of its commit; 0 where none may
	At      time.Time // when that commit was decided, which may be after View.Now
	Events  int       // that may go
	// Rows are kept rows that have an event at or before Through and no newer one that says all of their state (see events.Type.Snapshots), at
	// most Prunable.Rows of them: before the events go, each needs one. Their entities are held.
	Rows []Row
}

// allows refuses a prune that is not what the view said: events would go that somebody needs.
func (p Pruning) allows(asked Prunable, c Changes) error {
	switch {
	case c.Prune == 0:
		return nil
	case c.Prune != p.Through:
		return fmt.Errorf("prune through %d: the store said that events through %d may go", c.Prune, p.Through)
	case len(p.Rows) >= asked.Rows:
		return fmt.Errorf("prune through %d: %d rows need a snapshot first and no more than %d were asked for, so there may be others",
			c.Prune, len(p.Rows), asked.Rows)
	}
	told := make(map[events.Entity]bool, len(p.Rows))
	for i := range c.Rows {
		change := &c.Rows[i]
		told[change.Row.Entity] = change.Gone || slices.ContainsFunc(change.Transitions, func(t events.Transition) bool { return t.Event.Type().Snapshots() })
	}
	for _, row := range p.Rows {
		if !told[row.Entity] {
			return fmt.Errorf("prune through %d: %s has events there and no newer one that says all of it", c.Prune, row.Entity)
		}
	}
	return nil
}

// Erasure names a message whose contents go, in a commit with an event that says so.
type Erasure struct {
	Message events.ID
}

// Contents are the bytes of a message: nil where none were given, or none are kept any more.
type Contents struct {
	Payload *Payload
	Result  *Payload
	// Topic is that of a message whose beginning was let go, for as long as an event is left that moved it. It is empty of every other, whose
	// first event tells it, and where it could not be read when that went.
	Topic string
}

// PrunedError is the error of reading what is kept no more. It is an ErrPruned.
type PrunedError struct {
	Asked Cursor // after which it was read
	First Cursor // after which everything is kept
}

// Error names both.
func (e *PrunedError) Error() string {
	asked := fmt.Sprintf("cursor %q", string(e.Asked))
	if e.Asked == "" {
		asked = "the beginning"
	}
	return fmt.Sprintf("events behind %s are kept no more, the oldest that are stand behind cursor %q: %v", asked, string(e.First), ErrPruned)
}

// Unwrap is ErrPruned.
func (e *PrunedError) Unwrap() error { return ErrPruned }
