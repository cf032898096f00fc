package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

func locking() []sentence {
	return []sentence{
		{"a claim takes its message's lock, and a settlement gives it back", lockTakenAndBack},
		{"a lock that is free and not configured has no row, and its version goes on", freeLockHasNoRow},
		{"a lock that was configured keeps its row", configuredLockStays},
		{"of what rests the newest event that moved it is given alone", restsInNewest},
		{"a lock is given as it is, whoever asks for it and how often", lockGiven},
		{"with a claimable message comes its lock", lockOfClaimable},
		{"a known claim is settled with its permit, whether its row still stands or not", knownWithLock},
		{"concurrent claims never hold more permits than their lock has", permitsHold},
		{"what a worker holds is given back page by page, claims and permits", estateReclaimed},
	}
}

// locked is n messages to be of a topic that all take a lock.
func (b *bed) locked(topic, lock string, n int) []fsm.Draft {
	list := b.drafts(topic, n)
	for i := range list {
		list[i].Lock = lock
	}
	return list
}

// queue makes n messages of a topic that all take a lock, due at once, and gives their ids.
func (b *bed) queue(topic, lock string, n int) []events.ID {
	b.t.Helper()
	drafts := b.locked(topic, lock, n)
	b.commit(b.enqueueing(drafts...))
	all := make([]events.ID, n)
	for i, d := range drafts {
		all[i] = d.ID
	}
	return all
}

// acquire takes a permit without a message.
func (b *bed) acquire(lock string, worker events.ID) fsm.Permit {
	b.t.Helper()
	call, permit := calls.Acquire(b.origin(), fsm.Acquire{Lock: lock, Worker: worker})
	b.commit(call)
	return *permit
}

// unlocking is the call by which a worker gives permits back.
func (b *bed) unlocking(worker events.ID, list ...fsm.Permit) store.Call {
	c := fsm.Unlock{Worker: worker}
	for _, p := range list {
		c.Permits = append(c.Permits, p.PermitKey)
	}
	call, _ := calls.Unlock(b.origin(), c)
	return call
}

// allotting is the call that sets how many permits a lock has.
func (b *bed) allotting(lock string, n int) store.Call {
	return calls.OperateLock(b.origin(), fsm.OperateLock{Lock: lock, ConfigureLock: fsm.ConfigureLock{Permits: n}})
}

// lock is what a view has of a lock, folded.
func (b *bed) lock(view store.View, name string) fsm.Lock {
	b.t.Helper()
	held, err := calls.Hold(view)
	b.ok(err)
	return held.Locks[name]
}

// rowless ends the test unless an entity has no row.
func (b *bed) rowless(e events.Entity) {
	b.t.Helper()
	want(b, "rows of "+e.String(), len(b.kept(store.RowFilter{Entities: []events.Entity{e}})), 0)
}

// permitted is the permits that are out and pass a filter, as text.
func (b *bed) permitted(f store.PermitFilter) []string {
	b.t.Helper()
	var list []store.Permit
	for p, err := range b.s.Permits(b.ctx, f) {
		b.ok(err)
		list = append(list, p)
	}
	return exactPermits(list)
}

func lockTakenAndBack(b *bed) {
	worker := b.id()
	id := b.queue("mail", "l", 1)[0]
	claim := b.commit(b.claiming(worker, 5, "mail"))
	want(b, "events of the claim", fmt.Sprint(types(claim.Events)), "[lock.acquired message.claimed]")
	m := b.messages(claim.Rows[len(claim.Rows)-1:])[0]
	want(b, "claimed", m.ID, id)
	if m.LockToken == 0 {
		b.t.Fatal("the claim has no permit")
	}
	want(b, "held", b.lock(b.seen(store.Need{Locks: []string{"l"}}), "l").Held, 1)
	want(b, "permits", fmt.Sprint(b.permitted(store.PermitFilter{})), fmt.Sprint(exactPermits([]store.Permit{{
		PermitKey: store.PermitKey{Lock: "l", Token: m.LockToken}, Worker: worker, Message: id, AcquiredAt: m.ClaimedAt,
	}})))
	settled := b.commit(b.completing(m))
	want(b, "events of the settlement", fmt.Sprint(types(settled.Events)), "[message.completed lock.released]")
	want(b, "permits", len(b.permitted(store.PermitFilter{})), 0)
	b.folds(b.log(store.Filter{Entity: events.LockEntity("l")}))
}

