package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

func waits() []sentence {
	return []sentence{
		{"with a lock comes, of each topic, the first that is blocked and the first that is trying", waitersOfTopics},
		{"who waits for a lock stands by priority, then place of enqueueing", waitersInOrder},
		{"a later call sees who waits after the earlier ones", waitersLater},
		{"with a message that is trying comes who waits for its lock", waitersOfTrying},
		{"who waits comes with a lock of claims also where the call names the lock", waitersOfNamed},
		{"a message that has ended waits no more", endedWaitsNot},
		{"Rows selects the oldest claim of each worker", firstClaims},
		{"Rows selects the first that is blocked of each lock and topic", firstWaits},
	}
}

// waiters is who waits for a lock as a view has it, as text, by topic, then those that are blocked before those that are trying.
func (b *bed) waiters(view store.View, lock string) string {
	list := slices.Clone(view.Waiting[lock])
	slices.SortFunc(list, func(x, y store.Row) int {
		return cmp.Or(strings.Compare(x.Topic, y.Topic), cmp.Compare(x.Waiting, y.Waiting))
	})
	all := make([]string, len(list))
	for i, row := range list {
		all[i] = waitWord(row.Waiting) + " " + row.Entity.ID.String()
	}
	return fmt.Sprint(all)
}

func waitWord(w store.Waiting) string {
	return map[store.Waiting]string{store.NotWaiting: "not waiting", store.Blocked: "blocked", store.Trying: "trying"}[w]
}

// wait ends the test unless those, and no others, wait for a lock.
func (b *bed) wait(what, lock string, wanted ...string) {
	b.t.Helper()
	want(b, what, b.waiters(b.seen(store.Need{Locks: []string{lock, lock}}), lock), fmt.Sprint(wanted))
}

func blocked(id events.ID) string { return "blocked " + id.String() }

func trying(id events.ID) string { return "trying " + id.String() }

// taken has a lock taken by a worker's permit, and two topics with so many messages each blocked by it.
func (b *bed) taken(lock string, n int) (p fsm.Permit, mail, print []events.ID) {
	b.t.Helper()
	p = b.acquire(lock, b.id())
	mail, print = b.queue("mail", lock, n), b.queue("print", lock, n)
	want(b, "granted", len(b.claim(b.id(), n, "mail", "print")), 0)
	return p, mail, print
}

func waitersOfTopics(b *bed) {
	p, mail, print := b.taken("l", 3)
	other := b.queue("mail", "m", 2)
	b.acquire("m", b.id())
	b.claim(b.id(), 9, "mail")
	b.wait("while it is taken", "l", blocked(mail[0]), blocked(print[0]))
	b.wait("for another lock", "m", blocked(other[0]))
	b.wait("for a lock that never was", "never")
	for _, row := range b.seen(store.Need{Locks: []string{"l"}}).Waiting["l"] {
		kept := b.row(row.Entity)
		row.Payload, kept.Payload = nil, nil
		b.sameRows("who waits", []store.Row{row}, []store.Row{kept})
	}

	b.commit(b.unlocking(p.Worker, p))
	b.wait("when it came free", "l", blocked(mail[1]), trying(mail[0]), blocked(print[1]), trying(print[0]))
	claim := b.claim(b.id(), 9, "print")
	want(b, "granted to the first of a topic that tries", fmt.Sprint(ids(claim)), fmt.Sprint(print[:1]))
	b.wait("when one was faster", "l", blocked(mail[1]), trying(mail[0]), blocked(print[1]))
	b.claim(b.id(), 9, "mail")
	b.wait("when the other was too late", "l", blocked(mail[0]), blocked(print[1]))
	b.commit(b.completing(claim...))
	b.wait("when it came free again", "l", blocked(mail[1]), trying(mail[0]), blocked(print[2]), trying(print[1]))
}

