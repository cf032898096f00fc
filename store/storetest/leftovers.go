package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// leftovers are the sentences about what a prune takes beside events, and what it leaves.
func leftovers() []sentence {
	return []sentence{
		{"what is open keeps its contents, whatever its age", openKeeps},
		{"what has ended keeps its contents for as long as the event that ended it", endedKeeps},
		{"a dead letter keeps its contents, and one that was cancelled keeps them as long as what ended it", deadKeeps},
		{"what was erased stays so, and an erasure that is pruned brings nothing back", erasedStays},
		{"the topic of a message whose beginning is gone is kept for as long as the event that ended it", topicsStay},
		{"messages keep their place when the event that enqueued them is gone", placesStay},
		{"who waits for a lock keeps its place when the event that enqueued it is gone", waitersStay},
		{"claims, counts, permits and keys of what is open stay", estateStays},
		{"a resting lock whose newest event goes begins again, with tokens that rise", restingLocks},
		{"a lock that is held or configured goes on", heldLocks},
		{"a message that has ended and was pruned is not known", prunedUnknown},
		{"checkpoints stay", checkpointsStay},
	}
}

func openKeeps(b *bed) {
	b.enqueue("mail", 4)
	claimed := b.claim(b.id(), 2, "mail")
	log := b.log(store.Filter{})
	for range 3 {
		b.let(b.everything())
		for _, row := range b.kept(store.RowFilter{Kind: events.KindMessage, Payloads: true}) {
			b.holds("open", row.Entity.ID, nil)
			b.carries(row)
		}
	}
	for _, row := range b.claimable("mail", 9) {
		b.carries(row)
	}
	receipt := b.commit(b.claiming(b.id(), 9, "mail"))
	for _, row := range claimedOf(receipt) {
		b.carries(row)
	}
	b.commit(b.resulting(claimed...))
	for _, m := range claimed {
		b.holds("ended, and the event that says so is kept", m.ID, result(m.ID))
	}
	want(b, "messages", len(log), 1+4+2)
}

func endedKeeps(b *bed) {
	b.enqueue("mail", 2)
	claimed := b.claim(b.id(), 2, "mail")
	b.ok(b.pruneOften(1, wholePage(), "")) // so that what is left of them begins with a snapshot
	b.commit(b.resulting(claimed[0]))
	b.commit(b.resulting(claimed[1]))
	b.commit(b.resulting(claimed[0])) // refused: an event that is newer than the one that ended it
	log := b.behind(b.first(), store.Filter{})
	for i, r := range log {
		p := b.commit(b.letting(b.through(log, i+1)))
		if len(p.Events) == 0 {
			continue // within a commit
		}
		for n, m := range claimed {
			ended := slices.IndexFunc(log, func(r events.Recorded) bool {
				return r.Entity.ID == m.ID && r.Event.Type() == events.TypeMessageCompleted
			})
			if i < ended {
				b.holds(fmt.Sprintf("message %d of which %s is kept", n, events.TypeMessageCompleted), m.ID, result(m.ID))
			} else {
				b.empty(fmt.Sprintf("message %d, pruned through %s", n, r.Event.Type()), m.ID)
			}
		}
	}
	b.empty("the first", claimed[0].ID)
	b.empty("the second", claimed[1].ID)
}

func deadKeeps(b *bed) {
	b.enqueue("mail", 3)
	worker := b.id()
	b.claim(worker, 3, "mail")
	one, two, three := b.dead(worker), b.dead(worker), b.dead(worker)
	for range 2 {
		b.let(b.everything())
		for _, id := range []events.ID{one, two, three} {
			b.holds("dead letter", id, nil)
		}
	}
	operate := func(command fsm.MessageCommand, id events.ID) {
		b.t.Helper()
		call, _, err := calls.Operate(b.origin(), fsm.Operate{IDs: []events.ID{id}, Command: command}, b.kept(store.RowFilter{}))
		b.ok(err)
		want(b, "events", len(b.commit(call).Events), 1)
	}
	operate(fsm.CancelMessage{By: "storetest"}, one)
	operate(fsm.RedriveMessage{By: "storetest"}, two)
	b.holds("cancelled", one, nil)
	b.let(b.everything())
	b.empty("cancelled, and the event that says so is gone", one)
	b.holds("redriven", two, nil)
	b.holds("dead letter", three, nil)
	m := b.claim(b.id(), 9, "mail")
	want(b, "granted", fmt.Sprint(ids(m)), fmt.Sprint([]events.ID{two}))
	b.commit(b.completing(m...))
	b.let(b.everything())
	b.empty("redriven and completed", two)
}

