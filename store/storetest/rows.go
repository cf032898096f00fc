package storetest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

func rows() []sentence {
	return []sentence{
		{"a row comes back as it was kept", rowComesBack},
		{"Rows yields every kind, by kind, then id or name", rowsInOrder},
		{"Rows filters by kind, entity, topic and worker, all at once", rowsFiltered},
		{"Rows gives payloads where they are asked for", rowsPayloads},
		{"a receipt's rows are those that are kept after it", receiptRows},
		{"what is not kept any more is in no row", goneRows},
	}
}

// full is changes with every column set, as no machine would make them.
func (b *bed) full() []store.Change {
	at := time.UnixMicro(1_780_000_000_123_456).UTC()
	queued, running := change(events.MessageEntity(b.id()), 0, &events.MessageEnqueued{}), change(events.MessageEntity(b.id()), 0, &events.MessageEnqueued{})
	queued.Row.State, queued.Row.Topic, queued.Row.Priority, queued.Row.DueAt = events.Queued, "queued", events.Low, at
	queued.Row.Fields = []byte(`{"opaque":"né\\n\"<&>","n":[1,2]}`)
	queued.Row.Lock, queued.Row.Waiting = "a%_\\'\"", store.Trying
	queued.Payload = &store.Payload{Salt: [16]byte{1, 15: 255}, Bytes: []byte{0, 1, 255, '\n', 0}}
	running.Row.State, running.Row.Topic, running.Row.Priority = events.Running, "it's; --", events.High
	running.Row.Worker, running.Row.ClaimedAt, running.Row.Counted = b.id(), at.Add(time.Microsecond), true
	running.Row.Lock, running.Row.LockToken = "é; --", math.MaxInt64
	running.Payload = &store.Payload{Bytes: []byte{}}
	blocked := change(events.MessageEntity(b.id()), 0, &events.MessageEnqueued{})
	blocked.Row.State, blocked.Row.Topic, blocked.Row.Lock, blocked.Row.Waiting = events.Blocked, "queued", "l", store.Blocked
	worker := change(events.WorkerEntity(b.id()), 0, &events.WorkerStarted{})
	worker.Row.State = events.Live
	lock := change(events.LockEntity("a%_\\'\""), 0, &events.LockAcquired{})
	lock.Row.State = events.Held
	leader := change(events.LeaderEntity("a%_\\'\""), 0, &events.LeaderElected{})
	clock := change(events.ClockEntity(), 0, &events.ClockStepped{})
	return []store.Change{queued, running, blocked, configured("a%_\\'\"", 0), worker, lock, leader, clock}
}

func rowComesBack(b *bed) {
	list := b.full()
	receipt := b.commit(b.giving(list...))
	for _, c := range list {
		kept := c.Row
		kept.Payload = c.Payload
		b.sameRows("kept", []store.Row{b.row(c.Row.Entity)}, []store.Row{kept})
	}
	var wanted []events.Entity
	for _, c := range list {
		wanted = append(wanted, c.Row.Entity)
	}
	want(b, "rows of the receipt", fmt.Sprint(entities(receipt.Rows)), fmt.Sprint(wanted))
}

func rowsInOrder(b *bed) {
	for _, topic := range []string{"b", "a", "c"} {
		b.enqueue(topic, 3)
		b.commit(b.giving(
			change(events.WorkerEntity(b.id()), 0, &events.WorkerStarted{}), change(events.LockEntity(topic), 0, &events.LockAcquired{}),
			change(events.LeaderEntity(topic), 0, &events.LeaderElected{}),
		))
	}
	b.commit(b.giving(change(events.ClockEntity(), 0, &events.ClockStepped{})))
	list := entities(b.kept(store.RowFilter{}))
	want(b, "rows", len(list), 9+3*4+1)
	if !slices.IsSortedFunc(list, events.Entity.Compare) {
		b.t.Fatalf("rows are not in order: %v", list)
	}
}

