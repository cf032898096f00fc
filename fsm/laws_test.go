package fsm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/corpus"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The laws of all composed commands, over whatever a store might hold.
func TestLaws(t *testing.T) {
	for _, name := range composed {
		t.Run(name, func(t *testing.T) {
			changed := 0
			rapid.Check(t, func(rt *rapid.T) {
				h := anyHeld(rt)
				d := anyDecider(rt, h, name)
				outcome := decidedPurely(rt, h, d)
				if len(outcome.Changes) > 0 {
					changed++
				}
				foldsLeadThere(rt, h, outcome)
				countsFit(rt, h, outcome)
				keysFit(rt, h, outcome)
				permitsFit(rt, h, outcome)
				waitersAreTold(rt, h, outcome)
				if name == "claim" {
					limitsHold(rt, h, d.claim, outcome)
				}
			})
			if changed == 0 {
				t.Error("it changed nothing in any run, so the laws say nothing about it")
			}
		})
	}
}

// decidedPurely is the outcome of a command that decides the same twice, changes nothing that it is handed, and when it is refused
// nothing at all.
func decidedPurely(t *rapid.T, h fsm.Held, d decider) fsm.Outcome {
	untouched := clone(h)
	outcome, err := d.decide(h)
	again, errAgain := d.decide(h)
	if diff := cmp.Diff(untouched, h); diff != "" {
		t.Errorf("changed what it was handed (-before +after):\n%s", diff)
	}
	if fmt.Sprint(err) != fmt.Sprint(errAgain) || written(outcome) != written(again) {
		t.Errorf("decides twice:\n%s%v\n%s%v", written(outcome), err, written(again), errAgain)
	}
	if err != nil && len(outcome.Changes)+len(outcome.Counts)+len(outcome.Keys)+len(outcome.Permits) > 0 {
		t.Errorf("is refused with %v and changes\n%s", err, written(outcome))
	}
	return outcome
}

// written is an outcome as bytes.
func written(o fsm.Outcome) string {
	var text strings.Builder
	for _, c := range o.Changes {
		version, state := c.Value.At()
		fmt.Fprintf(&text, "%s v%d→v%d %s %s\n", c.Value.Entity(), c.From, version, state, events.AppendFields(nil, c.Value))
		for _, t := range c.Transitions {
			stored := events.Encode(c.Value.Entity(), t)
			fmt.Fprintf(&text, "  v%d %s→%s %s %s %08x\n", stored.Version, stored.From, stored.To, stored.Type, stored.Body, stored.Checksum)
		}
	}
	fmt.Fprintf(&text, "%v\n%v\n%v\n", o.Counts, o.Keys, o.Permits)
	return text.String()
}

// before is an entity as it is held.
func before(h fsm.Held, e events.Entity) fsm.Value {
	switch e.Kind {
	case events.KindMessage:
		if m, ok := h.Messages[e.ID]; ok {
			return &m
		}
		return &fsm.Message{ID: e.ID}
	case events.KindTopic:
		topic := h.Topics[e.Name]
		topic.Name = e.Name
		return &topic
	case events.KindLock:
		lock := h.Locks[e.Name]
		lock.Name = e.Name
		return &lock
	case events.KindLeader:
		leader := h.Leaders[e.Name]
		leader.Name = e.Name
		return &leader
	case events.KindSweep:
		return &fsm.Sweep{ID: e.ID}
	case events.KindClock:
		return &h.Clock
	case events.KindLog:
		return &h.Log
	}
	w := h.Workers[e.ID]
	w.ID = e.ID
	return &w
}

