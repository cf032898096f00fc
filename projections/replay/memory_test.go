package replay

import (
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections/internal/history"
)

// What has ended leaves the maps: the memory of a verification does not grow with history.
func TestVerifierHoldsOnlyWhatIsOpen(t *testing.T) {
	h := history.New(func(int) int { return 0 })
	worker := events.ID{15: 9}
	for range 300 {
		ids, err := h.Enqueue("mail", 1, fsm.EnqueueMessage{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Claim(worker, "mail", 1); err != nil {
			t.Fatal(err)
		}
		if err := h.Settle(worker, ids[0], fsm.CompleteMessage{Token: 2}); err != nil {
			t.Fatal(err)
		}
	}
	v := newVerifier(h.Store, Options{})
	if err := v.verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v.report.Entities != 301 || len(v.held) != 1 || len(v.commits) != 0 || len(v.counted) != 1 {
		t.Errorf("after %d entities %d are held, %d commits, %d counts", v.report.Entities, len(v.held), len(v.commits), len(v.counted))
	}
}

// The filter never forgets, and is wrong seldom enough.
func TestEndedNeverForgets(t *testing.T) {
	e := newEnded()
	entity := func(n int) events.Entity {
		return events.MessageEntity(events.ID{13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)})
	}
	const n = 100_000
	for i := range n {
		e.add(entity(i))
	}
	wrong := 0
	for i := range n {
		if !e.maybe(entity(i)) {
			t.Fatalf("%s is forgotten", entity(i))
		}
		if e.maybe(entity(n + i)) {
			wrong++
		}
	}
	if wrong > n/1000 {
		t.Errorf("%d of %d are taken for others", wrong, n)
	}
}
