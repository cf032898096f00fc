package model

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
)

// sweep is what somebody who sweeps goes by, and what came of it.
type sweep struct {
	by           string
	after, grace time.Duration
	limit        int
	orphanings   bool // what the limit reads
	term         int
	provenOnly   bool
	nameless     bool // it is no sweep, but a page of one

	name    string // by appearance
	members []string
	live    []string // the longest silent first
	silent  int
	doubt   string
	detail  string

	dead                                                    []string
	suspects, pages, requeued, deadLettered, locked, spared int
}

// thresholds are the settings of a sweep as its events tell them.
func (s *sweep) thresholds() fields {
	f := fields{}.dur("after", s.after).dur("grace", s.grace).num("orphan_max_attempts", s.limit)
	if s.orphanings {
		f = f.str("orphan_count", "orphanings")
	}
	return f
}

// evidence is what the sweep says of one whom it holds to be dead.
func (m *model) evidenceOf(s *sweep, reason, claimer string) fields {
	f := m.evidence(reason, claimer).str("decider", s.by)
	if !s.nameless {
		f = f.str("sweep", m.called(s)).num("term", s.term)
	}
	return fields{f.text + s.thresholds().text}
}

// called is the sweep's name, which it gets when it appears.
func (m *model) called(s *sweep) string {
	if s.name == "" {
		m.sweeps++
		s.name = fmt.Sprintf("s%d", m.sweeps)
	}
	return s.name
}

// blind reports whether the doubt is one that lets nothing be done.
func (s *sweep) blind() bool {
	return s.doubt != "" && s.doubt != "liveness_unproven" && s.doubt != "clock_stepped"
}

// sweepAsked is a sweep that somebody asked for. Where it doubts, and somebody could be dead, it refuses.
func (m *model) sweepAsked(s *sweep) {
	m.sweep(s)
	if s.doubt == "" || !s.blind() && s.suspects == 0 {
		return
	}
	m.notes = append(m.notes, "refused: "+s.doubt)
	m.refuseSweep(s)
}

// sweep looks who lives, and gives back what the dead hold, each of them in a commit.
func (m *model) sweep(s *sweep) {
	m.noteStep(s.by)
	m.look(s)
	m.guard(s)
	for _, name := range m.condemned(s) {
		m.bury(s, name)
	}
	if len(s.dead)+s.spared == 0 {
		return
	}
	f := fields{}.str("decider", s.by).num("term", s.term)
	f = fields{f.text + s.thresholds().text + m.liveness(s).text}.str("dead", strings.Join(s.dead, ","))
	f = f.num("pages", s.pages).num("requeued", s.requeued).num("dead_lettered", s.deadLettered).num("locks_released", s.locked).num("spared", s.spared)
	m.record("sweep "+m.called(s), versions(1, "none", "finished")+" sweep.finished", f)
	m.flush()
}

// refuseSweep records why a sweep was refused, whatever it did all the same on proof.
func (m *model) refuseSweep(s *sweep) {
	moved := versions(1, "none", "refused")
	if len(s.dead)+s.spared > 0 {
		moved = versions(2, "finished", "refused")
	}
	f := fields{}.str("reason", s.doubt).str("detail", strconv.Quote(s.detail)).str("decider", s.by).num("term", s.term)
	m.record("sweep "+m.called(s), moved+" sweep.refused", fields{f.text + s.thresholds().text + m.liveness(s).text})
	m.flush()
}

// noteStep records a step of the clock that only heartbeats ahead of it tell of.
func (m *model) noteStep(by string) {
	ahead := beat{at: never}
	for _, name := range slices.SortedFunc(maps.Keys(m.beats), m.byID) {
		if b := m.beats[name]; !m.unreadable && b.at-m.now > b.interval && b.at > ahead.at {
			ahead = b
		}
	}
	if ahead.at == never || m.clock.version > 0 && m.clock.step <= m.now {
		return
	}
	m.stepClock(by, ahead.at, m.now, max(ahead.interval, time.Second))
	m.flush()
}

// look reads who there is: workers, whoever has a claim, and whoever beats.
func (m *model) look(s *sweep) {
	there := map[string]bool{}
	for _, w := range m.workers {
		if w.state == "live" || w.state == "lost" {
			there[w.name] = true
		}
	}
	for _, msg := range m.messages {
		if msg.state == "running" {
			there[msg.worker] = true
		}
	}
	if !m.unreadable {
		for name := range m.beats {
			there[name] = true
		}
	}
	s.members = slices.SortedFunc(maps.Keys(there), m.byID)
	for _, name := range s.members {
		b, row := m.beats[name]
		switch {
		case !row || m.unreadable:
		case !m.gone(name) && m.silence(b) <= s.after:
			s.live = append(s.live, name)
		default:
			s.silent++
		}
	}
	slices.SortFunc(s.live, func(a, b string) int { return cmp.Or(cmp.Compare(m.beats[a].at, m.beats[b].at), m.byID(a, b)) })
}

