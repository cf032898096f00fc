package fsm_test

import (
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

func TestClaim(t *testing.T) {
	tests := []struct {
		name    string
		topic   fsm.Topic
		ask     int
		most    int
		granted int
		counted int
	}{
		{"as many as asked", fsm.Topic{}, 3, 0, 3, 0},
		{"no more than there are", fsm.Topic{}, 9, 0, 5, 0},
		{"within the limit", fsm.Topic{State: events.Active, Limit: 4, Running: 2}, 9, 0, 2, 2},
		{"none where it is full", fsm.Topic{State: events.Active, Limit: 2, Running: 2}, 9, 0, 0, 0},
		{"none while it is paused", fsm.Topic{State: events.Paused}, 9, 0, 0, 0},
		{"none while claims are counted", fsm.Topic{State: events.Active, Limit: 9, Counting: true}, 9, 0, 0, 0},
		{"no more than the most", fsm.Topic{}, 9, 4, 4, 0},
		{"nothing asked", fsm.Topic{}, 0, 0, 0, 0},
	}
	for _, tt := range tests {
		list, _ := mailIn(events.Queued, 5)
		held := fsm.Held{Now: now, Topics: map[string]fsm.Topic{"mail": tt.topic}, Claimable: map[string][]fsm.Message{"mail": list}}
		c := fsm.Claim{Worker: workerA, Asks: []fsm.Ask{{Topic: "mail", N: tt.ask}}, Most: tt.most}
		outcome, err := c.Decide(held)
		if err != nil {
			t.Fatal(err)
		}
		if len(outcome.Changes) != tt.granted {
			t.Errorf("%s: %d granted, want %d", tt.name, len(outcome.Changes), tt.granted)
		}
		for i, change := range outcome.Changes {
			want := &events.MessageClaimed{Topic: "mail", Worker: workerA, Token: 2, Attempt: 1}
			if tt.counted > 0 {
				want.Running, want.Limit = tt.topic.Running+i+1, tt.topic.Limit
			}
			if diff := cmp.Diff(want, change.Transitions[0].Event); diff != "" {
				t.Errorf("%s: claim %d (-want +got):\n%s", tt.name, i, diff)
			}
			if change.Value.Entity() != events.MessageEntity(list[i].ID) {
				t.Errorf("%s: claim %d is of %s, want the order of the page", tt.name, i, change.Value.Entity())
			}
		}
		var want []fsm.Count
		if tt.counted > 0 {
			want = []fsm.Count{{Topic: "mail", Delta: tt.counted}}
		}
		if diff := cmp.Diff(want, outcome.Counts); diff != "" {
			t.Errorf("%s: counts (-want +got):\n%s", tt.name, diff)
		}
	}
}

// One claim may serve many topics, in the order in which they are asked for.
func TestClaimOfManyTopics(t *testing.T) {
	mail, _ := mailIn(events.Queued, 2)
	post, _ := mailIn(events.Queued, 5)
	for i := range post {
		post[i].ID[1], post[i].Topic = 1, "post"
	}
	held := fsm.Held{Now: now, Claimable: map[string][]fsm.Message{"mail": mail, "post": post}}
	asks := []fsm.Ask{{Topic: "none", N: 3}, {Topic: "mail", N: 3}, {Topic: "post", N: 3}}
	for most, want := range map[int][2]int{0: {2, 3}, 1: {1, 0}, 3: {2, 1}, 9: {2, 3}} {
		outcome, err := fsm.Claim{Worker: workerA, Asks: asks, Most: most}.Decide(held)
		if err != nil {
			t.Fatal(err)
		}
		var got [2]int
		for _, c := range outcome.Changes {
			got[c.Value.Entity().ID[1]]++
		}
		if got != want {
			t.Errorf("at most %d: %v of mail and post, want %v", most, got, want)
		}
	}
}

func TestClaimIsRecordedWhole(t *testing.T) {
	for _, want := range []fsm.Claim{
		{},
		{Worker: workerA, Asks: []fsm.Ask{{"mail", 3}, {"post", 0}}, Most: 2},
	} {
		var got fsm.Claim
		if err := events.ReadFields(events.AppendFields(nil, &want), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-recorded +read):\n%s", diff)
		}
	}
}

