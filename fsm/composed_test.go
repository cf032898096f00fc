package fsm_test

import (
	"errors"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

// mailIn makes n messages of the topic mail in a state, with the ids from 1 on.
func mailIn(state events.State, n int) (list []fsm.Message, byID map[events.ID]fsm.Message) {
	byID = map[events.ID]fsm.Message{}
	for i := range n {
		m := messageIn(state)
		m.ID = events.ID{byte(i + 1)}
		list = append(list, m)
		byID[m.ID] = m
	}
	return list, byID
}

// moved is what an outcome says of each message: its id's first byte with the types of its events.
func moved(o fsm.Outcome) map[byte][]string {
	list := map[byte][]string{}
	for _, c := range o.Changes {
		if e := c.Value.Entity(); e.Kind != events.KindTopic {
			for _, t := range c.Transitions {
				list[e.ID[0]] = append(list[e.ID[0]], t.Event.Type().String())
			}
		}
	}
	return list
}

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
			want := &events.MessageClaimed{Worker: workerA, Token: 2, Attempt: 1}
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

// What a dead worker holds comes back in one commit: worker, messages and slots.
func TestReclaim(t *testing.T) {
	claims, _ := mailIn(events.Running, 3)
	claims[0].Counted, claims[1].Counted = true, true
	claims[2].Attempts, claims[2].Topic = 5, "post"
	worker := workerIn(events.Live)
	evidence := events.Evidence{Reason: events.ReasonProcessGone, Claimer: workerA, Decider: workerB, Limit: 5}
	held := fsm.Held{
		Now: now, Workers: map[events.ID]fsm.Worker{workerA: worker},
		Claims: map[events.ID][]fsm.Message{workerA: claims},
	}
	outcome, err := fsm.Reclaim{Evidence: evidence}.Decide(held)
	if err != nil {
		t.Fatal(err)
	}
	want := map[byte][]string{
		workerA[0]: {"worker.lost"},
		1:          {"message.orphaned", "message.requeued"},
		2:          {"message.orphaned", "message.requeued"},
		3:          {"message.orphaned", "message.dead_lettered"},
	}
	if diff := cmp.Diff(want, moved(outcome)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]fsm.Count{{Topic: "mail", Delta: -2}}, outcome.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	first := outcome.Changes[1].Transitions[0].Event.(*events.MessageOrphaned)
	if diff := cmp.Diff(&events.MessageOrphaned{Token: 2, Evidence: evidence}, first); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
}

// A reclaim that finds nothing left changes nothing, so it may be repeated by anybody, any time.
func TestReclaimAgain(t *testing.T) {
	claims, _ := mailIn(events.Running, 2)
	c := fsm.Reclaim{Evidence: events.Evidence{Claimer: workerA}}
	tests := []struct {
		name    string
		state   events.State
		claims  []fsm.Message
		changes int
	}{
		{"first page", events.Live, claims, 3},
		{"next page", events.Lost, claims, 2},
		{"nothing left", events.Lost, nil, 0},
		{"it stopped, and holds something all the same", events.Stopped, claims, 2},
		{"it stopped", events.Stopped, nil, 0},
		{"nobody knows it", events.Absent, claims, 2},
		{"nobody knows it, and it holds nothing", events.Absent, nil, 0},
		{"it held nothing", events.Live, nil, 1},
	}
	for _, tt := range tests {
		held := fsm.Held{Now: now, Workers: map[events.ID]fsm.Worker{}, Claims: map[events.ID][]fsm.Message{workerA: tt.claims}}
		if tt.state != events.Absent {
			held.Workers[workerA] = workerIn(tt.state)
		}
		outcome, err := c.Decide(held)
		if err != nil || len(outcome.Changes) != tt.changes || len(outcome.Counts) != 0 {
			t.Errorf("%s: %v, %d changes and counts %v, want %d changes", tt.name, err, len(outcome.Changes), outcome.Counts, tt.changes)
		}
	}
}

func TestOperate(t *testing.T) {
	messages := map[events.ID]fsm.Message{}
	for i, state := range []events.State{events.Queued, events.Running, events.Completed, events.DeadLettered} {
		m := messageIn(state)
		m.ID = events.ID{byte(i + 1)}
		messages[m.ID] = m
	}
	ids := []events.ID{{1}, {2}, {3}, {4}, {5}, {1}, {4}}
	tests := []struct {
		command fsm.MessageCommand
		want    map[byte][]string
		refused []events.Reason
	}{
		{
			fsm.CancelMessage{By: "ops"}, map[byte][]string{1: {"message.cancelled"}, 2: {"message.cancelled"}},
			[]events.Reason{"", "", events.ReasonWrongState, events.ReasonWrongState, events.ReasonNotFound, events.ReasonWrongState, events.ReasonWrongState},
		},
		{
			fsm.TakeBackMessage{By: "ops"}, map[byte][]string{2: {"message.requeued"}},
			[]events.Reason{events.ReasonWrongState, "", events.ReasonWrongState, events.ReasonWrongState, events.ReasonNotFound, events.ReasonWrongState, events.ReasonWrongState},
		},
		{
			fsm.RedriveMessage{By: "ops"}, map[byte][]string{4: {"message.redriven"}},
			[]events.Reason{events.ReasonWrongState, events.ReasonWrongState, events.ReasonWrongState, "", events.ReasonNotFound, events.ReasonWrongState, events.ReasonWrongState},
		},
	}
	for _, tt := range tests {
		c := fsm.Operate{IDs: ids, Command: tt.command}
		outcome, refusals, err := c.Decide(fsm.Held{Now: now, Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, moved(outcome)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Name(), diff)
		}
		for i, r := range refusals {
			var got events.Reason
			if r != nil {
				got = r.Reason
			}
			if got != tt.refused[i] {
				t.Errorf("%s of message %d: %q, want %q", c.Name(), ids[i][0], got, tt.refused[i])
			}
		}
	}
}

// An end that an operator brings about gives the slot back.
func TestOperateGivesSlotsBack(t *testing.T) {
	_, messages := mailIn(events.Running, 2)
	for id, m := range messages {
		m.Counted = true
		messages[id] = m
	}
	for _, command := range []fsm.MessageCommand{fsm.CancelMessage{}, fsm.TakeBackMessage{}} {
		c := fsm.Operate{IDs: []events.ID{{1}, {2}}, Command: command}
		outcome, _, err := c.Decide(fsm.Held{Now: now, Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]fsm.Count{{Topic: "mail", Delta: -2}}, outcome.Counts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Name(), diff)
		}
	}
}

