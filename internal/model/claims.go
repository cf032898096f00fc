package model

import (
	"cmp"
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
	result  string // that its handler gives back; empty is none
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
	var locks []string
	for _, it := range items {
		if msg := m.message(it.message); m.permitOf(msg, it.token) > 0 {
			locks = append(locks, msg.lock)
		}
	}
	c := m.begin(locks...)
	defer m.close(c)
	for _, it := range items {
		msg := m.message(it.message)
		reason, open := m.objection(msg, it), msg.permit
		if reason == "" {
			m.end(msg, it)
		}
		m.handBack(c, handing{msg, m.permitOf(msg, it.token), open, reason == "", sender})
		if reason == "" {
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

// handing is a permit that a handler that has ended may have had.
type handing struct {
	msg          *message
	permit, open int // that of the handler's claim, and that of the claim that was open
	accepted     bool
	sender       string
}

// handBack gives back what the handler had: with the claim that it ended, or its own of an earlier one.
func (m *model) handBack(c *commit, h handing) {
	p, out := m.out(h.msg.lock, h.permit)
	if !out || p.message != h.msg.name {
		return
	}
	if h.permit == h.open && h.accepted || h.permit != h.open && !h.accepted && p.worker == h.sender {
		m.giveBack(c, p, "released", fields{})
	}
}

// permitOf is the permit that a claim of a message took, as far as that was known before the step; 0 where it took none.
func (m *model) permitOf(msg *message, token int) int {
	if t := msg.took[token]; t.position <= m.before {
		return t.permit
	}
	return 0
}

// objection is why the end of a claim is refused; empty where it is not.
func (m *model) objection(msg *message, it item) string {
	switch {
	case msg.state == "none":
		return "not_found"
	case (msg.state == "queued" || msg.state == "blocked") && it.command == "cancel":
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
		m.move(msg, "completed", "completed", it.facts())
	case "fail":
		m.fail(msg, it)
	case "release":
		msg.releases++
		f = f.str("reason", it.reason).num("token", it.token)
		if it.delay > 0 {
			msg.due = m.now + it.delay
			f = f.when("due", msg.due)
			m.move(msg, "queued", "requeued", f)
		} else {
			m.requeue(msg, f)
		}
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
	m.reclaimPage(&sweep{by: by, limit: limit, nameless: true}, "process_gone", name, page)
}

// reclaimPage takes back some of what a dead worker holds, and says how much is too young for that.
func (m *model) reclaimPage(s *sweep, reason, name string, page int) (spared int) {
	young := func(since time.Duration) bool { return reason != "process_gone" && m.age(since) < s.grace }
	evidence := m.evidenceOf(s, reason, name)
	list := m.claims(func(msg *message) bool { return msg.worker == name })
	list = list[:min(page, len(list))]
	estate := m.estate(name, list, page)
	var locks []string
	for _, p := range estate {
		locks = append(locks, p.lock)
	}
	c := m.begin(locks...)
	defer m.close(c)
	if w := m.worker(name); w.state == "live" {
		w.lost = m.now
		m.moveWorker(w, "lost", "lost", m.evidenceOf(s, reason, name))
	}
	for _, msg := range list {
		key := msg.permit
		estate = slices.DeleteFunc(estate, func(p permit) bool { return p.lock == msg.lock && p.token == key })
		if young(msg.claimed) {
			spared++
			continue
		}
		p, out := m.out(msg.lock, key)
		m.orphan(s, msg, evidence)
		if out && p.worker == name {
			m.takeFrom(c, s, p, evidence)
		}
	}
	for _, p := range estate {
		if young(p.acquired) {
			spared++
			continue
		}
		m.takeFrom(c, s, p, evidence)
	}
	return spared
}

// estate is the permits that a reclaim sees: those of the claims, and as many of the worker's oldest.
func (m *model) estate(name string, claims []*message, page int) []permit {
	mine := m.permitsOf(func(p permit) bool { return p.worker == name })
	slices.SortStableFunc(mine, func(a, b permit) int { return cmp.Compare(a.acquired, b.acquired) })
	oldest := mine[:min(page, len(mine))]
	return m.permitsOf(func(p permit) bool {
		return slices.Contains(oldest, p) ||
			slices.ContainsFunc(claims, func(msg *message) bool { return msg.lock == p.lock && msg.permit == p.token })
	})
}

// orphan takes a message from its worker, and ends it when that has happened too often.
func (m *model) orphan(s *sweep, msg *message, evidence fields) {
	limit, read := s.limit, msg.spentNow()
	if s.orphanings {
		read = msg.orphanings - msg.orphaned + 1
	}
	if msg.orphanMost > 0 {
		limit = msg.orphanMost
	}
	msg.orphanings++
	token := msg.token
	m.move(msg, "orphaned", "orphaned", fields{fields{}.num("token", token).text + evidence.text})
	if limit > 0 && read >= limit {
		s.deadLettered++
		m.move(msg, "dead_lettered", "dead_lettered", fields{}.str("reason", "orphan_limit").num("token", token))
	} else {
		s.requeued++
		m.requeue(msg, fields{}.str("reason", "orphan").num("token", token))
	}
	m.unclaim(msg)
}

// takeFrom takes a permit from a holder who is gone.
func (m *model) takeFrom(c *commit, s *sweep, p permit, evidence fields) {
	s.locked++
	m.moveLock(m.lock(p.lock), "orphaned", fields{fields{}.num("token", p.token).text + evidence.text})
	m.giveBack(c, p, "reclaimed", fields{})
}