// locked is a queued message of a topic whose claim takes lock l.
func locked(id byte, topic string) fsm.Message {
	m := messageIn(events.Queued)
	m.ID, m.Topic, m.Lock = events.ID{id}, topic, "l"
	return m
}

// skipping is one that does not wait, and was claimed so often.
func skipping(id byte, attempts int) fsm.Message {
	m := locked(id, "mail")
	m.OnLocked, m.Attempts = events.SkipIfLocked, attempts
	return m
}

// A claim takes the lock with the message. One whose lock is taken is blocked, or discarded where it does not wait and was never claimed;
// either way the claim looks further. Scenario C14 is the one that was claimed before.
func TestClaimWithLocks(t *testing.T) {
	free := messageIn(events.Queued)
	free.ID = events.ID{5}
	other := locked(6, "mail")
	other.Lock = "r"
	tests := []struct {
		name    string
		permits int
		out     int
		page    []fsm.Message
		ask     int
		want    map[string]string
	}{
		{"free", 0, 0, []fsm.Message{locked(1, "mail")}, 1, map[string]string{"m1": "claimed", "lock l": "acquired", "permits": "+l/9"}},
		{"taken", 0, 1, []fsm.Message{locked(1, "mail")}, 1, map[string]string{"m1": "blocked"}},
		{"a blocked head costs no slot", 0, 1, []fsm.Message{locked(1, "mail"), free}, 1, map[string]string{"m1": "blocked", "m5": "claimed"}},
		{"two of one lock", 0, 0, []fsm.Message{locked(1, "mail"), locked(2, "mail"), free}, 2,
			map[string]string{"m1": "claimed", "m2": "blocked", "m5": "claimed", "lock l": "acquired", "permits": "+l/9"}},
		{"what is not looked at is left as it is", 0, 0, []fsm.Message{locked(1, "mail"), locked(2, "mail")}, 1,
			map[string]string{"m1": "claimed", "lock l": "acquired", "permits": "+l/9"}},
		{"three of a semaphore of three, one of which is out", 3, 1, []fsm.Message{locked(1, "mail"), locked(2, "mail"), locked(3, "mail")}, 3,
			map[string]string{"m1": "claimed", "m2": "claimed", "m3": "blocked", "lock l": "acquired acquired", "permits": "+l/9 +l/10"}},
		{"lowered below what is out", 1, 2, []fsm.Message{locked(1, "mail")}, 1, map[string]string{"m1": "blocked"}},
		{"of two locks", 0, 1, []fsm.Message{locked(1, "mail"), other}, 2,
			map[string]string{"m1": "blocked", "m6": "claimed", "lock r": "acquired", "permits": "+r/9"}},
		{"does not wait", 0, 1, []fsm.Message{skipping(1, 0), free}, 1, map[string]string{"m1": "discarded", "m5": "claimed"}},
		{"does not wait, but was claimed before", 0, 1, []fsm.Message{skipping(1, 1), free}, 1, map[string]string{"m1": "blocked", "m5": "claimed"}},
		{"does not wait and need not", 0, 0, []fsm.Message{skipping(1, 0)}, 1, map[string]string{"m1": "claimed", "lock l": "acquired", "permits": "+l/9"}},
		{"a newcomer is faster than the one that was sent", 0, 0, []fsm.Message{locked(1, "mail"), trying(2, "mail")}, 2,
			map[string]string{"m1": "claimed", "m2": "blocked", "lock l": "acquired", "permits": "+l/9"}},
	}
	for _, tt := range tests {
		held := fsm.Held{
			Now: now, Claimable: map[string][]fsm.Message{"mail": tt.page}, Locks: heldLock(tt.permits, tt.out), Fence: 9,
			Topics: map[string]fsm.Topic{"mail": {State: events.Active, Limit: 5, Running: 1}},
		}
		outcome, err := fsm.Claim{Worker: workerA, Asks: []fsm.Ask{{Topic: "mail", N: tt.ask}}}.Decide(held)
		if diff := cmp.Diff(tt.want, told(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
		granted := 0
		for _, c := range outcome.Changes {
			if m, ok := c.Value.(*fsm.Message); ok && m.State == events.Running {
				granted++
				if e := c.Transitions[0].Event.(*events.MessageClaimed); e.Running != 1+granted || e.LockToken != m.LockToken {
					t.Errorf("%s: %+v", tt.name, e)
				}
			}
		}
		var counts []fsm.Count
		if granted > 0 {
			counts = []fsm.Count{{Topic: "mail", Delta: granted}}
		}
		if diff := cmp.Diff(counts, outcome.Counts); diff != "" {
			t.Errorf("%s: counts (-want +got):\n%s", tt.name, diff)
		}
	}
}

// The permit stands under the claim: whose it is, for which message, under which token and since when.
func TestClaimTakesAPermit(t *testing.T) {
	held := fsm.Held{Now: now, Claimable: map[string][]fsm.Message{"mail": {locked(1, "mail")}}, Fence: 9}
	outcome, err := fsm.Claim{Worker: workerA, Asks: []fsm.Ask{{Topic: "mail", N: 1}}}.Decide(held)
	if err != nil {
		t.Fatal(err)
	}
	want := []fsm.PermitChange{{Permit: fsm.Permit{
		PermitKey: fsm.PermitKey{Lock: "l", Token: 9}, Worker: workerA, Message: events.ID{1}, AcquiredAt: now,
	}}}
	if diff := cmp.Diff(want, outcome.Permits); diff != "" {
		t.Fatalf("permit (-want +got):\n%s", diff)
	}
	facts := facts(outcome)
	if diff := cmp.Diff(&events.LockAcquired{Token: 9, Worker: workerA, Message: events.ID{1}, Held: 1}, facts[0]); diff != "" {
		t.Errorf("lock (-want +got):\n%s", diff)
	}
	if m := outcome.Changes[1].Value.(*fsm.Message); m.LockToken != 9 || m.Permit() != want[0].Permit.PermitKey {
		t.Errorf("claimed as %+v", m)
	}
}

// What is blocked or discarded counts towards no bound: the claim goes on as if it were not there.
func TestBlockedCountTowardsNoBound(t *testing.T) {
	mail := []fsm.Message{locked(1, "mail"), skipping(2, 0), locked(3, "mail")}
	free := messageIn(events.Queued)
	free.ID, free.Topic = events.ID{4}, "post"
	held := fsm.Held{
		Now: now, Claimable: map[string][]fsm.Message{"mail": mail, "post": {free}}, Locks: heldLock(0, 1),
		Topics: map[string]fsm.Topic{"mail": {State: events.Active, Limit: 1}, "post": {State: events.Active, Limit: 1}},
	}
	outcome, err := fsm.Claim{Worker: workerA, Asks: []fsm.Ask{{Topic: "mail", N: 1}, {Topic: "post", N: 1}}, Most: 1}.Decide(held)
	want := map[string]string{"m1": "blocked", "m2": "discarded", "m3": "blocked", "m4": "claimed"}
	if diff := cmp.Diff(want, told(outcome)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Whoever was sent to try and leaves a permit free passes the word on, to one waiter of each topic.
func TestTryingPassesTheWordOn(t *testing.T) {
	list := []fsm.Message{trying(1, "mail"), waiting(7, "mail"), waiting(8, "post"), trying(2, "post")}
	tests := []struct {
		name    string
		permits int
		out     int
		want    map[string]string
	}{
		{"another is free", 3, 1, map[string]string{"m1": "claimed", "lock l": "acquired", "permits": "+l/9", "m7": "unblocked", "m8": "unblocked"}},
		{"it takes the last", 3, 2, map[string]string{"m1": "claimed", "lock l": "acquired", "permits": "+l/9"}},
		{"it comes too late", 3, 3, map[string]string{"m1": "blocked"}},
	}
	for _, tt := range tests {
		held := fsm.Held{
			Now: now, Claimable: map[string][]fsm.Message{"mail": list[:1]}, Locks: heldLock(tt.permits, tt.out), Fence: 9,
			Waiting: map[string][]fsm.Message{"l": list},
		}
		outcome, err := fsm.Claim{Worker: workerA, Asks: []fsm.Ask{{Topic: "mail", N: 1}}}.Decide(held)
		if diff := cmp.Diff(tt.want, told(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
		for _, c := range outcome.Changes {
			if m, ok := c.Value.(*fsm.Message); ok && m.Trying != (m.State == events.Queued) {
				t.Errorf("%s: %s is %s, trying %v", tt.name, m.Entity(), m.State, m.Trying)
			}
		}
	}
}
