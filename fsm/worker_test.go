package fsm_test

import (
	"errors"
	"testing"
	"time"

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

// A stop gives back claims, with the permits that they took, and whatever else the worker holds. Until a page is not full it goes on.
func TestStopGivesPermitsBack(t *testing.T) {
	m, permit := running(1, workerA, now, 4)
	theirs := session(workerB, now, 6)
	many := make([]fsm.Permit, fsm.StopPage)
	for i := range many {
		many[i] = session(workerA, now, events.Token(100+i))
	}
	tests := []struct {
		name    string
		claims  []fsm.Message
		permits []fsm.Permit
		stopped bool
		freed   int
	}{
		{"nothing", nil, nil, true, 0},
		{"a claim with its permit", []fsm.Message{m}, []fsm.Permit{permit}, true, 1},
		{"a session beside", []fsm.Message{m}, []fsm.Permit{permit, session(workerA, now, 5)}, true, 2},
		{"a permit of a claim that ended before", nil, []fsm.Permit{permit}, true, 1},
		{"another's", nil, []fsm.Permit{theirs}, true, 0},
		{"a full page of sessions", nil, many, false, fsm.StopPage},
		{"one less", nil, many[1:], true, fsm.StopPage - 1},
		{"a full page with another's among it", nil, append([]fsm.Permit{theirs}, many[1:]...), true, fsm.StopPage - 1},
	}
	for _, tt := range tests {
		held := fsm.Held{
			Now: now, Workers: map[events.ID]fsm.Worker{workerA: workerIn(events.Live)}, Claims: map[events.ID][]fsm.Message{workerA: tt.claims},
			Permits: tt.permits, Locks: heldLock(200, len(tt.permits)), Waiting: map[string][]fsm.Message{"l": {waiting(7, "mail")}},
		}
		outcome, err := fsm.OperateWorker{Worker: workerA, Command: fsm.StopWorker{}}.Decide(held)
		if err != nil {
			t.Fatal(err)
		}
		got := told(outcome)
		if (got["wa"] == "stopped") != tt.stopped || len(outcome.Permits) != tt.freed || (got["m7"] == "unblocked") != (tt.freed > 0) {
			t.Errorf("%s: %v", tt.name, got)
		}
		for _, p := range outcome.Permits {
			if !p.Back || p.Permit.Worker != workerA {
				t.Errorf("%s: %+v", tt.name, p)
			}
		}
	}
}

// One that was lost has returned when it has beaten since: heard of by an older heartbeat, it would be lost again at once.
func TestReturn(t *testing.T) {
	lost := fsm.Worker{ID: workerA, Version: 2, State: events.Lost, LostAt: now.Add(-time.Minute)}
	tests := []struct {
		name  string
		beats map[events.ID]fsm.Member
		want  map[string]string
	}{
		{"beaten since", beating(time.Minute - time.Microsecond), map[string]string{"wa": "returned"}},
		{"beaten just then", beating(time.Minute), map[string]string{}},
		{"not beaten since", beating(time.Hour), map[string]string{}},
		{"where no heartbeats are kept", nil, map[string]string{"wa": "returned"}},
	}
	for _, tt := range tests {
		held := fsm.Held{Now: now, Workers: map[events.ID]fsm.Worker{workerA: lost}, Beats: tt.beats}
		outcome, err := fsm.OperateWorker{Worker: workerA, Command: fsm.ReturnWorker{}}.Decide(held)
		if diff := cmp.Diff(tt.want, told(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}

// Scenario A08: a lost worker is remembered for its time, and for as long as it holds something or is heard of.
func TestPurge(t *testing.T) {
	const ttl = fsm.DefaultWorkerTTL
	m, permit := running(1, workerA, now, 4)
	lost := fsm.Worker{ID: workerA, Version: 2, State: events.Lost, LostAt: now.Add(-ttl)}
	silent := fsm.Member{Worker: workerA, LastBeatAt: now.Add(-ttl)}
	tests := []struct {
		name   string
		given  func(*fsm.Worker, *fsm.Held)
		purged bool
	}{
		{"lost exactly so long ago", func(*fsm.Worker, *fsm.Held) {}, true},
		{"lost a microsecond later", func(w *fsm.Worker, _ *fsm.Held) { w.LostAt = w.LostAt.Add(time.Microsecond) }, false},
		{"silent for as long", func(_ *fsm.Worker, h *fsm.Held) { h.Beats = map[events.ID]fsm.Member{workerA: silent} }, true},
		{"heard of since", func(_ *fsm.Worker, h *fsm.Held) {
			silent := silent
			silent.LastBeatAt = silent.LastBeatAt.Add(time.Microsecond)
			h.Beats = map[events.ID]fsm.Member{workerA: silent}
		}, false},
		{"it has a claim", func(_ *fsm.Worker, h *fsm.Held) { h.Claims = map[events.ID][]fsm.Message{workerA: {m}} }, false},
		{"it has a permit", func(_ *fsm.Worker, h *fsm.Held) { h.Permits = []fsm.Permit{permit} }, false},
		{"lost by a clock that was ahead", func(w *fsm.Worker, h *fsm.Held) { w.LostAt = now.Add(time.Hour) }, false},
		{"lost by a clock that was ahead, and was set back so long ago", func(w *fsm.Worker, h *fsm.Held) {
			w.LostAt, h.Clock = now.Add(time.Hour), fsm.Clock{State: events.Active, StepAt: now.Add(-ttl)}
		}, true},
	}
	for _, tt := range tests {
		w, held := lost, fsm.Held{Now: now}
		tt.given(&w, &held)
		held.Workers = map[events.ID]fsm.Worker{workerA: w}
		outcome, err := fsm.OperateWorker{Worker: workerA, Command: fsm.PurgeWorker{TTL: ttl}}.Decide(held)
		want := map[string]string{}
		if tt.purged {
			want["wa"] = "purged"
		}
		if diff := cmp.Diff(want, told(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
	for _, state := range []events.State{events.Absent, events.Live, events.Stopped, events.Purged} {
		held := fsm.Held{Now: now.Add(48 * time.Hour), Workers: map[events.ID]fsm.Worker{workerA: workerIn(state)}}
		outcome, err := fsm.OperateWorker{Worker: workerA, Command: fsm.PurgeWorker{TTL: ttl}}.Decide(held)
		var r *fsm.Refusal
		if !errors.As(err, &r) || len(outcome.Changes) > 0 {
			t.Errorf("a worker that is %s: %v, %v", state, err, told(outcome))
		}
	}
}
