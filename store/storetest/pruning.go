package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// pruning are the sentences about an engine that is a store.Pruner and what becomes of its log.
func pruning() []sentence {
	return []sentence{
		{"what was pruned is read no more, and the rest is as it was", prunedLog},
		{"a cursor before the oldest kept event is a PrunedError", prunedCursors},
		{"positions are never used again", prunedPositions},
		{"a reader that is overtaken by a prune is told so, and is given nothing twice or late", overtaken},
		{"a reader that a prune does not overtake goes on", notOvertaken},
		{"an id whose commit was pruned has no second effect", prunedIDs},
		{"what is left of a history is given", prunedHistory},
		{"the log stands in the newest event that tells of a prune", prunedItself},
		{"a prune shares its commit with no other call's fate", prunedAmongOthers},
		{"a log is pruned page by page by the calls that Foundling makes, and every row is the fold of what is left", prunedByPages},
		{"prunes and commits at once leave every row the fold of what is left", prunedMeanwhile},
		{"First ends with its context, and with its store", firstEnds},
	}
}

func prunedLog(b *bed) {
	log := b.uneven()
	kept := b.kept(store.RowFilter{})
	receipt := b.let(b.through(log, 8))
	want(b, "first", b.first(), b.s.After(log[7]))
	left := slices.Concat(log[8:], receipt.Events)
	b.same("what is left", b.behind(b.first(), store.Filter{}), left)
	for i := range left {
		b.same("behind what is left", b.behind(b.s.After(left[i]), store.Filter{}), left[i+1:])
	}
	for _, f := range []store.Filter{
		{Entity: log[1].Entity}, {Entity: log[9].Entity}, {Entity: events.TopicEntity("mail")}, {Entity: events.LogEntity()}, {Limit: 3},
		{Types: []events.Type{events.TypeMessageEnqueued, events.TypeLogPruned}},
		{Entity: log[3].Entity, Types: []events.Type{events.TypeMessageCompleted}},
	} {
		b.same(fmt.Sprintf("what is left of %+v", f), b.behind(b.first(), f), sift(left, f))
	}
	for i, row := range kept {
		if row.Entity == events.TopicEntity("mail") || row.Entity == events.TopicEntity("other") {
			kept[i].Version++ // it had its snapshot
		}
	}
	b.sameRows("rows", b.kept(store.RowFilter{}), kept)

	receipt = b.let(b.everything())
	want(b, "first", b.first(), b.s.After(left[len(left)-1]))
	b.same("what is left of a second prune", b.behind(b.first(), store.Filter{}), receipt.Events)
	want(b, "head", b.head(), b.s.After(receipt.Events[len(receipt.Events)-1]))
	want(b, "what may go after it", b.offered(b.everything()).Events, len(receipt.Events))
}

func prunedCursors(b *bed) {
	zero := b.head()
	log := b.uneven()
	b.let(b.through(log, 8))
	before := []store.Cursor{"", zero}
	for _, r := range log[:7] {
		before = append(before, b.s.After(r))
	}
	for _, cursor := range before {
		err := b.readFails(cursor, store.ErrPruned)
		var pruned *store.PrunedError
		if !errors.As(err, &pruned) {
			b.t.Fatalf("read behind %q: error %v is no PrunedError", cursor, err)
		}
		want(b, "cursor that was asked for", pruned.Asked, cursor)
		want(b, "first that is kept", pruned.First, b.first())
		b.behind(pruned.First, store.Filter{})
	}
}

func prunedPositions(b *bed) {
	last := int64(0)
	for range 4 {
		for _, r := range b.enqueue("mail", 2).Events {
			if r.Position <= last {
				b.t.Fatalf("position %d does not rise over %d", r.Position, last)
			}
			last = r.Position
		}
		b.commit(b.completing(b.claim(b.id(), 2, "mail")...))
		fence := b.seen(store.Need{Locks: []string{"l"}}).Fence
		receipt := b.let(b.everything())
		if now := b.seen(store.Need{Locks: []string{"l"}}).Fence; now < fence {
			b.t.Fatalf("the fence went back from %d to %d", fence, now)
		}
		last = receipt.Events[len(receipt.Events)-1].Position
	}
}

