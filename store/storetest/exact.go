package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
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
			entity = events.TopicEntity(fmt.Sprintf("topic %d é\n\"'", i))
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
	at := time.UnixMicro(1_780_000_000_123_456).UTC()
	id := mint(at)
	const text = "né \"quoted\" \\ <&>\n\ttab\x01\u2028"
	evidence := events.Evidence{Reason: events.ReasonProcessGone, Claimer: id, LastBeatAt: at, Decider: mint(at), Limit: 5}
	return []events.Event{
		&events.MessageEnqueued{
			Topic: text, DueAt: at, Priority: events.High, Key: text, UniqueFor: time.Hour,
			Limits:  events.Limits{MaxAttempts: 3, BackoffBase: time.Second, BackoffMax: time.Minute, Timeout: time.Microsecond},
			Payload: events.Facts{Size: 1 << 24, Codec: "json", Commitment: [32]byte{1, 31: 255}},
		},
		&events.MessageClaimed{Worker: id, Token: 1<<63 - 1, Attempt: 2, Running: 3, Limit: 4},
		&events.MessageCompleted{Token: 2},
		&events.MessageRequeued{Reason: events.ReasonRetry, Token: 2, DueAt: at, Jitter: -100, Error: text, By: text, Detail: text},
		&events.MessageOrphaned{Token: 2, Evidence: evidence},
		&events.MessageDeadLettered{Reason: events.ReasonExhausted, Token: 2, Error: text, By: text, Detail: text},
		&events.MessageCancelled{Reason: events.ReasonOperator, Token: 2, By: text, Detail: text},
		&events.MessageRedriven{By: text, Detail: text, Spent: 3, Orphanings: 1},
		&events.MessageRefused{Command: "complete", Reason: events.ReasonStaleToken, Sender: id, Sent: 2, Found: 4, Unrecorded: 9},
		&events.MessageCounted{},
		&events.WorkerStarted{
			Host: text, PID: 1 << 22, Version: text, Topics: []string{text, "", "b"}, Concurrency: 8, HeartbeatInterval: time.Second, Proof: true,
		},
		&events.WorkerStopped{Released: 2},
		&events.WorkerLost{Evidence: evidence},
		&events.WorkerReturned{LostAt: at},
		&events.WorkerGap{FromAt: at, ToAt: at.Add(time.Second)},
		&events.TopicConfigured{Limit: 7, Counting: true, By: text, Detail: text},
		&events.TopicCounted{},
		&events.TopicPaused{By: text, Detail: text},
		&events.TopicResumed{By: text, Detail: text},
	}
}
