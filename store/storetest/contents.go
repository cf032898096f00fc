package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

func contents() []sentence {
	return []sentence{
		{"Contents is the payload of a message, whether it is open or has ended", payloadOf},
		{"a result is kept beside the payload when its message completes", resultOf},
		{"contents of no bytes are not none", emptyContents},
		{"the largest result is kept, one byte more is too large", largestResult},
		{"contents that nobody would find again are refused", lostContents},
		{"what is erased is gone, and the log stays as it was", erased},
		{"an erasure that no event tells of is refused", erasedSilently},
		{"what Contents gives is the caller's", ownContents},
		{"Contents ends with its context, and with its store", contentsEnd},
	}
}

// contentsOf is the contents of a message.
func (b *bed) contentsOf(id events.ID) store.Contents {
	b.t.Helper()
	c, err := b.s.Contents(b.ctx, id)
	b.ok(err)
	return c
}

// exactContents is contents as text.
func exactContents(c store.Contents) string {
	part := func(p *store.Payload) string {
		if p == nil {
			return "none"
		}
		return fmt.Sprintf("%x:%x", p.Salt, p.Bytes)
	}
	return "payload " + part(c.Payload) + ", result " + part(c.Result)
}

// holds ends the test unless a message has its payload of the suite and that result.
func (b *bed) holds(what string, id events.ID, result *store.Payload) {
	b.t.Helper()
	p := payload(id)
	want(b, what, exactContents(b.contentsOf(id)), exactContents(store.Contents{Payload: &p, Result: result}))
}

// empty ends the test unless a message has no contents.
func (b *bed) empty(what string, id events.ID) {
	b.t.Helper()
	want(b, what, exactContents(b.contentsOf(id)), exactContents(store.Contents{}))
}

// result is what a message of the suite gives back: bytes that name it.
func result(id events.ID) *store.Payload {
	return &store.Payload{Salt: [16]byte(slices.Concat(id[8:], id[:8])), Bytes: []byte("result of " + id.String())}
}

// resulting is the call by which a worker completes its claims, each with its result.
func (b *bed) resulting(list ...fsm.Message) store.Call {
	c := fsm.Settle{Recordable: len(list)}
	results := make([]*store.Payload, len(list))
	for i, m := range list {
		results[i], c.Sender = result(m.ID), m.Worker
		facts := events.Facts{Size: len(results[i].Bytes), Commitment: events.Commitment(results[i].Salt, results[i].Bytes)}
		c.Items = append(c.Items, fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: m.Token, Result: facts}, Permit: m.Permit()})
	}
	call, _ := calls.Settle(b.origin(), c, nil, results...)
	return call
}

func payloadOf(b *bed) {
	b.enqueue("mail", 4)
	worker := b.id()
	claimed := b.claim(worker, 3, "mail")
	dead := b.dead(worker)
	for _, row := range b.kept(store.RowFilter{Kind: events.KindMessage}) {
		b.holds(row.State.String(), row.Entity.ID, nil)
	}
	b.commit(b.completing(claimed[1:]...))
	for _, m := range claimed[1:] {
		b.holds("when it has ended", m.ID, nil)
	}
	b.holds("dead letter", dead, nil)
	b.empty("unknown message", b.id())
	b.empty("no message", events.ID{})
	b.empty("an id of something else", worker)
}

func resultOf(b *bed) {
	b.enqueue("mail", 3)
	claimed := b.claim(b.id(), 3, "mail")
	b.commit(b.resulting(claimed[:2]...))
	for _, m := range claimed[:2] {
		b.holds("completed with a result", m.ID, result(m.ID))
	}
	b.holds("while it runs", claimed[2].ID, nil)
	b.commit(b.completing(claimed[2]))
	b.holds("completed without a result", claimed[2].ID, nil)
	refused := b.commit(b.resulting(claimed[2]))
	want(b, "events of a second settlement", fmt.Sprint(types(refused.Events)), "[message.refused]")
	b.holds("when its result came too late", claimed[2].ID, nil)
}

// contented is a change of a new message with contents.
func (b *bed) contented(payload, result *store.Payload) store.Change {
	c := change(events.MessageEntity(b.id()), 0, &events.MessageEnqueued{})
	c.Payload, c.Result = payload, result
	return c
}

func emptyContents(b *bed) {
	none, all := &store.Payload{}, &store.Payload{Salt: [16]byte{15: 1}, Bytes: []byte{0, 255, '\n', 0}}
	for _, wanted := range []store.Contents{
		{}, {Payload: none}, {Result: none}, {Payload: none, Result: none}, {Payload: all, Result: none}, {Payload: none, Result: all}, {Result: all},
	} {
		c := b.contented(wanted.Payload, wanted.Result)
		b.commit(b.giving(c))
		want(b, "contents", exactContents(b.contentsOf(c.Row.Entity.ID)), exactContents(wanted))
		row := b.row(c.Row.Entity)
		want(b, "payload of the row", exactContents(store.Contents{Payload: row.Payload}), exactContents(store.Contents{Payload: wanted.Payload}))
	}
}