func erasedStays(b *bed) {
	b.enqueue("mail", 2)
	claimed := b.claim(b.id(), 2, "mail")
	b.commit(b.resulting(claimed...))
	log := b.log(store.Filter{})
	b.commit(b.erasing(claimed[0].ID))
	b.let(b.through(log, len(log)-2)) // through what claimed them
	b.empty("erased", claimed[0].ID)
	b.holds("not erased", claimed[1].ID, result(claimed[1].ID))
	b.let(b.everything())
	b.empty("erased and pruned", claimed[0].ID)
	b.empty("pruned", claimed[1].ID)
}

func topicsStay(b *bed) {
	b.enqueue("mail", 2)
	open := b.enqueue("print", 1).Events[1].Entity.ID
	begun := b.log(store.Filter{})
	claimed := b.claim(b.id(), 2, "mail")
	b.commit(b.resulting(claimed[0]))
	all := []events.ID{claimed[0].ID, claimed[1].ID, open, b.id(), {}}
	told := func(what string, topics ...string) {
		b.t.Helper()
		for i, id := range all {
			want(b, fmt.Sprintf("%s: topic of message %d", what, i), b.contentsOf(id).Topic, topics[i])
		}
	}
	told("when all is kept", "", "", "", "", "")
	b.let(b.through(begun, len(begun)))
	told("when their beginning is gone", "mail", "mail", "print", "", "")
	b.holds("ended", claimed[0].ID, result(claimed[0].ID))
	b.commit(b.erasing(claimed[0].ID))
	told("when one was erased", "mail", "mail", "print", "", "")
	b.let(b.everything())
	told("when the end of one is gone", "", "mail", "print", "", "")
	b.commit(b.resulting(claimed[1]))
	log := b.behind(b.first(), store.Filter{})
	b.let(b.through(log, len(log)-1))
	told("when of another its end is all that is left", "", "mail", "print", "", "")
	b.let(b.everything())
	told("when that is gone", "", "", "print", "", "")
}

// backwards is n messages to be of a topic whose ids fall, so that their places are not the order of their ids.
func (b *bed) backwards(topic, lock string, n int) []events.ID {
	b.t.Helper()
	now := b.now()
	list := b.drafts(topic, n)
	all := make([]events.ID, n)
	for i := range list {
		list[i].ID = mint(now.Add(-time.Duration(i+1) * time.Minute))
		list[i].Lock = lock
		all[i] = list[i].ID
	}
	b.commit(b.enqueueing(list...))
	return all
}

func placesStay(b *bed) {
	old := b.backwards("mail", "", 4)
	log := b.log(store.Filter{})
	// All are due at one time, so that they stand by their places alone.
	due := b.kept(store.RowFilter{Kind: events.KindMessage})[0].DueAt
	var list []store.Change
	wanted := old
	for i := range 3 {
		c := change(events.MessageEntity(mint(b.now().Add(-time.Hour-time.Duration(i)*time.Minute))), 0, &events.MessageEnqueued{Topic: "mail"})
		c.Row.State, c.Row.DueAt, c.Row.Priority = events.Queued, due, events.Normal
		list, wanted = append(list, c), append(wanted, c.Row.Entity.ID)
	}
	b.commit(b.giving(list...))
	b.let(b.through(log, len(log))) // what is left of the first ones is newer than the others
	for range 3 {
		for n := range wanted {
			var got []events.ID
			for _, row := range b.claimable("mail", n+1) {
				got = append(got, row.Entity.ID)
			}
			want(b, "claimable", fmt.Sprint(got), fmt.Sprint(wanted[:n+1]))
		}
		b.let(b.everything())
	}
}

func waitersStay(b *bed) {
	p := b.acquire("l", b.id())
	list := b.backwards("mail", "l", 3)
	log := b.log(store.Filter{})
	list = append(list, b.backwards("mail", "l", 2)...)
	b.let(b.through(log, len(log))) // what is left of the first ones is newer than the others
	want(b, "granted", len(b.claim(b.id(), 5, "mail")), 0)
	b.let(b.everything())
	b.wait("while it is taken", "l", blocked(list[0]))
	b.commit(b.unlocking(p.Worker, p))
	b.wait("when it came free", "l", blocked(list[1]), trying(list[0]))
	b.let(b.everything())
	b.wait("when that was pruned", "l", blocked(list[1]), trying(list[0]))
	for i := range list {
		m := b.claim(b.id(), 1, "mail")
		want(b, "granted", fmt.Sprint(ids(m)), fmt.Sprint(list[i:i+1]))
		b.commit(b.completing(m...))
		b.let(b.everything())
	}
}