// waitersInOrder has messages whose ids are in another order than their places, and that are blocked in yet another one.
func waitersInOrder(b *bed) {
	for _, state := range []store.Waiting{store.Blocked, store.Trying} {
		topic, lock := fmt.Sprintf("topic %d", state), fmt.Sprintf("lock %d", state)
		var list []store.Row
		for i, priority := range []events.Priority{events.Low, events.Normal, events.High, events.Normal, events.High, events.Low, events.High} {
			c := change(events.MessageEntity(mint(b.now().Add(-time.Duration(i)*time.Second))), 0, &events.MessageEnqueued{Topic: topic})
			c.Row.Topic, c.Row.Priority, c.Row.Lock = topic, priority, lock
			b.commit(b.giving(c))
			list = append(list, c.Row)
		}
		move := func(row *store.Row, to store.Waiting) {
			b.t.Helper()
			c := change(row.Entity, row.Version, &events.MessageBlocked{Lock: lock})
			row.Version, row.Waiting = c.Row.Version, to
			c.Row = *row
			b.commit(b.giving(c))
		}
		for _, i := range []int{3, 6, 0, 4, 1, 2, 5} {
			move(&list[i], state)
		}
		order := []int{2, 4, 6, 1, 3, 0, 5}
		for _, i := range order {
			b.wait("the first of those that are left", lock, waitWord(state)+" "+list[i].Entity.ID.String())
			move(&list[i], store.NotWaiting)
		}
		b.wait("nobody is left", lock)
		move(&list[6], state)
		move(&list[4], state)
		b.wait("who waits again stands at its old place", lock, waitWord(state)+" "+list[4].Entity.ID.String())
	}
}

func waitersLater(b *bed) {
	p, mail, print := b.taken("l", 2)
	var views [4]store.View
	see := func(i int) store.Call { // it leaves something, so that asking again under its id does not see what came later
		return b.made(store.Need{Locks: []string{"l"}}, func(v store.View) (store.Changes, error) {
			views[i] = v
			return store.Changes{Rows: []store.Change{configured(fmt.Sprint("seen ", i), 0)}}, nil
		})
	}
	for _, r := range b.decide(
		b.unlocking(p.Worker, p), see(0), b.claiming(b.id(), 9, "mail"), see(1), b.claiming(b.id(), 9, "print"), see(2),
		b.enqueueing(b.locked("third", "l", 1)...), b.claiming(b.id(), 9, "third"), see(3),
	) {
		b.ok(r.Err)
	}
	for i, wanted := range [][]string{
		{blocked(mail[1]), trying(mail[0]), blocked(print[1]), trying(print[0])},
		{blocked(mail[1]), blocked(print[1]), trying(print[0])},
		{blocked(mail[1]), blocked(print[0])},
	} {
		want(b, fmt.Sprintf("seen by call %d", i+1), b.waiters(views[i], "l"), fmt.Sprint(wanted))
		want(b, fmt.Sprintf("permits out at call %d", i+1), b.lock(views[i], "l").Held, min(i, 1))
	}
	want(b, "seen by the last call", len(views[3].Waiting["l"]), 3)
}

func waitersOfTrying(b *bed) {
	p, mail, print := b.taken("l", 2)
	b.commit(b.unlocking(p.Worker, p))
	b.queue("mail", "m", 1)
	view := b.seen(store.Need{Claim: []store.Page{{Topic: "mail", N: 9}}})
	want(b, "claimable", len(view.Claimable["mail"]), 2)
	want(b, "claimable first", view.Claimable["mail"][0].Waiting, store.Trying)
	for _, row := range view.Claimable["mail"] {
		b.carries(row)
	}
	want(b, "who waits", b.waiters(view, "l"), fmt.Sprint([]string{blocked(mail[1]), trying(mail[0]), blocked(print[1]), trying(print[0])}))
	want(b, "events of its lock", len(view.History[events.LockEntity("l")]), 1)
	want(b, "who waits for a lock that nobody is sent to try", len(view.Waiting["m"]), 0)
	want(b, "fence is there", view.Fence > p.Token, true)

	// A lock with several permits: who takes one sends the next to try.
	b.commit(b.allotting("l", 2))
	want(b, "granted", len(b.claim(b.id(), 1, "mail")), 1)
	b.wait("after the word was passed on", "l", trying(mail[1]), trying(print[0]))
}

// waitersOfNamed names a lock that also comes with a claimable message, and with what a worker holds.
func waitersOfNamed(b *bed) {
	p, mail, print := b.taken("l", 2)
	named := []events.Entity{events.LockEntity("l")}
	view := b.seen(store.Need{Held: named, Claims: []store.Holder{{Worker: p.Worker, N: 9}}})
	want(b, "with what a worker holds", b.waiters(view, "l"), fmt.Sprint([]string{blocked(mail[0]), blocked(print[0])}))
	b.commit(b.unlocking(p.Worker, p))
	view = b.seen(store.Need{Held: named, Claim: []store.Page{{Topic: "mail", N: 9}}})
	want(b, "with one that tries", b.waiters(view, "l"), fmt.Sprint([]string{blocked(mail[1]), trying(mail[0]), blocked(print[1]), trying(print[0])}))
}

