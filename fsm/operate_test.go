package fsm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

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
			fsm.CancelMessage{By: "ops"}, map[byte][]string{1: {"message.cancelled"}, 2: {"message.cancelled"}, 4: {"message.cancelled"}},
			[]events.Reason{"", "", events.ReasonWrongState, "", events.ReasonNotFound, events.ReasonWrongState, events.ReasonWrongState},
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
		c := fsm.Operate{IDs: ids, Command: tt.command, Judged: []events.ID{workerA}}
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
		c := fsm.Operate{IDs: []events.ID{{1}, {2}}, Command: command, Judged: []events.ID{workerA}}
		outcome, _, err := c.Decide(fsm.Held{Now: now, Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]fsm.Count{{Topic: "mail", Delta: -2}}, outcome.Counts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Name(), diff)
		}
	}
}

// operating is a command on message 1, which worker a claimed with the permit l/4. Its last heartbeat is so old.
func operating(command fsm.MessageCommand, age time.Duration) (fsm.Operate, fsm.Held) {
	m, permit := running(1, workerA, now.Add(-time.Second), 4)
	return fsm.Operate{IDs: []events.ID{{1}}, Command: command, Judged: []events.ID{workerA}}, fsm.Held{
		Now: now, Messages: map[events.ID]fsm.Message{{1}: m}, Beats: beating(age), Permits: []fsm.Permit{permit}, Locks: heldLock(0, 1),
		Waiting: map[string][]fsm.Message{"l": {waiting(7, "mail"), waiting(8, "post")}},
	}
}

// Who takes a claim from outside gives its slot back. The permit comes back with the claim of a dead worker; one that lives keeps it until it
// says that its handler has ended. A claim is taken back from a living worker only by force, and cancelled from anybody.
func TestOperateJudgesTheWorker(t *testing.T) {
	const s = time.Second
	takeBack, cancel := fsm.TakeBackMessage{By: "ops", Detail: "stuck"}, fsm.CancelMessage{By: "ops", Detail: "stuck"}
	ended := func(verb string) map[string]string { return map[string]string{"m1": verb} }
	freed := func(verb string) map[string]string {
		return map[string]string{"m1": verb, "lock l": "force_released", "permits": "-l/4", "m7": "unblocked", "m8": "unblocked"}
	}
	gone := func(c *fsm.Operate, _ *fsm.Held) { c.Gone = []events.ID{workerB, workerA} }
	otherGone := func(c *fsm.Operate, _ *fsm.Held) { c.Gone = []events.ID{workerB} }
	force := func(c *fsm.Operate, _ *fsm.Held) { c.Force = fsm.Forced }
	after30 := func(c *fsm.Operate, _ *fsm.Held) { c.After = 30 * s }
	fast := func(c *fsm.Operate, h *fsm.Held) { // whose own bound is 35 s
		after30(c, h)
		h.Beats[workerA] = fsm.Member{Worker: workerA, LastBeatAt: h.Beats[workerA].LastBeatAt, Interval: 5 * s, FenceAfter: 30 * s}
	}
	neverBeat := func(_ *fsm.Operate, h *fsm.Held) { h.Beats = nil }
	sinceRead := func(c *fsm.Operate, h *fsm.Held) { c.Judged, h.Beats = []events.ID{workerB}, nil }
	asIs := func(*fsm.Operate, *fsm.Held) {}
	tests := []struct {
		name    string
		command fsm.MessageCommand
		beat    time.Duration
		given   func(*fsm.Operate, *fsm.Held)
		want    map[string]string // nothing is refused as alive
	}{
		{"take-back of a living worker's", takeBack, s, asIs, nil},
		{"take-back, silent for the bound", takeBack, 120 * s, asIs, nil},
		{"take-back, silent for longer", takeBack, 120*s + time.Microsecond, asIs, freed("requeued")},
		{"take-back, by force", takeBack, s, force, ended("requeued")},
		{"take-back of a dead worker's, by force", takeBack, time.Hour, force, freed("requeued")},
		{"take-back, its process is gone", takeBack, s, gone, freed("requeued")},
		{"take-back, another process is gone", takeBack, s, otherGone, nil},
		{"take-back, no heartbeat at all", takeBack, 0, neverBeat, freed("requeued")},
		{"take-back, claimed since it was read", takeBack, 0, sinceRead, nil},
		{"take-back, silent for a shorter bound but not for its own", takeBack, 35 * s, fast, nil},
		{"take-back, silent for both", takeBack, 35*s + time.Microsecond, fast, freed("requeued")},
		{"take-back, its own bound is longer than the one that was set", takeBack, 105 * s, after30, nil},
		{"cancel of a living worker's", cancel, s, asIs, ended("cancelled")},
		{"cancel of a dead worker's", cancel, time.Hour, asIs, freed("cancelled")},
		{"cancel, its process is gone", cancel, s, gone, freed("cancelled")},
		{"cancel, claimed since it was read", cancel, 0, sinceRead, ended("cancelled")},
	}
	for _, tt := range tests {
		c, held := operating(tt.command, tt.beat)
		tt.given(&c, &held)
		outcome, refusals, err := c.Decide(held)
		if err != nil {
			t.Fatal(err)
		}
		want := tt.want
		if want == nil {
			want = map[string]string{}
			r := refusals[0]
			if r == nil || r.Command != "take-back" || r.Reason != events.ReasonAlive || !strings.Contains(r.Error(), workerA.String()) {
				t.Errorf("%s: refusal %v", tt.name, refusals)
			}
		} else if refusals[0] != nil {
			t.Errorf("%s: %v", tt.name, refusals[0])
		}
		if diff := cmp.Diff(want, told(outcome)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		for _, event := range facts(outcome) {
			if e, ok := event.(*events.LockForceReleased); ok {
				if diff := cmp.Diff(&events.LockForceReleased{Token: 4, By: "ops", Detail: "stuck"}, e); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tt.name, diff)
				}
			}
		}
	}
}