// long makes a log of many commits.
func (b *bed) long() []events.Recorded {
	b.t.Helper()
	for i := range 11 {
		b.enqueue(fmt.Sprint("t", i%3), 50)
		b.commit(b.completing(b.claim(b.id(), 50, fmt.Sprint("t", i%3))...))
	}
	return b.behind(b.first(), store.Filter{})
}

func overtaken(b *bed) {
	for _, f := range []store.Filter{{}, {Types: []events.Type{events.TypeMessageEnqueued, events.TypeMessageCompleted}}} {
		want(b, "events", len(b.long()) > 1500, true) // more than any engine has in hand at a time
		at := b.first()
		all := b.behind(at, f)
		var read []events.Recorded
		var last error
		for r, err := range b.s.Read(b.ctx, at, f) {
			if last = err; err != nil {
				break
			}
			if read = append(read, r); len(read) == 3 {
				b.let(b.everything())
			}
		}
		b.same("what was read", read[:min(len(read), len(all))], all[:min(len(read), len(all))])
		if last != nil {
			b.is(last, store.ErrPruned)
			var pruned *store.PrunedError
			want(b, "a PrunedError", errors.As(last, &pruned), true)
			want(b, "first that is kept", pruned.First, b.first())
		} else if len(read) < len(all) {
			b.t.Fatalf("the reader was given %d events of %d, and no error", len(read), len(all))
		}
	}
}

func notOvertaken(b *bed) {
	log := b.long()
	at := b.s.After(log[len(log)-100])
	var read []events.Recorded
	for r, err := range b.s.Read(b.ctx, b.s.After(log[99]), store.Filter{}) {
		b.ok(err)
		if read = append(read, r); len(read) == 10 || len(read) == len(log)-150 {
			// What the reader has passed goes: what it had in hand then is its own.
			b.let(b.through(log, 100+len(read)))
		}
	}
	b.same("what was read", read[:len(log)-100], log[100:])
	if first := b.first(); first == "" || first == at {
		b.t.Fatalf("first is %q", first)
	}
}

func prunedIDs(b *bed) {
	call, other := b.enqueueing(b.drafts("mail", 2)...), b.enqueueing(b.draft("mail"))
	b.commit(call)
	b.let(b.everything())
	kept := b.commit(other)
	log := b.behind(b.first(), store.Filter{})
	for range 2 {
		receipts := b.decide(call, other)
		want(b, "id", receipts[0].ID, call.ID)
		want(b, "events", len(receipts[0].Events), 0)
		b.is(receipts[0].Err, store.ErrPruned)
		b.ok(receipts[1].Err)
		b.same("receipt of one that is kept", receipts[1].Events, kept.Events)
		settled, committed := b.outcome(call.ID)
		want(b, "committed", committed, true)
		want(b, "settled id", settled.ID, call.ID)
		want(b, "settled events", len(settled.Events), 0)
		b.is(settled.Err, store.ErrPruned)
	}
	b.same("log", b.behind(b.first(), store.Filter{}), log)

	void := b.enqueueing(b.draft("mail"))
	_, committed := b.outcome(void.ID)
	want(b, "committed", committed, false)
	last := b.enqueueing(b.draft("mail"))
	b.commit(last)
	receipts := b.decide(b.letting(b.everything()), last)
	b.ok(receipts[0].Err)
	b.is(receipts[1].Err, store.ErrPruned)
	b.is(b.decide(void)[0].Err, store.ErrVoid)
}

func prunedHistory(b *bed) {
	b.enqueue("mail", 1)
	m := b.claim(b.id(), 1, "mail")[0]
	entity := events.MessageEntity(m.ID)
	b.commit(b.completing(m))
	b.commit(b.completing(m)) // refused
	log := b.log(store.Filter{})
	history := b.log(store.Filter{Entity: entity})
	want(b, "events", len(history), 4)
	for i := range history {
		at := slices.IndexFunc(log, func(r events.Recorded) bool { return r.Position == history[i].Position })
		b.let(b.through(log, at+1))
		view := b.seen(store.Need{Held: []events.Entity{entity}})
		b.same("history", view.History[entity], history[i+1:])
		b.same("events", b.behind(b.first(), store.Filter{Entity: entity}), history[i+1:])
		if _, known := view.History[entity]; known != (i < 3) {
			b.t.Fatalf("known %t when %d events of 4 are gone", known, i+1)
		}
		if i < 2 { // what moved it is there: its version is that
			b.refuses("a change from version 0 of what has ended", store.Changes{Rows: []store.Change{change(entity, 0, &events.MessageEnqueued{})}})
		}
	}
	b.rowless(entity)
}

