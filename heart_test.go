package foundling

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/fsm"
)

// The store's clock was set ahead, and the commit that was to record it found no store. Until it is recorded the leader's heartbeats prove nothing:
// whose last one came before the step looks two hours older than it is, and no rule can tell.
func TestAStepThatIsNotYetRecordedLetsNobodyBeJudged(t *testing.T) {
	w := &Worker{opts: WorkerOptions{HeartbeatInterval: fsm.DefaultHeartbeatInterval, ReclaimAfter: fsm.DefaultReclaimAfter}}
	inc := &incarnation{Worker: w, missed: make(chan struct{}, 1)}
	begun := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for beat := range 20 {
		at := begun.Add(time.Duration(beat) * inc.opts.HeartbeatInterval)
		stored := at
		if beat >= 5 {
			stored = at.Add(2 * time.Hour)
		}
		inc.confirmed(at, at, stored)
		if own := inc.own(); (len(own) > 0) != (beat < 5) {
			t.Errorf("after %d heartbeats: %v", beat+1, own)
		}
	}
	if len(inc.pulse.sights) != 1 || inc.pulse.sights[0].step == nil {
		t.Fatalf("it has seen %+v, not one step", inc.pulse.sights)
	}
	inc.pulse.sights = nil // as tell leaves it
	if own := inc.own(); len(own) < 8 {
		t.Errorf("with the step recorded it knows of %v", own)
	}
}
