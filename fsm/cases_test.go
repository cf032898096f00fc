package fsm_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
)

// now is the store's time in all tests that do not say another.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var (
	workerA = events.ID{0xa}
	workerB = events.ID{0xb}
	thisID  = events.ID{1}
)

// decide carries out a command that must be accepted.
func decide(t testing.TB, m fsm.Message, c fsm.MessageCommand, at time.Time) (fsm.Message, []events.Event) {
	t.Helper()
	list, err := m.Decide(c, at)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range list {
		m = m.Evolve(event, at)
	}
	return m, list
}

// after carries out commands at the usual time, all of which must be accepted.
func after(t testing.TB, m fsm.Message, commands ...fsm.MessageCommand) fsm.Message {
	t.Helper()
	for _, c := range commands {
		m, _ = decide(t, m, c, now)
	}
	return m
}

// refusal is the refusal of a command that must be refused.
func refusal(t testing.TB, m fsm.Message, c fsm.MessageCommand) *fsm.Refusal {
	t.Helper()
	list, err := m.Decide(c, now)
	var r *fsm.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("%s gives %v, %v, want a refusal", c.Name(), list, err)
	}
	return r
}

func queued(t testing.TB, limits events.Limits) fsm.Message {
	return after(t, fsm.Message{ID: thisID}, fsm.EnqueueMessage{Topic: "mail", Limits: limits})
}

func claim(t testing.TB, m fsm.Message) fsm.Message {
	return after(t, m, fsm.ClaimMessage{Worker: workerA})
}

// messageIn is a message in each state of its table, claimed once with token 2 where it was claimed at all.
func messageIn(state events.State) fsm.Message {
	m := fsm.Message{ID: thisID}
	paths := map[events.State][]events.Event{
		events.Absent:       {},
		events.Queued:       {},
		events.Blocked:      {&events.MessageBlocked{Lock: "l"}},
		events.Running:      {},
		events.Orphaned:     {&events.MessageOrphaned{Token: 2}},
		events.Completed:    {&events.MessageCompleted{Token: 2}},
		events.DeadLettered: {&events.MessageDeadLettered{Reason: events.ReasonHandler, Token: 2}},
		events.Cancelled:    {&events.MessageCancelled{Reason: events.ReasonHandler, Token: 2}},
		events.Discarded:    {&events.MessageDiscarded{Reason: events.ReasonLockTaken, Lock: "l"}},
	}
	list := paths[state]
	if !slices.Contains([]events.State{events.Absent, events.Queued, events.Blocked, events.Discarded}, state) {
		list = append([]events.Event{&events.MessageClaimed{Worker: workerA, Token: 2, Attempt: 1}}, list...)
	}
	if state != events.Absent {
		list = append([]events.Event{&events.MessageEnqueued{Topic: "mail", Lock: lockOf(state)}}, list...)
	}
	for _, event := range list {
		m = m.Evolve(event, now)
	}
	return m
}

// lockOf is the lock of a message in a state that only one with a lock comes to.
func lockOf(state events.State) string {
	if state == events.Blocked || state == events.Discarded {
		return "l"
	}
	return ""
}

// messageCase is a command to a message, where it matters with what the message must be like.
type messageCase struct {
	label   string
	command fsm.MessageCommand
	given   func(*fsm.Message)
}

func messageCases() []messageCase {
	spent := func(n int) func(*fsm.Message) {
		return func(m *fsm.Message) { m.Attempts = n }
	}
	evidence := events.Evidence{Reason: events.ReasonProcessGone, Claimer: workerA, Limit: 5}
	foreign := evidence
	foreign.Claimer = workerB
	return []messageCase{
		{"enqueue", fsm.EnqueueMessage{Topic: "mail"}, nil},
		{"claim", fsm.ClaimMessage{Worker: workerA}, nil},
		{"claim before it is due", fsm.ClaimMessage{Worker: workerA}, func(m *fsm.Message) { m.DueAt = now.Add(1) }},
		{"count", fsm.CountMessage{}, nil},
		{"count one that is counted", fsm.CountMessage{}, func(m *fsm.Message) { m.Counted = true }},
		{"complete", fsm.CompleteMessage{Token: 2}, nil},
		{"complete, other token", fsm.CompleteMessage{Token: 1}, nil},
		{"fail", fsm.FailMessage{Token: 2, Error: "no"}, nil},
		{"fail, attempts spent", fsm.FailMessage{Token: 2, Error: "no"}, spent(fsm.DefaultMaxAttempts)},
		{"fail, other token", fsm.FailMessage{Token: 1, Error: "no"}, nil},
		{"release", fsm.ReleaseMessage{Token: 2, Reason: events.ReasonReleased}, nil},
		{"release, other token", fsm.ReleaseMessage{Token: 1, Reason: events.ReasonReleased}, nil},
		{"dead-letter", fsm.DeadLetterMessage{Token: 2, Error: "never"}, nil},
		{"dead-letter, other token", fsm.DeadLetterMessage{Token: 1, Error: "never"}, nil},
		{"cancel by its handler", fsm.CancelMessage{Token: 2}, nil},
		{"cancel by its handler, other token", fsm.CancelMessage{Token: 1}, nil},
		{"cancel by an operator", fsm.CancelMessage{By: "ops"}, nil},
		{"orphan", fsm.OrphanMessage{Evidence: evidence}, nil},
		{"orphan, limit reached", fsm.OrphanMessage{Evidence: evidence}, spent(5)},
		{"orphan of another worker", fsm.OrphanMessage{Evidence: foreign}, nil},
		{"block", fsm.BlockMessage{}, nil},
		{"block one that does not wait", fsm.BlockMessage{}, func(m *fsm.Message) { m.OnLocked, m.Attempts = events.SkipIfLocked, 0 }},
		{"block one that does not wait and was claimed before", fsm.BlockMessage{}, func(m *fsm.Message) { m.OnLocked, m.Attempts = events.SkipIfLocked, 1 }},
		{"unblock", fsm.UnblockMessage{}, nil},
		{"discard", fsm.DiscardMessage{Reason: events.ReasonKeyTaken, Key: "k", Holder: events.ID{9}}, nil},
		{"take-back", fsm.TakeBackMessage{By: "ops"}, nil},
		{"redrive", fsm.RedriveMessage{By: "ops"}, nil},
		{"snapshot", fsm.Snapshot{}, nil},
	}
}

