package reaper

import (
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
	retention, err := b.longest(ctx)
	if err != nil || retention < 0 {
		return err
	}
	old, err := b.old(ctx, now, retention)
	if err != nil || !old {
		return err
	}
	p := Prune{
		Store: b.Store, Decide: b.Decide, Caller: b.Caller, Term: step.Term, Retention: retention, Commits: pruneCommits,
		Enough: func() bool {
			at, err := b.Store.Now(ctx)
			return err != nil || at.Sub(now).Abs() >= b.Life/3/pruneShare
		},
	}
	step.Pruned, err = p.Run(ctx)
	return err
}

// longest is the retention that counts: the caller's, or that of a worker that needs the log for longer. One that cannot be read may need all of it.
func (b *Beat) longest(ctx context.Context) (time.Duration, error) {
	workers := []fsm.Worker{{State: events.Live, Retention: b.Retention}}
	for row, err := range b.Store.Rows(ctx, store.RowFilter{Kind: events.KindWorker}) {
		if err != nil {
			return 0, fmt.Errorf("retention of the workers: %w", err)
		}
		v, err := calls.Value(row)
		w, ok := v.(*fsm.Worker)
		if err != nil || !ok {
			return 0, fmt.Errorf("retention of %s: %w", row.Entity, err)
		}
		workers = append(workers, *w)
	}
	return fsm.LongestRetention(slices.Values(workers)), nil
}

// steady reports whether the caller's last heartbeats stand close to each other and to the store's time.
func (b *Beat) steady(own []time.Time, now time.Time) bool {
	within := b.Thresholds.After / 2
	n := len(own)
	return n > 1 && now.Sub(own[n-1]) <= within && own[n-1].Sub(own[n-2]) <= within
}

// old reports whether the oldest event may be older than the retention and its slack. It is a look that takes nobody's turn to write.
func (b *Beat) old(ctx context.Context, now time.Time, retention time.Duration) (bool, error) {
	pruner, ok := store.As[store.Pruner](b.Store)
	if !ok {
		return false, nil
	}
	first, err := pruner.First(ctx)
	if err != nil {
		return false, err
	}
	for r, err := range b.Store.Read(ctx, first, store.Filter{Limit: 1}) {
		switch {
		case errors.Is(err, store.ErrPruned):
			return false, nil // somebody else is at it
		case errors.As(err, new(*events.Corrupt)):
			return true, nil // nobody can tell by it: the prune looks at its commit
		case err != nil:
			return false, err
		}
		asked := store.Prunable{Before: now.Add(-retention - retention/pruneSlack)}
		if r.At().After(now) {
			clock, err := calls.Clock(ctx, b.Store)
			if err != nil {
				return false, err
			}
			asked.Ahead = clock.StepAt
		}
		return asked.Old(r.At(), now), nil
	}
	return false, nil
}
