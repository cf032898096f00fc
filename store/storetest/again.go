package storetest

import (
	"cmp"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// neighbours are the sentences about several processes on one store, each with a Store of its own.
func neighbours() []sentence {
	return []sentence{
		{"what was kept is there after the store was closed", reopened},
		{"processes see each other's commits", sharedCommits},
		{"processes never share a claim and keep limits together", sharedLimit},
		{"processes never hold more permits together than a lock has", func(b *bed) { b.contend([]*bed{b, b.again(), b.again()}, 2, 12) }},
		{"tokens of permits rise over processes, and after the store was closed", sharedFence},
		{"locks, permits and who waits are there after the store was closed", reopenedLocks},
		{"Outcome in one process settles an id of another", sharedOutcome},
	}
}

func reopened(b *bed) {
	b.commit(b.configuring("mail", 9))
	b.lives(3)
	b.enqueue("mail", 2)
	used, void := b.keyed("k", 0), b.enqueueing(b.draft("mail"))
	receipt := b.commit(used)
	b.outcome(void.ID)
	b.claim(b.id(), 1, "mail")
	log, kept, head := b.log(store.Filter{}), b.kept(store.RowFilter{Payloads: true}), b.head()
	b.ok(b.s.Close())

	c := b.again()
	c.same("log", c.log(store.Filter{}), log)
	c.sameRows("rows", c.kept(store.RowFilter{Payloads: true}), kept)
	want(c, "head", c.head(), head)
	c.same("receipt", c.commit(used).Events, receipt.Events)
	c.is(c.decide(void)[0].Err, store.ErrVoid)
	want(c, "events of a second enqueue of a key", len(c.commit(c.keyed("k", 0)).Events), 0)
	want(c, "granted", len(c.claim(c.id(), 9, "mail")), 2)
	c.same("log before", c.log(store.Filter{})[:len(log)], log)
}

func sharedCommits(b *bed) {
	c := b.again()
	for i := range 3 {
		receipt := b.enqueue("mail", 2)
		c.same(fmt.Sprintf("receipt %d", i), c.log(store.Filter{})[len(c.log(store.Filter{}))-len(receipt.Events):], receipt.Events)
		c.commit(c.completing(c.claim(c.id(), 1, "mail")...))
		want(b, "head", b.head(), c.head())
		b.same("log", b.log(store.Filter{}), c.log(store.Filter{}))
		b.sameRows("rows", b.kept(store.RowFilter{}), c.kept(store.RowFilter{}))
	}
	b.ok(b.s.Close())
	c.enqueue("mail", 1)
}

func sharedLimit(b *bed) {
	const processes, rounds, limit = 3, 12, 2
	b.commit(b.configuring("mail", limit))
	b.enqueue("mail", processes*rounds)
	beds := []*bed{b}
	for len(beds) < processes {
		beds = append(beds, b.again())
	}
	list := make([][]store.Call, processes)
	for i := range list {
		worker := b.id()
		for range rounds {
			list[i] = append(list[i], b.claiming(worker, 1, "mail"))
		}
	}
	b.ok(together(processes, func(i int) error {
		for _, call := range list[i] {
			receipts, err := beds[i].s.Decide(b.ctx, call)
			if err != nil || receipts[0].Err != nil {
				return cmp.Or(err, receipts[0].Err)
			}
			if err := beds[i].complete(receipts[0].Rows); err != nil {
				return err
			}
		}
		return nil
	}))
	b.within(limit)
	for _, row := range b.kept(store.RowFilter{Kind: events.KindMessage}) {
		b.folds(b.log(store.Filter{Entity: row.Entity}))
	}
}

func sharedFence(b *bed) {
	worker, last := b.id(), events.Token(0)
	c := b.again()
	rises := func(p fsm.Permit) {
		b.t.Helper()
		if p.Token <= last {
			b.t.Fatalf("token %d of lock %q does not rise over %d", p.Token, p.Lock, last)
		}
		last = p.Token
	}
	for i := range 4 {
		rises(b.acquire(fmt.Sprint("b", i), worker))
		rises(c.acquire(fmt.Sprint("c", i), worker))
		p := b.acquire("free", worker)
		rises(p)
		c.commit(c.unlocking(worker, p))
	}
	b.ok(b.s.Close())
	c.ok(c.s.Close())
	d := c.again()
	rises(d.acquire("free", worker))
	rises(d.acquire("never", worker))
}

func reopenedLocks(b *bed) {
	p, mail, print := b.taken("l", 2)
	b.commit(b.allotting("many", 3))
	full := permit("many", b.id(), 0)
	full.Message, full.ExpiresAt = b.id(), someTime.Add(time.Minute)
	b.out(full, permit("many", b.id(), 0))
	kept, permitted := b.kept(store.RowFilter{}), b.permitted(store.PermitFilter{})
	firsts := fmt.Sprint(b.selected(store.FirstWaits), b.selected(store.FirstClaims))
	b.ok(b.s.Close())

	c := b.again()
	c.sameRows("rows", c.kept(store.RowFilter{}), kept)
	want(c, "permits", fmt.Sprint(c.permitted(store.PermitFilter{})), fmt.Sprint(permitted))
	want(c, "permits whose time is over", len(c.permitted(store.PermitFilter{ExpiredAt: full.ExpiresAt})), 1)
	want(c, "selected", fmt.Sprint(c.selected(store.FirstWaits), c.selected(store.FirstClaims)), firsts)
	c.wait("who waits", "l", blocked(mail[0]), blocked(print[0]))
	c.commit(c.unlocking(p.Worker, p))
	c.wait("who tries", "l", blocked(mail[1]), trying(mail[0]), blocked(print[1]), trying(print[0]))
	want(c, "granted", len(c.claim(c.id(), 9, "mail", "print")), 1)
}

func sharedOutcome(b *bed) {
	c := b.again()
	call := b.giving(configured("a", 0))
	_, committed := c.outcome(call.ID)
	want(b, "committed", committed, false)
	b.is(b.decide(call)[0].Err, store.ErrVoid)
	receipt := b.enqueue("mail", 1)
	settled, committed := c.outcome(receipt.ID)
	want(b, "committed", committed, true)
	b.same("receipt", settled.Events, receipt.Events)
}