// topicIn is a topic in each state of its table.
func topicIn(state events.State) fsm.Topic {
	topic := fsm.Topic{Name: "mail"}
	if state != events.Absent {
		topic = topic.Evolve(&events.TopicConfigured{Limit: 3}, now)
	}
	if state == events.Paused {
		topic = topic.Evolve(&events.TopicPaused{}, now)
	}
	return topic
}

type topicCase struct {
	label   string
	command fsm.TopicCommand
	given   func(*fsm.Topic)
}

func topicCases() []topicCase {
	counting := func(topic *fsm.Topic) { topic.Counting = true }
	return []topicCase{
		{"configure-topic", fsm.ConfigureTopic{Limit: 5}, nil},
		{"configure-topic, limit as it is", fsm.ConfigureTopic{Limit: 3}, nil},
		{"configure-topic, no limit", fsm.ConfigureTopic{}, nil},
		{"count-topic", fsm.CountTopic{}, counting},
		{"count-topic, not counting", fsm.CountTopic{}, nil},
		{"pause", fsm.PauseTopic{By: "ops"}, nil},
		{"resume", fsm.ResumeTopic{By: "ops"}, nil},
		{"snapshot", fsm.Snapshot{}, nil},
	}
}

// workerIn is a worker in each state of its table.
func workerIn(state events.State) fsm.Worker {
	w := fsm.Worker{ID: workerA}
	if state != events.Absent {
		w = w.Evolve(&events.WorkerStarted{Host: "h"}, now)
	}
	switch state {
	case events.Lost:
		w = w.Evolve(&events.WorkerLost{}, now)
	case events.Stopped:
		w = w.Evolve(&events.WorkerStopped{}, now)
	case events.Purged:
		w = w.Evolve(&events.WorkerLost{}, now).Evolve(&events.WorkerPurged{}, now)
	}
	return w
}

func workerCases() []fsm.WorkerCommand {
	return []fsm.WorkerCommand{
		fsm.StartWorker{Started: events.WorkerStarted{Host: "h"}},
		fsm.GapWorker{FromAt: now, ToAt: now.Add(time.Minute)},
		fsm.LoseWorker{Evidence: events.Evidence{Claimer: workerA}},
		fsm.ReturnWorker{},
		fsm.StopWorker{Released: 1},
		fsm.PurgeWorker{},
		fsm.Snapshot{},
	}
}

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

// told is what an outcome says, entity by entity: the verbs of its events, and under "permits" which went out and which came back.
func told(o fsm.Outcome) map[string]string {
	list := map[string]string{}
	add := func(key, word string) { list[key] = strings.TrimSpace(list[key] + " " + word) }
	for _, c := range o.Changes {
		for _, t := range c.Transitions {
			_, verb, _ := strings.Cut(t.Event.Type().String(), ".")
			add(shortName(c.Value.Entity()), verb)
		}
	}
	for _, p := range o.Permits {
		sign := "+"
		if p.Back {
			sign = "-"
		}
		add("permits", fmt.Sprintf("%s%s/%d", sign, p.Permit.Lock, p.Permit.Token))
	}
	return list
}

// shortName is a name for people: m1 is the message whose id begins with 1, wa the worker whose id begins with a.
func shortName(e events.Entity) string {
	switch e.Kind {
	case events.KindMessage:
		return fmt.Sprintf("m%d", e.ID[0])
	case events.KindWorker:
		return fmt.Sprintf("w%x", e.ID[0])
	}
	return e.Kind.String() + " " + e.Name
}

// running is a message that a worker claimed at a time, with a permit of lock l where the token is not 0.
func running(id byte, worker events.ID, claimedAt time.Time, token events.Token) (fsm.Message, fsm.Permit) {
	m := messageIn(events.Running)
	m.ID, m.Worker, m.ClaimedAt = events.ID{id}, worker, claimedAt
	if token > 0 {
		m.Lock, m.LockToken = "l", token
	}
	return m, fsm.Permit{PermitKey: m.Permit(), Worker: worker, Message: m.ID, AcquiredAt: claimedAt}
}

// session is a permit of lock l that a worker holds without a message.
func session(worker events.ID, acquiredAt time.Time, token events.Token) fsm.Permit {
	return fsm.Permit{PermitKey: fsm.PermitKey{Lock: "l", Token: token}, Worker: worker, AcquiredAt: acquiredAt}
}

// heldLock is lock l with some of its permits out.
func heldLock(permits, out int) map[string]fsm.Lock {
	l := fsm.Lock{Name: "l", Version: 10, State: events.Held, Permits: permits, Held: out}
	if out == 0 {
		l.State = events.Free
	}
	return map[string]fsm.Lock{"l": l}
}

// waiting is a message of a topic that waits for lock l.
func waiting(id byte, topic string) fsm.Message {
	m := messageIn(events.Blocked)
	m.ID, m.Topic = events.ID{id}, topic
	return m
}

// trying is such a message after it was unblocked.
func trying(id byte, topic string) fsm.Message {
	return waiting(id, topic).Evolve(&events.MessageUnblocked{Lock: "l"}, now)
}
