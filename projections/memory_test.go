package projections

import (
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
	if err := Follow(h.Store.Read(t.Context(), "", store.Filter{}), &topics, &workers); err != nil {
		t.Fatal(err)
	}
	messages, running, dead, fleet := 0, 0, 0, 0
	for row, err := range h.Store.Rows(t.Context(), store.RowFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch row.Entity.Kind {
		case events.KindMessage:
			messages++
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
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%d %s are remembered, %d have rows", sizes[0], what, sizes[1])
		}
	}
	if got := len(workers.workers); got > fleet+running {
		t.Errorf("%d workers are remembered, %d have rows and %d claims are open", got, fleet, running)
	}
}
