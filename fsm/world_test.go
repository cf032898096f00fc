package fsm_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"pgregory.net/rapid"
)

// world is a store and the processes that use it, as small as can be: what commands hold is taken from it, and their outcomes are kept in it.
// Every step is written down, so that a failure prints a story.
type world struct {
	t     *rapid.T
	now   time.Time     // the store's clock
	spent time.Duration // that truly went by, whatever the clock says

	messages map[events.ID]fsm.Message // also those that have ended
	places   []events.ID               // in the order of enqueueing
	topics   map[string]fsm.Topic
	locks    map[string]fsm.Lock // also free ones
	permits  map[fsm.PermitKey]fsm.Permit
	workers  map[events.ID]fsm.Worker
	beats    map[events.ID]fsm.Member
	clock    fsm.Clock
	position int // of the newest event
	log      []logged
	store    fsm.Log
	bare     map[events.ID]bool // messages whose contents are gone

	processes []*process // in the order of their start
	sent      []sending  // results, to be sent again
	counts    map[events.ID]*tally
	tokens    map[string]events.Token // the highest of each lock
	script    []string
	seen      map[events.Type]int // over all runs
}

// process is what runs under a worker.
type process struct {
	id       events.ID
	dead     bool // killed
	paused   bool // neither beats nor acts
	stopped  bool // ended as it should
	handlers []fsm.Settlement
	own      []time.Time   // its confirmed heartbeats
	beatAt   time.Duration // when it truly beat last
}

// acts reports whether it can do anything.
func (p *process) acts() bool { return !p.dead && !p.paused && !p.stopped }

// sending is a result as it was sent once.
type sending struct {
	from events.ID
	item fsm.Settlement
}

// tally is what the log says of a message.
type tally struct {
	claims, releases, failures, orphanings int
	spent, orphaned                        int // before the last redrive
	token                                  events.Token
}

func newWorld(t *rapid.T, seen map[events.Type]int) *world {
	w := &world{
		t: t, now: now, seen: seen,
		messages: map[events.ID]fsm.Message{}, topics: map[string]fsm.Topic{}, locks: map[string]fsm.Lock{},
		permits: map[fsm.PermitKey]fsm.Permit{}, workers: map[events.ID]fsm.Worker{}, beats: map[events.ID]fsm.Member{},
		counts: map[events.ID]*tally{}, tokens: map[string]events.Token{}, bare: map[events.ID]bool{},
	}
	for _, name := range worldTopics {
		w.do(fsm.OperateTopic{Topic: name, Command: fsm.ConfigureTopic{Limit: rapid.IntRange(0, 3).Draw(t, "limit")}})
	}
	for i, name := range worldLocks {
		w.configure(name, i+1)
	}
	for range 3 {
		w.start()
	}
	w.pass(150 * time.Second)
	return w
}

// copy is a world that shares nothing which steps change, and is not written down.
func (w *world) copy() *world {
	c := *w
	c.messages, c.topics, c.locks, c.permits = maps.Clone(w.messages), maps.Clone(w.topics), maps.Clone(w.locks), maps.Clone(w.permits)
	c.workers, c.beats, c.tokens, c.seen = maps.Clone(w.workers), maps.Clone(w.beats), maps.Clone(w.tokens), map[events.Type]int{}
	c.places, c.script, c.counts = slices.Clone(w.places), slices.Clone(w.script), map[events.ID]*tally{}
	c.log, c.bare = slices.Clone(w.log), maps.Clone(w.bare)
	for id, n := range w.counts {
		clone := *n
		c.counts[id] = &clone
	}
	return &c
}

// --- What a command holds. Each gives what package store says that it needs, and no more.

// held is what every command holds.
func (w *world) held() fsm.Held {
	return fsm.Held{
		Now: w.now, Fence: events.Token(w.position + 1), Messages: map[events.ID]fsm.Message{}, Topics: map[string]fsm.Topic{},
		Workers: map[events.ID]fsm.Worker{}, Claimable: map[string][]fsm.Message{}, Claims: map[events.ID][]fsm.Message{},
		Uncounted: map[string][]fsm.Message{}, Locks: map[string]fsm.Lock{}, Waiting: map[string][]fsm.Message{}, Beats: map[events.ID]fsm.Member{},
	}
}

// lockInto holds a lock and, of each topic, the first that is blocked and the first that tries.
func (w *world) lockInto(h *fsm.Held, name string) {
	if name == "" {
		return
	}
	h.Locks[name] = w.locks[name]
	h.Waiting[name] = nil
	blocked, tries := map[string]bool{}, map[string]bool{}
	for _, m := range w.inPlace(func(m fsm.Message) bool { return m.Lock == name && (m.State == events.Blocked || m.Trying) }) {
		seen := blocked
		if m.Trying {
			seen = tries
		}
		if !seen[m.Topic] {
			seen[m.Topic] = true
			h.Waiting[name] = append(h.Waiting[name], m)
		}
	}
}

