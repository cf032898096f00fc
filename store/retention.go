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
	Upto   Cursor    // only events that this cursor has passed, where it is not the zero; what Read refuses refuses the call, but for ErrPruned
	Events int       // at most so many, but at least one commit; 0 asks for nothing
	Rows   int       // at most so many rows in Pruning.Rows
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
	At      time.Time // of that commit
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
