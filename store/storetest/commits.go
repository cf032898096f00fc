package storetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

func commits() []sentence {
	return []sentence{
		{"Decide without calls does nothing", func(b *bed) {
			want(b, "receipts", len(b.decide()), 0)
			want(b, "events", len(b.log(store.Filter{})), 0)
		}},
		{"a receipt is derived from the commit's events", receiptOfEvents},
		{"a refused call stops no other and leaves nothing", refusedStopsNone},
		{"a refused call keeps the error of its Fn", refusedKeepsError},
		{"a refused call leaves its id unused", refusedLeavesID},
		{"a call that changes nothing leaves nothing", emptyLeavesNothing},
		{"a later call sees what earlier ones changed", laterSeesEarlier},
		{"a call is kept whole or not at all", wholeOrNothing},
		{"a change of a version that has moved on is refused", movedOn},
		{"a change of what is not there is refused", ofNothing},
		{"a change of what has ended begins from its last version", ofTheEnded},
		{"an entity that stands twice in one call refuses it", twiceInOne},
		{"a count of a topic that has no row is refused", countOfNothing},
		{"names that are empty or no UTF-8 are refused", badNames},
		{"changes without an event are refused", eventless},
		{"a Fn that panics refuses its call and harms no other", panicRefuses},
		{"the engine keeps no slice of the calls", keepsNoSlice},
		{"the caller owns what is returned", callerOwns},
		{"concurrent settlements of one claim: one wins, the others are recorded", oneSettlementWins},
		{"concurrent commits are all kept", allKept},
	}
}

// made is a call whose Fn is made by hand.
func (b *bed) made(need store.Need, fn func(store.View) (store.Changes, error)) store.Call {
	return store.Call{ID: b.id(), Command: events.Command{Name: "test"}, Need: need, Fn: fn}
}

// giving is a call that changes what it is told to, whatever it sees.
func (b *bed) giving(list ...store.Change) store.Call {
	return b.made(store.Need{}, func(store.View) (store.Changes, error) { return store.Changes{Rows: list}, nil })
}

// change is an entity's change by some events. No engine asks whether they make sense.
func change(e events.Entity, from int, list ...events.Event) store.Change {
	c := store.Change{From: from, Row: store.Row{Entity: e, Version: from, State: events.Active, Fields: []byte("{}")}}
	if e.Kind == events.KindMessage {
		c.Row.Topic = "mail"
	}
	for _, event := range list {
		t := events.Transition{Event: event, From: events.Active, To: events.Active}
		if event.Type().Moves() {
			c.Row.Version++
			t.Version = c.Row.Version
		}
		c.Transitions = append(c.Transitions, t)
	}
	return c
}

func configured(topic string, from int) store.Change {
	return change(events.TopicEntity(topic), from, &events.TopicConfigured{Limit: from + 1})
}

func receiptOfEvents(b *bed) {
	call := b.enqueueing(b.drafts("mail", 3)...)
	call.Command = events.Command{Name: "enqueue", Params: []byte(`{"n":3}`), Actor: "né \"x\"\n", Trace: "00-0af7-b7ad-01"}
	before, err := b.s.Now(b.ctx)
	b.ok(err)
	first := b.commit(call)
	after, err := b.s.Now(b.ctx)
	b.ok(err)

	want(b, "id", first.ID, call.ID)
	want(b, "events", len(first.Events), 4)
	b.same("log", b.log(store.Filter{}), first.Events)
	b.same("second receipt", b.commit(call).Events, first.Events)
	settled, committed := b.outcome(call.ID)
	want(b, "committed", committed, true)
	want(b, "settled id", settled.ID, call.ID)
	b.same("settled receipt", settled.Events, first.Events)

	at := first.Events[0].Commit.At
	if at.Before(before) || at.After(after) {
		b.t.Fatalf("commit at %s, but it was between %s and %s", at, before, after)
	}
	commit := first.Events[3].Commit
	want(b, "commit of the last event", commit.ID, call.ID)
	want(b, "events of the commit", commit.Count, 4)
	want(b, "params", string(commit.Command.Params), `{"n":3}`)
	want(b, "actor", commit.Command.Actor, call.Command.Actor)
	want(b, "trace", commit.Command.Trace, call.Command.Trace)
}

func refusedStopsNone(b *bed) {
	refusing := b.made(store.Need{}, func(store.View) (store.Changes, error) {
		return store.Changes{Rows: []store.Change{configured("refused", 0)}}, errors.New("no")
	})
	receipts := b.decide(b.giving(configured("a", 0)), refusing, b.giving(configured("b", 0)))
	b.ok(receipts[0].Err)
	b.ok(receipts[2].Err)
	if receipts[1].Err == nil || len(receipts[1].Events) > 0 || len(receipts[1].Rows) > 0 {
		b.t.Fatalf("receipt of the refused call: %+v", receipts[1])
	}
	want(b, "id of the refused call", receipts[1].ID, refusing.ID)
	b.same("log", b.log(store.Filter{}), slices.Concat(receipts[0].Events, receipts[2].Events))
	want(b, "rows", fmt.Sprint(entities(b.kept(store.RowFilter{}))), fmt.Sprint([]events.Entity{
		events.TopicEntity("a"), events.TopicEntity("b"),
	}))
}

