package model

import (
	"fmt"
	"slices"
	"time"
)

var locks = []string{"boat", "car"}

const (
	beatEvery  = 20 * time.Second // is the interval of those who beat
	sweepAfter = time.Minute      // is the bound on silence that most sweeps have: three heartbeats
)

// holder draws a worker that may hold something: not one that has stopped or was forgotten.
func (d drawer) holder() string {
	list := []string{"ghost"}
	for i := range d.m.started {
		if w := d.m.worker(fmt.Sprintf("w%d", i+1)); w.state == "live" || w.state == "lost" {
			list = append(list, w.name, w.name)
		}
	}
	return of(d, list)
}

// lock draws a command on a lock.
func (d drawer) lock() action {
	name := of(d, locks)
	token := d.number(1, 60)
	held := d.m.permitsOf(func(p permit) bool { return p.lock == name })
	who := d.holder()
	if len(held) > 0 && !d.one(5) {
		p := of(d, held)
		if token = p.token; !d.one(4) {
			who = p.worker
		}
	}
	switch of(d, []string{"acquire", "acquire", "acquire", "unlock", "unlock", "force", "expire", "permits", "repair"}) {
	case "unlock":
		line := fmt.Sprintf("unlock %s %s token=%d", who, name, token)
		recordable := 60
		if d.one(4) {
			recordable = 0
			line += " recordable=0"
		}
		return one(line, func(m *model) { m.unlock(who, name, token, recordable) })
	case "force":
		line := fields{"force-release " + name}
		if d.one(2) {
			token = 0
		}
		return one(line.num("token", token).str("by", "ann").text, func(m *model) { m.forceRelease(name, token, "ann") })
	case "expire":
		return one("expire "+name, func(m *model) { m.expire(name) })
	case "permits":
		n := d.number(1, 3)
		return one(fmt.Sprintf("lock %s permits=%d by=ann", name, n), func(m *model) { m.configureLock(name, n, "ann") })
	case "repair":
		return one("repair "+name, func(*model) {}) // there is nothing to repair, ever
	}
	who = d.holder()
	ttl := of(d, []time.Duration{0, time.Second, 5 * time.Second, time.Minute})
	return one(fields{"acquire " + who + " " + name}.dur("ttl", ttl).text, func(m *model) { m.acquire(who, name, ttl) })
}

// look is a step that commits nothing by itself.
func look(line string, part func(*model)) action {
	return action{line: line, parts: []func(*model){part}}
}

// process draws what becomes of a process.
func (d drawer) process() action {
	var there, beats []string
	for _, p := range d.m.processes {
		w := d.m.worker(p.name)
		if w.state != "live" && w.state != "lost" {
			continue
		}
		there = append(there, p.name)
		if _, row := d.m.beats[p.name]; (row || !p.beaten) && !p.gone {
			beats = append(beats, p.name)
		}
	}
	if len(there) == 0 {
		return d.worker()
	}
	name := of(d, there)
	switch kind := of(d, []string{"beat", "beat", "wake", "wake", "silence", "silence", "kill", "still"}); {
	case kind == "silence":
		return look("silence "+name, func(m *model) { m.process(name).silent = true })
	case kind == "kill":
		return look("kill "+name, func(m *model) { m.process(name).end() })
	case kind == "still" && d.one(3):
		return look("still "+name, func(m *model) { delete(m.beats, name) })
	case len(beats) == 0:
		return d.advance()
	case kind == "beat" && d.one(4):
		name = of(d, beats)
		behind := of(d, []time.Duration{5 * time.Second, sweepAfter})
		return look(fmt.Sprintf("beat %s behind=%s", name, behind), func(m *model) {
			m.now -= behind
			m.beat(m.process(name))
			m.now += behind
		})
	case kind == "beat":
		name = of(d, beats)
		return look("beat "+name, func(m *model) { m.beat(m.process(name)) })
	}
	name = of(d, beats)
	return look("wake "+name, func(m *model) {
		m.process(name).silent = false
		m.beat(m.process(name))
	})
}