func prunedItself(b *bed) {
	for i := range 4 {
		b.enqueue("mail", 1)
		b.let(b.everything())
		b.rowless(events.LogEntity())
		history := b.seen(store.Need{Held: []events.Entity{events.LogEntity()}}).History[events.LogEntity()]
		want(b, "events", len(history), 1)
		want(b, "version", history[0].Version, i+1)
	}
	want(b, "events of the log", len(b.behind(b.first(), store.Filter{Entity: events.LogEntity()})), 1)
}

func prunedAmongOthers(b *bed) {
	log := b.uneven()
	refusing := b.made(store.Need{}, func(store.View) (store.Changes, error) { return store.Changes{}, errors.New("no") })
	late := b.bending(b.through(log, 8), func(_ *store.View, c *store.Changes) { c.Prune = 0 })
	late.Fn = func(view store.View) (store.Changes, error) {
		changes := told(view)
		changes.Rows = append(changes.Rows, configured("mail", 77)) // which stands on nothing
		return changes, nil
	}
	receipts := b.decide(late, refusing, b.enqueueing(b.drafts("mail", 2)...))
	for _, r := range receipts[:2] {
		if r.Err == nil {
			b.t.Fatal("a call that must be refused was not")
		}
	}
	b.ok(receipts[2].Err)
	want(b, "first after a prune that was refused", b.first(), store.Cursor(""))
	b.same("log", b.log(store.Filter{}), slices.Concat(log, receipts[2].Events))

	receipts = b.decide(b.enqueueing(b.draft("mail")), b.letting(b.through(log, 8)), refusing, b.enqueueing(b.draft("mail")))
	for _, i := range []int{0, 1, 3} {
		b.ok(receipts[i].Err)
	}
	want(b, "first", b.first(), b.s.After(log[7]))
	newest := slices.Concat(receipts[0].Events, receipts[1].Events, receipts[3].Events)
	left := b.behind(b.first(), store.Filter{})
	b.same("newest of the log", left[len(left)-len(newest):], newest)
}

// page is how much one prune asks for.
type page struct{ events, rows int }

// wholePage is all that there is.
func wholePage() page { return page{1 << 20, 1 << 10} }

// prune lets go of a page by the calls that Foundling makes, of all that a cursor has passed. Any goroutine may do so.
func (b *bed) prune(p page, upto store.Cursor) (store.Receipt, error) {
	now := b.now()
	command := fsm.Prune{Before: now.Add(time.Hour), Events: p.events, Rows: p.rows, Decider: b.id(), By: "storetest"}
	known := calls.Known{Now: now, Upto: upto}
	for range 1000 {
		call, seen := calls.Prune(b.origin(), command, known)
		if receipt, err := b.one(call); err != nil || len(seen.Unseen) == 0 {
			return receipt, err
		}
		known = known.See(seen.Unseen)
	}
	return store.Receipt{}, errors.New("permits moved in between each time")
}

// sound ends the test unless every row is what is left of its entity's events leads to.
func (b *bed) sound() {
	b.t.Helper()
	first := b.first()
	for _, row := range b.kept(store.RowFilter{}) {
		v, err := calls.Fold(row.Entity, whole(b.behind(first, store.Filter{Entity: row.Entity})))
		b.ok(err)
		folded := calls.Row(v)
		folded.Running = row.Running // which is counted beside
		b.sameRows("row", []store.Row{row}, []store.Row{folded})
	}
}

