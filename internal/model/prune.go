package model

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
)

// logged is an event that is still in the log.
type logged struct {
	commit, position int
	at               time.Duration
	entity           string
	first            bool // it is its entity's first one
	moves            bool
	tells            bool // it says all of its entity's state
}

// log notes where an event of an entity stands.
func (m *model) log(commit int, entity, line string) {
	m.kept = append(m.kept, logged{
		commit: commit, position: m.position, at: m.now, entity: entity, first: strings.HasPrefix(line, entity+" v1 "),
		moves: strings.HasPrefix(line, entity+" v"),
		tells: strings.Contains(line, ".snapshotted") || strings.Contains(line, "log.pruned"),
	})
}

// left is what the log still has of an entity.
func (m *model) left(entity string) []logged {
	return slices.DeleteFunc(slices.Clone(m.kept), func(e logged) bool { return e.entity != entity })
}

// prune is how somebody lets go of the beginning of the log.
type prune struct {
	older                 time.Duration
	events, rows, commits int // 0 commits go on until nothing is left
}

// prune lets go of what is older than a time, a page at a time: what is open, or may come back, says its state first.
func (m *model) prune(p prune) {
	for n := 0; p.commits == 0 || n < p.commits; n++ {
		through, size := m.page(p)
		if through == 0 {
			return
		}
		list := m.untold(through)
		list = list[:min(p.rows, len(list))]
		slices.SortFunc(list, m.compare)
		for _, entity := range list {
			m.tell(entity)
		}
		if len(list) == p.rows {
			m.flush()
			continue
		}
		m.pruned.version++
		m.pruned.total += size
		m.record("log store", fmt.Sprintf("v%d log.pruned", m.pruned.version), fields{})
		m.flush()
		m.letGo(through)
	}
}

// page is the position of the last event that may go, and how many that are: whole commits from the oldest on.
func (m *model) page(p prune) (through, size int) {
	bound := m.now - m.ahead(p.older) - p.older
	for size < len(m.kept) && m.decided(m.kept[size]) < bound {
		n := 0
		for size+n < len(m.kept) && m.kept[size+n].commit == m.kept[size].commit {
			n++
		}
		if size > 0 && size+n > p.events {
			break
		}
		size += n
		through = m.kept[size-1].position
	}
	return through, size
}

// ahead is by how much what was stored may look older than it is, since the clock was set ahead less than an age ago.
func (m *model) ahead(age time.Duration) (most time.Duration) {
	since := time.Duration(0)
	for _, step := range slices.Backward(append(slices.Clone(m.clock.earlier), m.clock)) {
		if step.version == 0 || m.now-step.step-max(since, 0) >= age {
			break
		}
		since += step.to - step.from
		most = max(most, since)
	}
	return most
}

// decided is when an event was decided: what lies in the future was before the clock was set back, and is as old as the last step that is known.
func (m *model) decided(e logged) time.Duration {
	if e.at > m.now && m.clock.version > 0 {
		return m.clock.step
	}
	return e.at
}

// untold are the entities that must say their state before the events up to a position go: those of which a store keeps a row, the one with the
// oldest event first.
func (m *model) untold(through int) []string {
	var list []string
	for _, e := range m.kept {
		if e.position > through {
			break
		}
		told := slices.ContainsFunc(m.kept, func(o logged) bool { return o.entity == e.entity && o.tells && o.position > through })
		if !told && m.hasRow(e.entity) && !slices.Contains(list, e.entity) {
			list = append(list, e.entity)
		}
	}
	return list
}

// split is the kind and the name of an entity.
func split(entity string) (kind, name string) {
	kind, name, _ = strings.Cut(entity, " ")
	return kind, name
}

func (m *model) hasRow(entity string) bool {
	switch kind, name := split(entity); kind {
	case "message":
		msg := m.message(name)
		return msg.open() || msg.state == "dead_lettered"
	case "worker":
		state := m.worker(name).state
		return state == "live" || state == "lost"
	case "lock":
		k := m.lock(name)
		return k.held > 0 || k.permits > 0
	case "topic", "leader", "clock":
		return true
	}
	return false
}

// compare is the order in which entities say their states.
func (m *model) compare(a, b string) int {
	kinds := []string{"message", "topic", "worker", "lock", "leader", "clock"}
	kindA, nameA := split(a)
	kindB, nameB := split(b)
	if c := cmp.Compare(slices.Index(kinds, kindA), slices.Index(kinds, kindB)); c != 0 {
		return c
	}
	if kindA == "message" || kindA == "worker" {
		x, y := m.id(nameA), m.id(nameB)
		return bytes.Compare(x[:], y[:])
	}
	return cmp.Compare(nameA, nameB)
}

