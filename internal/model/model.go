// Package model is a second opinion: what a store holds and what it must answer, written down without package fsm. One random script
// runs on the model and on every engine; the text of each step must be the one that the model said.
package model

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
)

// model is everything there is, by the names that a story uses.
type model struct {
	id       func(name string) events.ID // for the order of ids alone
	now      time.Duration               // since the start
	position int
	minted   int // messages that got a name by appearance
	started  int // workers that did
	messages []*message
	topics   map[string]*topic
	workers  map[string]*worker
	keys     map[key]holder
	groups   []group  // the events of the commit so far, by entity in order of first appearance
	lines    []string // of the step: its events
	notes    []string // of the step: its answers and refusals
}

type key struct{ topic, name string }

type holder struct {
	message string
	open    bool
	until   time.Duration
}

func (h holder) taken(now time.Duration) bool { return h.open || now < h.until }

type group struct {
	entity string
	lines  []string
}

// refusal is a command that was refused, and why.
type refusal struct{ command, reason string }

type message struct {
	name, topic, key string
	size             int
	priority         events.Priority
	place            int // its position in the log
	due, unique      time.Duration
	most             int // attempts
	base             time.Duration
	state            string
	version          int

	attempts, releases, failures, orphanings int
	spent, orphaned                          int // at the last redrive

	worker  string
	token   int
	claimed time.Duration
	counted bool
	last    int    // the newest token
	lastBy  string // and whose it was
}

func (m *message) open() bool { return m.state == "queued" || m.state == "running" }

func (m *message) spentNow() int { return m.attempts - m.releases - m.spent }

type topic struct {
	name     string
	state    string
	version  int
	limit    int
	running  int
	counting bool
}

type worker struct {
	name    string
	state   string
	version int
	lost    time.Duration
}

func newModel(id func(string) events.ID) *model {
	return &model{id: id, topics: map[string]*topic{}, workers: map[string]*worker{}, keys: map[key]holder{}}
}

// message is the message with a name, one that does not exist where nobody has it.
func (m *model) message(name string) *message {
	for _, msg := range m.messages {
		if msg.name == name {
			return msg
		}
	}
	return &message{name: name, state: "none"}
}

func (m *model) topic(name string) *topic {
	if t, ok := m.topics[name]; ok {
		return t
	}
	return &topic{name: name, state: "none"}
}

func (m *model) worker(name string) *worker {
	if w, ok := m.workers[name]; ok {
		return w
	}
	return &worker{name: name, state: "none"}
}

// predict is the text of a step.
func (m *model) predict(a action) string {
	m.lines, m.notes = nil, nil
	m.now += a.advance
	for _, part := range a.parts {
		part(m)
		m.flush()
	}
	var b strings.Builder
	for _, line := range append(m.lines, m.notes...) {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// flush ends a commit: its events get their positions, those of one entity side by side.
func (m *model) flush() {
	for _, g := range m.groups {
		for _, line := range g.lines {
			m.position++
			m.lines = append(m.lines, fmt.Sprintf("%d %s %s", m.position, at(m.now), line))
		}
	}
	m.groups = nil
}

// at is an instant as the stories show it.
func at(d time.Duration) string { return "+" + d.String() }

// record adds an event of an entity to the commit.
func (m *model) record(entity, text string, f fields) {
	line := entity + " " + text + f.text
	for i := range m.groups {
		if m.groups[i].entity == entity {
			m.groups[i].lines = append(m.groups[i].lines, line)
			return
		}
	}
	m.groups = append(m.groups, group{entity, []string{line}})
}

// move records an event that leads a message to a state.
func (m *model) move(msg *message, to, typ string, f fields) {
	from := msg.state
	msg.version++
	msg.state = to
	m.record("message "+msg.name, fmt.Sprintf("v%d %s→%s message.%s", msg.version, from, to, typ), f)
}

func (m *model) moveTopic(t *topic, to, typ string, f fields) {
	from := t.state
	t.version++
	t.state = to
	m.topics[t.name] = t
	m.record("topic "+t.name, fmt.Sprintf("v%d %s→%s topic.%s", t.version, from, to, typ), f)
}

func (m *model) moveWorker(w *worker, to, typ string, f fields) {
	from := w.state
	w.version++
	w.state = to
	m.workers[w.name] = w
	m.record("worker "+w.name, fmt.Sprintf("v%d %s→%s worker.%s", w.version, from, to, typ), f)
}

// refuse notes that a command was refused, with what its error says.
func (m *model) refuse(r refusal, entity, state, more string) {
	m.notes = append(m.notes, fmt.Sprintf("%s refused: %s is %s: %s%s", r.command, entity, state, r.reason, more))
}

// unclaim ends a message's claim, and its key's time where the message has ended.
func (m *model) unclaim(msg *message) {
	if msg.counted {
		m.topics[msg.topic].running--
	}
	msg.worker, msg.token, msg.claimed, msg.counted = "", 0, 0, false
	if msg.key == "" || msg.open() {
		return
	}
	k := key{msg.topic, msg.key}
	delete(m.keys, k)
	if h := (holder{msg.name, false, msg.unique}); h.taken(m.now) {
		m.keys[k] = h
	}
}

// claims are the open claims that pass, oldest first.
func (m *model) claims(pass func(*message) bool) []*message {
	var list []*message
	for _, msg := range m.messages {
		if msg.state == "running" && pass(msg) {
			list = append(list, msg)
		}
	}
	slices.SortFunc(list, func(a, b *message) int {
		x, y := m.id(a.name), m.id(b.name)
		return cmp.Or(cmp.Compare(a.claimed, b.claimed), bytes.Compare(x[:], y[:]))
	})
	return list
}

// fields is an event's fields as text; those that are zero are left out.
type fields struct{ text string }

func (f fields) str(name, value string) fields {
	if value != "" {
		f.text += " " + name + "=" + value
	}
	return f
}

func (f fields) num(name string, n int) fields {
	if n != 0 {
		f.text += fmt.Sprintf(" %s=%d", name, n)
	}
	return f
}

func (f fields) dur(name string, d time.Duration) fields {
	if d != 0 {
		f.text += " " + name + "=" + d.String()
	}
	return f
}

func (f fields) when(name string, d time.Duration) fields { return f.str(name, at(d)) }