func estateStays(b *bed) {
	b.commit(b.configuring("mail", 9))
	b.commit(b.keyed("k", 0))
	b.commit(b.keyed("l", time.Hour))
	b.queue("mail", "lock", 2)
	worker := b.id()
	claimed := b.claim(worker, 9, "mail")
	want(b, "granted", len(claimed), 3)
	b.acquire("own", worker)
	need := store.Need{
		Keys:   []store.Key{{Topic: "mail", Name: "k"}, {Topic: "mail", Name: "l"}},
		Claims: []store.Holder{{Worker: worker, N: 9}}, Locks: []string{"lock", "own"},
	}
	exact := func() string {
		view := b.seen(need)
		claims := fmt.Sprint(ids(b.messages(view.Claims[worker])))
		return fmt.Sprint(view.Keys, claims, exactPermits(view.Permits), b.waiters(view, "lock"), b.row(events.TopicEntity("mail")).Running)
	}
	before := exact()
	for range 3 {
		b.let(b.everything())
		want(b, "what is open", exact(), before)
	}
	want(b, "a second message of a key", len(b.commit(b.keyed("k", 0)).Events), 0)
	b.commit(b.completing(claimed...))
	want(b, "running", b.row(events.TopicEntity("mail")).Running, 0)
	want(b, "permits", len(b.permitted(store.PermitFilter{Lock: "lock"})), 0)
	want(b, "a message of a key that came free", len(b.commit(b.keyed("k", 0)).Events), 1)
	want(b, "a message of a key that is still kept", len(b.commit(b.keyed("l", 0)).Events), 0)
}

func restingLocks(b *bed) {
	lock := events.LockEntity("l")
	last := events.Token(0)
	for range 3 {
		for i := range 2 {
			p := b.acquire("l", b.id())
			if p.Token <= last {
				b.t.Fatalf("token %d does not rise over %d", p.Token, last)
			}
			last = p.Token
			want(b, "version", b.row(lock).Version, 2*i+1)
			b.commit(b.unlocking(p.Worker, p))
		}
		log := b.behind(b.first(), store.Filter{})
		b.let(b.through(log, len(log)-1)) // all but what freed it
		view := b.seen(store.Need{Locks: []string{"l"}})
		want(b, "version while the newest event is kept", b.lock(view, "l").Version, 4)
		want(b, "events", len(view.History[lock]), 1)
		b.let(b.everything())
		view = b.seen(store.Need{Locks: []string{"l"}})
		if _, known := view.History[lock]; known {
			b.t.Fatalf("the lock is known when all of its events are gone: %v", view.History[lock])
		}
		b.rowless(lock)
	}
	b.refuses("a change of a lock that begins again from its old version", store.Changes{Rows: []store.Change{change(lock, 4, &events.LockAcquired{})}})
}

func heldLocks(b *bed) {
	p := b.acquire("held", b.id())
	b.commit(b.allotting("free", 3))
	b.ok(b.pruneOften(1, wholePage(), ""))
	want(b, "version of a held lock", b.row(events.LockEntity("held")).Version, 2)
	want(b, "permits of a configured lock", b.lock(b.seen(store.Need{Locks: []string{"free"}}), "free").Permits, 3)
	b.ok(b.pruneOften(1, wholePage(), ""))
	b.commit(b.unlocking(p.Worker, p))
	b.rowless(events.LockEntity("held"))
	want(b, "version at rest", b.lock(b.seen(store.Need{Locks: []string{"held"}}), "held").Version, 4)
	b.sound()
}

func prunedUnknown(b *bed) {
	b.enqueue("mail", 2)
	m := b.claim(b.id(), 1, "mail")[0]
	entity := events.MessageEntity(m.ID)
	b.commit(b.completing(m))
	b.let(b.everything())
	view := b.seen(store.Need{Held: []events.Entity{entity}})
	want(b, "rows", len(view.Rows), 0)
	want(b, "histories", len(view.History), 0)
	b.rowless(entity)
	want(b, "events", len(b.behind(b.first(), store.Filter{Entity: entity})), 0)
	head := b.head()
	late := b.commit(b.completing(m))
	want(b, "events of a late settlement", len(late.Events), 0)
	want(b, "head", b.head(), head)
}

func checkpointsStay(b *bed) {
	if !can[store.Shelf](b.s) {
		return
	}
	b.lives(2)
	saved := b.save("totals", 1, 1, "view")
	b.lives(1)
	b.let(b.everything())
	want(b, "checkpoint", exactCheckpoint(b.viewed(saved.CheckpointKey)), exactCheckpoint(saved))
	b.readFails(saved.Cursor, store.ErrPruned)
}