func refusedKeepsError(b *bed) {
	call := b.made(store.Need{}, func(store.View) (store.Changes, error) {
		return store.Changes{}, fmt.Errorf("wrapped: %w", &fsm.Refusal{Command: "test", Reason: events.ReasonMismatch})
	})
	var refusal *fsm.Refusal
	if err := b.decide(call)[0].Err; !errors.As(err, &refusal) || refusal.Reason != events.ReasonMismatch {
		b.t.Fatalf("error %v, want the refusal of Fn", err)
	}
}

func refusedLeavesID(b *bed) {
	call := b.made(store.Need{}, func(store.View) (store.Changes, error) { return store.Changes{}, errors.New("no") })
	b.decide(call)
	again := b.giving(configured("a", 0))
	again.ID = call.ID
	want(b, "events", len(b.commit(again).Events), 1)
}

func emptyLeavesNothing(b *bed) {
	head := b.head()
	empty := b.giving()
	receipt := b.commit(empty)
	want(b, "events", len(receipt.Events), 0)
	want(b, "id", receipt.ID, empty.ID)
	want(b, "head", b.head(), head)
	again := b.giving(configured("a", 0))
	again.ID = empty.ID
	want(b, "events under the same id", len(b.commit(again).Events), 1)
}

func laterSeesEarlier(b *bed) {
	worker := b.id()
	receipts := b.decide(b.configuring("mail", 3), b.enqueueing(b.drafts("mail", 5)...), b.claiming(worker, 2, "mail"),
		b.claiming(worker, 2, "mail"), b.claiming(worker, 2, "mail"))
	for i, granted := range []int{2, 1, 0} {
		b.ok(receipts[i+2].Err)
		want(b, fmt.Sprintf("granted by claim %d", i+1), len(receipts[i+2].Rows), granted)
	}
	want(b, "running", b.row(events.TopicEntity("mail")).Running, 3)

	claimed := b.messages(receipts[2].Rows)
	settled := b.decide(b.completing(claimed[0]), b.completing(claimed[0]), b.enqueueing(fsm.Draft{
		ID: claimed[0].ID, Given: true, EnqueueMessage: fsm.EnqueueMessage{Topic: "other"},
	}))
	want(b, "first settlement", fmt.Sprint(types(settled[0].Events)), "[message.completed]")
	want(b, "second settlement", fmt.Sprint(types(settled[1].Events)), "[message.refused]")
	if settled[2].Err == nil {
		b.t.Fatal("an enqueue of an id known in another topic was not refused in the same Decide")
	}
}

func wholeOrNothing(b *bed) {
	b.commit(b.giving(configured("a", 0)))
	head := b.head()
	receipts := b.decide(b.giving(configured("b", 0), configured("c", 0), configured("a", 7)))
	if receipts[0].Err == nil {
		b.t.Fatal("a change from a version that the entity does not have was kept")
	}
	want(b, "head", b.head(), head)
	want(b, "rows", len(b.kept(store.RowFilter{})), 1)
	b.commit(b.giving(configured("b", 0)))
}

func movedOn(b *bed) {
	worker := b.id()
	b.enqueue("mail", 1)
	claim := b.commit(b.claiming(worker, 1, "mail"))
	m := b.messages(claim.Rows)[0]
	released, _ := calls.Settle(b.origin(), fsm.Settle{Sender: worker, Items: []fsm.Settlement{
		{ID: m.ID, Command: fsm.ReleaseMessage{Token: m.Token, Reason: events.ReasonReleased}},
	}}, nil)
	b.commit(released)
	c := fsm.Settle{Sender: worker, Recordable: 1, Items: []fsm.Settlement{{ID: m.ID, Command: fsm.CompleteMessage{Token: m.Token}}}}
	late, _ := calls.Settle(b.origin(), c, claim.Rows)
	want(b, "settlement over a row from before", fmt.Sprint(types(b.commit(late).Events)), "[message.refused]")

	want(b, "granted", len(b.claim(worker, 1, "mail")), 1)
	b.commit(b.completing(b.messages([]store.Row{b.row(events.MessageEntity(m.ID))})...))
	gone, _ := calls.Settle(b.origin(), c, claim.Rows)
	want(b, "settlement over a row that is gone", fmt.Sprint(types(b.commit(gone).Events)), "[message.refused]")
}