// A new limit is in force once all older claims are counted, a page at a time.
func TestCountClaims(t *testing.T) {
	open, _ := mailIn(events.Running, 3)
	counting := fsm.Topic{Name: "mail", Version: 2, State: events.Active, Limit: 2, Counting: true}
	tests := []struct {
		name   string
		page   []fsm.Message
		counts []fsm.Count
		ended  bool
	}{
		{"a full page", open, []fsm.Count{{Topic: "mail", Delta: 3}}, false},
		{"the last page", open[:2], []fsm.Count{{Topic: "mail", Delta: 2}}, true},
		{"nothing to count", nil, nil, true},
	}
	for _, tt := range tests {
		held := fsm.Held{Now: now, Topics: map[string]fsm.Topic{"mail": counting}, Uncounted: map[string][]fsm.Message{"mail": tt.page}}
		outcome, err := fsm.CountClaims{Topic: "mail", Page: 3}.Decide(held)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.counts, outcome.Counts); diff != "" {
			t.Errorf("%s: counts (-want +got):\n%s", tt.name, diff)
		}
		ended := false
		for _, c := range outcome.Changes {
			if topic, ok := c.Value.(*fsm.Topic); ok {
				ended = !topic.Counting
			}
		}
		if ended != tt.ended || len(moved(outcome)) != len(tt.page) {
			t.Errorf("%s: ended %v with %d counted, want %v with %d", tt.name, ended, len(moved(outcome)), tt.ended, len(tt.page))
		}
	}
	for name, topics := range map[string]map[string]fsm.Topic{"not counting": {"mail": topicIn(events.Active)}, "unknown": nil} {
		_, err := fsm.CountClaims{Topic: "mail", Page: 3}.Decide(fsm.Held{Now: now, Topics: topics})
		var r *fsm.Refusal
		if !errors.As(err, &r) || r.Entity != events.TopicEntity("mail") {
			t.Errorf("%s: %v, want a refusal that names the topic", name, err)
		}
	}
}

