package fsm_test

import (
	"errors"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

// A batch of results: each ends its claim or is refused by itself.
func TestSettle(t *testing.T) {
	_, held := mailIn(events.Running, 3)
	counted := held[events.ID{1}]
	counted.Counted = true
	held[events.ID{1}] = counted
	c := fsm.Settle{Sender: workerA, Recordable: 10, Unrecorded: 4, Items: []fsm.Settlement{
		{ID: events.ID{1}, Command: fsm.CompleteMessage{Token: 2}},
		{ID: events.ID{2}, Command: fsm.CompleteMessage{Token: 1}},
		{ID: events.ID{3}, Command: fsm.FailMessage{Token: 2}},
		{ID: events.ID{7}, Command: fsm.CompleteMessage{Token: 2}},
	}}
	outcome, refusals, err := c.Decide(fsm.Held{Now: now, Messages: held})
	if err != nil {
		t.Fatal(err)
	}
	want := map[byte][]string{1: {"message.completed"}, 2: {"message.refused"}, 3: {"message.requeued"}}
	if diff := cmp.Diff(want, moved(outcome)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]fsm.Count{{Topic: "mail", Delta: -1}}, outcome.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if refusals[0] != nil || refusals[2] != nil {
		t.Errorf("accepted ones are refused: %v", refusals)
	}
	if !errors.Is(refusals[1], &fsm.Refusal{Reason: events.ReasonStaleToken}) || !errors.Is(refusals[3], &fsm.Refusal{Reason: events.ReasonNotFound}) {
		t.Errorf("refusals: %v", refusals)
	}
	refused := outcome.Changes[1]
	wantEvent := events.Transition{From: events.Running, To: events.Running, Event: &events.MessageRefused{
		Command: "complete", Reason: events.ReasonStaleToken, Sender: workerA, Sent: 1, Found: 2, Unrecorded: 4,
	}}
	if diff := cmp.Diff([]events.Transition{wantEvent}, refused.Transitions); diff != "" || refused.From != 2 {
		t.Errorf("refused from version %d (-want +got):\n%s", refused.From, diff)
	}
	if v, _ := refused.Value.At(); v != 2 {
		t.Errorf("a refusal moves the message to version %d", v)
	}
}

// The second result of one claim is refused, and recorded once however often it is sent.
func TestSettleDuplicates(t *testing.T) {
	_, held := mailIn(events.Running, 1)
	complete := fsm.Settlement{ID: events.ID{1}, Command: fsm.CompleteMessage{Token: 2}}
	fail := fsm.Settlement{ID: events.ID{1}, Command: fsm.FailMessage{Token: 2}}
	c := fsm.Settle{Sender: workerA, Recordable: 10, Items: []fsm.Settlement{complete, complete, complete, fail}}
	outcome, refusals, err := c.Decide(fsm.Held{Now: now, Messages: held})
	if err != nil {
		t.Fatal(err)
	}
	want := map[byte][]string{1: {"message.completed", "message.refused", "message.refused"}}
	if diff := cmp.Diff(want, moved(outcome)); diff != "" || len(outcome.Changes) != 1 {
		t.Errorf("%d changes (-want +got):\n%s", len(outcome.Changes), diff)
	}
	if last := outcome.Changes[0].Transitions[2].Event.(*events.MessageRefused); last.Command != "fail" || last.Unrecorded != 1 {
		t.Errorf("the last refusal is %+v, want it to count the one that was left out", last)
	}
	for i, r := range refusals {
		if (r == nil) != (i == 0) {
			t.Errorf("result %d: %v", i, r)
		}
	}
}

// Of two claims that are over, each is refused once.
func TestSettleRefusesEachTokenOnce(t *testing.T) {
	_, held := mailIn(events.Running, 1)
	var c fsm.Settle
	c.Recordable = 10
	for _, token := range []events.Token{1, 7, 1} {
		c.Items = append(c.Items, fsm.Settlement{ID: events.ID{1}, Command: fsm.CompleteMessage{Token: token}})
	}
	outcome, _, err := c.Decide(fsm.Held{Now: now, Messages: held})
	if diff := cmp.Diff(map[string]string{"m1": "refused refused"}, told(outcome)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// What is beyond the budget is counted on the next refusal that is recorded.
func TestSettleRefusalBudget(t *testing.T) {
	_, held := mailIn(events.Queued, 5)
	late := func(ids ...byte) (items []fsm.Settlement) {
		for _, id := range ids {
			items = append(items, fsm.Settlement{ID: events.ID{id}, Command: fsm.CompleteMessage{Token: 2}})
		}
		return items
	}
	tests := []struct {
		name       string
		c          fsm.Settle
		recorded   int
		unrecorded int // on the first one
	}{
		{"all", fsm.Settle{Recordable: 5, Items: late(1, 2, 3)}, 3, 0},
		{"as many as there is room for", fsm.Settle{Recordable: 2, Items: late(1, 2, 3, 4, 5)}, 2, 0},
		{"none", fsm.Settle{Items: late(1, 2, 3)}, 0, 0},
		{"what was left out before", fsm.Settle{Recordable: 5, Unrecorded: 7, Items: late(1, 2)}, 2, 7},
	}
	for _, tt := range tests {
		outcome, refusals, err := tt.c.Decide(fsm.Held{Now: now, Messages: held})
		if err != nil {
			t.Fatal(err)
		}
		if len(outcome.Changes) != tt.recorded {
			t.Errorf("%s: %d recorded, want %d", tt.name, len(outcome.Changes), tt.recorded)
		}
		for i, change := range outcome.Changes {
			want := 0
			if i == 0 {
				want = tt.unrecorded
			}
			if e := change.Transitions[0].Event.(*events.MessageRefused); e.Unrecorded != want {
				t.Errorf("%s: refusal %d counts %d left out, want %d", tt.name, i, e.Unrecorded, want)
			}
		}
		for i, r := range refusals {
			if r == nil {
				t.Errorf("%s: result %d is accepted", tt.name, i)
			}
		}
	}
}

// A result gives its claim's permit back, whatever became of the claim; nobody frees what another handler holds.
func TestSettleGivesPermitsBack(t *testing.T) {
	m, permit := running(1, workerA, now, 4) // token 2
	complete, key := fsm.CompleteMessage{Token: 2}, permit.PermitKey
	elsewhere, theirs := running(2, workerA, now, 5)
	again := m // taken back by force and claimed again by the same worker, under the semaphore's other permit
	again.Token, again.LockToken = 5, 6
	newer := permit
	newer.Token = 6
	cancelled := m.Evolve(&events.MessageCancelled{}, now)
	foreign := fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: 1}, Permit: key}
	tests := []struct {
		name    string
		message fsm.Message
		permits []fsm.Permit
		sender  events.ID
		item    fsm.Settlement
		want    map[string]string
		refused bool
	}{
		{"accepted", m, []fsm.Permit{permit}, workerA, fsm.Settlement{ID: m.ID, Command: complete, Permit: key},
			map[string]string{"m1": "completed", "lock l": "released", "permits": "-l/4", "m7": "unblocked"}, false},
		{"failed", m, []fsm.Permit{permit}, workerA, fsm.Settlement{ID: m.ID, Command: fsm.FailMessage{Token: 2}, Permit: key},
			map[string]string{"m1": "requeued", "lock l": "released", "permits": "-l/4", "m7": "unblocked"}, false},
		{"the permit was forced from it", m, nil, workerA, fsm.Settlement{ID: m.ID, Command: complete, Permit: key}, map[string]string{"m1": "completed"}, false},
		{"cancelled from outside", cancelled, []fsm.Permit{permit}, workerA, fsm.Settlement{ID: m.ID, Command: complete, Permit: key},
			map[string]string{"m1": "refused", "lock l": "released", "permits": "-l/4", "m7": "unblocked"}, true},
		{"cancelled from outside, and the permit is back", cancelled, nil, workerA, fsm.Settlement{ID: m.ID, Command: complete, Permit: key},
			map[string]string{"m1": "refused"}, true},
		{"its worker has claimed it again", again, []fsm.Permit{permit, newer}, workerA, fsm.Settlement{ID: m.ID, Command: complete, Permit: key},
			map[string]string{"m1": "refused", "lock l": "released", "permits": "-l/4", "m7": "unblocked"}, true},
		{"late, with the permit of the newer claim", again, []fsm.Permit{permit, newer}, workerA,
			fsm.Settlement{ID: m.ID, Command: complete, Permit: newer.PermitKey}, map[string]string{"m1": "refused"}, true},
		{"with the permit of its claim before", again, []fsm.Permit{permit, newer}, workerA,
			fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: 5}, Permit: key}, map[string]string{"m1": "completed"}, false},
		{"with the permit of another message", m, []fsm.Permit{permit, theirs}, workerA,
			fsm.Settlement{ID: m.ID, Command: complete, Permit: theirs.PermitKey}, map[string]string{"m1": "completed"}, false},
		{"with the permit of a session", cancelled, []fsm.Permit{session(workerA, now, 8)}, workerA,
			fsm.Settlement{ID: m.ID, Command: complete, Permit: fsm.PermitKey{Lock: "l", Token: 8}}, map[string]string{"m1": "refused"}, true},
		{"from another worker, too late", m, []fsm.Permit{permit}, workerB, foreign, map[string]string{"m1": "refused"}, true},
		{"from another worker, of a cancelled one", cancelled, []fsm.Permit{permit}, workerB, foreign, map[string]string{"m1": "refused"}, true},
		{"from whoever has the token", m, []fsm.Permit{permit}, workerB, fsm.Settlement{ID: m.ID, Command: complete, Permit: key},
			map[string]string{"m1": "completed", "lock l": "released", "permits": "-l/4", "m7": "unblocked"}, false},
	}
	for _, tt := range tests {
		held := fsm.Held{
			Now: now, Messages: map[events.ID]fsm.Message{m.ID: tt.message, elsewhere.ID: elsewhere}, Permits: tt.permits,
			Locks: heldLock(3, 3), Waiting: map[string][]fsm.Message{"l": {waiting(7, "mail")}},
		}
		outcome, refusals, err := fsm.Settle{Sender: tt.sender, Recordable: 9, Items: []fsm.Settlement{tt.item}}.Decide(held)
		if diff := cmp.Diff(tt.want, told(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
		if (refusals[0] != nil) != tt.refused {
			t.Errorf("%s: refusal %v", tt.name, refusals[0])
		}
	}
}

// Who is unblocked stands behind what left the lock free, with whatever this commit says of it besides.
func TestUnblockedComesLast(t *testing.T) {
	m, permit := running(1, workerA, now, 4)
	waits := waiting(7, "mail")
	c := fsm.Settle{Sender: workerA, Recordable: 9, Items: []fsm.Settlement{
		{ID: waits.ID, Command: fsm.CompleteMessage{Token: 9}},
		{ID: m.ID, Command: fsm.CompleteMessage{Token: 2}, Permit: permit.PermitKey},
		{ID: waits.ID, Command: fsm.CompleteMessage{Token: 9}},
	}}
	outcome, _, err := c.Decide(fsm.Held{
		Now: now, Messages: map[events.ID]fsm.Message{m.ID: m, waits.ID: waits}, Permits: []fsm.Permit{permit}, Locks: heldLock(0, 1),
		Waiting: map[string][]fsm.Message{"l": {waits}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, change := range outcome.Changes {
		name := shortName(change.Value.Entity())
		got = append(got, name+" "+told(outcome)[name])
	}
	if diff := cmp.Diff([]string{"m1 completed", "lock l released", "m7 refused unblocked"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One result sent twice in a batch gives one permit back.
func TestSettleTwiceFreesOnce(t *testing.T) {
	m, permit := running(1, workerA, now, 4)
	item := fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: 2}, Permit: permit.PermitKey}
	held := fsm.Held{
		Now: now, Messages: map[events.ID]fsm.Message{m.ID: m}, Permits: []fsm.Permit{permit, session(workerB, now, 5)}, Locks: heldLock(2, 2),
	}
	outcome, _, err := fsm.Settle{Sender: workerA, Recordable: 9, Items: []fsm.Settlement{item, item}}.Decide(held)
	want := map[string]string{"m1": "completed refused", "lock l": "released", "permits": "-l/4"}
	if diff := cmp.Diff(want, told(outcome)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
