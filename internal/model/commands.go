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
	orphanMost              int
	lock                    string
	skips                   bool
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
		if msg := m.message(d.id); d.id != "" && m.dubious(msg) {
			m.forget(before)
			m.refuse(refusal{"enqueue", "pruned"}, "message/"+d.id, msg.state, ": the id is older than what the log still holds, "+
				"so that nobody can say whether it was there before; give another, or none")
			return
		}
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
	if h, known := m.keys[k]; d.key != "" && known && h.taken(m.now) {
		m.notes = append(m.notes, "known: "+h.message)
		return
	}
	msg := &message{
		name: d.id, topic: d.topic, key: d.key, size: len(d.payload), priority: d.priority, state: "none",
		most: d.most, base: d.base, due: m.now, place: len(m.messages), orphanMost: d.orphanMost, lock: d.lock, skips: d.skips, took: map[int]taken{},
		position: m.position + 1,
	}
	if d.id == "" {
		m.minted++
		msg.name = fmt.Sprintf("m%d", m.minted)
	}
	f := fields{}.str("topic", d.topic)
	due := d.due
	if due == 0 && d.delay > 0 {
		due = m.now + d.delay
	} else if due == 0 {
		due = never
	}
	if due > m.now {
		msg.due = due
		f = f.when("due", due)
	}
	if d.priority != events.Normal {
		f = f.str("priority", d.priority.String())
	}
	if msg.unique = never; d.unique > 0 {
		msg.unique = m.now + d.unique
	}
	f = f.str("key", d.key).dur("unique_for", d.unique).num("max_attempts", d.most).dur("backoff_base", d.base).num("orphan_max_attempts", d.orphanMost)
	facts := events.Facts{Size: len(d.payload), Commitment: events.Commitment([16]byte{}, []byte(d.payload))}
	f.text += (&events.Names{}).Fields(&facts)
	if f = f.str("lock", d.lock); d.skips {
		f = f.str("on_locked", "skip")
	}
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

// claim gives a worker what is due: by priority, then due time, then place of enqueueing. A message takes its lock with it; one whose lock is
// taken waits, or is discarded where it was never claimed and does not wait.
func (m *model) claim(by string, asks []ask, most int) {
	pages := make([][]*message, len(asks))
	var locks []string
	for i, a := range asks {
		pages[i] = m.due(a.topic, a.n)
		for _, msg := range pages[i] {
			if msg.trying {
				locks = append(locks, msg.lock)
			}
		}
	}
	c := m.begin(locks...)
	granted := 0
	for i, a := range asks {
		t := m.topic(a.topic)
		left := a.n
		for _, msg := range pages[i] {
			full := t.limit > 0 && t.running >= t.limit
			if t.state == "paused" || t.counting || full || left == 0 || most > 0 && granted == most {
				break
			}
			if msg.lock != "" && m.lock(msg.lock).free() <= 0 {
				m.block(c, msg)
				continue
			}
			granted++
			left--
			m.grant(c, msg, by)
		}
	}
	m.close(c)
}

// block is what becomes of a message whose lock is taken at its turn.
func (m *model) block(c *commit, msg *message) {
	msg.trying = false
	f := fields{}.str("lock", msg.lock)
	if !msg.skips || msg.attempts > 0 {
		m.move(msg, "blocked", "blocked", f)
		return
	}
	m.move(msg, "discarded", "discarded", fields{fields{}.str("reason", "lock_taken").text + f.text})
	m.endKey(msg)
	c.offers = append(c.offers, offer{msg.lock, msg.topic})
}

// grant gives a message to a worker.
func (m *model) grant(c *commit, msg *message, by string) {
	t := m.topic(msg.topic)
	msg.attempts++
	if msg.lock != "" {
		msg.permit = m.take(c, permit{lock: msg.lock, worker: by, message: msg.name})
	}
	msg.worker, msg.token, msg.claimed, msg.counted, msg.trying = by, msg.version+1, m.now, t.limit > 0, false
	msg.last, msg.lastBy = msg.token, by
	msg.took[msg.token] = taken{msg.permit, m.position + 1}
	f := fields{}.str("topic", msg.topic).str("worker", by).num("token", msg.token).num("attempt", msg.attempts)
	if msg.counted {
		t.running++
		f = f.num("running", t.running).num("limit", t.limit)
	}
	m.move(msg, "running", "claimed", f.num("lock_token", msg.permit))
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

// wish is what an operator wants of some messages.
type wish struct {
	command string
	names   []string
	by      string
	force   bool
	after   time.Duration // by which workers are judged
}

// operate carries out an operator's command. What it knows of claims is what was there before the step: who claimed since lives.
func (m *model) operate(w wish) {
	var locks []string
	judged, seen := map[string]bool{}, map[permitKey]bool{}
	for _, name := range w.names {
		if msg := m.message(name); msg.state != "none" && msg.position <= m.before {
			locks = append(locks, msg.lock)
			judged[msg.then.worker] = msg.then.worker != ""
			seen[permitKey{msg.lock, msg.then.permit}] = true
		}
	}
	c := m.begin(locks...)
	for _, name := range w.names {
		msg := m.message(name)
		dead := judged[msg.worker] && m.judge(msg.worker, m.gone(msg.worker), w.after) != ""
		p, out := m.out(msg.lock, msg.permit)
		if m.wished(c, w, msg, dead) && out && dead && seen[permitKey{p.lock, p.token}] {
			m.giveBack(c, p, "force_released", fields{}.str("by", w.by))
		}
	}
	m.close(c)
}

type permitKey struct {
	lock  string
	token int
}

// wished is the part of an operator's command that is one message's. It is false where it was refused.
func (m *model) wished(c *commit, w wish, msg *message, dead bool) bool {
	switch {
	case w.command == "cancel" && (msg.open() || msg.state == "dead_lettered"):
		if msg.state == "queued" && msg.lock != "" {
			c.offers = append(c.offers, offer{msg.lock, msg.topic})
		}
		m.move(msg, "cancelled", "cancelled", fields{}.str("reason", "operator").num("token", msg.token).str("by", w.by))
		m.unclaim(msg)
	case w.command == "take-back" && msg.state == "running" && !dead && !w.force:
		more := ": its worker " + msg.worker + " lives; force it to take the claim away all the same"
		m.refuse(refusal{w.command, "alive"}, "message/"+msg.name, msg.state, more)
		return false
	case w.command == "take-back" && msg.state == "running":
		m.requeue(msg, fields{}.str("reason", "taken_back").num("token", msg.token).str("by", w.by))
		m.unclaim(msg)
	case w.command == "redrive" && msg.state == "dead_lettered":
		m.redrive(msg, w.by)
	default:
		m.refuse(refusal{w.command, absentOr(msg.state, "wrong_state")}, "message/"+msg.name, msg.state, "")
		return false
	}
	return true
}

func (m *model) redrive(msg *message, by string) {
	k := key{msg.topic, msg.key}
	if msg.key != "" {
		if h, known := m.keys[k]; known && h.message != msg.name && h.taken(m.now) {
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
