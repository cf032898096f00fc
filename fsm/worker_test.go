package fsm_test

import (
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

func TestWorkerLife(t *testing.T) {
	started := events.WorkerStarted{Host: "h", PID: 7, Version: "1", Topics: []string{"mail"}, Concurrency: 3, Proof: true}
	evidence := events.Evidence{Reason: events.ReasonProcessGone, Claimer: workerA}
	w := fsm.Worker{ID: workerA}
	do := func(c fsm.WorkerCommand, want events.Event) {
		t.Helper()
		list, err := w.Decide(c, now)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]events.Event{want}, list); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Name(), diff)
		}
		w = w.Evolve(list[0], now)
	}
	do(fsm.StartWorker{Started: started}, &started)
	want := fsm.Worker{
		ID: workerA, Version: 1, State: events.Live, StartedAt: now,
		Host: "h", PID: 7, Program: "1", Topics: []string{"mail"}, Concurrency: 3, Proof: true,
	}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
	do(fsm.LoseWorker{Evidence: evidence}, &events.WorkerLost{Evidence: evidence})
	if w.State != events.Lost || !w.LostAt.Equal(now) || !w.Kept() {
		t.Errorf("lost: %+v", w)
	}
	do(fsm.ReturnWorker{}, &events.WorkerReturned{LostAt: now})
	if w.State != events.Live || !w.LostAt.IsZero() {
		t.Errorf("returned: %+v", w)
	}
	do(fsm.GapWorker{FromAt: now, ToAt: now.Add(1)}, &events.WorkerGap{FromAt: now, ToAt: now.Add(1)})
	do(fsm.StopWorker{Released: 2}, &events.WorkerStopped{Released: 2})
	if w.State != events.Stopped || w.Kept() || w.Version != 5 {
		t.Errorf("stopped: %+v", w)
	}
}
