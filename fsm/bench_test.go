package fsm_test

import (
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
)

// One transition looked up in the table.
func BenchmarkNext(b *testing.B) {
	b.ReportAllocs()
	l, err := fsm.LifecycleOf(events.KindMessage)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if to, ok := l.Next(events.Queued, events.TypeMessageClaimed); !ok || to != events.Running {
			b.Fatal(to)
		}
	}
}

// One transition decided and evolved: the leaf rule, without what a store adds.
func BenchmarkTransition(b *testing.B) {
	waiting, running := messageIn(events.Queued), messageIn(events.Running)
	for _, bb := range []struct {
		name    string
		message fsm.Message
		command fsm.MessageCommand
	}{
		{"claim", waiting, fsm.ClaimMessage{Worker: workerA}},
		{"complete", running, fsm.CompleteMessage{Token: 2}},
		{"fail", running, fsm.FailMessage{Token: 2, Error: "no"}},
		{"refused", running, fsm.CompleteMessage{Token: 1}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			version := 0
			for b.Loop() {
				m := bb.message
				list, err := m.Decide(bb.command, now)
				for _, event := range list {
					m = m.Evolve(event, now)
				}
				if (err != nil) != (len(list) == 0) {
					b.Fatal(err)
				}
				version += m.Version
			}
		})
	}
}

// A composed command over a hundred messages, as a batch has them.
func BenchmarkComposed(b *testing.B) {
	waiting, _ := mailIn(events.Queued, 100)
	_, running := mailIn(events.Running, 100)
	settle := fsm.Settle{Sender: workerA}
	for id := range running {
		settle.Items = append(settle.Items, fsm.Settlement{ID: id, Command: fsm.CompleteMessage{Token: 2}})
	}
	held := fsm.Held{Now: now, Messages: running, Claimable: map[string][]fsm.Message{"mail": waiting}}
	b.Run("claim 100", func(b *testing.B) {
		b.ReportAllocs()
		c := fsm.Claim{Worker: workerA, Asks: []fsm.Ask{{Topic: "mail", N: 100}}}
		for b.Loop() {
			if o, err := c.Decide(held); err != nil || len(o.Changes) != 100 {
				b.Fatal(err)
			}
		}
	})
	b.Run("settle 100", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if o, _, err := settle.Decide(held); err != nil || len(o.Changes) != 100 {
				b.Fatal(err)
			}
		}
	})
}
