package reaper_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// A worker that stopped while the store was out of reach, or was killed between its first heartbeat and its start, left a heartbeat row that
// nobody took: the rows of workers, by which the beat forgets, did not tell of it.
func TestTheHeartbeatOfOneWhoIsNotKnownIsForgotten(t *testing.T) {
	s := newStage(t, 2, 2)
	b := s.beatBy(s.sweeper)
	b.WorkerTTL = 10 * time.Minute
	never, stopped := newID(t), newID(t)
	s.beat(never, stopped)
	for _, command := range []fsm.WorkerCommand{fsm.StartWorker{Started: events.WorkerStarted{}}, fsm.StopWorker{}} {
		s.do(func(o calls.Origin) store.Call {
			return calls.OperateWorker(o, fsm.OperateWorker{Worker: stopped, Command: command})
		})
	}
	for passed := time.Duration(0); passed < 12*time.Minute; passed += time.Minute {
		beats, err := s.heart.Beats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := 4; passed < 10*time.Minute && len(beats) != want {
			t.Fatalf("%d heartbeat rows after %s, want %d", len(beats), passed, want)
		}
		s.pass(time.Minute, s.sweeper, s.holder)
		step(s, b)
	}
	beats, err := s.heart.Beats(t.Context())
	if err != nil || len(beats) != 2 {
		t.Errorf("%d heartbeat rows, %v; want those of the two who live", len(beats), err)
	}
}
