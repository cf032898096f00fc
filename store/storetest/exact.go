package storetest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/corpus"
	"github.com/foundling-go/foundling/store"
)

func exactness() []sentence {
	return []sentence{
		{"there is a sample of every type", func(b *bed) {
			var sampled []events.Type
			for _, e := range samples() {
				sampled = append(sampled, e.Type())
			}
			want(b, "types", fmt.Sprint(sampled), fmt.Sprint(events.Types()))
		}},
		{"every event comes back byte for byte", exactEvents},
		{"every state comes back", exactStates},
	}
}

func exactEvents(b *bed) {
	var list []events.Recorded
	for i, e := range samples() {
		entity := events.Entity{Kind: e.Type().Kind(), ID: b.id()}
		if entity.Kind.Named() {
			entity = events.Entity{Kind: entity.Kind, Name: fmt.Sprintf("name %d é\n\"'", i)}
		}
		call := b.giving(change(entity, 0, e))
		call.Command = events.Command{
			Name: "test", Params: []byte(`{"t":"\n\"é"}`), Actor: "who\u2028", Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		}
		receipt := b.commit(call)
		b.same("event of the entity", b.log(store.Filter{Entity: entity}), receipt.Events)
		b.same("event of the type", b.log(store.Filter{Types: []events.Type{e.Type()}}), receipt.Events)
		settled, _ := b.outcome(call.ID)
		b.same("settled", settled.Events, receipt.Events)

		stored := events.Encode(entity, receipt.Events[0].Transition)
		sealed := events.Seal(*receipt.Events[0].Commit, []events.Stored{stored})
		want(b, "checksum of the commit", receipt.Events[0].Commit.Checksum, sealed.Checksum)
		list = append(list, receipt.Events...)
	}
	b.same("log", b.log(store.Filter{}), list)
}

func exactStates(b *bed) {
	var states []events.State
	for s := range 256 {
		if events.State(s).Known() {
			states = append(states, events.State(s))
		}
	}
	c := configured("a", 0)
	for i, to := range states {
		if i > 0 {
			c.Row.Version++
			c.Transitions = append(c.Transitions, events.Transition{Event: &events.TopicPaused{}, Version: i + 1})
		}
		c.Transitions[i].From, c.Transitions[i].To = states[max(i-1, 0)], to
	}
	receipt := b.commit(b.giving(c))
	log := b.log(store.Filter{})
	b.same("log", log, receipt.Events)
	var read []events.State
	for _, r := range log {
		read = append(read, r.To)
	}
	want(b, "states", slices.Equal(read, states), true)
}

// samples is an event of every type with every field set, in the order of the types' numbers.
func samples() []events.Event {
	var list []events.Event
	seen := map[events.Type]bool{}
	for _, s := range corpus.Samples() {
		typ := s.Event.Type()
		if seen[typ] || !strings.Contains(s.Name, " full ") {
			continue
		}
		seen[typ] = true
		if e, ok := s.Event.(*events.MessageClaimed); ok {
			e.Token, e.LockToken = math.MaxInt64, math.MaxInt64 // no engine may round it
		}
		list = append(list, s.Event)
	}
	return list
}
