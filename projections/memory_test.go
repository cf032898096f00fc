package projections

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/store"
)

// What has ended leaves the maps: they hold what the store keeps rows of, whatever happened before.
func TestMemoryFollowsWhatIsOpen(t *testing.T) {
	h := history.New(rand.New(rand.NewPCG(1, 0)).IntN)
	if err := h.Busy(2000); err != nil {
		t.Fatal(err)
	}
	var topics Topics
	var workers Workers
	var locks Locks
	if err := Follow(h.Store.Read(t.Context(), "", store.Filter{}), &topics, &workers, &locks); err != nil {
		t.Fatal(err)
	}
	messages, running, dead, fleet, withLock, kept, permits := 0, 0, 0, 0, 0, 0, 0
	for _, err := range h.Store.Permits(t.Context(), store.PermitFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		permits++
	}
	for row, err := range h.Store.Rows(t.Context(), store.RowFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch row.Entity.Kind {
		case events.KindMessage:
			if messages++; row.Lock != "" {
				withLock++
			}
		case events.KindLock:
			kept++
		case events.KindWorker:
			fleet++
		}
		switch row.State {
		case events.Running:
			running++
		case events.DeadLettered:
			dead++
		}
	}
	for what, sizes := range map[string][2]int{
		"messages":     {len(topics.messages), messages},
		"claims":       {len(topics.claims), running},
		"dead letters": {len(topics.dead), dead},
		"holders":      {len(workers.holders), running},
		"permits":      {len(workers.permits), permits},
		"lock users":   {len(locks.messages), withLock},
		"locks":        {len(locks.locks), kept},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%d %s are remembered, %d have rows", sizes[0], what, sizes[1])
		}
	}
	if got := len(workers.workers); got > fleet+running+permits {
		t.Errorf("%d workers are remembered, %d have rows, %d claims are open and %d permits out", got, fleet, running, permits)
	}
}

// A lock for every customer, each free again: the folds remember none of them.
func TestMemoryForgetsFreeLocks(t *testing.T) {
	h := history.New(func(int) int { return 0 })
	worker := h.ID()
	for n := range 500 {
		permit, err := h.Acquire(worker, fmt.Sprintf("customer-%d", n), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Unlock(worker, permit.PermitKey); err != nil {
			t.Fatal(err)
		}
	}
	var workers Workers
	var locks Locks
	if err := Follow(h.Store.Read(t.Context(), "", store.Filter{}), &workers, &locks); err != nil {
		t.Fatal(err)
	}
	if locks.Totals().Released != 500 || len(locks.locks)+len(workers.workers)+len(workers.permits) != 0 {
		t.Errorf("after %+v %d locks, %d workers and %d permits are remembered",
			locks.Totals(), len(locks.locks), len(workers.workers), len(workers.permits))
	}
}
