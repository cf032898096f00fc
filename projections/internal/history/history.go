// Package history makes a busy store for the tests of folds: every command of every lifecycle, on a few messages, workers and topics
// that get into each other's way.
package history

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// Topics are the topics that there are.
var Topics = []string{"brain", "mail", "scan"}

// workers is how many incarnations there are at a time.
const workers = 3

// epoch is the virtual time at which a history begins.
var epoch = time.Date(2026, 11, 18, 3, 0, 0, 0, time.UTC)

// History is a memory store with what has been done to it. The commands come one after the other; the store may be read meanwhile.
type History struct {
	Store *memory.Store
	draw  func(n int) int
	clock atomic.Int64 // microseconds since epoch
	ids   uint64
	fleet [workers]events.ID
	known []events.ID // messages ever made
}

// New is an empty store. draw gives the choices, each from 0 to n-1.
func New(draw func(n int) int) *History {
	h := &History{draw: draw}
	h.Store = memory.New(memory.Options{Clock: h.Now, ID: events.ID{15: 1}})
	return h
}

// Now is the virtual time.
func (h *History) Now() time.Time { return epoch.Add(time.Duration(h.clock.Load()) * time.Microsecond) }

// ID mints an id: a UUIDv7 of the virtual time that no other one equals.
func (h *History) ID() events.ID {
	var id events.ID
	h.ids++
	binary.BigEndian.PutUint64(id[:], uint64(h.Now().UnixMilli())<<16)
	binary.BigEndian.PutUint64(id[8:], h.ids)
	id[6], id[8] = 0x70, 0x80
	return id
}

// Busy carries out n commands.
func (h *History) Busy(n int) error {
	for range n {
		if err := h.Step(); err != nil {
			return err
		}
	}
	return nil
}

// Step carries out one command. That it is refused is no error.
func (h *History) Step() error {
	h.clock.Add(int64(h.draw(3_000_000)))
	steps := []func() error{
		h.enqueue, h.enqueue, h.claim, h.claim, h.claim, h.settle, h.settle, h.settle, h.late, h.operate, h.limit, h.count, h.pause,
		h.work, h.work, h.reclaim,
	}
	return steps[h.draw(len(steps))]()
}

// Do commits a call.
func (h *History) Do(call store.Call) ([]store.Row, error) {
	receipts, err := h.Store.Decide(context.Background(), call)
	if err != nil {
		return nil, err
	}
	var refusal *fsm.Refusal
	if err := receipts[0].Err; err != nil && !errors.As(err, &refusal) {
		return nil, fmt.Errorf("%s: %w", call.Command.Name, err)
	}
	return receipts[0].Rows, nil
}

func (h *History) origin() calls.Origin { return calls.Origin{ID: h.ID(), Actor: "history"} }

func (h *History) topic() string { return Topics[h.draw(len(Topics))] }

// Enqueue makes n messages of a topic in one commit and gives their ids.
func (h *History) Enqueue(topic string, n int, m fsm.EnqueueMessage) ([]events.ID, error) {
	c := fsm.Enqueue{Topics: map[string]fsm.TopicStart{topic: {}}}
	var payloads []store.Payload
	var ids []events.ID
	for range n {
		id := h.ID()
		payload := store.Payload{Salt: [16]byte{1}, Bytes: []byte(id.String())}
		m.Topic = topic
		m.Payload = events.Facts{Size: len(payload.Bytes), Commitment: events.Commitment(payload.Salt, payload.Bytes)}
		c.Drafts = append(c.Drafts, fsm.Draft{ID: id, EnqueueMessage: m})
		payloads, ids = append(payloads, payload), append(ids, id)
	}
	call, _ := calls.Enqueue(h.origin(), c, payloads)
	_, err := h.Do(call)
	h.known = append(h.known, ids...)
	return ids, err
}

// Claim lets a worker claim up to n messages of a topic.
func (h *History) Claim(worker events.ID, topic string, n int) ([]store.Row, error) {
	return h.Do(calls.Claim(h.origin(), fsm.Claim{Worker: worker, Asks: []fsm.Ask{{Topic: topic, N: n}}}))
}

// Settle ends a claim.
func (h *History) Settle(sender, message events.ID, c fsm.MessageCommand) error {
	settle := fsm.Settle{Sender: sender, Items: []fsm.Settlement{{ID: message, Command: c}}, Recordable: 1}
	call, _ := calls.Settle(h.origin(), settle, nil)
	_, err := h.Do(call)
	return err
}

// Topic carries out a command on a topic.
func (h *History) Topic(name string, c fsm.TopicCommand) error {
	_, err := h.Do(calls.OperateTopic(h.origin(), fsm.OperateTopic{Topic: name, Command: c}))
	return err
}

// Worker carries out a command on a worker.
func (h *History) Worker(id events.ID, c fsm.WorkerCommand) error {
	_, err := h.Do(calls.OperateWorker(h.origin(), fsm.OperateWorker{Worker: id, Command: c}))
	return err
}

// messages is the rows of the messages in a state.
func (h *History) messages(state events.State) ([]store.Row, error) {
	var list []store.Row
	for row, err := range h.Store.Rows(context.Background(), store.RowFilter{Kind: events.KindMessage}) {
		if err != nil {
			return nil, err
		}
		if row.State == state {
			list = append(list, row)
		}
	}
	return list, nil
}
