package fsm_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

// A message that waits for its lock keeps its place and its due time, and spends nothing by waiting.
func TestBlocking(t *testing.T) {
	m := after(t, fsm.Message{ID: thisID}, fsm.EnqueueMessage{Topic: "mail", Lock: "l", OnLocked: events.SkipIfLocked, DueAt: now.Add(time.Minute)})
	if m.Lock != "l" || m.OnLocked != events.SkipIfLocked || m.Permit() != (fsm.PermitKey{Lock: "l"}) {
		t.Fatalf("enqueued as %+v", m)
	}
	at := now.Add(time.Hour)
	m, _ = decide(t, m, fsm.ClaimMessage{Worker: workerA, LockToken: 7}, at)
	if m.LockToken != 7 || m.Permit() != (fsm.PermitKey{Lock: "l", Token: 7}) {
		t.Errorf("claimed as %+v", m)
	}
	m, _ = decide(t, m, fsm.ReleaseMessage{Token: 2, Reason: events.ReasonReleased}, at)
	want := m
	for _, step := range []struct {
		command fsm.MessageCommand
		event   events.Event
		state   events.State
		trying  bool
	}{
		{fsm.BlockMessage{}, &events.MessageBlocked{Lock: "l"}, events.Blocked, false},
		{fsm.UnblockMessage{}, &events.MessageUnblocked{Lock: "l"}, events.Queued, true},
		{fsm.BlockMessage{}, &events.MessageBlocked{Lock: "l"}, events.Blocked, false},
		{fsm.UnblockMessage{Repair: true}, &events.MessageUnblocked{Lock: "l", Repair: true}, events.Queued, true},
	} {
		var list []events.Event
		m, list = decide(t, m, step.command, at)
		if diff := cmp.Diff([]events.Event{step.event}, list); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.command.Name(), diff)
		}
		want.Version, want.State, want.Trying = want.Version+1, step.state, step.trying
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.command.Name(), diff)
		}
		if !m.Open() || !m.Live() {
			t.Errorf("after %s it is not open", step.command.Name())
		}
	}
	if claimed, _ := decide(t, m, fsm.ClaimMessage{Worker: workerB, LockToken: 9}, at); claimed.Trying || claimed.Spent() != 1 {
		t.Errorf("claimed again as %+v", claimed)
	}
	if cancelled := after(t, m, fsm.CancelMessage{}); cancelled.Trying {
		t.Errorf("cancelled as %+v", cancelled)
	}
}

// One that does not wait ends where it finds its lock taken, with no claim spent and no row left.
func TestDiscarded(t *testing.T) {
	m := after(t, fsm.Message{ID: thisID}, fsm.EnqueueMessage{Topic: "mail", Lock: "l", OnLocked: events.SkipIfLocked})
	m, list := decide(t, m, fsm.BlockMessage{}, now)
	if diff := cmp.Diff([]events.Event{&events.MessageDiscarded{Reason: events.ReasonLockTaken, Lock: "l"}}, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m.State != events.Discarded || m.Open() || m.Live() || m.Attempts != 0 {
		t.Errorf("discarded as %+v", m)
	}
}

// What ends a claim leaves nothing of its permit on the message.
func TestEndedClaimsForgetTheirPermit(t *testing.T) {
	m := after(t, fsm.Message{ID: thisID}, fsm.EnqueueMessage{Topic: "mail", Lock: "l"}, fsm.ClaimMessage{Worker: workerA, LockToken: 7})
	for _, c := range append(callbacks(2), fsm.TakeBackMessage{}, fsm.CancelMessage{}, fsm.OrphanMessage{Evidence: events.Evidence{Claimer: workerA}}) {
		if ended := after(t, m, c); ended.LockToken != 0 || ended.Lock != "l" {
			t.Errorf("%s leaves %+v", c.Name(), ended)
		}
	}
}

// Commands are recorded under these words.
func TestCommandNames(t *testing.T) {
	for want, got := range map[string]interface{ Name() string }{
		"claim": fsm.Claim{}, "enqueue": fsm.Enqueue{}, "settle": fsm.Settle{}, "reclaim": fsm.Reclaim{}, "count-claims": fsm.CountClaims{},
		"acquire": fsm.Acquire{}, "unlock": fsm.Unlock{}, "force-release": fsm.ForceRelease{}, "expire": fsm.ExpireLocks{},
		"configure-lock": fsm.OperateLock{}, "repair-lock": fsm.RepairLock{}, "step-clock": fsm.OperateClock{}, "record-sweep": fsm.RecordSweep{},
		"take-back": fsm.Operate{Command: fsm.TakeBackMessage{}}, "pause": fsm.OperateTopic{Command: fsm.PauseTopic{}},
		"purge-worker": fsm.OperateWorker{Command: fsm.PurgeWorker{}}, "elect": fsm.OperateLeader{Command: fsm.ElectLeader{}},
		"resign": fsm.OperateLeader{Command: fsm.ResignLeader{}},
	} {
		if got.Name() != want {
			t.Errorf("%T is %q, want %q", got, got.Name(), want)
		}
	}
}

// The parameters that the events of a commit do not carry are recorded with it.
func TestParametersAreRecorded(t *testing.T) {
	settle, count := fsm.Settle{Sender: workerA, Recordable: 3, Unrecorded: 2}, fsm.CountClaims{Page: 7}
	var gotSettle fsm.Settle
	var gotCount fsm.CountClaims
	for want, got := range map[events.Visitor]events.Visitor{&settle: &gotSettle, &count: &gotCount} {
		if err := events.ReadFields(events.AppendFields(nil, want), got); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-recorded +read):\n%s", diff)
		}
	}
}
