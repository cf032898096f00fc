package fsm_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Laws 2, 3 and 5 to 8 of the design, over whatever a few processes do to a store: they claim, hold locks, die, hang and come back, the clock is
// set, operators interfere, and sweeps give back what the dead held.
func TestWorldKeepsTheLaws(t *testing.T) {
	seen := map[events.Type]int{}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, seen)
		last := w.summary()
		steps := w.steps()
		steps[""] = func(*rapid.T) {
			w.openMessagesAreSomewhere()
			w.locksAreHeldBySomebody()
			w.limitsHold(last)
			w.countsAreTrue()
			w.nothingIsForgotten()
			last = w.summary()
		}
		for range 3 { // three times as many steps as is usual
			rt.Repeat(steps)
		}
	})
	for _, typ := range events.Types() {
		waits := slices.Contains([]events.Type{
			events.TypeMessageBlocked, events.TypeMessageUnblocked, events.TypeMessageDiscarded, events.TypeMessageOrphaned, events.TypeMessageRefused,
			events.TypeMessageErased,
		}, typ) || typ.Snapshots() && typ.Kind() != events.KindLeader
		if (waits || typ.Kind() == events.KindLock) && seen[typ] == 0 {
			t.Errorf("%s never happened, so this says nothing about it", typ)
		}
	}
}

// summary is what a step may only lower while it is above its bound.
type summary struct {
	topics map[string]fsm.Topic
	locks  map[string]fsm.Lock
}

func (w *world) summary() summary { return summary{maps.Clone(w.topics), maps.Clone(w.locks)} }

// Law 3. A blocked message waits for a lock that has no free permit, or whose topic has another one that was sent to try; so a repair never
// finds anything.
func (w *world) openMessagesAreSomewhere() {
	tries := map[[2]string]bool{}
	for _, m := range w.messages {
		if m.Trying {
			tries[[2]string{m.Topic, m.Lock}] = true
		}
	}
	for id, m := range w.messages {
		if m.Trying && (m.State != events.Queued || m.Lock == "") || (m.Worker != events.ID{}) != (m.State == events.Running) || m.State == events.Orphaned {
			w.fail("%s rests as %+v", names.ID(id), m)
		}
		if m.State == events.Blocked && w.locks[m.Lock].Free() > 0 && !tries[[2]string{m.Topic, m.Lock}] {
			w.fail("%s waits for %s, which has %d permits free, and nobody of topic %s tries", names.ID(id), m.Lock, w.locks[m.Lock].Free(), m.Topic)
		}
	}
	for _, name := range worldLocks {
		h := w.held()
		w.lockInto(&h, name)
		if o, err := (fsm.RepairLock{Lock: name}).Decide(h); err != nil || len(o.Changes) > 0 {
			w.fail("%s needs repair: %v, %v", name, told(o), err)
		}
	}
}

// Law 7. As many permits are out as the lock says, each held by an open claim, a session, or a handler that was told to stop and has not said
// that it has; and no more than the lock has, unless it was given fewer.
func (w *world) locksAreHeldBySomebody() {
	out := map[string]int{}
	for key, p := range w.permits {
		out[key.Lock]++
		if state := w.workers[p.Worker].State; state != events.Live && state != events.Lost {
			w.fail("permit %s/%d is held by %s, which is %s", key.Lock, key.Token, names.ID(p.Worker), state)
		}
		m := w.messages[p.Message]
		open := m.State == events.Running && m.Permit() == key && m.Worker == p.Worker
		if p.Message == (events.ID{}) || open {
			continue
		}
		process := w.of(p.Worker)
		if !process.dead && !slices.ContainsFunc(process.handlers, func(h fsm.Settlement) bool { return h.Permit == key }) {
			w.fail("permit %s/%d is held for %s, whose handler has ended", key.Lock, key.Token, names.ID(p.Message))
		}
	}
	for name, l := range w.locks {
		if l.Held != out[name] || (l.State == events.Held) != (l.Held > 0) {
			w.fail("%s is %s with %d out, there are %d permits", name, l.State, l.Held, out[name])
		}
	}
}