// refuses ends the test unless the changes refuse their call, and leave nothing, while another in the same Decide is kept.
func (b *bed) refuses(what string, changes store.Changes) {
	b.t.Helper()
	kept := entities(b.kept(store.RowFilter{}))
	good := b.giving(configured("good", b.goods))
	bad := b.made(store.Need{}, func(store.View) (store.Changes, error) { return changes, nil })
	receipts := b.decide(bad, good)
	if receipts[0].Err == nil {
		b.t.Fatalf("%s was kept: %v", what, receipts[0].Events)
	}
	b.ok(receipts[1].Err)
	b.goods++
	if kept = append(kept, events.TopicEntity("good")); b.goods > 1 {
		kept = kept[:len(kept)-1]
	}
	slices.SortFunc(kept, events.Entity.Compare)
	want(b, "rows after "+what, fmt.Sprint(entities(b.kept(store.RowFilter{}))), fmt.Sprint(kept))
}

func ofNothing(b *bed) {
	message := change(events.MessageEntity(b.id()), 3, &events.MessageCompleted{})
	b.refuses("a change of an unknown message", store.Changes{Rows: []store.Change{message}})
	b.refuses("a change of an unknown topic", store.Changes{Rows: []store.Change{configured("none", 1)}})
	b.refuses("a change of an unknown worker", store.Changes{
		Rows: []store.Change{change(events.WorkerEntity(b.id()), 1, &events.WorkerStarted{})},
	})
}

func ofTheEnded(b *bed) {
	b.enqueue("mail", 1)
	m := b.claim(b.id(), 1, "mail")[0]
	b.commit(b.completing(m))
	entity := events.MessageEntity(m.ID)
	for _, from := range []int{0, 1, 2, 4} {
		b.refuses(fmt.Sprintf("a change from version %d of 3", from), store.Changes{
			Rows: []store.Change{change(entity, from, &events.MessageCompleted{})},
		})
	}
	again := change(entity, 3, &events.MessageCompleted{})
	again.Gone = true
	b.commit(b.giving(again))
}

func twiceInOne(b *bed) {
	b.refuses("one topic twice", store.Changes{Rows: []store.Change{configured("a", 0), configured("a", 0)}})
	b.refuses("one topic twice, from where the first leaves it", store.Changes{Rows: []store.Change{configured("a", 0), configured("a", 1)}})
}

func countOfNothing(b *bed) {
	b.refuses("a count of an unknown topic", store.Changes{
		Rows: []store.Change{configured("a", 0)}, Counts: []store.Count{{Topic: "none", Delta: 1}},
	})
}

func badNames(b *bed) {
	for _, name := range []string{"", "\xff", "a\xc3"} {
		of := change(events.MessageEntity(b.id()), 0, &events.MessageEnqueued{})
		of.Row.Topic = name
		b.refuses(fmt.Sprintf("topic %q", name), store.Changes{Rows: []store.Change{configured(name, 0)}})
		b.refuses(fmt.Sprintf("a message of topic %q", name), store.Changes{Rows: []store.Change{of}})
		b.refuses(fmt.Sprintf("lock %q", name), store.Changes{Rows: []store.Change{change(events.LockEntity(name), 0, &events.LockAcquired{})}})
		b.refuses(fmt.Sprintf("a permit of lock %q", name), store.Changes{
			Rows: []store.Change{configured("a", 0)}, Permits: []store.PermitChange{{Permit: store.Permit{
				PermitKey: store.PermitKey{Lock: name, Token: 1}, Worker: b.id(),
			}}},
		})
		if of.Row.Topic, of.Row.Lock = "a", name; name != "" {
			b.refuses(fmt.Sprintf("a message that takes lock %q", name), store.Changes{Rows: []store.Change{of}})
		}
		for _, key := range []store.Key{{Topic: "a", Name: name}, {Topic: name, Name: "a"}} {
			b.refuses(fmt.Sprintf("key %q", key), store.Changes{
				Rows: []store.Change{configured("a", 0)}, Keys: []store.KeyChange{{Key: key, Row: store.KeyRow{Message: b.id()}}},
			})
		}
	}
}

func eventless(b *bed) {
	b.commit(b.giving(configured("a", 0)))
	still := configured("a", 1)
	still.Row.Version, still.Transitions = 1, nil
	b.refuses("a row without an event", store.Changes{Rows: []store.Change{still}})
	b.refuses("a new row without an event", store.Changes{Rows: []store.Change{change(events.TopicEntity("b"), 0)}})
	b.refuses("a count without an event", store.Changes{Counts: []store.Count{{Topic: "a", Delta: 1}}})
	b.refuses("a permit without an event", store.Changes{Permits: []store.PermitChange{{Permit: store.Permit{
		PermitKey: store.PermitKey{Lock: "l", Token: 1}, Worker: b.id(),
	}}}})
	b.refuses("a key without an event", store.Changes{
		Keys: []store.KeyChange{{Key: store.Key{Topic: "a", Name: "k"}, Row: store.KeyRow{Message: b.id()}}},
	})
}

