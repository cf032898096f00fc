package fsm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

func TestFreePermits(t *testing.T) {
	tests := []struct {
		name string
		lock fsm.Lock
		want int
	}{
		{"never taken", fsm.Lock{}, 1},
		{"taken", fsm.Lock{Held: 1}, 0},
		{"one permit, as somebody set it", fsm.Lock{Permits: 1}, 1},
		{"five, two out", fsm.Lock{Permits: 5, Held: 2}, 3},
		{"five, all out", fsm.Lock{Permits: 5, Held: 5}, 0},
		{"lowered below what is out", fsm.Lock{Permits: 2, Held: 5}, -3},
	}
	for _, tt := range tests {
		if got := tt.lock.Free(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A semaphore goes up and down, and is held until the last permit is back.
func TestLockLife(t *testing.T) {
	l := fsm.Lock{Name: "l"}
	evidence := events.Evidence{Reason: events.ReasonSilent, Claimer: workerA}
	steps := []struct {
		command fsm.LockCommand
		want    []events.Event
		after   fsm.Lock
	}{
		{fsm.ConfigureLock{Permits: 4, By: "ops", Detail: "why"}, []events.Event{&events.LockConfigured{Permits: 4, By: "ops", Detail: "why"}},
			fsm.Lock{State: events.Free, Permits: 4}},
		{fsm.AcquireLock{Token: 7, Worker: workerA, Message: thisID}, []events.Event{&events.LockAcquired{Token: 7, Worker: workerA, Message: thisID, Held: 1}},
			fsm.Lock{State: events.Held, Permits: 4, Held: 1}},
		{fsm.AcquireLock{Token: 8, Worker: workerB, TTL: time.Minute + 999},
			[]events.Event{&events.LockAcquired{Token: 8, Worker: workerB, ExpiresAt: now.Add(time.Minute), Held: 2}},
			fsm.Lock{State: events.Held, Permits: 4, Held: 2}},
		{fsm.AcquireLock{Token: 9, Worker: workerA}, []events.Event{&events.LockAcquired{Token: 9, Worker: workerA, Held: 3}},
			fsm.Lock{State: events.Held, Permits: 4, Held: 3}},
		{fsm.AcquireLock{Token: 10, Worker: workerA}, []events.Event{&events.LockAcquired{Token: 10, Worker: workerA, Held: 4}},
			fsm.Lock{State: events.Held, Permits: 4, Held: 4}},
		{fsm.ConfigureLock{Permits: 2}, []events.Event{&events.LockConfigured{Permits: 2}}, fsm.Lock{State: events.Held, Permits: 2, Held: 4}},
		{fsm.ReleaseLock{Token: 7}, []events.Event{&events.LockReleased{Token: 7, Held: 3}}, fsm.Lock{State: events.Held, Permits: 2, Held: 3}},
		{fsm.ExpireLock{Token: 8}, []events.Event{&events.LockExpired{Token: 8, Held: 2}}, fsm.Lock{State: events.Held, Permits: 2, Held: 2}},
		{fsm.ReclaimLock{Token: 9, Evidence: evidence},
			[]events.Event{&events.LockOrphaned{Token: 9, Evidence: evidence}, &events.LockReclaimed{Token: 9, Held: 1}},
			fsm.Lock{State: events.Held, Permits: 2, Held: 1}},
		{fsm.ForceReleaseLock{Token: 10, By: "ops", Detail: "why"},
			[]events.Event{&events.LockForceReleased{Token: 10, By: "ops", Detail: "why"}}, fsm.Lock{State: events.Free, Permits: 2}},
	}
	for _, step := range steps {
		list, err := l.Decide(step.command, now)
		if diff := cmp.Diff(step.want, list); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", step.command.Name(), err, diff)
		}
		version := l.Version
		for _, event := range list {
			l = l.Evolve(event, now)
		}
		step.after.Name, step.after.Version = "l", version+len(list)
		if diff := cmp.Diff(step.after, l); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.command.Name(), diff)
		}
		if !l.Kept() {
			t.Errorf("after %s it is not kept", step.command.Name())
		}
	}
}

// A lock refuses to give more than it has, also after its number was lowered, and to take what is not out.
func TestLockRefusals(t *testing.T) {
	tests := []struct {
		name    string
		lock    fsm.Lock
		command fsm.LockCommand
		want    *fsm.Refusal
	}{
		{"all are out", fsm.Lock{State: events.Held, Permits: 3, Held: 3}, fsm.AcquireLock{Token: 9},
			&fsm.Refusal{Command: "acquire", State: events.Held, Reason: events.ReasonLockTaken}},
		{"more than all are out", fsm.Lock{State: events.Held, Permits: 1, Held: 3}, fsm.AcquireLock{Token: 9},
			&fsm.Refusal{Command: "acquire", State: events.Held, Reason: events.ReasonLockTaken}},
		{"none is out", fsm.Lock{State: events.Free}, fsm.ReleaseLock{Token: 7},
			&fsm.Refusal{Command: "release", State: events.Free, Reason: events.ReasonNotHeld, Sent: 7}},
		{"never taken", fsm.Lock{}, fsm.ForceReleaseLock{Token: 7}, &fsm.Refusal{Command: "force-release", Reason: events.ReasonNotHeld, Sent: 7}},
	}
	for _, tt := range tests {
		tt.lock.Name, tt.want.Entity = "l", events.LockEntity("l")
		list, err := tt.lock.Decide(tt.command, now)
		var r *fsm.Refusal
		if errors.As(err, &r); len(list) > 0 {
			t.Errorf("%s: %v", tt.name, list)
		}
		if diff := cmp.Diff(tt.want, r); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// One permit is what every lock has, so setting it is nothing new; nor is setting none.
func TestConfigureLockToWhatItIs(t *testing.T) {
	for _, l := range []fsm.Lock{{}, {Permits: 1, State: events.Free}} {
		for _, n := range []int{0, 1} {
			if list, err := l.Decide(fsm.ConfigureLock{Permits: n}, now); err != nil || len(list) > 0 {
				t.Errorf("%+v to %d: %v, %v", l, n, list, err)
			}
		}
	}
	if list, err := (fsm.Lock{Permits: 3, State: events.Free}).Decide(fsm.ConfigureLock{Permits: 3}, now); err != nil || len(list) > 0 {
		t.Errorf("three to three: %v, %v", list, err)
	}
}

// A free lock without settings has no row: what is left of it is its newest event, from which its version goes on.
func TestRestingLock(t *testing.T) {
	l := lockIn(events.Free)
	if l.Kept() {
		t.Fatal("a free lock is kept")
	}
	newest := events.Recorded{Transition: events.Transition{
		Event: &events.LockReleased{Token: 7}, Version: l.Version, From: events.Held, To: events.Free,
	}}
	if diff := cmp.Diff(l, fsm.RestingLock("l", newest)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
