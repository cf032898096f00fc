package store

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// Stager is offered by engines whose tables a transaction of a user's own can reach. What is staged in one is no part of the log: it is a row that is
// there once that transaction has committed, and whoever sees it makes a call of it, which moves it into the log (see Need.Staged).
type Stager interface {
	// Staged yields what is staged and passes the filter, in the order of staging. It pages like Rows. One that is not what was written is
	// a *events.Corrupt that names its message, beside its place, and those behind it follow.
	Staged(ctx context.Context, f StagedFilter) iter.Seq2[Staged, error]
	// WatchStaged sends on the channel, without ever blocking, when there may be something staged that was not. It is a hint: hints that nobody
	// took are one, most transactions send none, and looking is the truth. stop ends it and closes nothing.
	WatchStaged() (hints <-chan struct{}, stop func())
	// Near is about the store's time, as far as the engine knows it without asking, for ids; zero where it does not.
	Near() time.Time
}

// Staged is a message that waits beside the log.
type Staged struct {
	Place   int64     // rises with the staging; set by the engine
	At      time.Time // the store's time of staging; set by the engine
	Message events.ID
	Topic   string // for people who read the table
	Draft   []byte // what it is to be; opaque to the engine
	Payload Payload
}

// StagedFilter selects what is staged. Its zero passes all.
type StagedFilter struct {
	After    int64       // behind this place, for pages
	Limit    int         // at most so many, unless 0
	Messages []events.ID // these alone, unless empty: an index read
}

// allowsUnstaging refuses what would let go of what the view did not hold: somebody else moves it, or has moved it.
func (v View) allowsUnstaging(c Changes) error {
	for i, place := range c.Unstage {
		switch {
		case !v.Staged[place]:
			return fmt.Errorf("what is staged at place %d is to go, and was not held", place)
		case slices.Contains(c.Unstage[:i], place):
			return fmt.Errorf("what is staged at place %d is to go twice in one call", place)
		}
	}
	return nil
}