// Law 2, and the same of locks: no more runs than the limit, unless it was set or lowered, and then it only falls.
func (w *world) limitsHold(last summary) {
	running := map[string]int{}
	for _, m := range w.messages {
		if m.State == events.Running && m.Counted {
			running[m.Topic]++
		}
	}
	for name, topic := range w.topics {
		before := last.topics[name]
		if topic.Running != running[name] {
			w.fail("topic %s counts %d, %d claims of it count", name, topic.Running, running[name])
		}
		if topic.Limited() && topic.Running > topic.Limit && topic.Running > before.Running && !before.Counting {
			w.fail("topic %s: %d run after %d, its limit is %d", name, topic.Running, before.Running, topic.Limit)
		}
	}
	for name, l := range w.locks {
		if before := last.locks[name]; l.Free() < 0 && l.Held > before.Held {
			w.fail("lock %s: %d are out after %d, it has %d", name, l.Held, before.Held, l.Permits)
		}
	}
}

// Law 6. Every count is that of its events.
func (w *world) countsAreTrue() {
	for id, m := range w.messages {
		want := *w.counts[id]
		got := tally{m.Attempts, m.Releases, m.Failures, m.Orphanings, m.SpentBefore, m.OrphanedBefore, want.token}
		if got != want || m.Spent() != m.Attempts-m.Releases-m.SpentBefore {
			w.fail("%s counts %+v, its events %+v", names.ID(id), got, want)
		}
	}
}

// sweep is one by a process that lives, and then another at the same time with the same view: law 8. Where the census is in doubt nothing is done
// on silence.
func (w *world) sweep() {
	p := w.process((*process).acts)
	if p == nil {
		return
	}
	if rapid.Bool().Draw(w.t, "after a while") {
		w.pass(130 * time.Second)
	}
	c := w.census(p)
	doubt, blind := c.Guard(usual), c.GuardProof(usual) != nil
	w.say("%s sweeps, doubt %+v", names.ID(p.id), doubt)
	var dead []fsm.Member
	for _, m := range c.Members {
		if m.Worker != p.id && fsm.Judge(m, usual, c.Clock, c.Now) != "" && !blind && (doubt == nil || m.Gone) {
			dead = append(dead, m)
		}
	}
	turns := rapid.SliceOfN(rapid.IntRange(0, 1), 0, 6).Draw(w.t, "turns")
	once := w.copy()
	once.sweepAll(dead)
	w.sweepTogether(dead, turns)
	w.sweepAll(dead)
	for _, diff := range []string{
		cmp.Diff(once.messages, w.messages), cmp.Diff(once.locks, w.locks), cmp.Diff(once.topics, w.topics), cmp.Diff(once.workers, w.workers),
		cmp.Diff(slices.Sorted(w.tokensOf(once)), slices.Sorted(w.tokensOf(w))),
	} {
		if diff != "" {
			w.fail("two sweeps at once leave something else than one (-one +two):\n%s", diff)
		}
	}
	w.deadHoldNothing(dead)
}

// tokensOf is the tokens of all permits that are out in a world.
func (*world) tokensOf(of *world) func(func(events.Token) bool) {
	return func(yield func(events.Token) bool) {
		for key := range of.permits {
			if !yield(key.Token) {
				return
			}
		}
	}
}

// census is what a process sees of who lives. Of some who were killed it has proof.
func (w *world) census(p *process) fsm.Census {
	c := fsm.Census{Now: w.now, Caller: p.id, Clock: w.clock, Own: p.own}
	proof := rapid.IntRange(0, 3).Draw(w.t, "proof") == 0
	for _, q := range w.processes {
		state := w.workers[q.id].State
		if state != events.Live && state != events.Lost {
			continue
		}
		m := w.beats[q.id]
		m.Worker, m.Gone = q.id, q.dead && proof
		c.Members = append(c.Members, m)
	}
	return c
}

// sweepAll reclaims what the dead hold, each to the last page.
func (w *world) sweepAll(dead []fsm.Member) {
	for _, m := range dead {
		for w.reclaim(m) {
		}
	}
}

