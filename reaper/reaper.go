// Package reaper lets time pass: it gives back what the dead held.
//
// By now it acts on one kind of evidence, proof of death: where all workers of a store live on one machine, the kernel tells whether
// the process of an incarnation has ended (see store.ProcessWatcher). Silence, which is weaker, is not judged here yet.
package reaper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// ErrCallerMissing says that a sweep was refused because the one who asked for it is not known to the store as live: whoever cannot
// see himself must not judge others.
var ErrCallerMissing = errors.New("caller_missing")

// Page is how many claims a reclaim commit takes back at most.
const Page = 100

// Decide commits one call and settles its outcome, as a client does.
type Decide func(ctx context.Context, prepare func(calls.Origin) store.Call) (store.Receipt, error)

// Sweep is one run over all workers.
type Sweep struct {
	Store  store.Store
	Decide Decide
	Caller events.ID // the incarnation that sweeps
	Limit  int       // orphan_max_attempts
}

// Report is what a sweep did.
type Report struct {
	Workers      []fsm.Worker // whose claims were given back
	Requeued     int
	DeadLettered int
}

// Run gives back the claims of every incarnation whose process is proven to have ended, its messages and their slots page by page,
// each page one commit. Running it twice, or from two processes at once, has the effect of once.
//
// It changes nothing where the engine has no such proof (store.ErrNoProof), or where the caller is not known to live itself
// (ErrCallerMissing). What cannot be read is skipped, the others are served, and the error names it.
func (s Sweep) Run(ctx context.Context) (Report, error) {
	var report Report
	watcher, ok := store.As[store.ProcessWatcher](s.Store)
	if !ok {
		return report, fmt.Errorf("sweep: %w", store.ErrNoProof)
	}
	workers, skipped := s.census(ctx)
	ids := slices.SortedFunc(maps.Keys(workers), func(a, b events.ID) int { return bytes.Compare(a[:], b[:]) }) // the log must not depend on a map's order
	gone, err := watcher.Gone(ctx, ids...)
	skipped = errors.Join(skipped, err)
	if caller, ok := workers[s.Caller]; !ok || caller.State != events.Live || slices.Contains(gone, s.Caller) {
		return report, errors.Join(fmt.Errorf("sweep: worker %s: %w", s.Caller, ErrCallerMissing), skipped)
	}
	beats := s.lastBeats(ctx)
	for _, id := range gone {
		evidence := events.Evidence{
			Reason: events.ReasonProcessGone, Claimer: id, LastBeatAt: beats[id], Decider: s.Caller, Limit: s.Limit,
		}
		before := report.Requeued + report.DeadLettered
		if err := s.reclaim(ctx, workers[id], evidence, &report); err != nil {
			skipped = errors.Join(skipped, fmt.Errorf("worker %s: %w", id, err))
		}
		if report.Requeued+report.DeadLettered > before {
			report.Workers = append(report.Workers, workers[id])
		}
		if err := ctx.Err(); err != nil {
			return report, fmt.Errorf("sweep: %w", err)
		}
	}
	if skipped != nil {
		return report, fmt.Errorf("sweep: %w", skipped)
	}
	return report, nil
}

// census is every worker that has not stopped and whose end can be proven. A row that cannot be read is skipped and reported; it must not
// stop the others from getting back what they wait for.
func (s Sweep) census(ctx context.Context) (map[events.ID]fsm.Worker, error) {
	workers := map[events.ID]fsm.Worker{}
	var skipped error
	for row, err := range s.Store.Rows(ctx, store.RowFilter{Kind: events.KindWorker}) {
		if err != nil {
			skipped = errors.Join(skipped, err)
			continue
		}
		v, err := calls.Value(row)
		if err != nil {
			skipped = errors.Join(skipped, err)
			continue
		}
		if w, ok := v.(*fsm.Worker); ok && w.Proof {
			workers[w.ID] = *w
		}
	}
	return workers, skipped
}

// lastBeats is when each incarnation was last heard of. It goes into the evidence only; what is not to be had is left out.
func (s Sweep) lastBeats(ctx context.Context) map[events.ID]time.Time {
	heart, ok := store.As[store.Heart](s.Store)
	if !ok {
		return nil
	}
	beats, err := heart.Beats(ctx)
	if err != nil {
		return nil
	}
	last := make(map[events.ID]time.Time, len(beats))
	for _, b := range beats {
		last[b.Worker] = b.At
	}
	return last
}

// reclaim goes on page by page until a commit finds nothing left to change. One held to be lost before, who holds nothing, costs a look
// and no commit.
func (s Sweep) reclaim(ctx context.Context, w fsm.Worker, evidence events.Evidence, report *Report) error {
	if w.State == events.Lost {
		holds, err := s.holds(ctx, w.ID)
		if err != nil || !holds {
			return err
		}
	}
	for {
		receipt, err := s.Decide(ctx, func(o calls.Origin) store.Call {
			return calls.Reclaim(o, fsm.Reclaim{Evidence: evidence}, Page)
		})
		if err != nil {
			return err
		}
		if len(receipt.Events) == 0 {
			return nil
		}
		for _, r := range receipt.Events {
			switch r.Event.Type() {
			case events.TypeMessageRequeued:
				report.Requeued++
			case events.TypeMessageDeadLettered:
				report.DeadLettered++
			}
		}
	}
}

// holds reports whether a worker has an open claim.
func (s Sweep) holds(ctx context.Context, worker events.ID) (bool, error) {
	for _, err := range s.Store.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Worker: worker}) {
		return true, err
	}
	return false, nil
}
