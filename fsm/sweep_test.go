package fsm_test

import (
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

// What came of a sweep is recorded once, whoever says it again.
func TestRecordSweep(t *testing.T) {
	finished, refused := &events.SweepFinished{Decider: workerA, Requeued: 2}, &events.SweepRefused{Reason: events.ReasonLivenessEmpty}
	tests := []struct {
		name  string
		known *fsm.Sweep
		event events.Event
		want  events.State // absent is nothing
	}{
		{"finished", nil, finished, events.Finished},
		{"refused", nil, refused, events.Refused},
		{"finished twice", &fsm.Sweep{ID: thisID, Version: 1, State: events.Finished}, finished, events.Absent},
		{"acted on proof, and refused on silence", &fsm.Sweep{ID: thisID, Version: 1, State: events.Finished}, refused, events.Refused},
		{"refused twice", &fsm.Sweep{ID: thisID, Version: 2, State: events.Refused}, refused, events.Absent},
		{"finished after it was refused", &fsm.Sweep{ID: thisID, Version: 1, State: events.Refused}, finished, events.Absent},
		{"no event of a sweep", nil, &events.WorkerLost{}, events.Absent},
	}
	for _, tt := range tests {
		held := fsm.Held{Now: now, Sweeps: map[events.ID]fsm.Sweep{}}
		if tt.known != nil {
			held.Sweeps[thisID] = *tt.known
		}
		outcome, err := fsm.RecordSweep{Sweep: thisID, Event: tt.event}.Decide(held)
		var want []fsm.Change
		if tt.want != events.Absent {
			before := held.Sweeps[thisID]
			want = []fsm.Change{{
				Value: &fsm.Sweep{ID: thisID, Version: before.Version + 1, State: tt.want}, From: before.Version,
				Transitions: []events.Transition{{Event: tt.event, Version: before.Version + 1, From: before.State, To: tt.want}},
			}}
		}
		if diff := cmp.Diff(want, outcome.Changes); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}
