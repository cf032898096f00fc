package findings_test

import (
	"context"
	"slices"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/store"
	"pgregory.net/rapid"
)

// Of a busy store that keeps its rules there is no finding of a fault of Foundling, and one of every permit whose holder is gone.
func TestListOfABusyStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history.New(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
		if err := h.Busy(rapid.IntRange(1, 80).Draw(t, "steps")); err != nil {
			t.Fatal(err)
		}
		state := findings.NewState()
		if err := projections.Follow(h.Store.Read(context.Background(), "", store.Filter{}), state); err != nil {
			t.Fatal(err)
		}
		facts := findings.Facts{Now: h.Now(), Heart: true}
		beats, err := h.Store.Beats(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range beats {
			facts.Beats = append(facts.Beats, findings.Beat{Worker: b.Worker, Interval: b.Interval, At: b.At})
		}
		list := findings.List(state, facts)
		for _, f := range list {
			if f.Code == findings.LockIdle || f.Code == findings.LockRepaired {
				t.Errorf("%s", findings.Text([]findings.Finding{f}))
			}
		}
		for _, lock := range state.Locks.All() {
			for _, p := range lock.Out {
				w, known := state.Workers.Worker(p.Worker)
				if !known {
					t.Errorf("permit %d of %q is held by a worker that the projection does not know", p.Token, lock.Name)
				}
				found := slices.ContainsFunc(list, func(f findings.Finding) bool {
					return f.Code == findings.LockHolderGone && f.Subject == events.LockEntity(lock.Name) && slices.Contains(f.Positions, p.Position)
				})
				if found != (w.State != events.Live) {
					t.Errorf("permit %d of %q: its holder is %s, that it is gone is found is %t", p.Token, lock.Name, w.State, found)
				}
			}
		}
	})
}