func TestOperateTopicAndWorker(t *testing.T) {
	outcome, err := fsm.OperateTopic{Topic: "mail", Command: fsm.ConfigureTopic{Limit: 3}}.Decide(fsm.Held{Now: now})
	if err != nil || len(outcome.Changes) != 1 || outcome.Changes[0].Value.Entity() != events.TopicEntity("mail") {
		t.Errorf("a topic that nobody knew: %v, %+v", err, outcome)
	}
	held := fsm.Held{Now: now, Topics: map[string]fsm.Topic{"mail": topicIn(events.Active)}}
	if outcome, err = (fsm.OperateTopic{Topic: "mail", Command: fsm.ConfigureTopic{Limit: 3}}).Decide(held); err != nil || len(outcome.Changes) != 0 {
		t.Errorf("a topic that is so already: %v, %+v", err, outcome)
	}
	if _, err = (fsm.OperateTopic{Topic: "mail", Command: fsm.ResumeTopic{}}).Decide(held); !errors.Is(err, &fsm.Refusal{Command: "resume", Reason: events.ReasonWrongState}) {
		t.Errorf("a topic that is not paused: %v", err)
	}
	start := fsm.OperateWorker{Worker: workerB, Command: fsm.StartWorker{}}
	if outcome, err = start.Decide(fsm.Held{Now: now}); err != nil || len(outcome.Changes) != 1 || outcome.Changes[0].Value.Entity() != events.WorkerEntity(workerB) {
		t.Errorf("a worker that nobody knew: %v, %+v", err, outcome)
	}
	claimed := fsm.Message{ID: thisID, Version: 2, State: events.Running, Topic: "mail", Attempts: 1, Worker: workerB, Token: 2, Counted: true}
	outcome, err = fsm.OperateWorker{Worker: workerB, Command: fsm.StopWorker{Released: 3}}.Decide(fsm.Held{
		Now: now, Workers: map[events.ID]fsm.Worker{workerB: {ID: workerB, Version: 1, State: events.Live}},
		Claims: map[events.ID][]fsm.Message{workerB: {claimed}},
	})
	if err != nil || len(outcome.Changes) != 2 || len(outcome.Counts) != 1 || outcome.Counts[0].Delta != -1 {
		t.Fatalf("a stop with an open claim: %v, %+v", err, outcome)
	}
	if e, ok := outcome.Changes[1].Transitions[0].Event.(*events.WorkerStopped); !ok || e.Released != 4 {
		t.Errorf("a stop with an open claim: %+v, want what it gave back counted", outcome.Changes[1])
	}
	full := make([]fsm.Message, fsm.StopPage)
	for i := range full {
		full[i] = claimed
		full[i].ID[15] = byte(i)
	}
	outcome, err = fsm.OperateWorker{Worker: workerB, Command: fsm.StopWorker{}}.Decide(fsm.Held{
		Now: now, Workers: map[events.ID]fsm.Worker{workerB: {ID: workerB, Version: 1, State: events.Live}},
		Claims: map[events.ID][]fsm.Message{workerB: full},
	})
	if err != nil || len(outcome.Changes) != fsm.StopPage {
		t.Errorf("a stop with a full page of claims: %v, %d changes, want the page given back and the worker not stopped yet", err, len(outcome.Changes))
	}
	stop := fsm.OperateWorker{Worker: workerB, Command: fsm.StopWorker{}}
	if _, err = stop.Decide(fsm.Held{Now: now}); !errors.Is(err, &fsm.Refusal{Command: "stop-worker", Reason: events.ReasonNotFound}) {
		t.Errorf("a stop of a worker that nobody knew: %v", err)
	}
}
