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
	if err != nil && len(outcome.Changes)+len(outcome.Counts)+len(outcome.Keys) > 0 {
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
	fmt.Fprintf(&text, "%v\n%v\n", o.Counts, o.Keys)
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
	granted := map[string]int{}
	for _, change := range o.Changes {
		m := change.Value.(*fsm.Message)
		granted[m.Topic]++
		if m.Worker != c.Worker || m.Counted != h.Topics[m.Topic].Limited() {
			t.Errorf("granted as %+v", m)
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
	if c.Most > 0 && len(o.Changes) > c.Most {
		t.Errorf("%d granted, at most %d", len(o.Changes), c.Most)
	}
	// Nothing is left out that had room.
	if c.Most > 0 {
		return
	}
	for _, ask := range c.Asks {
		want := min(h.Topics[ask.Topic].Room(ask.N), len(h.Claimable[ask.Topic]))
		if granted[ask.Topic] != want {
			t.Errorf("topic %s: %d granted, there was room and need for %d", ask.Topic, granted[ask.Topic], want)
		}
	}
}
