package model

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// lease is the right to lead the beat until a time.
type lease struct {
	holder      string // empty where nobody has it
	term        int
	until, life time.Duration
	swept       time.Duration // never where nobody has swept yet
}

// campaign is the lease as it is after somebody has asked for it.
func (l lease) campaign(c candidate, now time.Duration) lease {
	switch {
	case l.holder == "" || l.holder == c.gone || now >= l.until || l.until-now > l.life:
		l.holder, l.term, l.until, l.life = c.name, l.term+1, now+c.life, c.life
	case l.holder == c.name && l.term == c.term:
		l.until, l.life = now+c.life, c.life
	}
	return l
}

// candidate is who asks for the lease.
type candidate struct {
	name string
	term int // under which he leads; 0 where he does not
	life time.Duration
	gone string // a holder who is proven to have ended
}

// leader is who leads, by the log.
type leader struct {
	version int
	state   string
	worker  string
	term    int
}

// leads is what a process goes by that takes part in the beat.
type leads struct {
	sweep            sweep // its settings
	every, life, ttl time.Duration
	term             int   // under which it leads; 0 while it does not
	seen             lease // what it knows of it
	doubted          time.Duration
}

// lead lets a worker take part in the beat, from a step now on.
func (m *model) lead(name string, l *leads) {
	p := m.process(name)
	if l != nil || p.leads == nil {
		p.leads = l
		p.leads.doubted = never
	}
	m.stepBeat(p)
}

// stepBeat is a process's part of the beat.
func (m *model) stepBeat(p *process) {
	l := p.leads
	if !m.renew(p, l) {
		l.doubted, p.waits = never, false
		return
	}
	due := m.lease.swept == never || m.now < m.lease.swept || m.now-m.lease.swept >= l.every
	s := l.sweep
	s.by, s.term, s.provenOnly = p.name, l.term, !due
	m.sweep(&s)
	waits := due && m.conclude(p, &s)
	if waits && !p.waits {
		m.notes = append(m.notes, fmt.Sprintf("%s %s waits for proof: %s", at(m.now), p.name, s.doubt))
	}
	p.waits = waits
	m.upkeep(l)
}

// renew asks for the lease, or renews it, and says whether the process leads.
func (m *model) renew(p *process, l *leads) bool {
	held, gone := l.term, ""
	l.term = 0
	if l.seen.holder != "" && l.seen.holder != p.name {
		if m.gone(l.seen.holder) {
			gone = l.seen.holder
		} else if m.now < l.seen.until && l.seen.until-m.now <= l.seen.life {
			return false
		}
	}
	m.lease = m.lease.campaign(candidate{p.name, held, l.life, gone}, m.now)
	if l.seen = m.lease; m.lease.holder != p.name {
		return false
	}
	if l.term = m.lease.term; l.term != held && l.term > m.leader.term {
		if m.leader.state == "led" {
			m.moveLeader("vacant", "lost", m.leader.worker, m.leader.term)
		}
		m.moveLeader("led", "elected", p.name, l.term)
		m.flush()
	}
	return true
}

func (m *model) moveLeader(to, typ, worker string, term int) {
	k := &m.leader
	from := k.state
	k.version++
	k.state, k.worker, k.term = to, worker, term
	m.record("leader beat", versions(k.version, from, to)+" leader."+typ, fields{}.str("worker", worker).num("term", term))
}

// conclude ends a sweep that was due. It is true where its doubt may be over by itself.
func (m *model) conclude(p *process, s *sweep) (waits bool) {
	l := p.leads
	if s.doubt != "" && !s.blind() {
		if l.doubted == never || m.now < l.doubted || s.suspects == 0 {
			l.doubted = m.now
		}
		if m.now-l.doubted <= s.after+l.every {
			return true
		}
	}
	l.doubted = never
	if s.doubt != "" {
		m.refuseSweep(s)
	}
	m.lease.swept = m.now
	return false
}

// upkeep ends permits whose time is over, and forgets whom nobody needs to remember.
func (m *model) upkeep(l *leads) {
	ended := m.permitsOf(func(p permit) bool { return p.ends && p.expires <= m.now })
	for _, p := range ended {
		m.expire(p.lock)
		m.flush()
	}
	for _, name := range slices.SortedFunc(maps.Keys(m.workers), m.byID) {
		w := m.worker(name)
		if w.state != "lost" || m.now-w.lost < l.ttl {
			continue
		}
		if m.purgeWorker(name, l.ttl); w.state == "purged" {
			m.flush()
			delete(m.beats, name)
		}
	}
	for name, b := range m.beats {
		if w := m.worker(name); w.state != "live" && w.state != "lost" && m.now-b.at >= l.ttl {
			delete(m.beats, name)
		}
	}
}

// resign gives the lease back and leaves the beat.
func (m *model) resign(name string) {
	p := m.process(name)
	term := p.leads.term
	if p.leads = nil; term == 0 {
		return
	}
	if k := m.leader; k.state == "led" && k.worker == name && k.term == term {
		m.moveLeader("vacant", "resigned", name, term)
	}
	if m.lease.holder == name && m.lease.term == term {
		m.lease.holder = ""
	}
}
