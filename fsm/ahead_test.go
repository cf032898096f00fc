package fsm_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
)

// The store's clock was set back twice: by much, which the log knows, and a while later by no more than an interval, which nobody can tell from a late
// answer. A worker that had beaten a moment before the second was as old as the first, and its message and lock were given to another.
func TestAHeartbeatJustAheadOfTheClockIsNotAsOldAsItsLastStep(t *testing.T) {
	const interval = 5 * time.Second
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := fsm.Clock{Version: 1, State: events.Active, StepAt: now.Add(-time.Hour), FromAt: now.Add(time.Hour), ToAt: now.Add(-time.Hour)}
	thresholds := events.Thresholds{After: 4 * interval}
	for _, test := range []struct {
		ahead time.Duration
		want  events.Reason
	}{
		{-thresholds.After, ""},
		{-thresholds.After - 1, events.ReasonSilent},
		{0, ""},
		{interval, ""},
		{2 * interval, ""},
		{2*interval + 1, events.ReasonSilent}, // from before the step that is known
		{time.Hour, events.ReasonSilent},
	} {
		m := fsm.Member{Worker: events.ID{1}, LastBeatAt: now.Add(test.ahead), Interval: interval, FenceAfter: 2 * interval}
		if got := fsm.Judge(m, thresholds, clock, now); got != test.want {
			t.Errorf("%s ahead: %q, want %q", test.ahead, got, test.want)
		}
		live := fsm.Census{Now: now, Clock: clock, Members: []fsm.Member{m}}.Live(thresholds)
		if lives := len(live) == 1; lives != (test.want == "") {
			t.Errorf("%s ahead: in the live set is %t", test.ahead, lives)
		}
	}
}
