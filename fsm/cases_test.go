package fsm_test

import (
	"errors"
	"reflect"
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
		events.Running:      {},
		events.Orphaned:     {&events.MessageOrphaned{Token: 2}},
		events.Completed:    {&events.MessageCompleted{Token: 2}},
		events.DeadLettered: {&events.MessageDeadLettered{Reason: events.ReasonHandler, Token: 2}},
		events.Cancelled:    {&events.MessageCancelled{Reason: events.ReasonHandler, Token: 2}},
	}
	list := paths[state]
	if state != events.Absent && state != events.Queued {
		list = append([]events.Event{&events.MessageClaimed{Worker: workerA, Token: 2, Attempt: 1}}, list...)
	}
	if state != events.Absent {
		list = append([]events.Event{&events.MessageEnqueued{Topic: "mail"}}, list...)
	}
	for _, event := range list {
		m = m.Evolve(event, now)
	}
	return m
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
		{"take-back", fsm.TakeBackMessage{By: "ops"}, nil},
		{"redrive", fsm.RedriveMessage{By: "ops"}, nil},
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
	}
}

// attempt is one row of a table made by running Decide.
type attempt struct {
	label   string
	command string // the Go type of the command
	before  fsm.Value
	events  []events.Event
	steps   []fsm.Value // after each event
	err     error
}

func attempts(kind events.Kind, state events.State) []attempt {
	var list []attempt
	add := func(a attempt) {
		v := a.before
		for _, event := range a.events {
			v = evolve(v, event)
			a.steps = append(a.steps, v)
		}
		list = append(list, a)
	}
	switch kind {
	case events.KindMessage:
		for _, c := range messageCases() {
			m := messageIn(state)
			if c.given != nil && state != events.Absent {
				c.given(&m)
			}
			decided, err := m.Decide(c.command, now)
			add(attempt{label: c.label, command: typeName(c.command), before: &m, events: decided, err: err})
		}
	case events.KindTopic:
		for _, c := range topicCases() {
			topic := topicIn(state)
			if c.given != nil && state != events.Absent {
				c.given(&topic)
			}
			decided, err := topic.Decide(c.command, now)
			add(attempt{label: c.label, command: typeName(c.command), before: &topic, events: decided, err: err})
		}
	case events.KindWorker:
		for _, c := range workerCases() {
			w := workerIn(state)
			decided, err := w.Decide(c, now)
			add(attempt{label: c.Name(), command: typeName(c), before: &w, events: decided, err: err})
		}
	}
	return list
}

func typeName(command any) string { return reflect.TypeOf(command).Name() }

// evolve is Evolve of whatever v is.
func evolve(v fsm.Value, event events.Event) fsm.Value {
	switch v := v.(type) {
	case *fsm.Message:
		next := v.Evolve(event, now)
		return &next
	case *fsm.Topic:
		next := v.Evolve(event, now)
		return &next
	case *fsm.Worker:
		next := v.Evolve(event, now)
		return &next
	}
	return v
}
