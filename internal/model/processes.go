package model

import (
	"fmt"
	"slices"
	"time"
)

// process is what runs under a worker, as one sees it who stands beside the machine.
type process struct {
	name     string
	interval time.Duration // of its heartbeats; 0 does not beat by itself
	fence    time.Duration
	next     time.Duration // when it beats next, by the time that has passed
	last     time.Duration // when it beat last, by the same
	silent   bool
	beaten   bool
	attested bool
	gone     bool            // it has ended, and had been attested
	forgot   bool            // its proof went with its worker's row
	beats    []time.Duration // by the store's time
	leads    *leads          // nil where it takes no part in the beat
	waits    bool            // its last part in it waited for proof
}

// beat is a heartbeat row.
type beat struct {
	at, interval, fence time.Duration
}

// clock is what the log knows of the store's clock.
type clock struct {
	version        int
	step, from, to time.Duration
	earlier        []clock // its steps before the last
}

func (m *model) process(name string) *process {
	for _, p := range m.processes {
		if p.name == name {
			return p
		}
	}
	p := &process{name: name}
	m.processes = append(m.processes, p)
	return p
}

// gone reports whether a worker's process is proven to have ended.
func (m *model) gone(name string) bool {
	return slices.ContainsFunc(m.processes, func(p *process) bool { return p.name == name && p.gone && !p.forgot })
}

// age is how long ago something was: what lies ahead ages from the last step of the clock.
func (m *model) age(then time.Duration) time.Duration {
	if then > m.now {
		if m.clock.version == 0 {
			return 0
		}
		then = m.clock.step
	}
	return max(0, m.now-then)
}

// silence is how old a heartbeat is. One that lies ahead by no more than two intervals is young, and one from before the clock's last step is as old
// as that.
func (m *model) silence(b beat) time.Duration {
	if ahead := b.at - m.now; ahead > 0 && ahead <= 2*b.interval {
		return 0
	}
	if m.clock.version > 0 && m.clock.step <= m.now {
		return m.age(max(b.at, m.clock.step))
	}
	return m.age(b.at)
}

// beat is a heartbeat. It is false where the store has no row to renew, or no proof that its process lives.
func (m *model) beat(p *process) bool {
	p.next = m.passed + p.interval
	if _, row := m.beats[p.name]; !row && p.beaten || p.forgot && !p.gone {
		return false
	}
	m.beats[p.name] = beat{m.now, p.interval, p.fence}
	stepped, want := false, time.Duration(0)
	if n := len(p.beats); n > 0 {
		want = p.beats[n-1] + m.passed - p.last
		stepped = (m.now-want).Abs() > p.interval && p.interval > 0
	}
	p.beats = append(slices.DeleteFunc(p.beats, func(at time.Duration) bool { return at > m.now }), m.now)
	p.beaten, p.last = true, m.passed
	if stepped {
		m.stepClock(p.name, want, m.now, p.interval)
		m.flush()
	}
	return true
}

// stepClock records that the clock was seen to step. Within the tolerance a step that is known is the same.
func (m *model) stepClock(worker string, from, to, tolerance time.Duration) {
	c := &m.clock
	if c.version > 0 && (c.from-from).Abs() <= tolerance && (c.to-to).Abs() <= tolerance {
		return
	}
	state := "active"
	if c.version == 0 {
		state = "none"
	}
	earlier := append(slices.Clone(c.earlier), *c)
	*c = clock{c.version + 1, m.now, from, to, earlier}
	f := fields{}.when("from", from).when("to", to).str("worker", worker)
	m.record("clock store", versions(c.version, state, "active")+" clock.stepped", f)
}

// advance lets time go by. Whoever has an interval beats meanwhile, and does its part of the beat.
func (m *model) advance(by time.Duration) {
	end := m.passed + by
	for p := m.nextBeat(end); p != nil; p = m.nextBeat(end) {
		m.pass(max(p.next, m.passed))
		if !m.beat(p) {
			p.silent = true
			m.notes = append(m.notes, fmt.Sprintf("%s: heartbeat found no row", p.name))
		} else if p.leads != nil {
			m.stepBeat(p)
		}
	}
	m.pass(end)
}

func (m *model) pass(until time.Duration) {
	m.now += until - m.passed
	m.passed = until
}

func (m *model) nextBeat(until time.Duration) *process {
	var next *process
	for _, p := range m.processes {
		if !p.silent && p.interval > 0 && p.next <= until && (next == nil || p.next < next.next) {
			next = p
		}
	}
	return next
}

// end ends a process. The kernel lets go of what it had attested.
func (p *process) end() {
	p.silent = true
	p.gone = p.gone || p.attested
}

// judge says by which evidence a worker is held to be dead; empty is alive.
func (m *model) judge(name string, gone bool, after time.Duration) string {
	b, row := m.beats[name]
	switch {
	case gone:
		return "process_gone"
	case !row:
		return "no_heartbeat"
	case m.silence(b) > after && m.silence(b) > b.fence+b.interval:
		return "silent"
	}
	return ""
}

// evidence is why a worker was held to be dead, as its heartbeat row tells it.
func (m *model) evidence(reason, claimer string) fields {
	f := fields{}.str("evidence", reason).str("claimer", claimer)
	b, row := m.beats[claimer]
	if row {
		f = f.when("last_beat", b.at)
	}
	if reason == "silent" {
		f = f.dur("age", m.silence(b))
	}
	return f.dur("interval", b.interval).dur("fence_after", b.fence)
}
