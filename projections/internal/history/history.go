// Package history makes a busy store for the tests of folds: every command of every lifecycle, on a few messages, workers, topics and
// locks that get into each other's way.
package history

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
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

// Locks are the locks that there are.
var Locks = []string{"gate", "press"}

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
	left  []events.ID // workers that others have taken the place of
	known []events.ID // messages ever made
	term  int         // the last one that somebody led under
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
		h.enqueue, h.enqueue, h.enqueue, h.claim, h.claim, h.claim, h.claim, h.settle, h.settle, h.settle, h.late, h.confirm,
		h.operate, h.operate, h.limit, h.count, h.count, h.count, h.pause,
		h.acquire, h.acquire, h.acquire, h.unlock, h.force, h.expire, h.permits, h.repair,
		h.work, h.work, h.beat, h.beat, h.beat, h.reclaim, h.sweep, h.refuse, h.purge, h.lead, h.stepClock,
	}
	return steps[h.draw(len(steps))]()
}

// Do commits a call. That it is refused is no error.
func (h *History) Do(call store.Call) (store.Receipt, error) {
	receipts, err := h.Store.Decide(context.Background(), call)
	if err != nil {
		return store.Receipt{}, err
	}
	var refusal *fsm.Refusal
	if err := receipts[0].Err; err != nil && !errors.As(err, &refusal) {
		return store.Receipt{}, fmt.Errorf("%s: %w", call.Command.Name, err)
	}
	return receipts[0], nil
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

// Claim lets a worker claim up to n messages of a topic, and gives the rows that it granted.
func (h *History) Claim(worker events.ID, topic string, n int) ([]store.Row, error) {
	receipt, err := h.Do(calls.Claim(h.origin(), fsm.Claim{Worker: worker, Asks: []fsm.Ask{{Topic: topic, N: n}}}))
	granted := slices.DeleteFunc(receipt.Rows, func(row store.Row) bool { return row.State != events.Running })
	return granted, err
}

// Settle brings the result of a claim.
func (h *History) Settle(sender events.ID, s fsm.Settlement) error {
	call, _ := calls.Settle(h.origin(), fsm.Settle{Sender: sender, Items: []fsm.Settlement{s}, Recordable: 1}, nil)
	_, err := h.Do(call)
	return err
}

// Operate carries out an operator's command on a message.
func (h *History) Operate(c fsm.Operate) error {
	var rows []store.Row
	for _, id := range c.IDs {
		row, known, err := h.row(events.MessageEntity(id))
		if err != nil {
			return err
		}
		if known {
			rows = append(rows, row)
		}
	}
	call, _, err := calls.Operate(h.origin(), c, rows)
	if err != nil {
		return err
	}
	_, err = h.Do(call)
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

// row is the row of an entity, where it has one.
func (h *History) row(entity events.Entity) (row store.Row, known bool, err error) {
	for row, err := range h.Store.Rows(context.Background(), store.RowFilter{Entities: []events.Entity{entity}}) {
		return row, err == nil, err
	}
	return store.Row{}, false, nil
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
