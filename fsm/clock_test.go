package fsm_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

// Scenario B10: what lies in the future ages from the last step, so that nothing looks fresh for years.
func TestAge(t *testing.T) {
	stepped := fsm.Clock{State: events.Active, StepAt: now.Add(-time.Minute)}
	ahead := fsm.Clock{State: events.Active, StepAt: now.Add(time.Minute)}
	tests := []struct {
		name  string
		clock fsm.Clock
		then  time.Duration // before now
		want  time.Duration
	}{
		{"the past", fsm.Clock{}, time.Hour, time.Hour},
		{"the past, after a step", stepped, time.Hour, time.Hour},
		{"this moment", stepped, 0, 0},
		{"the future", fsm.Clock{}, -time.Hour, 0},
		{"the future, after a step", stepped, -time.Microsecond, time.Minute},
		{"the future, years ahead", stepped, -10 * 365 * 24 * time.Hour, time.Minute},
		{"the future, and the step lies there too", ahead, -time.Hour, 0},
	}
	for _, tt := range tests {
		if got := tt.clock.Age(now, now.Add(-tt.then)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A step that several see is recorded once; another one, or the way back, is another step.
func TestStepClock(t *testing.T) {
	const tolerance = 15 * time.Second
	known := fsm.Clock{}.Evolve(&events.ClockStepped{FromAt: now, ToAt: now.Add(time.Hour)}, now.Add(time.Hour))
	tests := []struct {
		name     string
		clock    fsm.Clock
		from, to time.Duration // from now
		want     bool
	}{
		{"the first", fsm.Clock{}, 0, time.Hour, true},
		{"the same", known, 0, time.Hour, false},
		{"seen later, within the tolerance", known, tolerance, time.Hour + tolerance, false},
		{"seen earlier, within the tolerance", known, -tolerance, time.Hour - tolerance, false},
		{"from elsewhere", known, tolerance + time.Microsecond, time.Hour, true},
		{"to elsewhere", known, 0, time.Hour - tolerance - time.Microsecond, true},
		{"the way back", known, time.Hour, 0, true},
	}
	for _, tt := range tests {
		c := fsm.OperateClock{StepClock: fsm.StepClock{
			FromAt: now.Add(tt.from + 1), ToAt: now.Add(tt.to + 1), Worker: workerA, Tolerance: tolerance + 1,
		}}
		outcome, err := c.Decide(fsm.Held{Now: now.Add(tt.to), Clock: tt.clock})
		var want []events.Event
		if tt.want {
			want = []events.Event{&events.ClockStepped{FromAt: now.Add(tt.from), ToAt: now.Add(tt.to), Worker: workerA}}
		}
		if diff := cmp.Diff(want, facts(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
		for _, change := range outcome.Changes {
			after := fsm.Clock{Version: tt.clock.Version + 1, State: events.Active, StepAt: now.Add(tt.to), FromAt: now.Add(tt.from), ToAt: now.Add(tt.to)}
			if tt.clock.Version > 0 {
				after.Earlier[0] = fsm.ClockStep{At: tt.clock.StepAt, By: tt.clock.ToAt.Sub(tt.clock.FromAt)}
			}
			if diff := cmp.Diff(&after, change.Value); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
	}
}