// beat draws that somebody takes part in the beat, or leaves it.
func (d drawer) beat() action {
	var leading, others []string
	for _, p := range d.m.processes {
		switch w := d.m.worker(p.name); {
		case p.leads != nil:
			leading = append(leading, p.name)
		case !p.silent && p.interval > 0 && w.state == "live":
			others = append(others, p.name)
		}
	}
	if len(leading) > 0 && (len(others) == 0 || d.one(3)) {
		name := of(d, leading)
		if d.one(2) {
			return action{line: "resign " + name, takes: aFault, parts: []func(*model){func(m *model) { m.resign(name) }}}
		}
		return action{line: "lead " + name, takes: aFault, parts: []func(*model){func(m *model) { m.lead(name, nil) }}}
	}
	if len(others) == 0 {
		return d.worker()
	}
	name := of(d, others)
	l := leads{
		every: of(d, []time.Duration{time.Minute, 3 * time.Minute}), life: 3 * beatEvery, ttl: of(d, []time.Duration{5 * time.Minute, 24 * time.Hour}),
		sweep: sweep{after: sweepAfter, limit: of(d, []int{5, 2})},
	}
	line := fields{"lead " + name}.dur("interval", l.every).dur("life", l.life).dur("ttl", l.ttl)
	line = line.dur("after", l.sweep.after).num("limit", l.sweep.limit).str("grace", "none")
	return action{line: line.text, takes: aFault, parts: []func(*model){func(m *model) {
		mine := l
		m.lead(name, &mine)
	}}}
}

// clock draws what befalls the store's clock, or who may read its heartbeats. It is rare: for a while nothing can be trusted after it.
func (d drawer) clock() action {
	if d.m.unreadable {
		return look("sighted", func(m *model) { m.unreadable = false })
	}
	switch d.number(1, 12) {
	case 1:
		return look("blind", func(m *model) { m.unreadable = true })
	case 2, 3:
		by := of(d, []time.Duration{time.Minute, -time.Minute, 90 * time.Minute, -90 * time.Minute})
		return look("set-clock "+by.String(), func(m *model) { m.now += by })
	case 4:
		who := d.anyWorker()
		from, to := d.length(), d.length()
		line := fmt.Sprintf("step-clock %s from=%s to=%s tolerance=1s", who, from, to)
		return one(line, func(m *model) { m.stepClock(who, from, to, time.Second) })
	}
	return d.advance()
}

// sweep draws a sweep that somebody asks for: in most cases one who beats.
func (d drawer) sweep() action {
	var beating []string
	for _, p := range d.m.processes {
		if !p.silent && p.interval > 0 {
			beating = append(beating, p.name)
		}
	}
	by := d.anyWorker()
	if len(beating) > 0 && !d.one(6) {
		by = of(d, beating)
		if proven := d.proven(beating); len(proven) > 0 && !d.one(3) {
			by = of(d, proven)
		}
	}
	after, grace := of(d, []time.Duration{sweepAfter, sweepAfter, sweepAfter, 2 * time.Minute}), of(d, []time.Duration{0, 0, 5 * time.Second, time.Hour})
	limit, orphanings, term := of(d, []int{5, 1, 2}), d.one(3), of(d, []int{0, 0, 3})
	line := fields{"sweep " + by}.dur("after", after).num("limit", limit).num("term", term)
	if grace == 0 {
		line = line.str("grace", "none")
	}
	if line = line.dur("grace", grace); orphanings {
		line = line.str("count", "orphanings")
	}
	return action{line: line.text, takes: aFault, parts: []func(*model){func(m *model) {
		m.process(by)
		m.sweepAsked(&sweep{by: by, after: after, grace: grace, limit: limit, orphanings: orphanings, term: term})
	}}}
}

// proven are those who have beaten for long enough to judge others.
func (d drawer) proven(beating []string) []string {
	return slices.DeleteFunc(slices.Clone(beating), func(name string) bool {
		beats := d.m.process(name).beats
		return len(beats) == 0 || d.m.now-beats[0] < sweepAfter
	})
}