// whole is what of an entity's events can be folded: all, or where their beginning is gone those from the oldest on that says all of its state.
func whole(history []events.Recorded) []events.Recorded {
	return history[max(0, slices.IndexFunc(history, func(r events.Recorded) bool { return r.Version == 1 || r.Event.Type().Snapshots() })):]
}

// busy makes a history by Foundling's own calls, of which much is still open.
func (b *bed) busy() {
	b.t.Helper()
	worker := b.id()
	b.commit(b.configuring("mail", 50))
	for range 3 {
		b.enqueue("mail", 5)
		b.queue("print", "l", 2)
		b.commit(b.keyed("k", time.Hour))
		claimed := b.claim(worker, 4, "mail", "print")
		b.commit(b.resulting(claimed[:3]...))
		b.dead(worker)
		b.acquire(fmt.Sprint("own ", b.id()), worker)
		p := b.acquire("free", worker)
		b.commit(b.unlocking(worker, p))
	}
	b.commit(b.allotting("n", 2))
	b.enqueue("mail", 3)
}

func prunedByPages(b *bed) {
	b.busy()
	b.sound()
	before := b.kept(store.RowFilter{Payloads: true})
	upto, snapshots, prunes := b.head(), 0, 0
	for rounds := 0; ; rounds++ {
		want(b, "an end of what may go", rounds < 200, true)
		receipt, err := b.prune(page{17, 6}, upto)
		b.ok(err)
		if len(receipt.Events) == 0 {
			break
		}
		told := count(receipt.Events, events.TypeLogPruned)
		prunes, snapshots = prunes+told, snapshots+len(receipt.Events)-told
		if told == 0 {
			want(b, "rows of a full page", len(receipt.Events), 6)
		}
		b.sound()
	}
	want(b, "first", b.first(), upto)
	want(b, "snapshots", snapshots >= len(before), true)
	want(b, "more than one page", prunes > 1, true)
	after := b.kept(store.RowFilter{Payloads: true})
	for i := range before {
		before[i].Version = after[i].Version
	}
	b.sameRows("rows", after, before)
	b.busy()
	b.sound()
}

// prunedMeanwhile prunes all that was there before while more is enqueued, claimed and completed, round after round.
func prunedMeanwhile(b *bed) {
	const workers, rounds = 3, 6
	b.commit(b.configuring("mail", 50))
	for range rounds {
		upto := b.head()
		enqueues, claims := make([]store.Call, workers), make([]store.Call, workers)
		for i := range workers {
			enqueues[i] = b.enqueueing(append(b.drafts("mail", 3), b.locked("mail", "l", 1)...)...)
			claims[i] = b.claiming(b.id(), 3, "mail")
		}
		b.ok(together(workers+1, func(i int) error {
			if i == workers {
				return b.pruneOften(8, page{20, 40}, upto)
			}
			if _, err := b.one(enqueues[i]); err != nil {
				return err
			}
			receipt, err := b.one(claims[i])
			if err != nil {
				return err
			}
			return b.complete(claimedOf(receipt))
		}))
		b.sound()
	}
	b.ok(b.pruneOften(1, wholePage(), ""))
	b.sound()
	for _, row := range b.kept(store.RowFilter{Kind: events.KindMessage}) {
		b.holds("what is open", row.Entity.ID, nil)
	}
	want(b, "running", b.row(events.TopicEntity("mail")).Running, 0)
}

// pruneOften lets go of page after page. Any goroutine may do so.
func (b *bed) pruneOften(n int, p page, upto store.Cursor) error {
	for range n {
		if _, err := b.prune(p, upto); err != nil {
			return err
		}
	}
	return nil
}

// one decides a call that may not be refused. Any goroutine may do so.
func (b *bed) one(call store.Call) (store.Receipt, error) {
	receipts, err := b.s.Decide(b.ctx, call)
	if err != nil {
		return store.Receipt{}, err
	}
	return receipts[0], receipts[0].Err
}

func firstEnds(b *bed) {
	pruner, _ := store.As[store.Pruner](b.s)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	_, err := pruner.First(ctx)
	b.is(err, context.Canceled)
	b.ok(b.s.Close())
	_, err = pruner.First(b.ctx)
	b.is(err, store.ErrClosed)
}