// permitsInto holds permits, each once, by lock and token.
func (w *world) permitsInto(h *fsm.Held, list ...fsm.Permit) {
	for _, p := range list {
		if !slices.ContainsFunc(h.Permits, func(q fsm.Permit) bool { return q.PermitKey == p.PermitKey }) {
			h.Permits = append(h.Permits, p)
		}
	}
	slices.SortFunc(h.Permits, byLock)
}

// permit is the permit of a key, in a list, where it is out.
func (w *world) permit(key fsm.PermitKey) []fsm.Permit {
	if p, out := w.permits[key]; out {
		return []fsm.Permit{p}
	}
	return nil
}

// pageOf is up to n permits that pass, the oldest first.
func (w *world) pageOf(n int, pass func(fsm.Permit) bool) []fsm.Permit {
	list := slices.SortedFunc(maps.Values(w.permits), func(a, b fsm.Permit) int {
		return cmp.Or(a.AcquiredAt.Compare(b.AcquiredAt), byLock(a, b))
	})
	list = slices.DeleteFunc(list, func(p fsm.Permit) bool { return !pass(p) })
	return list[:min(n, len(list))]
}

func byLock(a, b fsm.Permit) int {
	return cmp.Or(strings.Compare(a.Lock, b.Lock), cmp.Compare(a.Token, b.Token))
}

// claimsOf is up to n open claims of a worker, the oldest first.
func (w *world) claimsOf(worker events.ID, n int) []fsm.Message {
	list := w.inPlace(func(m fsm.Message) bool { return m.State == events.Running && m.Worker == worker })
	slices.SortStableFunc(list, func(a, b fsm.Message) int { return a.ClaimedAt.Compare(b.ClaimedAt) })
	return list[:min(n, len(list))]
}

// estateInto holds what a worker holds, n claims and n permits.
func (w *world) estateInto(h *fsm.Held, worker events.ID, n int) {
	if v, known := w.workers[worker]; known {
		h.Workers[worker] = v
	}
	if b, beats := w.beats[worker]; beats {
		h.Beats[worker] = b
	}
	h.Clock = w.clock
	h.Claims[worker] = w.claimsOf(worker, n)
	for _, m := range h.Claims[worker] {
		w.permitsInto(h, w.permit(m.Permit())...)
	}
	w.permitsInto(h, w.pageOf(n, func(p fsm.Permit) bool { return p.Worker == worker })...)
	for _, p := range h.Permits {
		w.lockInto(h, p.Lock)
	}
}

// claimableInto holds a topic and a page of what it has to claim, with the locks.
func (w *world) claimableInto(h *fsm.Held, ask fsm.Ask) {
	h.Topics[ask.Topic] = w.topics[ask.Topic]
	list := w.inPlace(func(m fsm.Message) bool {
		return m.State == events.Queued && m.Topic == ask.Topic && !m.DueAt.After(w.now)
	})
	slices.SortStableFunc(list, func(a, b fsm.Message) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.DueAt.Compare(b.DueAt))
	})
	h.Claimable[ask.Topic] = list[:min(ask.N, len(list))]
	for _, m := range h.Claimable[ask.Topic] {
		if m.Trying {
			w.lockInto(h, m.Lock)
		} else if m.Lock != "" {
			h.Locks[m.Lock] = w.locks[m.Lock]
		}
	}
}

// inPlace is the messages that pass, by priority, then place.
func (w *world) inPlace(pass func(fsm.Message) bool) []fsm.Message {
	var list []fsm.Message
	for _, id := range w.places {
		if m := w.messages[id]; pass(m) {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b fsm.Message) int { return cmp.Compare(a.Priority, b.Priority) })
	return list
}

// --- What becomes of an outcome.

// say writes a line of the script.
func (w *world) say(format string, args ...any) {
	w.script = append(w.script, fmt.Sprintf("%-9s %s", w.now.Sub(now), fmt.Sprintf(format, args...)))
}

// fail ends the run with what is wrong and how it came to it.
func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n\nHow it came to that (m1 is the first message that was enqueued, wa the first worker):\n%s",
		fmt.Sprintf(format, args...), strings.Join(w.script, "\n"))
}

// keep puts an outcome into the world. Whatever it was decided upon must still be so, which it is here unless the rules took something for
// granted that they did not hold.
func (w *world) keep(o fsm.Outcome, err error) {
	w.t.Helper()
	if err != nil {
		w.fail("%v", err)
	}
	w.lose(o)
	commit := w.position + 1 // named for its first event
	for _, c := range o.Changes {
		entity := c.Value.Entity()
		before := w.value(entity)
		if version, _ := before.At(); version != c.From {
			w.fail("%s: decided upon version %d, it has %d", entity, c.From, version)
		}
		for _, tr := range c.Transitions {
			w.position++
			w.log = append(w.log, logged{commit, w.position, w.now, entity, tr})
			w.seen[tr.Event.Type()]++
			w.script = append(w.script, fmt.Sprintf("%-9s     %s %s→%s %s%s", "", names.Entity(entity), tr.From, tr.To, tr.Event.Type(), names.Fields(tr.Event)))
			w.count(entity, tr)
		}
		w.put(c.Value)
	}
	for _, c := range o.Counts {
		topic := w.topics[c.Topic]
		topic.Running += c.Delta
		w.topics[c.Topic] = topic
	}
	w.keepPermits(o)
	w.letGo(o)
}