// Every entity has one change, and its transitions, stored and read back, lead from the value before to the value after.
func foldsLeadThere(t *rapid.T, h fsm.Held, o fsm.Outcome) {
	seen := map[events.Entity]bool{}
	commit := corpus.Commit()
	commit.At = h.Now
	for _, c := range o.Changes {
		entity := c.Value.Entity()
		if seen[entity] {
			t.Errorf("%s is changed twice", entity)
		}
		seen[entity] = true
		v := before(h, entity)
		if version, _ := v.At(); version != c.From || len(c.Transitions) == 0 {
			t.Errorf("%s: changed from version %d, is held at %d, by %d transitions", entity, c.From, version, len(c.Transitions))
		}
		for _, transition := range c.Transitions {
			r, err := events.Encode(entity, transition).Decode(&commit)
			if err == nil {
				v, err = fsm.Apply(v, r)
			}
			if err != nil {
				t.Fatalf("%s: %v", entity, err)
			}
		}
		if diff := cmp.Diff(v, c.Value); diff != "" {
			t.Errorf("%s (-folded +value):\n%s", entity, diff)
		}
	}
}

// What is added to a topic's count is the change in its counted open claims.
func countsFit(t *rapid.T, h fsm.Held, o fsm.Outcome) {
	want, got := map[string]int{}, map[string]int{}
	for _, c := range o.Changes {
		if m, ok := c.Value.(*fsm.Message); ok {
			was := before(h, c.Value.Entity()).(*fsm.Message)
			if delta := slots(m) - slots(was); delta != 0 {
				want[m.Topic] += delta
			}
		}
	}
	for _, count := range o.Counts {
		got[count.Topic] += count.Delta
	}
	for _, topic := range someTopics {
		if got[topic] != want[topic] {
			t.Errorf("topic %s: count %+d, its claims say %+d", topic, got[topic], want[topic])
		}
	}
}

func slots(m *fsm.Message) int {
	if m.State == events.Running && m.Counted {
		return 1
	}
	return 0
}

// An open message has its key, one that has ended has none beyond its time, and nobody takes another's.
func keysFit(t *rapid.T, h fsm.Held, o fsm.Outcome) {
	keys := map[fsm.Key]fsm.KeyHolder{}
	for key, holder := range h.Keys {
		keys[key] = holder
	}
	for _, change := range o.Keys {
		keys[change.Key] = change.Holder
	}
	for _, c := range o.Changes {
		m, ok := c.Value.(*fsm.Message)
		if !ok || m.Key == "" {
			continue
		}
		holder := keys[fsm.Key{Topic: m.Topic, Name: m.Key}]
		if m.Open() != (holder.Message == m.ID && holder.Open) {
			t.Errorf("%s is %s, its key is held by %+v", m.Entity(), m.State, holder)
		}
	}
	for id, m := range h.Messages {
		moved := slices.ContainsFunc(o.Changes, func(c fsm.Change) bool { return c.Value.Entity() == events.MessageEntity(id) })
		if holder := keys[fsm.Key{Topic: m.Topic, Name: m.Key}]; !moved && m.Key != "" && m.Open() && holder.Message != id {
			t.Errorf("message %s lost its key to %+v", id, holder)
		}
	}
}

// No claim is granted beyond a limit, a pause, a counting, what was asked or the most.
func limitsHold(t *rapid.T, h fsm.Held, c fsm.Claim, o fsm.Outcome) {
	granted, left := map[string]int{}, map[string]int{}
	total := 0
	for _, change := range o.Changes {
		m, ok := change.Value.(*fsm.Message)
		switch {
		case !ok:
		case m.State == events.Running:
			granted[m.Topic]++
			total++
			if m.Worker != c.Worker || m.Counted != h.Topics[m.Topic].Limited() || (m.LockToken > 0) != (m.Lock != "") {
				t.Errorf("granted as %+v", m)
			}
		case m.State == events.Blocked || m.State == events.Discarded:
			left[m.Topic]++
			if lockAfter(h, o, m.Lock).Free() > 0 {
				t.Errorf("%s is %s while its lock is free", m.Entity(), m.State)
			}
		}
	}
	for _, ask := range c.Asks {
		topic, n := h.Topics[ask.Topic], granted[ask.Topic]
		switch {
		case n > ask.N:
			t.Errorf("topic %s: %d granted, %d asked", ask.Topic, n, ask.N)
		case n > 0 && (topic.State == events.Paused || topic.Counting):
			t.Errorf("topic %s: %d granted while it is %s, counting %v", ask.Topic, n, topic.State, topic.Counting)
		case n > 0 && topic.Limited() && topic.Running+n > topic.Limit:
			t.Errorf("topic %s: %d granted beside %d, its limit is %d", ask.Topic, n, topic.Running, topic.Limit)
		}
	}
	if c.Most > 0 && total > c.Most {
		t.Errorf("%d granted, at most %d", total, c.Most)
	}
	// Nothing is left out that had room.
	if c.Most > 0 {
		return
	}
	for _, ask := range c.Asks {
		want := min(h.Topics[ask.Topic].Room(ask.N), len(h.Claimable[ask.Topic])-left[ask.Topic])
		if granted[ask.Topic] != want {
			t.Errorf("topic %s: %d granted, there was room and need for %d", ask.Topic, granted[ask.Topic], want)
		}
	}
}