func freeLockHasNoRow(b *bed) {
	lock := events.LockEntity("l")
	for i := range 3 {
		b.rowless(lock)
		p := b.acquire("l", b.id())
		want(b, "version", b.row(lock).Version, 2*i+1)
		want(b, "version in a view", b.lock(b.seen(store.Need{Locks: []string{"l"}}), "l").Version, 2*i+1)
		released := b.commit(b.unlocking(p.Worker, p))
		want(b, "rows of the receipt", len(released.Rows), 0)
		want(b, "version of a free lock in a view", b.lock(b.seen(store.Need{Locks: []string{"l"}}), "l").Version, 2*i+2)
	}
	b.rowless(lock)
	history := b.log(store.Filter{Entity: lock})
	want(b, "events", len(history), 6)
	b.folds(history)
}

func configuredLockStays(b *bed) {
	lock := events.LockEntity("l")
	b.commit(b.allotting("l", 2))
	one, two := b.acquire("l", b.id()), b.acquire("l", b.id())
	third, _ := calls.Acquire(b.origin(), fsm.Acquire{Lock: "l", Worker: b.id()})
	var refusal *fsm.Refusal
	if err := b.decide(third)[0].Err; !errors.As(err, &refusal) || refusal.Reason != events.ReasonLockTaken {
		b.t.Fatalf("a third permit of two: error %v", err)
	}
	b.commit(b.unlocking(two.Worker, two))
	b.commit(b.unlocking(one.Worker, one))
	want(b, "state", b.row(lock).State, events.Free)
	want(b, "version", b.row(lock).Version, 5)
	want(b, "permits in a view", b.lock(b.seen(store.Need{Locks: []string{"l"}}), "l").Permits, 2)
	b.acquire("l", b.id())
	want(b, "state", b.row(lock).State, events.Held)
	b.folds(b.log(store.Filter{Entity: lock}))
}

// restsInNewest has a lock with the longest history that one commit can have, and a refusal behind its newest event.
func restsInNewest(b *bed) {
	lock := events.LockEntity("l")
	var list []events.Event
	for range store.MaxEvents / 2 {
		list = append(list, &events.LockAcquired{Token: 1, Worker: b.id(), Held: 1}, &events.LockReleased{Token: 1})
	}
	long := change(lock, 0, list...)
	for i := range long.Transitions {
		long.Transitions[i].From, long.Transitions[i].To = events.State(41-(i+1)%2), events.State(40+(i+1)%2)
	}
	long.Gone = true
	b.commit(b.giving(long))
	refused := change(lock, store.MaxEvents, &events.LockRefused{Command: "unlock", Reason: events.ReasonNotHeld})
	refused.Gone = true
	b.commit(b.giving(refused))
	history := b.log(store.Filter{Entity: lock})
	want(b, "events", len(history), store.MaxEvents+1)

	b.commit(b.enqueueing(b.locked("mail", "l", 1)...))
	for what, need := range map[string]store.Need{
		"held as an entity": {Held: []events.Entity{lock}}, "held as a lock": {Locks: []string{"l"}},
		"held with a message": {Claim: []store.Page{{Topic: "mail", N: 1}}},
	} {
		b.same(what, b.seen(need).History[lock], history[store.MaxEvents-1:store.MaxEvents])
	}
	claim := b.commit(b.claiming(b.id(), 1, "mail"))
	want(b, "version of the next event", claim.Events[0].Version, store.MaxEvents+1)
}