func (m *model) byID(a, b string) int {
	x, y := m.id(a), m.id(b)
	return bytes.Compare(x[:], y[:])
}

// guard says why the sweep does not trust what it knows.
func (m *model) guard(s *sweep) {
	from := m.now - s.after
	p := m.process(s.by)
	own := p.beats
	for len(own) > 1 && own[1] <= from {
		own = own[1:]
	}
	after := own // those since the clock was last set back under them
	next := m.now
	for i := len(own) - 1; i >= 0; i-- {
		if own[i] > next {
			after = own[i+1:]
			break
		}
		next = own[i]
	}
	skipped := len(own) - len(after)
	doubt := func(reason, format string, args ...any) { s.doubt, s.detail = reason, fmt.Sprintf(format, args...) }
	switch step := m.clock.step; {
	case m.unreadable:
		doubt("liveness_unreadable", "faulty: beats: fault by plan")
	case len(s.live) == 0:
		doubt("liveness_empty", "of %d heartbeats none is younger than %s", len(s.members), s.after)
	case !slices.Contains(s.live, s.by):
		doubt("caller_missing", "%d live, the caller is not among them", len(s.live))
	case m.clock.version > 0 && step > from && step <= m.now:
		doubt("clock_stepped", "%s ago, from %s to %s", m.now-step, instant(m.clock.from), instant(m.clock.to))
	case skipped > 0 && (len(after) == 0 || after[0] > from):
		doubt("clock_stepped", "the caller's own heartbeat of %s was confirmed before the clock was set back", instant(own[skipped-1]))
	case len(after) == 0:
		doubt("liveness_unproven", "the caller has beaten for %s, it must have for %s", time.Duration(0), s.after)
	case after[0] > from:
		doubt("liveness_unproven", "the caller has beaten for %s, it must have for %s", m.now-after[0], s.after)
	default:
		last := after[0]
		for _, at := range append(slices.Clone(after[1:]), m.now) {
			if gap := at - last; gap > s.after/2 && at > from && s.doubt == "" {
				doubt("liveness_unproven", "the caller's heartbeats have a gap of %s since %s, at most %s", gap, instant(last), s.after/2)
			}
			last = at
		}
	}
}

// instant is a time of a story in full.
func instant(d time.Duration) string {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(d).Format(time.RFC3339Nano)
}

// condemned are those whom the sweep may hold to be dead.
func (m *model) condemned(s *sweep) []string {
	var list []string
	for _, name := range s.members {
		w := m.worker(name)
		known := w.state == "live" || w.state == "lost"
		gone := m.gone(name)
		holds := len(m.claims(func(msg *message) bool { return msg.worker == name })) > 0
		if name == s.by || !known && !holds || s.provenOnly && !gone {
			continue
		}
		b, row := m.beats[name]
		reason := m.judge(name, gone, s.after)
		if m.unreadable && !gone {
			reason, row = "no_heartbeat", false
		}
		if !gone && (reason != "" || row && b.at > m.now) {
			s.suspects++
		}
		if reason != "" && !s.blind() && (s.doubt == "" || gone) {
			list = append(list, name)
		}
	}
	return list
}

// bury gives back what one holds who is dead.
func (m *model) bury(s *sweep, name string) {
	mine := func(p permit) bool { return p.worker == name }
	claims := m.claims(func(msg *message) bool { return msg.worker == name })
	if m.worker(name).state == "lost" && len(claims)+len(m.permitsOf(mine)) == 0 {
		return
	}
	reason := m.judge(name, m.gone(name), s.after)
	spared := m.reclaimPage(s, reason, name, 100)
	if len(m.groups) > 0 {
		s.pages++
		s.dead = append(s.dead, name)
		m.flush()
	}
	if spared == 0 {
		return
	}
	for _, p := range m.permitsOf(mine) {
		if msg := m.message(p.message); msg.permit != p.token || msg.state != "running" {
			s.spared++
		}
	}
	s.spared += len(m.claims(func(msg *message) bool { return msg.worker == name }))
}

// liveness is who lived, as the events of sweeps tell it.
func (m *model) liveness(s *sweep) fields {
	f := fields{}.num("live", len(s.live)).num("silent", s.silent)
	if len(s.live) == 0 {
		return f
	}
	hash := sha256.New()
	var ages []string
	for _, name := range s.live {
		id, at := m.id(name), m.beats[name].at
		hash.Write(id[:])
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(at).UnixMicro())))
		ages = append(ages, strconv.Itoa(int(m.silence(m.beats[name]).Milliseconds())))
	}
	f.text += (&events.Names{}).Fields(&events.SweepFinished{Liveness: events.Liveness{Hash: [32]byte(hash.Sum(nil))}})
	return f.str("members", strings.Join(s.live, ",")).str("ages_ms", strings.Join(ages, ","))
}
