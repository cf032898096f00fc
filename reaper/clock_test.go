package reaper_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// A worker died, the store's clock was set back by two hours, and nobody who lived then was there to say so: those who came later saw a heartbeat
// that lay ahead and looked young, and what the dead worker held would have been held for two hours more.
func TestAHeartbeatAheadOfTheClockIsNotYoungForEver(t *testing.T) {
	s := newStage(t, 2, 2)
	s.now = s.now.Add(-2 * time.Hour)
	s.sweeper = newID(t) // one who came later
	s.own = nil
	s.pass(15*time.Second, s.sweeper)
	if report, err := s.sweep(); err != nil || report.Acted() {
		t.Fatalf("first sweep: %+v, %v", report, err)
	}
	steps := 0
	for r, err := range s.store.Read(t.Context(), "", store.Filter{Types: []events.Type{events.TypeClockStepped}}) {
		if err != nil {
			t.Fatal(err)
		}
		steps++
		if e, ok := r.Event.(*events.ClockStepped); !ok || e.FromAt.Sub(e.ToAt) < 119*time.Minute || e.Worker != s.sweeper {
			t.Errorf("step: %+v", r.Event)
		}
	}
	s.pass(150*time.Second, s.sweeper)
	report, err := s.sweep()
	if err != nil || steps != 1 || report.Requeued != 2 || report.Doubt != nil {
		t.Errorf("%d steps of the clock are recorded, want 1; later sweep: %v, %+v", steps, err, report)
	}
}
