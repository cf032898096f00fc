package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// draft is a message to be.
type draft struct {
	topic, id, key, payload string
	limit                   int // what its topic starts with; -1 is not said
	unseen                  bool
	n                       int
	due, delay, unique      time.Duration
	priority                events.Priority
	most                    int
	base                    time.Duration
}

// enqueue makes messages. What a topic starts with is said by the first draft that speaks of it.
func (m *model) enqueue(drafts []draft) {
	starts := map[string]int{}
	for _, d := range drafts {
		_, said := starts[d.topic]
		_, seen := m.topics[d.topic]
		if !said && !d.unseen && (d.limit >= 0 || !seen) {
			starts[d.topic] = max(d.limit, 0)
		}
	}
	before := *m
	for _, d := range drafts {
		limit, said := starts[d.topic]
		if _, seen := m.topics[d.topic]; said && !seen {
			t := m.topic(d.topic)
			t.limit = limit
			m.moveTopic(t, "active", "configured", fields{}.num("limit", limit))
		}
	}
	for _, d := range drafts {
		if msg := m.message(d.id); d.id != "" && msg.state != "none" && (msg.topic != d.topic || msg.size != len(d.payload)) {
			// Nothing of the command happens. Only a first draft is drawn with an id that another one may have.
			m.forget(before)
			m.refuse(refusal{"enqueue", "mismatch"}, "message/"+d.id, msg.state, ": the id is known with another topic or payload; give another id, or none")
			return
		}
		for range max(d.n, 1) {
			m.enqueueOne(d)
		}
	}
}

// forget takes back what a refused enqueue did so far.
func (m *model) forget(before model) {
	for _, g := range m.groups {
		var name string
		if _, err := fmt.Sscanf(g.entity, "topic %s", &name); err == nil {
			delete(m.topics, name)
		}
	}
	for _, msg := range m.messages[len(before.messages):] {
		delete(m.keys, key{msg.topic, msg.key})
	}
	m.messages, m.minted, m.groups, m.notes = before.messages, before.minted, before.groups, before.notes
}

func (m *model) enqueueOne(d draft) {
	if d.id != "" && m.message(d.id).state != "none" {
		m.notes = append(m.notes, "known: "+d.id)
		return
	}
	k := key{d.topic, d.key}
	if h := m.keys[k]; d.key != "" && h.taken(m.now) {
		m.notes = append(m.notes, "known: "+h.message)
		return
	}
	msg := &message{
		name: d.id, topic: d.topic, key: d.key, size: len(d.payload), priority: d.priority, state: "none",
		most: d.most, base: d.base, due: m.now, place: len(m.messages),
	}
	if d.id == "" {
		m.minted++
		msg.name = fmt.Sprintf("m%d", m.minted)
	}
	f := fields{}.str("topic", d.topic)
	due := d.due
	if due == 0 && d.delay > 0 {
		due = m.now + d.delay
	}
	if due > m.now {
		msg.due = due
		f = f.when("due", due)
	}
	if d.priority != events.Normal {
		f = f.str("priority", d.priority.String())
	}
	if d.unique > 0 {
		msg.unique = m.now + d.unique
	}
	f = f.str("key", d.key).dur("unique_for", d.unique).num("max_attempts", d.most).dur("backoff_base", d.base)
	facts := events.Facts{Size: len(d.payload), Commitment: events.Commitment([16]byte{}, []byte(d.payload))}
	f.text += (&events.Names{}).Fields(&facts)
	m.messages = append(m.messages, msg)
	if d.key != "" {
		m.keys[k] = holder{msg.name, true, msg.unique}
	}
	m.move(msg, "queued", "enqueued", f)
}

// ask is how many messages of a topic a worker wants.
type ask struct {
	topic string
	n     int
}

// claim gives a worker what is due: by priority, then due time, then place of enqueueing.
func (m *model) claim(by string, asks []ask, most int) {
	granted := 0
	for _, a := range asks {
		t := m.topic(a.topic)
		for _, msg := range m.due(a.topic, a.n) {
			full := t.limit > 0 && t.running >= t.limit
			if t.state == "paused" || t.counting || full || most > 0 && granted == most {
				break
			}
			granted++
			msg.attempts++
			msg.worker, msg.token, msg.claimed, msg.counted = by, msg.version+1, m.now, t.limit > 0
			msg.last, msg.lastBy = msg.token, by
			f := fields{}.str("worker", by).num("token", msg.token).num("attempt", msg.attempts)
			if msg.counted {
				t.running++
				f = f.num("running", t.running).num("limit", t.limit)
			}
			m.move(msg, "running", "claimed", f)
		}
	}
}