func largestResult(b *bed) {
	of := func(size int) store.Change {
		return b.contented(nil, &store.Payload{Bytes: bytes.Repeat([]byte{0xff}, size)})
	}
	b.tooLarge(b.giving(of(store.MaxResult+1)), store.MaxResult)
	c := of(store.MaxResult)
	b.commit(b.giving(c))
	want(b, "bytes", len(b.contentsOf(c.Row.Entity.ID).Result.Bytes), store.MaxResult)
}

func lostContents(b *bed) {
	some := &store.Payload{Bytes: []byte("x")}
	for _, contents := range []store.Contents{{Payload: some}, {Result: some}} {
		topic := configured("a", 0)
		topic.Payload, topic.Result = contents.Payload, contents.Result
		b.refuses("contents of a topic", store.Changes{Rows: []store.Change{topic}})
	}
}

// erasing is the call that erases messages that have ended.
func (b *bed) erasing(ids ...events.ID) store.Call {
	call, _ := calls.Erase(b.origin(), fsm.Erase{IDs: ids, By: "storetest", Detail: "asked to"})
	return call
}

func erased(b *bed) {
	b.enqueue("mail", 4)
	claimed := b.claim(b.id(), 3, "mail")
	b.commit(b.resulting(claimed...))
	log, kept := b.log(store.Filter{}), b.kept(store.RowFilter{Payloads: true})
	receipt := b.commit(b.erasing(claimed[0].ID, claimed[2].ID))
	want(b, "events", fmt.Sprint(types(receipt.Events)), "[message.erased message.erased]")
	b.same("log", b.log(store.Filter{}), slices.Concat(log, receipt.Events))
	b.sameRows("rows", b.kept(store.RowFilter{Payloads: true}), kept)
	b.empty("erased", claimed[0].ID)
	b.empty("erased with it", claimed[2].ID)
	b.holds("not erased", claimed[1].ID, result(claimed[1].ID))
	b.holds("open", kept[0].Entity.ID, nil)
	want(b, "events of a second erasure", len(b.commit(b.erasing(claimed[0].ID)).Events), 0)
	view := b.seen(store.Need{Held: []events.Entity{events.MessageEntity(claimed[0].ID)}})
	b.same("its history", view.History[events.MessageEntity(claimed[0].ID)], b.log(store.Filter{Entity: events.MessageEntity(claimed[0].ID)}))

	// That only what has ended is erased is a rule. An engine erases what it is told to.
	open := kept[0].Entity
	note := change(open, kept[0].Version, &events.MessageErased{})
	note.Row = kept[0]
	changes := store.Changes{Rows: []store.Change{note}, Erase: []store.Erasure{{Message: open.ID}}}
	b.commit(b.made(store.Need{}, func(store.View) (store.Changes, error) { return changes, nil }))
	b.empty("an open one that was erased", open.ID)
	if p := b.row(open).Payload; p != nil {
		b.t.Fatalf("the row of an erased message has a payload of %d bytes", len(p.Bytes))
	}
	if p := b.claimable("mail", 1)[0].Payload; p != nil {
		b.t.Fatalf("a claimable message that was erased has a payload of %d bytes", len(p.Bytes))
	}
}

func erasedSilently(b *bed) {
	b.enqueue("mail", 1)
	m := b.claim(b.id(), 1, "mail")[0]
	b.commit(b.resulting(m))
	note := change(events.MessageEntity(m.ID), 3, &events.MessageErased{})
	note.Gone = true
	refused := change(events.MessageEntity(m.ID), 3, &events.MessageRefused{})
	refused.Gone = true
	this := store.Erasure{Message: m.ID}
	b.refuses("an erasure without an event", store.Changes{Erase: []store.Erasure{this}})
	b.refuses("an erasure with an event of something else", store.Changes{Rows: []store.Change{configured("a", 0)}, Erase: []store.Erasure{this}})
	b.refuses("an erasure with another event", store.Changes{Rows: []store.Change{refused}, Erase: []store.Erasure{this}})
	b.refuses("an erasure of another message too", store.Changes{Rows: []store.Change{note}, Erase: []store.Erasure{this, {Message: b.id()}}})
	b.refuses("an erasure twice", store.Changes{Rows: []store.Change{note}, Erase: []store.Erasure{this, this}})
	b.holds("what was not erased", m.ID, result(m.ID))
}

func ownContents(b *bed) {
	b.enqueue("mail", 1)
	m := b.claim(b.id(), 1, "mail")[0]
	call := b.resulting(m)
	fn := call.Fn
	var given []store.Change
	call.Fn = func(view store.View) (store.Changes, error) {
		changes, err := fn(view)
		given = changes.Rows
		return changes, err
	}
	b.commit(call)
	for _, c := range given {
		if c.Result != nil {
			clear(c.Result.Bytes)
		}
	}
	b.holds("after Fn's bytes were overwritten", m.ID, result(m.ID))
	c := b.contentsOf(m.ID)
	clear(c.Payload.Bytes)
	clear(c.Result.Bytes)
	c.Payload.Salt, c.Result.Salt = [16]byte{}, [16]byte{}
	b.holds("after what was given was overwritten", m.ID, result(m.ID))
}

func contentsEnd(b *bed) {
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	_, err := b.s.Contents(ctx, b.id())
	b.is(err, context.Canceled)
	b.ok(b.s.Close())
	_, err = b.s.Contents(b.ctx, b.id())
	b.is(err, store.ErrClosed)
}
