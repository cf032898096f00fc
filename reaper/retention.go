package reaper

import (
	"context"
	"errors"
	"time"

	"github.com/foundling-go/foundling/store"
)

// How much of the log one step of the beat lets go at most: so many commits, and none that begins after a share of the step's own time, which is a
// third of the lease's life. What is left the next step goes on with, so that heartbeats and sweeps are never kept waiting by it.
const (
	pruneCommits = 50
	pruneShare   = 10
)

// pruneSlack is the part of the retention by which the oldest event must be older before the beat begins: of ninety days a little less than one. It
// then lets go of all that is old enough. So a log that is pruned all the time tells of it once a day, and not at every step.
const pruneSlack = 100

// prune lets go of what is older than the retention. An engine that keeps its whole log is left alone, and so is every log as long as the store's
// clock is not confirmed: should it have been set ahead, everything looks old, until the process whose heartbeats show it has said so.
func (b *Beat) prune(ctx context.Context, own []time.Time, step *Step) error {
	if b.Retention <= 0 {
		return nil
	}
	now, err := b.Store.Now(ctx)
	if err != nil || !b.steady(own, now) {
		return err
	}
	old, err := b.old(ctx, now)
	if err != nil || !old {
		return err
	}
	p := Prune{
		Store: b.Store, Decide: b.Decide, Caller: b.Caller, Term: step.Term, Retention: b.Retention, Commits: pruneCommits,
		Enough: func() bool {
			at, err := b.Store.Now(ctx)
			return err != nil || at.Sub(now).Abs() >= b.Life/3/pruneShare
		},
	}
	step.Pruned, err = p.Run(ctx)
	return err
}

// steady reports whether the caller's last heartbeats stand close to each other and to the store's time.
func (b *Beat) steady(own []time.Time, now time.Time) bool {
	within := b.Thresholds.After / 2
	n := len(own)
	return n > 1 && now.Sub(own[n-1]) <= within && own[n-1].Sub(own[n-2]) <= within
}

// old reports whether the oldest event may be older than the retention and its slack. It is a look that takes nobody's turn to write.
func (b *Beat) old(ctx context.Context, now time.Time) (bool, error) {
	pruner, ok := store.As[store.Pruner](b.Store)
	if !ok {
		return false, nil
	}
	first, err := pruner.First(ctx)
	if err != nil {
		return false, err
	}
	for r, err := range b.Store.Read(ctx, first, store.Filter{Limit: 1}) {
		if errors.Is(err, store.ErrPruned) {
			return false, nil // somebody else is at it
		}
		return err == nil && r.At().Before(now.Add(-b.Retention-b.Retention/pruneSlack)), err
	}
	return false, nil
}