func (m *model) due(topic string, n int) []*message {
	var list []*message
	for _, msg := range m.messages {
		if msg.topic == topic && msg.state == "queued" && msg.due <= m.now {
			list = append(list, msg)
		}
	}
	slices.SortFunc(list, func(a, b *message) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.due, b.due), cmp.Compare(a.place, b.place))
	})
	return list[:min(n, len(list))]
}

// operate carries out an operator's command on some messages.
func (m *model) operate(command string, names []string, by string) {
	for _, name := range names {
		msg := m.message(name)
		f := fields{}
		switch {
		case command == "cancel" && msg.open():
			f = f.str("reason", "operator").num("token", msg.token).str("by", by)
			m.move(msg, "cancelled", "cancelled", f)
			m.unclaim(msg)
		case command == "take-back" && msg.state == "running":
			f = f.str("reason", "taken_back").num("token", msg.token).str("by", by)
			m.move(msg, "queued", "requeued", f)
			m.unclaim(msg)
		case command == "redrive" && msg.state == "dead_lettered":
			m.redrive(msg, by)
		default:
			m.refuse(refusal{command, absentOr(msg.state, "wrong_state")}, "message/"+name, msg.state, "")
		}
	}
}

func (m *model) redrive(msg *message, by string) {
	k := key{msg.topic, msg.key}
	if msg.key != "" {
		if h := m.keys[k]; h.message != msg.name && h.taken(m.now) {
			m.refuse(refusal{"redrive", "key_taken"}, "message/"+msg.name, msg.state, ": message "+h.message+" has its key "+msg.key)
			return
		}
		m.keys[k] = holder{msg.name, true, msg.unique}
	}
	m.move(msg, "queued", "redriven", fields{}.str("by", by).num("spent", msg.spentNow()).num("orphanings", msg.orphanings-msg.orphaned))
	msg.spent, msg.orphaned, msg.due = msg.attempts-msg.releases, msg.orphanings, m.now
}

func absentOr(state, reason string) string {
	if state == "none" {
		return "not_found"
	}
	return reason
}

// configure sets a topic's limit. One that was not there before leaves the open claims to be counted.
func (m *model) configure(name string, limit int, by string) {
	t := m.topic(name)
	if t.state != "none" && t.limit == limit {
		return
	}
	counting := limit > 0 && t.state != "none" && (t.counting || t.limit == 0)
	t.limit, t.counting = limit, counting
	f := fields{}.num("limit", limit)
	if counting {
		f = f.str("counting", "yes")
	}
	to := "active"
	if t.state == "paused" {
		to = "paused"
	}
	m.moveTopic(t, to, "configured", f.str("by", by))
}

func (m *model) pause(name, by string) {
	t := m.topic(name)
	if t.state != "active" {
		m.refuse(refusal{"pause", absentOr(t.state, "wrong_state")}, "topic/"+name, t.state, "")
		return
	}
	m.moveTopic(t, "paused", "paused", fields{}.str("by", by))
}

func (m *model) resume(name, by string) {
	t := m.topic(name)
	if t.state != "paused" {
		m.refuse(refusal{"resume", absentOr(t.state, "wrong_state")}, "topic/"+name, t.state, "")
		return
	}
	m.moveTopic(t, "active", "resumed", fields{}.str("by", by))
}

// count counts a page of the claims that were open when the topic got its limit.
func (m *model) count(name string, page int) {
	t := m.topic(name)
	if !t.counting {
		m.refuse(refusal{"count-claims", absentOr(t.state, "wrong_state")}, "topic/"+name, t.state, "")
		return
	}
	list := m.claims(func(msg *message) bool { return msg.topic == name && !msg.counted })
	list = list[:min(page, len(list))]
	for _, msg := range list {
		msg.counted = true
		t.running++
		m.move(msg, "running", "counted", fields{})
	}
	if len(list) < page {
		t.counting = false
		m.moveTopic(t, t.state, "counted", fields{})
	}
}
