package model

import "time"

// start is how a worker starts.
type start struct {
	interval, fence time.Duration
	proof           bool
}

// startWorker makes a worker known. Its process attests what it can before, and beats after.
func (m *model) startWorker(name string, s start) {
	w := m.worker(name)
	if s.proof {
		m.process(name).attested = true
	}
	if w.state != "none" {
		m.refuse(refusal{"start-worker", "wrong_state"}, "worker/"+name, w.state, "")
		return
	}
	f := fields{}.dur("heartbeat_interval", s.interval)
	if s.proof {
		f = f.str("proof", "yes")
	}
	m.moveWorker(w, "live", "started", f.dur("fence_after", s.fence))
	m.flush()
	p := m.process(name)
	if p.interval, p.fence = s.interval, s.fence; s.interval > 0 {
		m.beat(p)
	}
}

// stopWorker ends a worker as it should. What it holds is given back.
func (m *model) stopWorker(name string) {
	w := m.worker(name)
	if w.state != "live" && w.state != "lost" {
		m.refuse(refusal{"stop-worker", absentOr(w.state, "wrong_state")}, "worker/"+name, w.state, "")
		return
	}
	mine := m.permitsOf(func(p permit) bool { return p.worker == name })
	var locks []string
	for _, p := range mine {
		locks = append(locks, p.lock)
	}
	c := m.begin(locks...)
	list := m.claims(func(msg *message) bool { return msg.worker == name })
	for _, msg := range list {
		msg.releases++
		m.requeue(msg, fields{}.str("reason", "released").num("token", msg.token))
		m.unclaim(msg)
	}
	for _, p := range mine {
		m.giveBack(c, p, "released", fields{})
	}
	m.moveWorker(w, "stopped", "stopped", fields{}.num("released", len(list)))
	m.close(c)
	delete(m.beats, name)
	m.process(name).end()
}

// purgeWorker forgets one that was lost long ago and holds nothing.
func (m *model) purgeWorker(name string, ttl time.Duration) {
	w := m.worker(name)
	b, beats := m.beats[name]
	holds := len(m.claims(func(msg *message) bool { return msg.worker == name }))+len(m.permitsOf(func(p permit) bool { return p.worker == name })) > 0
	lately := w.lost != never && m.age(w.lost) < ttl
	switch {
	case holds || lately || beats && m.age(b.at) < ttl:
	case w.state == "lost":
		m.moveWorker(w, "purged", "purged", fields{}.when("lost_at", w.lost))
	default:
		m.refuse(refusal{"purge-worker", absentOr(w.state, "wrong_state")}, "worker/"+name, w.state, "")
	}
}

// operateWorker carries out a command on a worker that says all of it.
func (m *model) operateWorker(command, name string, from, to time.Duration) {
	w := m.worker(name)
	alive := w.state == "live"
	b, beats := m.beats[name]
	f := fields{}
	switch {
	case command == "lose-worker" && alive:
		w.lost = m.now
		m.moveWorker(w, "lost", "lost", f.str("evidence", "process_gone").str("claimer", name))
	case command == "return-worker" && w.lost != never && beats && m.age(b.at) >= m.age(w.lost): // it has not been heard of since
	case command == "return-worker" && w.state == "lost":
		m.moveWorker(w, "live", "returned", f.when("lost_at", w.lost))
		w.lost = never
	case command == "gap-worker" && alive:
		m.moveWorker(w, "live", "gap", f.when("from", from).when("to", to))
	default:
		m.refuse(refusal{command, absentOr(w.state, "wrong_state")}, "worker/"+name, w.state, "")
	}
}