func (w *world) keepPermits(o fsm.Outcome) {
	for _, c := range o.Permits {
		key := c.Permit.PermitKey
		if _, out := w.permits[key]; out != c.Back {
			w.fail("permit %s/%d: back %v, out before %v", key.Lock, key.Token, c.Back, out)
		}
		if c.Back {
			delete(w.permits, key)
			continue
		}
		if key.Token <= w.tokens[key.Lock] {
			w.fail("lock %s: token %d after %d", key.Lock, key.Token, w.tokens[key.Lock])
		}
		w.tokens[key.Lock] = key.Token
		w.permits[key] = c.Permit
	}
}

// backOnlyFrom : no permit came back but from holders that pass.
func (w *world) backOnlyFrom(o fsm.Outcome, pass func(worker events.ID) bool) {
	w.t.Helper()
	for _, c := range o.Permits {
		if c.Back && !pass(c.Permit.Worker) {
			w.fail("permit %s/%d is taken from %s", c.Permit.Lock, c.Permit.Token, names.ID(c.Permit.Worker))
		}
	}
}

// count keeps the tally of a message, and watches that nothing leaves a state for good.
func (w *world) count(entity events.Entity, tr events.Transition) {
	if entity.Kind != events.KindMessage {
		return
	}
	n := w.counts[entity.ID]
	if n == nil {
		n = &tally{}
		w.counts[entity.ID] = n
	}
	ended := slices.Contains([]events.State{events.Completed, events.Cancelled, events.Discarded}, tr.From)
	leaves := slices.Contains([]events.Type{events.TypeMessageRedriven, events.TypeMessageCancelled, events.TypeMessageSnapshotted}, tr.Event.Type())
	if tr.Version > 0 && (ended || tr.From == events.DeadLettered && !leaves) {
		w.fail("%s: %s after it had ended", names.Entity(entity), tr.Event.Type())
	}
	switch e := tr.Event.(type) {
	case *events.MessageClaimed:
		if e.Token <= n.token {
			w.fail("%s: token %d after %d", names.Entity(entity), e.Token, n.token)
		}
		n.claims, n.token = n.claims+1, e.Token
	case *events.MessageOrphaned:
		n.orphanings++
	case *events.MessageRequeued:
		switch e.Reason {
		case events.ReasonRetry:
			n.failures++
		case events.ReasonReleased, events.ReasonSnoozed, events.ReasonUnclaimed:
			n.releases++
		}
	case *events.MessageDeadLettered:
		if e.Reason != events.ReasonOrphanLimit {
			n.failures++
		}
	case *events.MessageRedriven:
		if spent := n.claims - n.releases - n.spent; e.Spent != spent || e.Orphanings != n.orphanings-n.orphaned {
			w.fail("%s: redriven as %+v, the log says %d spent and %d orphanings", names.Entity(entity), e, spent, n.orphanings-n.orphaned)
		}
		n.spent, n.orphaned = n.claims-n.releases, n.orphanings
	}
}

// value is an entity as it stands.
func (w *world) value(e events.Entity) fsm.Value {
	held := fsm.Held{Topics: w.topics, Workers: w.workers, Locks: w.locks, Clock: w.clock, Log: w.store}
	if e.Kind == events.KindMessage {
		held.Messages = map[events.ID]fsm.Message{e.ID: w.known(e.ID)}
	}
	return before(held, e)
}

func (w *world) put(v fsm.Value) {
	switch v := v.(type) {
	case *fsm.Message:
		if _, known := w.messages[v.ID]; !known {
			w.places = append(w.places, v.ID)
		} else if !v.Live() && v.Topic == "" {
			return // too little is left of it, and nothing moved
		}
		w.messages[v.ID] = *v
	case *fsm.Topic:
		running := w.topics[v.Name].Running
		w.topics[v.Name] = *v
		topic := w.topics[v.Name]
		topic.Running = running // no event of the topic carries it
		w.topics[v.Name] = topic
	case *fsm.Lock:
		w.locks[v.Name] = *v
	case *fsm.Worker:
		w.workers[v.ID] = *v
	case *fsm.Clock:
		w.clock = *v
	case *fsm.Log:
		w.store = *v
	}
}

// names shows ids as the script does.
var names = &events.Names{
	Short: func(id events.ID) string {
		switch id[0] {
		case 'm':
			return fmt.Sprintf("m%d", id[1])
		case 'w':
			return fmt.Sprintf("w%c", 'a'+id[1])
		}
		return fmt.Sprintf("%x", bytes.TrimRight(id[:], "\x00"))
	},
	Clock: func(t time.Time) string { return t.Sub(now).String() },
}
