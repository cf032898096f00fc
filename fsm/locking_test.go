package fsm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

// expiring is a session of worker b whose time is over at an instant.
func expiring(token events.Token, at time.Time) fsm.Permit {
	p := session(workerB, now.Add(-time.Hour), token)
	p.ExpiresAt = at
	return p
}

// A permit is taken where one is free, or where the time of another is over, which it ends.
func TestAcquire(t *testing.T) {
	over, later := expiring(4, now), expiring(5, now.Add(time.Microsecond))
	tests := []struct {
		name    string
		locks   map[string]fsm.Lock
		permits []fsm.Permit
		want    map[string]string // nil is refused
	}{
		{"never taken", nil, nil, map[string]string{"lock l": "acquired", "permits": "+l/9"}},
		{"free", heldLock(0, 0), nil, map[string]string{"lock l": "acquired", "permits": "+l/9"}},
		{"taken", heldLock(0, 1), []fsm.Permit{session(workerB, now, 4)}, nil},
		{"taken for a time", heldLock(0, 1), []fsm.Permit{later}, nil},
		{"taken for a time that is over", heldLock(0, 1), []fsm.Permit{over}, map[string]string{"lock l": "expired acquired", "permits": "-l/4 +l/9"}},
		{"two of three", heldLock(3, 2), []fsm.Permit{later, session(workerA, now, 6)}, map[string]string{"lock l": "acquired", "permits": "+l/9"}},
		{"lowered, and one too many is out", heldLock(1, 2), []fsm.Permit{over, later}, nil},
		{"another lock's time is over", heldLock(0, 1), []fsm.Permit{{PermitKey: fsm.PermitKey{Lock: "r", Token: 4}, ExpiresAt: now}}, nil},
	}
	for _, tt := range tests {
		held := fsm.Held{Now: now, Locks: tt.locks, Permits: tt.permits, Fence: 9}
		if tt.locks["l"].Held > 0 {
			held.Waiting = map[string][]fsm.Message{"l": {waiting(7, "mail"), waiting(8, "post")}} // nothing is left free for them
		}
		outcome, permit, err := fsm.Acquire{Lock: "l", Worker: workerA, TTL: time.Minute}.Decide(held)
		if tt.want == nil {
			if !errors.Is(err, &fsm.Refusal{Command: "acquire", Reason: events.ReasonLockTaken}) || len(outcome.Changes)+len(outcome.Permits) > 0 {
				t.Errorf("%s: %v, %v", tt.name, err, told(outcome))
			}
			continue
		}
		if diff := cmp.Diff(tt.want, told(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
		want := fsm.Permit{PermitKey: fsm.PermitKey{Lock: "l", Token: 9}, Worker: workerA, AcquiredAt: now, ExpiresAt: now.Add(time.Minute)}
		if diff := cmp.Diff(want, permit); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// What an expiry leaves free beside the permit that is taken is offered to those who wait.
func TestAcquireOffersWhatIsLeft(t *testing.T) {
	held := fsm.Held{
		Now: now, Locks: heldLock(2, 2), Permits: []fsm.Permit{expiring(4, now), expiring(5, now)}, Fence: 9,
		Waiting: map[string][]fsm.Message{"l": {waiting(7, "mail")}},
	}
	outcome, permit, err := fsm.Acquire{Lock: "l", Worker: workerA}.Decide(held)
	want := map[string]string{"lock l": "expired expired acquired", "permits": "-l/4 -l/5 +l/9", "m7": "unblocked"}
	if diff := cmp.Diff(want, told(outcome)); err != nil || diff != "" || !permit.ExpiresAt.IsZero() {
		t.Errorf("%v, %+v (-want +got):\n%s", err, permit, diff)
	}
}

// Scenario C08: giving back what is another's, or back already, frees nothing and is recorded once.
func TestUnlock(t *testing.T) {
	mine, theirs := session(workerA, now, 4), session(workerB, now, 5)
	key := func(token events.Token) fsm.PermitKey { return fsm.PermitKey{Lock: "l", Token: token} }
	tests := []struct {
		name       string
		permits    []fsm.PermitKey
		recordable int
		want       map[string]string
		refused    []bool
	}{
		{"its own", []fsm.PermitKey{key(4)}, 9, map[string]string{"lock l": "released", "permits": "-l/4"}, []bool{false}},
		{"another's", []fsm.PermitKey{key(5)}, 9, map[string]string{"lock l": "refused"}, []bool{true}},
		{"twice", []fsm.PermitKey{key(4), key(4)}, 9, map[string]string{"lock l": "released refused", "permits": "-l/4"}, []bool{false, true}},
		{"one that came back before", []fsm.PermitKey{key(3)}, 9, map[string]string{"lock l": "refused"}, []bool{true}},
		{"one that came back before, twice", []fsm.PermitKey{key(3), key(3)}, 9, map[string]string{"lock l": "refused"}, []bool{true, true}},
		{"two that came back before", []fsm.PermitKey{key(3), key(2)}, 9, map[string]string{"lock l": "refused refused"}, []bool{true, true}},
		{"beyond what may be recorded", []fsm.PermitKey{key(3), key(2)}, 1, map[string]string{"lock l": "refused"}, []bool{true, true}},
		{"nothing may be recorded", []fsm.PermitKey{key(3), key(4)}, 0, map[string]string{"lock l": "released", "permits": "-l/4"}, []bool{true, false}},
		{"of a lock that never was", []fsm.PermitKey{{Lock: "r", Token: 4}}, 9, map[string]string{}, []bool{true}},
		{"nothing", nil, 9, map[string]string{}, []bool{}},
	}
	for _, tt := range tests {
		held := fsm.Held{Now: now, Locks: heldLock(2, 2), Permits: []fsm.Permit{mine, theirs}}
		outcome, refusals, err := fsm.Unlock{Worker: workerA, Permits: tt.permits, Recordable: tt.recordable}.Decide(held)
		if diff := cmp.Diff(tt.want, told(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
		for i, r := range refusals {
			if (r != nil) != tt.refused[i] || r != nil && (r.Reason != events.ReasonNotHeld || r.Sent != tt.permits[i].Token) {
				t.Errorf("%s: permit %d: %v", tt.name, i, r)
			}
		}
		for _, c := range outcome.Changes {
			for _, tr := range c.Transitions {
				e, ok := tr.Event.(*events.LockRefused)
				if ok && (tr.Version != 0 || tr.From != tr.To || e.Command != "unlock" || e.Sender != workerA || e.Sent == 0 || e.Reason != events.ReasonNotHeld) {
					t.Errorf("%s: recorded as %+v of %+v", tt.name, tr, e)
				}
			}
		}
	}
}

func TestUnlockIsRecordedWhole(t *testing.T) {
	want := fsm.Unlock{Worker: workerA, Recordable: 3}
	var got fsm.Unlock
	if err := events.ReadFields(events.AppendFields(nil, &want), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-recorded +read):\n%s", diff)
	}
}

// Scenario C10: an operator takes permits from whoever holds them, and finds nothing to do the second time.
func TestForceRelease(t *testing.T) {
	m, permit := running(1, workerA, now, 4)
	tests := []struct {
		name  string
		token events.Token
		want  map[string]string
	}{
		{"all", 0, map[string]string{"lock l": "force_released force_released", "permits": "-l/4 -l/5", "m7": "unblocked"}},
		{"one", 5, map[string]string{"lock l": "force_released", "permits": "-l/5", "m7": "unblocked"}},
		{"one that is back", 3, map[string]string{}},
	}
	for _, tt := range tests {
		held := fsm.Held{
			Now: now, Locks: heldLock(2, 2), Messages: map[events.ID]fsm.Message{m.ID: m},
			Permits: []fsm.Permit{permit, session(workerB, now, 5), {PermitKey: fsm.PermitKey{Lock: "r", Token: 6}}},
			Waiting: map[string][]fsm.Message{"l": {waiting(7, "mail")}},
		}
		c := fsm.ForceRelease{Lock: "l", Token: tt.token, By: "ops", Detail: "why"}
		outcome, err := c.Decide(held)
		if diff := cmp.Diff(tt.want, told(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
		for _, event := range facts(outcome) {
			if e, ok := event.(*events.LockForceReleased); ok && (e.By != "ops" || e.Detail != "why") {
				t.Errorf("%s: %+v", tt.name, e)
			}
		}
		again, err := c.Decide(fsm.Held{Now: now, Locks: heldLock(2, 0), Waiting: held.Waiting})
		if err != nil || len(again.Changes) > 0 {
			t.Errorf("%s, a second time: %v, %v", tt.name, err, told(again))
		}
	}
}

// Scenario C11: a permit with a time ends at that time, to the microsecond, and one without never does.
func TestExpireLocks(t *testing.T) {
	held := fsm.Held{
		Now: now, Locks: heldLock(4, 4), Waiting: map[string][]fsm.Message{"l": {waiting(7, "mail")}},
		Permits: []fsm.Permit{
			expiring(4, now.Add(-time.Hour)), expiring(5, now), expiring(6, now.Add(time.Microsecond)), session(workerA, now.Add(-72*time.Hour), 7),
		},
	}
	outcome, err := fsm.ExpireLocks{Lock: "l"}.Decide(held)
	want := map[string]string{"lock l": "expired expired", "permits": "-l/4 -l/5", "m7": "unblocked"}
	if diff := cmp.Diff(want, told(outcome)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	held.Permits = held.Permits[2:]
	if outcome, err = (fsm.ExpireLocks{Lock: "l"}).Decide(held); err != nil || len(outcome.Changes) > 0 {
		t.Errorf("nothing is over: %v, %v", err, told(outcome))
	}
}

// More permits than before are offered at once; fewer take nothing from anybody.
func TestOperateLock(t *testing.T) {
	tests := []struct {
		name      string
		permits   int
		out, want int
		told      map[string]string
	}{
		{"raised above what is out", 2, 2, 3, map[string]string{"lock l": "configured", "m7": "unblocked", "m8": "unblocked"}},
		{"raised to what is out", 1, 3, 3, map[string]string{"lock l": "configured"}},
		{"lowered", 3, 3, 1, map[string]string{"lock l": "configured"}},
		{"as it is", 2, 2, 2, map[string]string{}},
		{"as it is, beside waiters whom nobody told", 2, 1, 2, map[string]string{}}, // which is for a repair
	}
	for _, tt := range tests {
		held := fsm.Held{
			Now: now, Locks: heldLock(tt.permits, tt.out), Waiting: map[string][]fsm.Message{"l": {waiting(7, "mail"), waiting(8, "post")}},
		}
		c := fsm.OperateLock{Lock: "l", ConfigureLock: fsm.ConfigureLock{Permits: tt.want, By: "ops"}}
		outcome, err := c.Decide(held)
		if diff := cmp.Diff(tt.told, told(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}

// A waiter that nobody told is a fault, and its repair says so. Where all is well nothing happens.
func TestRepairLock(t *testing.T) {
	tests := []struct {
		name    string
		out     int
		waiting []fsm.Message
		want    map[string]string
	}{
		{"nobody was told", 0, []fsm.Message{waiting(1, "mail"), waiting(2, "post")}, map[string]string{"m1": "unblocked", "m2": "unblocked"}},
		{"one topic was told", 0, []fsm.Message{waiting(1, "mail"), trying(3, "mail"), waiting(2, "post")}, map[string]string{"m2": "unblocked"}},
		{"all were told", 0, []fsm.Message{waiting(1, "mail"), trying(3, "mail")}, map[string]string{}},
		{"nothing is free", 1, []fsm.Message{waiting(1, "mail")}, map[string]string{}},
		{"nobody waits", 0, nil, map[string]string{}},
		{"many of a topic", 0, []fsm.Message{waiting(1, "mail"), waiting(2, "mail")}, map[string]string{"m1": "unblocked"}},
	}
	for _, tt := range tests {
		held := fsm.Held{Now: now, Locks: heldLock(0, tt.out), Waiting: map[string][]fsm.Message{"l": tt.waiting}}
		outcome, err := fsm.RepairLock{Lock: "l"}.Decide(held)
		if diff := cmp.Diff(tt.want, told(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
		for _, event := range facts(outcome) {
			if e := event.(*events.MessageUnblocked); !e.Repair || e.Lock != "l" {
				t.Errorf("%s: %+v", tt.name, e)
			}
		}
	}
}

// An unblocking that no fault led to does not say repair.
func TestUnblockedIsNoRepair(t *testing.T) {
	held := fsm.Held{
		Now: now, Locks: heldLock(0, 1), Permits: []fsm.Permit{session(workerA, now, 4)},
		Waiting: map[string][]fsm.Message{"l": {waiting(7, "mail"), waiting(6, "mail"), waiting(8, "post"), trying(5, "post")}},
	}
	outcome, _, err := fsm.Unlock{Worker: workerA, Permits: []fsm.PermitKey{{Lock: "l", Token: 4}}}.Decide(held)
	want := map[string]string{"lock l": "released", "permits": "-l/4", "m7": "unblocked", "m8": "unblocked"}
	if diff := cmp.Diff(want, told(outcome)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, event := range facts(outcome) {
		if e, ok := event.(*events.MessageUnblocked); ok && e.Repair {
			t.Errorf("%+v", e)
		}
	}
}
