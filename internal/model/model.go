// Package model is a second opinion: what a store holds and what it must answer, written down without package fsm. One random script
// runs on the model and on every engine; the text of each step must be the one that the model said.
package model

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
)

// model is everything there is, by the names that a story uses.
type model struct {
	id       func(name string) events.ID // for the order of ids alone
	now      time.Duration               // the store's time since the start
	passed   time.Duration               // what has gone by, whatever the store's clock was set to
	position int
	before   int // the position at the beginning of the step
	minted   int // messages that got a name by appearance
	started  int // workers that did
	sweeps   int // sweeps that did
	messages []*message
	topics   map[string]*topic
	workers  map[string]*worker
	locks    map[string]*lock
	permits  []permit // those that are out
	keys     map[key]holder
	groups   []group  // the events of the commit so far, by entity in order of first appearance
	lines    []string // of the step: its events
	notes    []string // of the step: its answers and refusals

	processes  []*process // in the order in which the story spoke of them
	beats      map[string]beat
	clock      clock
	lease      lease
	leader     leader
	unreadable bool // nobody can read who lives

	kept    []logged // the events that are left
	commits int
	pruned  struct {
		version, total int
		at             time.Duration // the time of the newest commit that went; never where none did
		workers        []string      // that are forgotten
	}
}

type key struct{ topic, name string }

type holder struct {
	message string
	open    bool
	until   time.Duration
}

func (h holder) taken(now time.Duration) bool { return h.open || h.until != never && now < h.until }

// never is a time that does not come. The story begins at 0, and its clock can be set back behind that.
const never time.Duration = math.MinInt64

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
	place            int // among all that were enqueued
	position         int // of the log, before it was enqueued
	due, unique      time.Duration
	most             int // attempts
	base             time.Duration
	state            string
	version          int
	lock             string
	skips            bool // it does not wait for its lock
	trying           bool // it was unblocked and has not tried since
	erased           bool
	orphanMost       int // its own orphan limit

	attempts, releases, failures, orphanings int
	spent, orphaned                          int // at the last redrive

	worker  string
	token   int
	claimed time.Duration
	counted bool
	permit  int    // that the claim took
	last    int    // the newest token
	lastBy  string // and whose it was
	took    map[int]taken

	then struct { // at the beginning of the step
		worker string
		permit int
	}
}

// taken is the permit that a claim took, and where the log says so.
type taken struct{ permit, position int }

func (m *message) open() bool {
	return m.state == "queued" || m.state == "blocked" || m.state == "running"
}

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
	lost    time.Duration // never where nobody held it to be
}

func newModel(id func(string) events.ID) *model {
	m := &model{id: id, topics: map[string]*topic{}, workers: map[string]*worker{}, keys: map[key]holder{}, locks: map[string]*lock{}, beats: map[string]beat{}, lease: lease{swept: never}, leader: leader{state: "none"}}
	m.pruned.at = never
	return m
}

// message is the message with a name, one that does not exist where nobody has it, or has it any more.
func (m *model) message(name string) *message {
	for _, msg := range m.messages {
		if msg.name == name && m.forgotten(msg) {
			return msg.unknown()
		}
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
	return &worker{name: name, state: "none", lost: never}
}

// predict is the text of a step.
func (m *model) predict(a action) string {
	m.lines, m.notes, m.before = nil, nil, m.position
	for _, msg := range m.messages {
		msg.then.worker, msg.then.permit = msg.worker, msg.permit
	}
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
	m.commits++
	for _, g := range m.groups {
		for _, line := range g.lines {
			m.position++
			m.log(m.commits, g.entity, line)
			m.lines = append(m.lines, fmt.Sprintf("%d %s %s", m.position, at(m.now), line))
		}
	}
	m.groups = nil
}

// at is an instant as the stories show it.
func at(d time.Duration) string {
	if d < 0 {
		return d.String()
	}
	return "+" + d.String()
}

func versions(version int, from, to string) string {
	return fmt.Sprintf("v%d %s→%s", version, from, to)
}

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

// last puts what the commit has of an entity behind all others.
func (m *model) last(entity string) {
	i := slices.IndexFunc(m.groups, func(g group) bool { return g.entity == entity })
	g := m.groups[i]
	m.groups = append(slices.Delete(m.groups, i, i+1), g)
}

// move records an event that leads a message to a state.
func (m *model) move(msg *message, to, typ string, f fields) {
	from := msg.state
	msg.version++
	msg.state = to
	m.record("message "+msg.name, versions(msg.version, from, to)+" message."+typ, f)
}

// requeue records that a message is back at its old place. It was due when it was claimed, wherever the clock is by now.
func (m *model) requeue(msg *message, f fields) {
	msg.due = min(msg.due, m.now)
	m.move(msg, "queued", "requeued", f)
}

func (m *model) moveTopic(t *topic, to, typ string, f fields) {
	from := t.state
	t.version++
	t.state = to
	m.topics[t.name] = t
	m.record("topic "+t.name, versions(t.version, from, to)+" topic."+typ, f)
}

func (m *model) moveWorker(w *worker, to, typ string, f fields) {
	from := w.state
	w.version++
	w.state = to
	m.workers[w.name] = w
	m.record("worker "+w.name, versions(w.version, from, to)+" worker."+typ, f)
	if to == "stopped" || to == "purged" {
		p := m.process(w.name)
		p.forgot = p.forgot || p.attested
	}
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
	msg.worker, msg.token, msg.claimed, msg.counted, msg.permit, msg.trying = "", 0, 0, false, 0, false
	m.endKey(msg)
}

// endKey ends the time of a message's key, where the message has ended.
func (m *model) endKey(msg *message) {
	if msg.key == "" || msg.open() {
		return
	}
	k := key{msg.topic, msg.key}
	if h, known := m.keys[k]; known && h.message != msg.name {
		return // a dead letter lets go of its key, which another may have when it is cancelled
	}
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
