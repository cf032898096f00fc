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

// survey is what a sweep read before it judged anybody.
type survey struct {
	census  fsm.Census
	workers map[events.ID]fsm.Worker // rows; one without a row is not in it
	holders map[events.ID]bool       // who has an open claim
	skipped error                    // what could not be read, and did not stop the rest
	misses  int                      // how much that is
	began   time.Time                // before anything was read
}

// survey reads who there is, who beats, and who is proven to have ended. A row that cannot be read is skipped and reported: it must not stop the
// others from getting back what they wait for. An error is that of a reading that says nothing at all.
func (s Sweep) survey(ctx context.Context) (*survey, error) {
	v := &survey{workers: map[events.ID]fsm.Worker{}, holders: map[events.ID]bool{}}
	v.census = fsm.Census{Caller: s.Caller, Own: s.Own}
	var err error
	if v.began, err = s.Store.Now(ctx); err != nil {
		return nil, err
	}
	if err := v.readRows(ctx, s.Store); err != nil {
		return nil, err
	}
	members := map[events.ID]fsm.Member{}
	for id := range v.workers {
		members[id] = fsm.Member{Worker: id}
	}
	for id := range v.holders {
		members[id] = fsm.Member{Worker: id}
	}
	v.readBeats(ctx, s.Store, members)
	if err := v.readGone(ctx, s.Store, members); err != nil {
		return nil, err
	}
	v.census.Members = slices.SortedFunc(maps.Values(members), func(a, b fsm.Member) int {
		return bytes.Compare(a.Worker[:], b.Worker[:]) // the log must not depend on a map's order
	})
	v.census.Now, err = s.Store.Now(ctx)
	return v, err
}

// skip notes what could not be read.
func (v *survey) skip(err error) {
	v.skipped = errors.Join(v.skipped, err)
	v.misses++
}

// readRows reads the workers, who has a claim, and what is known of the clock.
func (v *survey) readRows(ctx context.Context, s store.Store) error {
	for row, err := range s.Rows(ctx, store.RowFilter{Kind: events.KindWorker}) {
		if err == nil {
			var value fsm.Value
			if value, err = calls.Value(row); err == nil {
				if w, ok := value.(*fsm.Worker); ok {
					v.workers[w.ID] = *w
				}
				continue
			}
		}
		if row.Entity == (events.Entity{}) {
			var corrupt *events.Corrupt
			if !errors.As(err, &corrupt) {
				return fmt.Errorf("workers: %w", err)
			}
		}
		v.skip(err)
	}
	for row, err := range s.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Select: store.FirstClaims}) {
		if err != nil {
			v.skip(err)
			continue
		}
		v.holders[row.Worker] = true
	}
	clock, err := calls.Clock(ctx, s)
	if err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	v.census.Clock = clock
	return nil
}

// readBeats fills in the heartbeats.
func (v *survey) readBeats(ctx context.Context, s store.Store, members map[events.ID]fsm.Member) {
	heart, ok := store.As[store.Heart](s)
	if !ok {
		v.census.Unreadable = "the engine keeps no heartbeats"
		return
	}
	beats, err := heart.Beats(ctx)
	if err != nil && len(beats) == 0 {
		v.census.Unreadable = err.Error()
		return
	}
	if err != nil {
		v.skip(err)
	}
	for _, b := range beats {
		members[b.Worker] = calls.Member(b)
	}
}

// readGone fills in whose process is proven to have ended. Where the engine has no proof, nobody's is.
func (v *survey) readGone(ctx context.Context, s store.Store, members map[events.ID]fsm.Member) error {
	watcher, ok := store.As[store.ProcessWatcher](s)
	if !ok {
		return nil
	}
	ids := slices.SortedFunc(maps.Keys(members), func(a, b events.ID) int { return bytes.Compare(a[:], b[:]) })
	gone, err := watcher.Gone(ctx, ids...)
	if err != nil {
		v.skip(err)
	}
	for _, id := range gone {
		m := members[id]
		m.Gone = true
		members[id] = m
	}
	return ctx.Err()
}