// tell records that an entity says its state: it has one version more and stays as it is.
func (m *model) tell(entity string) {
	version := 0
	switch kind, name := split(entity); kind {
	case "message":
		msg := m.message(name)
		msg.version++
		version = msg.version
	case "topic":
		m.topics[name].version++
		version = m.topics[name].version
	case "worker":
		m.workers[name].version++
		version = m.workers[name].version
	case "lock":
		m.locks[name].version++
		version = m.locks[name].version
	case "leader":
		m.leader.version++
		version = m.leader.version
	case "clock":
		m.clock.version++
		version = m.clock.version
	}
	m.record(entity, fmt.Sprintf("v%d %s.snapshotted", version, entity), fields{})
}

// letGo takes the events away. A lock that is free and has none left begins again, and so is forgotten who has ended.
func (m *model) letGo(through int) {
	m.kept = slices.DeleteFunc(m.kept, func(e logged) bool {
		if e.position <= through {
			m.pruned.at = max(m.pruned.at, min(e.at, m.now))
			return true
		}
		return false
	})
	maps.DeleteFunc(m.keys, func(_ key, h holder) bool { return !h.taken(m.now) }) // they are over, whatever becomes of the clock
	for name := range m.locks {
		if entity := "lock " + name; !m.hasRow(entity) && !slices.ContainsFunc(m.left(entity), func(e logged) bool { return e.moves }) {
			delete(m.locks, name)
		}
	}
	for name, w := range m.workers {
		if m.hasRow("worker " + name) {
			continue
		}
		switch left := m.left("worker " + name); {
		case len(left) == 0:
			delete(m.workers, name)
			m.pruned.workers = append(m.pruned.workers, name)
		case headless(left):
			w.lost = never // nobody can say any more
		}
	}
}

// forgotten reports whether a store knows nothing of a message any more.
func (m *model) forgotten(msg *message) bool {
	return !msg.open() && msg.state != "dead_lettered" && len(m.left("message "+msg.name)) == 0
}

// unknown is a message as it is to who has forgotten it. What its workers know of it they know.
func (msg *message) unknown() *message {
	return &message{name: msg.name, state: "none", lock: msg.lock, took: msg.took, last: msg.last, lastBy: msg.lastBy}
}

// dubious reports whether it cannot be said what a message with a given id was: it is as old as what was pruned, or only the end of its history is left.
func (m *model) dubious(msg *message) bool {
	if msg.state == "none" {
		return m.pruned.at != never && m.pruned.at >= 0 // given ids are as old as the story
	}
	return !msg.open() && msg.state != "dead_lettered" && headless(m.left("message "+msg.name))
}

// headless reports whether what is left of an entity says only how it ended.
func headless(left []logged) bool {
	return !left[0].first && !slices.ContainsFunc(left, func(e logged) bool { return e.tells })
}

// erase lets the contents of messages go that have ended for good.
func (m *model) erase(names []string, by string) {
	for _, name := range names {
		msg := m.message(name)
		switch {
		case msg.state == "none":
			m.refuse(refusal{"erase", "not_found"}, "message/"+name, msg.state, ": it was never there, or its history and its contents were let go")
		case msg.open() || msg.state == "dead_lettered":
			m.refuse(refusal{"erase", "wrong_state"}, "message/"+name, msg.state, ": only what has ended for good is erased; cancel it first")
		case !msg.erased && slices.ContainsFunc(m.left("message "+name), func(e logged) bool { return e.moves }): // else they went with its end
			msg.erased = true
			m.record("message "+name, msg.state+" message.erased", fields{}.str("by", by))
		}
	}
}

// quiet is what a story says of a step that says only how many events it led to.
func quiet(part func(*model)) func(*model) {
	return func(m *model) {
		lines, from := len(m.lines), len(m.notes)
		part(m)
		m.flush()
		m.notes = append(m.notes[:from], fmt.Sprintf("%d events", len(m.lines)-lines))
		m.lines = m.lines[:lines]
	}
}

// prune draws a prune, whose pages are small.
func (d drawer) prune() action {
	p := prune{older: d.length(), events: of(d, []int{1, 5, 20, 100}), rows: of(d, []int{1, 3, 10, 100}), commits: d.number(0, 4)}
	line := fields{"prune quiet"}.dur("older", p.older).num("events", p.events).num("rows", p.rows).num("commits", p.commits)
	return action{line: line.str("by", "ann").text, takes: aFault, parts: []func(*model){quiet(func(m *model) { m.prune(p) })}}
}

func (d drawer) erase() action {
	names := []string{d.message(of(d, []string{"completed", "cancelled", "discarded", "completed", "dead_lettered"}))}
	if d.one(2) {
		names = append(names, d.message("completed"))
	}
	return one("erase "+strings.Join(names, " ")+" by=ann", func(m *model) { m.erase(names, "ann") })
}

// result is what a handler gives back, as the event that completes its message tells it.
func (it item) facts() fields {
	e := events.MessageCompleted{Token: events.Token(it.token)}
	if it.result != "" {
		e.Result = events.Facts{Size: len(it.result), Commitment: events.Commitment([16]byte{}, []byte(it.result))}
	}
	return fields{(&events.Names{}).Fields(&e)}
}