// A take-back of what nobody holds is refused for its state, not for a worker.
func TestTakeBackOfWhatIsNotHeld(t *testing.T) {
	for _, state := range []events.State{events.Queued, events.Blocked, events.Completed, events.DeadLettered} {
		m := messageIn(state)
		c := fsm.Operate{IDs: []events.ID{m.ID}, Command: fsm.TakeBackMessage{}}
		outcome, refusals, err := c.Decide(fsm.Held{Now: now, Messages: map[events.ID]fsm.Message{m.ID: m}})
		if err != nil || len(outcome.Changes) > 0 || !errors.Is(refusals[0], &fsm.Refusal{Reason: events.ReasonWrongState}) {
			t.Errorf("%s: %v, %v, %v", state, told(outcome), refusals, err)
		}
	}
}

// A cancelled message lets its key go.
func TestCancelLetsTheKeyGo(t *testing.T) {
	for _, state := range []events.State{events.Queued, events.Blocked, events.Running} {
		m := messageIn(state)
		m.Key = "k"
		c := fsm.Operate{IDs: []events.ID{m.ID}, Command: fsm.CancelMessage{}}
		outcome, _, err := c.Decide(fsm.Held{Now: now, Messages: map[events.ID]fsm.Message{m.ID: m}})
		want := []fsm.KeyChange{{Key: fsm.Key{Topic: "mail", Name: "k"}}}
		if diff := cmp.Diff(want, outcome.Keys); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", state, err, diff)
		}
	}
}

// Whoever was sent to try and is cancelled hands over to the next of its topic. So does one whose cancel ends the next as well.
func TestCancelHandsOver(t *testing.T) {
	list := []fsm.Message{trying(1, "mail"), waiting(2, "mail"), waiting(3, "mail"), trying(4, "post"), waiting(5, "post")}
	tests := []struct {
		name string
		ids  []events.ID
		out  int // permits
		want map[string]string
	}{
		{"the one that was sent", []events.ID{{1}}, 0, map[string]string{"m1": "cancelled", "m2": "unblocked"}},
		{"and the next", []events.ID{{1}, {2}}, 0, map[string]string{"m1": "cancelled", "m2": "cancelled", "m3": "unblocked"}},
		{"the next alone", []events.ID{{2}}, 0, map[string]string{"m2": "cancelled"}},
		{"of both topics", []events.ID{{4}, {1}}, 0, map[string]string{"m1": "cancelled", "m2": "unblocked", "m4": "cancelled", "m5": "unblocked"}},
		{"all of a topic", []events.ID{{4}, {5}}, 0, map[string]string{"m4": "cancelled", "m5": "cancelled"}},
		{"while a newcomer has the lock", []events.ID{{1}}, 1, map[string]string{"m1": "cancelled"}},
	}
	for _, tt := range tests {
		held := fsm.Held{Now: now, Messages: map[events.ID]fsm.Message{}, Locks: heldLock(0, tt.out), Waiting: map[string][]fsm.Message{"l": list}}
		for _, m := range list {
			held.Messages[m.ID] = m
		}
		outcome, _, err := fsm.Operate{IDs: tt.ids, Command: fsm.CancelMessage{}}.Decide(held)
		if diff := cmp.Diff(tt.want, told(outcome)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}

// A dead worker's permit and a waiter that is cancelled with it: the one behind is told, once.
func TestCancelOfHolderAndWaiter(t *testing.T) {
	c, held := operating(fsm.CancelMessage{}, time.Hour)
	first, sent := waiting(7, "mail"), trying(6, "mail")
	held.Messages[first.ID], held.Messages[sent.ID] = first, sent
	held.Waiting["l"] = []fsm.Message{sent, first, waiting(8, "mail"), waiting(9, "mail")}
	c.IDs = []events.ID{sent.ID, {1}, first.ID}
	outcome, _, err := c.Decide(held)
	want := map[string]string{
		"m1": "cancelled", "m6": "cancelled", "m7": "cancelled", "m8": "unblocked", "lock l": "force_released", "permits": "-l/4",
	}
	if diff := cmp.Diff(want, told(outcome)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A permit that the claim does not have any more stays with whoever has it.
func TestOperateLeavesOthersPermits(t *testing.T) {
	c, held := operating(fsm.CancelMessage{}, time.Hour)
	held.Permits = []fsm.Permit{session(workerB, now, 5)}
	outcome, _, err := c.Decide(held)
	if diff := cmp.Diff(map[string]string{"m1": "cancelled"}, told(outcome)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
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
		held := fsm.Held{Now: now, Topics: topics, Uncounted: map[string][]fsm.Message{"mail": open}}
		outcome, err := fsm.CountClaims{Topic: "mail", Page: 3}.Decide(held)
		var r *fsm.Refusal
		if !errors.As(err, &r) || r.Entity != events.TopicEntity("mail") || len(outcome.Changes) > 0 {
			t.Errorf("%s: %v and %v, want a refusal that names the topic", name, err, told(outcome))
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