func lockGiven(b *bed) {
	b.acquire("held", b.id())
	free := b.acquire("free", b.id())
	b.commit(b.unlocking(free.Worker, free))
	b.commit(b.allotting("configured", 3))
	names := []string{"held", "free", "configured", "never", "held", "free"}
	var held []events.Entity
	for _, name := range names {
		held = append(held, events.LockEntity(name))
	}
	for what, need := range map[string]store.Need{
		"as locks": {Locks: names}, "as entities": {Held: held}, "as both": {Locks: names, Held: held},
	} {
		view := b.seen(need)
		want(b, what+": rows", len(view.Rows), 2)
		for _, name := range []string{"held", "configured"} {
			row := view.Rows[events.LockEntity(name)]
			b.sameRows(what, []store.Row{row}, []store.Row{b.row(events.LockEntity(name))})
		}
		want(b, what+": histories", len(view.History), 1)
		b.same(what, view.History[events.LockEntity("free")], b.log(store.Filter{Entity: events.LockEntity("free")})[1:])
		want(b, what+": waiting", len(view.Waiting["held"])+len(view.Waiting["free"])+len(view.Waiting["never"]), 0)
	}
}

func lockOfClaimable(b *bed) {
	b.acquire("held", b.id())
	free := b.acquire("free", b.id())
	b.commit(b.unlocking(free.Worker, free))
	for _, lock := range []string{"held", "free", "never", ""} {
		b.queue("mail", lock, 2)
	}
	view := b.seen(store.Need{Claim: []store.Page{{Topic: "mail", N: 9}}})
	want(b, "claimable", len(view.Claimable["mail"]), 8)
	b.sameRows("a lock that is held", []store.Row{view.Rows[events.LockEntity("held")]}, []store.Row{b.row(events.LockEntity("held"))})
	want(b, "rows", len(view.Rows), 2) // of the topic and of one lock
	want(b, "histories", len(view.History), 1)
	want(b, "events of a free lock", fmt.Sprint(types(view.History[events.LockEntity("free")])), "[lock.released]")
	view = b.seen(store.Need{Claim: []store.Page{{Topic: "mail", N: 2}}})
	want(b, "rows where no message of the page takes another lock", len(view.Rows)+len(view.History), 2)
}

func knownWithLock(b *bed) {
	worker := b.id()
	b.queue("mail", "l", 1)
	claim := b.commit(b.claiming(worker, 1, "mail"))
	row := claim.Rows[len(claim.Rows)-1]
	m := b.messages([]store.Row{row})[0]
	given := b.seen(store.Need{Known: []store.Row{row}}).Rows[row.Entity]
	given.Payload, row.Payload = nil, nil
	b.sameRows("given", []store.Row{given}, []store.Row{row})

	settle := func(command fsm.MessageCommand, permit fsm.PermitKey) store.Call {
		call, _ := calls.Settle(b.origin(), fsm.Settle{Sender: worker, Recordable: 1, Items: []fsm.Settlement{
			{ID: m.ID, Command: command, Permit: permit},
		}}, []store.Row{row})
		return call
	}
	// The claim ends, and what tells of the handler's end comes later: its row has moved on by then.
	b.commit(settle(fsm.ReleaseMessage{Token: m.Token, Reason: events.ReasonReleased}, fsm.PermitKey{}))
	want(b, "permits of a handler that may go on", len(b.permitted(store.PermitFilter{})), 1)
	late := b.commit(settle(fsm.CompleteMessage{Token: m.Token}, m.Permit()))
	want(b, "settlement over a row from before", fmt.Sprint(types(late.Events)), "[lock.released message.refused]")

	claim = b.commit(b.claiming(worker, 1, "mail"))
	row = claim.Rows[len(claim.Rows)-1]
	m = b.messages([]store.Row{row})[0]
	settled := b.commit(settle(fsm.CompleteMessage{Token: m.Token}, m.Permit()))
	want(b, "settlement over a row that stands", fmt.Sprint(types(settled.Events)), "[message.completed lock.released]")
	want(b, "permits", len(b.permitted(store.PermitFilter{})), 0)
}

// permitsHold has two topics contend for a lock until all of their messages are done.
func permitsHold(b *bed) {
	b.contend([]*bed{b, b, b, b, b}, 2, 20)
}