// lockAfter is a lock after the outcome.
func lockAfter(h fsm.Held, o fsm.Outcome, name string) fsm.Lock {
	for _, c := range o.Changes {
		if l, ok := c.Value.(*fsm.Lock); ok && l.Name == name {
			return *l
		}
	}
	return h.Locks[name]
}

// What is out of a lock are its permits, each under a token of its own; none comes back twice or from nowhere, and none goes out beyond the
// number that the lock has.
func permitsFit(t *rapid.T, h fsm.Held, o fsm.Outcome) {
	out := map[fsm.PermitKey]bool{}
	delta := map[string]int{}
	for _, p := range h.Permits {
		out[p.PermitKey] = true
	}
	for _, c := range o.Permits {
		key := c.Permit.PermitKey
		switch {
		case c.Back && !out[key]:
			t.Errorf("permit %s/%d comes back and is not out", key.Lock, key.Token)
		case c.Back:
			out[key] = false
			delta[key.Lock]--
			continue
		case out[key] || key.Token < h.Fence || c.Permit.Worker == events.ID{} || !c.Permit.AcquiredAt.Equal(h.Now):
			t.Errorf("permit %+v goes out, tokens begin at %d", c.Permit, h.Fence)
		}
		out[key] = true
		delta[key.Lock]++
	}
	for _, name := range someLocks {
		before, after := h.Locks[name], lockAfter(h, o, name)
		if after.Held != before.Held+delta[name] || after.Held < 0 {
			t.Errorf("lock %s: %d are out after %d, the permits say %+d", name, after.Held, before.Held, delta[name])
		}
		if after.Free() < 0 && after.Held > before.Held {
			t.Errorf("lock %s: %d are out after %d, it has %d", name, after.Held, before.Held, after.Permits)
		}
	}
}

// A lock that has a permit free after a commit that touched it leaves no topic whose waiters are all blocked, except where they were before and
// the commit freed nothing; and whoever is unblocked waited, for a lock that is free.
func waitersAreTold(t *rapid.T, h fsm.Held, o fsm.Outcome) {
	freed := map[string]bool{}
	for _, p := range o.Permits {
		freed[p.Permit.Lock] = freed[p.Permit.Lock] || p.Back
	}
	after := map[events.ID]fsm.Message{}
	for _, c := range o.Changes {
		if m, ok := c.Value.(*fsm.Message); ok {
			after[m.ID] = *m
			sent := slices.ContainsFunc(c.Transitions, func(t events.Transition) bool { return t.Event.Type() == events.TypeMessageUnblocked })
			if sent && lockAfter(h, o, m.Lock).Free() <= 0 {
				t.Errorf("%s is sent to try for %s, of which nothing is free", m.Entity(), m.Lock)
			}
		}
	}
	for _, name := range someLocks {
		blocked, tries := map[string]int{}, map[string]bool{}
		for _, m := range h.Waiting[name] {
			if moved, ok := after[m.ID]; ok {
				m = moved
			}
			if m.State == events.Blocked {
				blocked[m.Topic]++
			}
			tries[m.Topic] = tries[m.Topic] || m.Trying
		}
		for topic, n := range blocked {
			if freed[name] && lockAfter(h, o, name).Free() > 0 && !tries[topic] {
				t.Errorf("lock %s has a permit free and %d of topic %s wait untold", name, n, topic)
			}
		}
	}
}
