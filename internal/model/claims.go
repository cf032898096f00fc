package model

import (
	"fmt"
	"slices"
	"time"
)

// item is the end of a claim, as its handler reports it.
type item struct {
	command string
	message string
	token   int // 0 is that of the message's last claim
	text    string
	reason  string
	delay   time.Duration
	jitter  int
}

// settlement is a worker's report.
type settlement struct {
	items      []item
	from       string // empty is the worker of the first item's last claim
	recordable int
	unrecorded int
}

// settle ends claims; what is refused is recorded once for a message, a token and a command, as far as there is room.
func (m *model) settle(s settlement) {
	sender := s.from
	if sender == "" {
		sender = m.message(s.items[0].message).lastBy
	}
	items := slices.Clone(s.items)
	for i, it := range items { // the tokens are those known before the report is sent
		if it.token == 0 {
			items[i].token = max(m.message(it.message).last, 1)
		}
	}
	type said struct {
		command, message string
		token            int
	}
	recorded := map[said]bool{}
	for _, it := range items {
		msg := m.message(it.message)
		reason := m.objection(msg, it)
		if reason == "" {
			m.end(msg, it)
			continue
		}
		more := ""
		if reason == "stale_token" {
			more = fmt.Sprintf(" (token %d sent, %d is current)", it.token, msg.token)
		}
		m.refuse(refusal{it.command, reason}, "message/"+msg.name, msg.state, more)
		if reason == "not_found" {
			continue
		}
		once := said{it.command, it.message, it.token}
		if s.recordable <= 0 || recorded[once] {
			s.unrecorded++
			continue
		}
		recorded[once] = true
		s.recordable--
		f := fields{}.str("command", it.command).str("reason", reason).str("sender", sender)
		f = f.num("sent", it.token).num("found", msg.token).num("unrecorded", s.unrecorded)
		s.unrecorded = 0
		m.record("message "+msg.name, msg.state+" message.refused", f)
	}
}

// objection is why the end of a claim is refused; empty where it is not.
func (m *model) objection(msg *message, it item) string {
	switch {
	case msg.state == "none":
		return "not_found"
	case msg.state == "queued" && it.command == "cancel":
		return "stale_token" // it could be cancelled, but not by who no longer has it
	case msg.state != "running":
		return "wrong_state"
	case msg.token != it.token:
		return "stale_token"
	}
	return ""
}

func (m *model) end(msg *message, it item) {
	f := fields{}
	switch it.command {
	case "complete":
		m.move(msg, "completed", "completed", f.num("token", it.token))
	case "fail":
		m.fail(msg, it)
	case "release":
		msg.releases++
		f = f.str("reason", it.reason).num("token", it.token)
		if it.delay > 0 {
			msg.due = m.now + it.delay
			f = f.when("due", msg.due)
		}
		m.move(msg, "queued", "requeued", f)
	case "dead-letter":
		msg.failures++
		m.move(msg, "dead_lettered", "dead_lettered", f.str("reason", "handler").num("token", it.token).str("error", it.text))
	case "cancel":
		m.move(msg, "cancelled", "cancelled", f.str("reason", "handler").num("token", it.token))
	}
	m.unclaim(msg)
}

// fail tries again after base × 2^spent, at most a day, longer or shorter by the jitter; or ends it when its attempts are spent.
func (m *model) fail(msg *message, it item) {
	msg.failures++
	most, base := msg.most, msg.base
	if most == 0 {
		most = 25
	}
	if base == 0 {
		base = time.Second
	}
	spent := msg.spentNow()
	if spent >= most {
		f := fields{}.str("reason", "exhausted").num("token", it.token).str("error", it.text)
		m.move(msg, "dead_lettered", "dead_lettered", f)
		return
	}
	delay := base
	for i := 0; i < spent && delay < 24*time.Hour; i++ {
		delay *= 2
	}
	delay = min(delay, 24*time.Hour)
	msg.due = m.now + delay + delay/1000*time.Duration(it.jitter)
	f := fields{}.str("reason", "retry").num("token", it.token).when("due", msg.due).num("jitter", it.jitter).str("error", it.text)
	m.move(msg, "queued", "requeued", f)
}

// reclaim gives back a page of what a worker holds that is gone.
func (m *model) reclaim(name, by string, limit, page int) {
	evidence := fields{}.str("evidence", "process_gone").str("claimer", name).str("decider", by).num("orphan_max_attempts", limit)
	if w := m.worker(name); w.state == "live" {
		w.lost = m.now
		m.moveWorker(w, "lost", "lost", evidence)
	}
	list := m.claims(func(msg *message) bool { return msg.worker == name })
	for _, msg := range list[:min(page, len(list))] {
		msg.orphanings++
		token := msg.token
		m.move(msg, "orphaned", "orphaned", fields{fields{}.num("token", token).text + evidence.text})
		if limit > 0 && msg.spentNow() >= limit {
			m.move(msg, "dead_lettered", "dead_lettered", fields{}.str("reason", "orphan_limit").num("token", token))
		} else {
			m.move(msg, "queued", "requeued", fields{}.str("reason", "orphan").num("token", token))
		}
		m.unclaim(msg)
	}
}

// operateWorker carries out a command on a worker.
func (m *model) operateWorker(command, name string, from, to time.Duration) {
	w := m.worker(name)
	alive := w.state == "live"
	f := fields{}
	switch {
	case command == "start-worker" && w.state == "none":
		m.moveWorker(w, "live", "started", f.str("proof", "yes"))
	case command == "stop-worker" && (alive || w.state == "lost"):
		held := m.claims(func(msg *message) bool { return msg.worker == name })
		for _, msg := range held {
			msg.releases++
			m.move(msg, "queued", "requeued", fields{}.str("reason", "released").num("token", msg.token))
			m.unclaim(msg)
		}
		m.moveWorker(w, "stopped", "stopped", f.num("released", len(held)))
	case command == "lose-worker" && alive:
		w.lost = m.now
		m.moveWorker(w, "lost", "lost", f.str("evidence", "process_gone").str("claimer", name))
	case command == "return-worker" && w.state == "lost":
		m.moveWorker(w, "live", "returned", f.when("lost_at", w.lost))
	case command == "gap-worker" && alive:
		m.moveWorker(w, "live", "gap", f.when("from", from).when("to", to))
	default:
		m.refuse(refusal{command, absentOr(w.state, "wrong_state")}, "worker/"+name, w.state, "")
	}
}