// contend has workers, each on a store of its own, work off n messages of each of two topics that all take a lock with so many permits. One permit
// more is out all the while, so that a count that nobody sees is wrong even where no two meet.
func (b *bed) contend(workers []*bed, permits, n int) {
	b.t.Helper()
	permits++
	b.commit(b.allotting("l", permits))
	b.acquire("l", b.id())
	b.queue("mail", "l", n)
	b.queue("print", "l", n)
	b.ok(together(len(workers), func(i int) error {
		worker, end := b.id(), time.Now().Add(patience)
		for time.Now().Before(end) {
			receipts, err := workers[i].s.Decide(b.ctx, b.claiming(worker, 1, "mail", "print"))
			if err != nil || receipts[0].Err != nil {
				return cmp.Or(err, receipts[0].Err)
			}
			if err := workers[i].complete(claimedOf(receipts[0])); err != nil {
				return err
			}
			if left, err := workers[i].left(); left == 0 || err != nil {
				return err
			}
		}
		return errors.New("there are messages left for which nobody comes")
	}))
	held, most := 0, 0
	for _, r := range b.log(store.Filter{Entity: events.LockEntity("l")}) {
		switch e := r.Event.(type) {
		case *events.LockAcquired:
			held++
			most = max(most, held)
			want(b, fmt.Sprintf("permits out at position %d", r.Position), e.Held, held)
		case *events.LockReleased:
			held--
			want(b, fmt.Sprintf("permits out at position %d", r.Position), e.Held, held)
		}
	}
	want(b, "permits out at the end", held+len(b.permitted(store.PermitFilter{})), 2)
	if most == 0 || most > permits {
		b.t.Fatalf("%d permits were out at once, the lock has %d", most, permits)
	}
	want(b, "completed", len(b.log(store.Filter{Types: []events.Type{events.TypeMessageCompleted}})), 2*n)
}

// left is how many messages have a row.
func (b *bed) left() (n int, err error) {
	for _, err := range b.s.Rows(b.ctx, store.RowFilter{Kind: events.KindMessage}) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// claimedOf is the rows of a claim's receipt that it granted: those that it blocked, and the rows of locks, stand beside them.
func claimedOf(r store.Receipt) (list []store.Row) {
	for _, row := range r.Rows {
		if row.Entity.Kind == events.KindMessage && row.Worker != (events.ID{}) {
			list = append(list, row)
		}
	}
	return list
}

func estateReclaimed(b *bed) {
	dead, other := b.id(), b.id()
	b.commit(calls.OperateWorker(b.origin(), fsm.OperateWorker{Worker: dead, Command: fsm.StartWorker{}}))
	for _, lock := range []string{"x1", "x2", "x3", "x4"} {
		b.acquire(lock, dead)
	}
	kept := b.acquire("y", other)
	for _, lock := range []string{"l1", "l2", "l3"} {
		b.queue("mail", lock, 1)
	}
	want(b, "claimed", len(b.claim(dead, 3, "mail")), 3)
	waiting := b.queue("print", "x3", 1)[0]
	want(b, "granted", len(b.claim(other, 1, "print")), 0)
	want(b, "state of who waits", b.row(events.MessageEntity(waiting)).State, events.Blocked)

	orphaned, reclaimed := 0, 0
	for pages := 0; ; pages++ {
		list := b.commit(b.reclaiming(dead, 2)).Events
		if len(list) == 0 {
			break
		}
		orphaned, reclaimed = orphaned+count(list, events.TypeMessageOrphaned), reclaimed+count(list, events.TypeLockReclaimed)
		if claims := count(list, events.TypeMessageOrphaned); claims > 2 || count(list, events.TypeLockReclaimed) > 2+claims || pages > 7 {
			b.t.Fatalf("page %d of two took back %v", pages, types(list))
		}
	}
	want(b, "claims that were taken back", orphaned, 3)
	want(b, "permits that were taken back", reclaimed, 7)
	want(b, "permits", fmt.Sprint(b.permitted(store.PermitFilter{})), fmt.Sprint(exactPermits([]store.Permit{permitRow(kept)})))
	want(b, "state of who waited", b.row(events.MessageEntity(waiting)).State, events.Queued)
	for _, lock := range []string{"x1", "x2", "x3", "x4", "l1", "l2", "l3"} {
		b.rowless(events.LockEntity(lock))
		b.folds(b.log(store.Filter{Entity: events.LockEntity(lock)}))
	}
}