func endedWaitsNot(b *bed) {
	p, mail, print := b.taken("l", 2)
	cancel := func(id events.ID) {
		b.t.Helper()
		call, _, err := calls.Operate(b.origin(), fsm.Operate{IDs: []events.ID{id}, Command: fsm.CancelMessage{By: "ops"}},
			[]store.Row{b.row(events.MessageEntity(id))})
		b.ok(err)
		b.commit(call)
	}
	cancel(mail[0])
	b.wait("after the first was cancelled", "l", blocked(mail[1]), blocked(print[0]))
	cancel(mail[1])
	b.wait("after the last of a topic was cancelled", "l", blocked(print[0]))
	want(b, "selected", fmt.Sprint(b.selected(store.FirstWaits)), fmt.Sprint([]events.Entity{events.MessageEntity(print[0])}))
	b.commit(b.unlocking(p.Worker, p))
	cancel(print[0])
	b.wait("after one that tried was cancelled", "l", trying(print[1]))
	want(b, "selected", len(b.selected(store.FirstWaits)), 0)
}

// selected is whose rows a selection gives.
func (b *bed) selected(s store.Selection) []events.Entity {
	b.t.Helper()
	return entities(b.kept(store.RowFilter{Select: s}))
}

func firstClaims(b *bed) {
	one, two := b.id(), b.id()
	want(b, "selected of nothing", len(b.selected(store.FirstClaims)), 0)
	b.enqueue("mail", 9)
	b.enqueue("print", 9)
	claimed := map[events.ID][]fsm.Message{}
	for range 3 {
		for _, worker := range []events.ID{two, one} {
			claimed[worker] = append(claimed[worker], b.claim(worker, 2, "print", "mail")...)
		}
	}
	oldest := func() {
		b.t.Helper()
		list := b.kept(store.RowFilter{Kind: events.KindMessage, Select: store.FirstClaims, Payloads: true})
		left := map[events.ID]bool{}
		for worker := range claimed {
			left[worker] = len(claimed[worker]) > 0
		}
		for _, row := range list {
			want(b, "a claim of a worker of which there was none yet", left[row.Worker], true)
			left[row.Worker] = false
			want(b, "time of the oldest claim", row.ClaimedAt, claimed[row.Worker][0].ClaimedAt)
			b.carries(row)
		}
		for worker, without := range left {
			want(b, "no claim of worker "+worker.String(), without, false)
		}
		want(b, "in order", slices.IsSortedFunc(entities(list), events.Entity.Compare), true)
	}
	for len(claimed[one])+len(claimed[two]) > 0 {
		oldest()
		for _, worker := range []events.ID{one, two} {
			n := min(len(claimed[worker]), map[events.ID]int{one: 4, two: 3}[worker])
			if n > 0 {
				b.commit(b.completing(claimed[worker][:n]...))
			}
			claimed[worker] = claimed[worker][n:]
		}
	}
	want(b, "selected when all have ended", len(b.selected(store.FirstClaims)), 0)
}

func firstWaits(b *bed) {
	p, mail, print := b.taken("l", 2)
	_, more, printed := b.taken("m", 2)
	b.queue("mail", "free", 2) // nobody has come to it yet
	first := func(what string, ids ...events.ID) {
		b.t.Helper()
		var wanted []events.Entity
		for _, id := range ids {
			wanted = append(wanted, events.MessageEntity(id))
		}
		slices.SortFunc(wanted, events.Entity.Compare)
		want(b, what, fmt.Sprint(b.selected(store.FirstWaits)), fmt.Sprint(wanted))
	}
	first("of two locks and topics", mail[0], print[0], more[0], printed[0])
	b.commit(b.unlocking(p.Worker, p))
	first("after a lock came free", mail[1], print[1], more[0], printed[0])
	urgent := b.locked("print", "m", 1)
	urgent[0].Priority = events.High
	b.commit(b.enqueueing(urgent...))
	b.claim(b.id(), 1, "print")
	first("after one with a higher priority came", mail[1], print[1], more[0], urgent[0].ID)
	for _, row := range b.kept(store.RowFilter{Kind: events.KindMessage, Select: store.FirstWaits, Payloads: true}) {
		b.carries(row)
	}
}
