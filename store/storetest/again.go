package storetest

import (
	"cmp"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// neighbours are the sentences about several processes on one store, each with a Store of its own.
func neighbours() []sentence {
	return []sentence{
		{"what was kept is there after the store was closed", reopened},
		{"processes see each other's commits", sharedCommits},
		{"processes never share a claim and keep limits together", sharedLimit},
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