// sweepTogether is two sweeps whose pages come in turns, until both are killed. A census is in the order of its ids, so theirs is the same.
func (w *world) sweepTogether(dead []fsm.Member, turns []int) {
	left := [2][]fsm.Member{dead, dead}
	for _, turn := range turns {
		if list := &left[turn]; len(*list) > 0 && !w.reclaim((*list)[0]) {
			*list = (*list)[1:]
		}
	}
}

// reclaim is one page of a sweep that began just now; false where it found nothing.
func (w *world) reclaim(m fsm.Member) bool {
	h := w.held()
	w.estateInto(&h, m.Worker, page)
	c := sweeping()
	c.Evidence.Claimer, c.Evidence.Limit, c.BeganAt, c.Page = m.Worker, 3, w.now, page
	if m.Gone {
		c.Evidence.Reason = events.ReasonProcessGone
	}
	o, seen, err := c.Decide(h)
	if seen.Alive || seen.Stale {
		w.fail("%s: a sweep that has just begun sees %+v", w.where(m), seen)
	}
	if len(o.Changes) == 0 {
		return false
	}
	w.say("  a page of %s", w.where(m))
	w.keep(o, err)
	w.backOnlyFrom(o, func(worker events.ID) bool { return worker == m.Worker })
	for _, claim := range h.Claims[m.Worker] {
		if young := w.clock.Age(w.now, claim.ClaimedAt) < usual.Grace; young && !m.Gone && w.messages[claim.ID].State != events.Running {
			w.fail("%s was claimed at %s and is taken from %s on silence", names.ID(claim.ID), claim.ClaimedAt.Sub(now), names.ID(m.Worker))
		}
		if p, out := w.permits[claim.Permit()]; out && w.messages[claim.ID].State != events.Running {
			w.fail("%s is taken from %s, and %s/%d is not", names.ID(claim.ID), names.ID(m.Worker), p.Lock, p.Token)
		}
	}
	if p := w.of(m.Worker); !m.Gone && w.spent-p.beatAt <= usual.After {
		w.fail("%s is held to be dead, and beat %s ago", names.ID(m.Worker), w.spent-p.beatAt)
	}
	return true
}

// deadHoldNothing : a sweep leaves the dead nothing but what is younger than the grace.
func (w *world) deadHoldNothing(dead []fsm.Member) {
	for _, d := range dead {
		spared := func(since time.Time) bool { return !d.Gone && w.clock.Age(w.now, since) < usual.Grace }
		for id, m := range w.messages {
			if m.State == events.Running && m.Worker == d.Worker && !spared(m.ClaimedAt) {
				w.fail("%s was swept and has a claim on %s since %s", names.ID(d.Worker), names.ID(id), m.ClaimedAt.Sub(now))
			}
		}
		for key, p := range w.permits {
			if p.Worker == d.Worker && !spared(p.AcquiredAt) {
				w.fail("%s was swept and has %s/%d since %s", names.ID(d.Worker), key.Lock, key.Token, p.AcquiredAt.Sub(now))
			}
		}
		if w.workers[d.Worker].State != events.Lost {
			w.fail("%s was swept and is %s", names.ID(d.Worker), w.workers[d.Worker].State)
		}
	}
}

// reclaimInDoubt : nothing moves of a worker that lives, nor by a sweep that began too long ago or before the clock stepped.
func (w *world) reclaimInDoubt() {
	for _, p := range w.processes {
		h := w.held()
		w.estateInto(&h, p.id, page)
		c := sweeping()
		c.Evidence.Claimer, c.BeganAt = p.id, w.now
		if fsm.Judge(w.beats[p.id], usual, w.clock, w.now) != "" {
			c.BeganAt = w.now.Add(-usual.After/2 - time.Microsecond)
		}
		o, seen, err := c.Decide(h)
		if err != nil || len(o.Changes)+len(o.Permits)+len(o.Counts) > 0 || !seen.Alive && !seen.Stale {
			w.fail("%s is reclaimed in doubt: %v, %+v, %v", names.ID(p.id), told(o), seen, err)
		}
	}
}