func rowsFiltered(b *bed) {
	b.enqueue("mail", 4)
	b.enqueue("print", 2)
	worker := b.id()
	b.commit(b.giving(
		change(events.WorkerEntity(worker), 0, &events.WorkerStarted{}), change(events.LockEntity("mail"), 0, &events.LockAcquired{}),
	))
	b.claim(worker, 3, "print", "mail")
	b.claim(b.id(), 1, "mail")
	all := b.kept(store.RowFilter{})
	some := []events.Entity{all[5].Entity, events.TopicEntity("print"), all[0].Entity, events.TopicEntity("unknown"), all[0].Entity}
	for _, f := range []store.RowFilter{
		{Kind: events.KindMessage},
		{Kind: events.KindTopic},
		{Kind: events.KindWorker},
		{Kind: events.KindLock},
		{Topic: "mail"},
		{Topic: "unknown"},
		{Entities: some},
		{Entities: some[:1]},
		{Kind: events.KindTopic, Topic: "mail"},
		{Kind: events.KindMessage, Topic: "print"},
		{Kind: events.KindMessage, Entities: some},
		{Topic: all[0].Topic, Entities: some},
		{Worker: worker},
		{Worker: b.id()},
		{Worker: worker, Topic: "mail"},
		{Worker: worker, Kind: events.KindWorker},
		{Worker: worker, Entities: some},
	} {
		var wanted []store.Row
		for _, row := range all {
			if (f.Kind == events.KindNone || row.Entity.Kind == f.Kind) && (f.Topic == "" || row.Topic == f.Topic) &&
				(f.Worker == events.ID{} || row.Worker == f.Worker) && (len(f.Entities) == 0 || slices.Contains(f.Entities, row.Entity)) {
				wanted = append(wanted, row)
			}
		}
		b.sameRows(fmt.Sprintf("%+v", f), b.kept(f), wanted)
	}
}

func rowsPayloads(b *bed) {
	b.enqueue("mail", 2)
	for _, row := range b.kept(store.RowFilter{}) {
		if row.Payload != nil {
			b.t.Fatalf("%s came with its payload, nobody asked for it", row.Entity)
		}
	}
	for _, row := range b.kept(store.RowFilter{Payloads: true}) {
		b.carries(row)
	}
}

// carries ends the test unless a message's row has its payload, and any other none.
func (b *bed) carries(row store.Row) {
	b.t.Helper()
	wanted := row
	if wanted.Payload = nil; row.Entity.Kind == events.KindMessage {
		p := payload(row.Entity.ID)
		wanted.Payload = &p
	}
	want(b, "row with payload", exactRow(row), exactRow(wanted))
}

func receiptRows(b *bed) {
	worker := b.id()
	kept := func(receipt store.Receipt) {
		b.t.Helper()
		for _, row := range receipt.Rows {
			now := b.row(row.Entity)
			row.Payload, now.Payload = nil, nil
			b.sameRows("row of the receipt", []store.Row{row}, []store.Row{now})
		}
	}
	kept(b.enqueue("mail", 3))
	claim := b.commit(b.claiming(worker, 2, "mail"))
	want(b, "claimed rows", len(claim.Rows), 2)
	for _, row := range claim.Rows {
		b.carries(row)
	}
	kept(claim)
	kept(b.commit(b.configuring("mail", 5)))
	// The topic's own row changes in the commit that also adds to its count.
	counting := b.commit(calls.CountClaims(b.origin(), fsm.CountClaims{Topic: "mail", Page: 10}))
	want(b, "counted", count(counting.Events, events.TypeMessageCounted), 2)
	kept(counting)
	want(b, "running", b.row(events.TopicEntity("mail")).Running, 2)
	want(b, "rows of messages that ended", len(b.commit(b.completing(b.messages(claim.Rows)...)).Rows), 0)
}

func goneRows(b *bed) {
	b.enqueue("mail", 3)
	claimed := b.claim(b.id(), 2, "mail")
	b.commit(b.completing(claimed...))
	messages := b.kept(store.RowFilter{Kind: events.KindMessage})
	want(b, "rows", len(messages), 1)
	for _, m := range claimed {
		entity := events.MessageEntity(m.ID)
		want(b, "rows of "+entity.String(), len(b.kept(store.RowFilter{Entities: []events.Entity{entity}})), 0)
		want(b, "its history", fmt.Sprint(types(b.log(store.Filter{Entity: entity}))), "[message.enqueued message.claimed message.completed]")
	}
}
