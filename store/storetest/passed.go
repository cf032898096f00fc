package storetest

import (
	"fmt"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file is what may go where somebody reads on from a cursor.

// upto asks for what one of the first events of a log has passed, which is counted from 1.
func (b *bed) upto(log []events.Recorded, n int) store.Prunable {
	asked := b.everything()
	asked.Upto = b.s.After(log[n-1])
	return asked
}

func offeredUpto(b *bed) {
	asked := b.everything()
	asked.Upto = b.head()
	log := b.uneven()
	if asked.Upto != "" {
		want(b, "offered behind what has passed nothing", exactPruning(b.offered(asked)), exactPruning(store.Pruning{}))
	}
	for n := range len(log) {
		for _, most := range []int{1, 5, len(log)} {
			asked := b.upto(log, n+1)
			asked.Events = most
			wanted := offer(log, asked, b.passable(log, n+1))
			want(b, fmt.Sprintf("%d offered of those that were passed by %d", most, n+1), exactPruning(b.offered(asked)), exactPruning(wanted))
		}
	}
	b.let(b.through(log, 8))
	want(b, "first", b.first(), b.s.After(log[7]))
	for _, n := range []int{1, 5, 8, 9} {
		want(b, "offered behind what is kept no more", exactPruning(b.offered(b.upto(log, n))), exactPruning(store.Pruning{}))
	}
	want(b, "offered of what is kept", b.offered(b.upto(log, 10)).Events, 2)
}

// passable is how many of the first events of a log may go where a cursor has passed so many: none of a message that has no row and was moved
// behind it for the last time.
func (b *bed) passable(log []events.Recorded, passed int) int {
	b.t.Helper()
	kept, moved := entities(b.kept(store.RowFilter{Kind: events.KindMessage})), map[events.Entity]int{}
	for i, r := range log {
		if r.Version > 0 && r.Entity.Kind == events.KindMessage && !slices.Contains(kept, r.Entity) {
			moved[r.Entity] = i
		}
	}
	for i, r := range log[:passed] {
		if moved[r.Entity] >= passed {
			return i
		}
	}
	return passed
}

func offeredEnded(b *bed) {
	b.enqueue("open", 1)
	b.enqueue("mail", 1)
	b.enqueue("mail", 1)
	claimed := b.claim(b.id(), 2, "mail")
	b.commit(b.completing(claimed[0]))
	b.commit(b.completing(claimed[0])) // refused, which moves nothing
	b.commit(b.completing(claimed[1]))
	b.claim(b.id(), 1, "open")
	log := b.log(store.Filter{})
	for n := range log {
		asked := b.upto(log, n+1)
		want(b, fmt.Sprintf("offered of those that were passed by %d", n+1), exactPruning(b.offered(asked)), exactPruning(offer(log, asked, b.passable(log, n+1))))
	}
	// Before the second of mail is enqueued, once the first has ended, once the second has.
	const begins, first, ends = 2 + 2, 2 + 2 + 1 + 2 + 1, 2 + 2 + 1 + 2 + 1 + 1 + 1
	for n := first; n < ends; n++ {
		want(b, "events that may go before the second has ended", b.offered(b.upto(log, n)).Events, begins)
	}
	want(b, "events that may go once it has", b.offered(b.upto(log, ends)).Events, ends)
	b.let(b.upto(log, ends-1))
	want(b, "first", b.first(), b.s.After(log[begins-1]))
	want(b, "events that may go then", b.offered(b.upto(log, ends-1)).Events, 0)
	b.let(b.upto(log, ends))
	want(b, "first", b.first(), b.s.After(log[ends-1]))
}

func offeredBadCursor(b *bed) {
	other := b.other()
	other.lives(1)
	b.lives(1)
	log := b.log(store.Filter{})
	newest := log[len(log)-1]
	newest.Position += 1 << 20
	for i, bad := range []struct {
		cursor store.Cursor
		class  error
	}{{other.head(), store.ErrCursor}, {"x", store.ErrCursor}, {b.s.After(newest), store.ErrAhead}} {
		asked := b.everything()
		asked.Upto = bad.cursor
		receipts := b.decide(b.letting(asked), b.enqueueing(b.draft("mail")))
		b.is(receipts[0].Err, bad.class)
		b.ok(receipts[1].Err)
		want(b, "first", b.first(), store.Cursor(""))
		want(b, "events", len(b.log(store.Filter{})), len(log)+i+1)
	}
}