func panicRefuses(b *bed) {
	bad := b.made(store.Need{}, func(store.View) (store.Changes, error) { panic("out of its mind") })
	receipts := b.decide(b.giving(configured("a", 0)), bad, b.giving(configured("b", 0)))
	b.ok(receipts[0].Err)
	b.ok(receipts[2].Err)
	if err := receipts[1].Err; err == nil || len(receipts[1].Events) > 0 {
		b.t.Fatalf("receipt of the call that panicked: %+v", receipts[1])
	}
	want(b, "events", len(b.log(store.Filter{})), 2)
	again := b.giving(configured("c", 0))
	again.ID = bad.ID
	b.commit(again)
}

func keepsNoSlice(b *bed) {
	d := b.draft("mail")
	call := b.enqueueing(d)
	call.Command.Params = []byte(`{"n":1}`)
	fn := call.Fn
	var given []store.Change
	call.Fn = func(view store.View) (store.Changes, error) {
		changes, err := fn(view)
		given = changes.Rows
		return changes, err
	}
	receipt := b.commit(call)
	row := exactRow(b.row(events.MessageEntity(d.ID)))
	clear(call.Command.Params)
	for _, c := range given {
		clear(c.Row.Fields)
		if c.Payload != nil {
			clear(c.Payload.Bytes)
		}
	}
	want(b, "row", exactRow(b.row(events.MessageEntity(d.ID))), row)
	settled, _ := b.outcome(call.ID)
	want(b, "params", string(settled.Events[0].Commit.Command.Params), `{"n":1}`)
	want(b, "events", len(settled.Events), len(receipt.Events))
}

func callerOwns(b *bed) {
	b.enqueue("mail", 1)
	receipt := b.commit(b.claiming(b.id(), 1, "mail"))
	entity := receipt.Rows[0].Entity
	kept := exactRow(b.row(entity))
	scribble := func(row store.Row) {
		clear(row.Fields)
		clear(row.Payload.Bytes)
		row.Payload.Salt = [16]byte{}
	}
	scribble(receipt.Rows[0])
	want(b, "row after the receipt's was overwritten", exactRow(b.row(entity)), kept)
	scribble(b.row(entity))
	want(b, "row after one that was read was overwritten", exactRow(b.row(entity)), kept)
}

func oneSettlementWins(b *bed) {
	const senders = 8
	for range 5 {
		b.enqueue("mail", 1)
		m := b.claim(b.id(), 1, "mail")[0]
		list := make([]store.Call, senders)
		for i := range list {
			list[i] = b.completing(m)
		}
		b.ok(together(senders, func(i int) error {
			_, err := b.s.Decide(b.ctx, list[i])
			return err
		}))
		history := b.log(store.Filter{Entity: events.MessageEntity(m.ID)})
		want(b, "completed", count(history, events.TypeMessageCompleted), 1)
		want(b, "refused", count(history, events.TypeMessageRefused), senders-1)
		b.folds(history)
	}
}

// folds ends the test unless an entity's events lead from each to the next.
func (b *bed) folds(history []events.Recorded) {
	b.t.Helper()
	if len(history) > 0 {
		_, err := calls.Fold(history[0].Entity, history)
		b.ok(err)
	}
}

func allKept(b *bed) {
	const writers, each = 8, 10
	list := make([][]store.Call, writers)
	for i := range list {
		for range each {
			list[i] = append(list[i], b.enqueueing(b.drafts("mail", 2)...))
		}
	}
	receipts := make([][]store.Receipt, writers)
	b.ok(together(writers, func(i int) error {
		for _, call := range list[i] {
			r, err := b.s.Decide(b.ctx, call)
			if err != nil {
				return err
			}
			receipts[i] = append(receipts[i], r...)
		}
		return nil
	}))
	log := b.log(store.Filter{})
	want(b, "events", len(log), writers*each*2+1)
	byCommit := map[store.CommitID][]events.Recorded{}
	for i, r := range log {
		if i > 0 && log[i-1].Position >= r.Position {
			b.t.Fatalf("position %d stands before %d", log[i-1].Position, r.Position)
		}
		if i > 0 && log[i-1].Commit.ID != r.Commit.ID && byCommit[r.Commit.ID] != nil {
			b.t.Fatalf("commit %s is torn apart at position %d", r.Commit.ID, r.Position)
		}
		byCommit[r.Commit.ID] = append(byCommit[r.Commit.ID], r)
	}
	for _, r := range slices.Concat(receipts...) {
		b.ok(r.Err)
		b.same("receipt", byCommit[r.ID], r.Events)
	}
}
