package postgres

import (
	"cmp"
	"errors"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/google/uuid"
)

// beds is a store with what tests do to it over and over.
type beds struct {
	t testing.TB
	s *Store
}

func (b *beds) id() events.ID { return uuid.Must(uuid.NewV7()) }

func (b *beds) origin() calls.Origin { return calls.Origin{ID: b.id(), Actor: "tests"} }

// commit keeps a call that must not be refused. Where a server that was stopped has left its answer out, it asks again under the same id.
func (b *beds) commit(call store.Call) store.Receipt {
	b.t.Helper()
	receipts, err := b.s.Decide(b.t.Context(), call)
	for range 10 {
		if !errors.Is(err, store.ErrUnknown) {
			break
		}
		receipts, err = b.s.Decide(b.t.Context(), call)
	}
	if err == nil {
		err = receipts[0].Err
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return receipts[0]
}

func (b *beds) configure(topic string, limit int) {
	b.t.Helper()
	b.commit(calls.OperateTopic(b.origin(), fsm.OperateTopic{Topic: topic, Command: fsm.ConfigureTopic{Limit: limit}}))
}

// enqueue makes messages of a topic that the caller knows, due at once.
func (b *beds) enqueue(topic, lock string, n int) store.Receipt {
	b.t.Helper()
	return b.commit(b.enqueueing(topic, lock, n))
}

func (b *beds) enqueueing(topic, lock string, n int) store.Call {
	e := fsm.Enqueue{Topics: map[string]fsm.TopicStart{}}
	payloads := make([]store.Payload, n)
	for i := range n {
		id := b.id()
		payloads[i] = store.Payload{Salt: [16]byte(id), Bytes: []byte("payload of " + id.String())}
		e.Drafts = append(e.Drafts, fsm.Draft{ID: id, EnqueueMessage: fsm.EnqueueMessage{Topic: topic, Lock: lock,
			Payload: events.Facts{Size: len(payloads[i].Bytes), Commitment: events.Commitment(payloads[i].Salt, payloads[i].Bytes)}}})
	}
	call, _ := calls.Enqueue(b.origin(), e, payloads)
	return call
}

// claim is the rows of the claims that a worker is granted.
func (b *beds) claim(worker events.ID, topic string, n int) (rows []store.Row) {
	b.t.Helper()
	for _, row := range b.commit(calls.Claim(b.origin(), fsm.Claim{Worker: worker, Asks: []fsm.Ask{{Topic: topic, N: n}}})).Rows {
		if row.Worker == worker {
			rows = append(rows, row)
		}
	}
	return rows
}

// settle completes claims, by what the claimer knows of them.
func (b *beds) settle(worker events.ID, rows []store.Row) store.Receipt {
	b.t.Helper()
	c := fsm.Settle{Sender: worker, Recordable: len(rows)}
	for _, row := range rows {
		m, err := calls.Message(row)
		if err != nil {
			b.t.Fatal(err)
		}
		c.Items = append(c.Items, fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: m.Token}, Permit: m.Permit()})
	}
	call, refusals := calls.Settle(b.origin(), c, rows)
	receipt := b.commit(call)
	for _, refusal := range *refusals {
		if refusal != nil {
			b.t.Fatal(cmp.Or[error](refusal))
		}
	}
	return receipt
}
