package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

func commitIDs() []sentence {
	return []sentence{
		{"a commit id that is used twice has one effect", usedTwice},
		{"a commit id that is used twice in one Decide has one effect", usedTwiceTogether},
		{"commits that were kept together are answered together as they were", askedTogether},
		{"a commit id that many use at once has one effect", usedAtOnce},
		{"a commit id that is no UUIDv7 is refused", notVersion7},
		{"a commit id older than the horizon is refused", expired},
	}
}

func outcomes() []sentence {
	return []sentence{
		{"Outcome of a used id is its receipt", func(b *bed) {
			receipt := b.enqueue("mail", 2)
			for range 2 {
				settled, committed := b.outcome(receipt.ID)
				want(b, "committed", committed, true)
				b.ok(settled.Err)
				b.same("receipt", settled.Events, receipt.Events)
			}
		}},
		{"Outcome of an unused id makes it unusable", outcomeVoids},
		{"Outcome of an id that is no UUIDv7, or expired, is an error", outcomeChecks},
		{"Outcome leaves nothing in the log", func(b *bed) {
			head := b.head()
			b.outcome(b.id())
			want(b, "head", b.head(), head)
		}},
		{"Outcome of an id in flight is final", outcomeInFlight},
		{"Outcome and Decide of one id at once agree", outcomeRace},
	}
}

func usedTwice(b *bed) {
	first := b.enqueueing(b.drafts("mail", 2)...)
	receipt := b.commit(first)
	b.enqueue("mail", 1) // so that the commit is not the newest
	other := b.enqueueing(b.drafts("other", 3)...)
	other.ID = first.ID
	for _, call := range []store.Call{first, other} {
		again := b.commit(call)
		want(b, "id", again.ID, first.ID)
		b.same("receipt", again.Events, receipt.Events)
	}
	want(b, "events", len(b.log(store.Filter{})), len(receipt.Events)+1)
	want(b, "rows", len(b.kept(store.RowFilter{})), 4)
}

func usedTwiceTogether(b *bed) {
	first, other := b.enqueueing(b.draft("mail")), b.enqueueing(b.draft("other"))
	other.ID = first.ID
	receipts := b.decide(first, other)
	b.ok(receipts[1].Err)
	b.same("second receipt", receipts[1].Events, receipts[0].Events)
	b.same("log", b.log(store.Filter{}), receipts[0].Events)
}

func askedTogether(b *bed) {
	list := []store.Call{b.enqueueing(b.drafts("mail", 2)...), b.configuring("print", 3), b.enqueueing(b.draft("other"))}
	first := b.decide(list...)
	for i, again := range b.decide(list...) {
		b.ok(again.Err)
		b.same(fmt.Sprintf("receipt %d", i), again.Events, first[i].Events)
	}
}

func usedAtOnce(b *bed) {
	const callers = 8
	for range 5 {
		id, head := b.id(), b.head()
		list, receipts := make([]store.Call, callers), make([]store.Receipt, callers)
		for i := range list {
			list[i] = b.enqueueing(b.drafts("mail", i+1)...)
			list[i].ID = id
		}
		b.ok(together(callers, func(i int) error {
			r, err := b.s.Decide(b.ctx, list[i])
			if err != nil {
				return err
			}
			receipts[i] = r[0]
			return r[0].Err
		}))
		log := b.behind(head, store.Filter{})
		for _, r := range receipts {
			b.same("receipt", r.Events, log)
		}
	}
}

func notVersion7(b *bed) {
	v4 := b.id()
	v4[6] = v4[6]&0x0f | 0x40
	for _, id := range []events.ID{{}, v4} {
		call := b.enqueueing(b.draft("mail"))
		call.ID = id
		if err := b.decide(call)[0].Err; err == nil {
			b.t.Fatalf("commit id %s was used", id)
		}
	}
	want(b, "events", len(b.log(store.Filter{})), 0)
}

func expired(b *bed) {
	call := b.enqueueing(b.draft("mail"))
	call.ID = mint(b.now().Add(-store.Horizon - time.Minute))
	b.is(b.decide(call)[0].Err, store.ErrExpired)
	want(b, "events", len(b.log(store.Filter{})), 0)
	call.ID = mint(b.now().Add(-store.Horizon + time.Minute))
	b.commit(call)
}

func outcomeVoids(b *bed) {
	call := b.enqueueing(b.draft("mail"))
	for range 2 {
		receipt, committed := b.outcome(call.ID)
		want(b, "committed", committed, false)
		want(b, "events", len(receipt.Events), 0)
	}
	for range 2 {
		b.is(b.decide(call)[0].Err, store.ErrVoid)
	}
	_, committed := b.outcome(call.ID)
	want(b, "committed", committed, false)
	want(b, "events", len(b.log(store.Filter{})), 0)
	call.ID = b.id()
	b.commit(call)
}

func outcomeChecks(b *bed) {
	if _, committed, err := b.s.Outcome(b.ctx, events.ID{}); err == nil || committed {
		b.t.Fatalf("outcome of the zero id: committed %t, error %v", committed, err)
	}
	_, committed, err := b.s.Outcome(b.ctx, mint(b.now().Add(-store.Horizon-time.Minute)))
	b.is(err, store.ErrExpired)
	want(b, "committed", committed, false)
}

// settled is what one caller heard from Decide and another from Outcome.
type settled struct {
	receipt   store.Receipt
	err       error
	outcome   store.Receipt
	committed bool
}

// agree ends the test unless both heard the same.
func (b *bed) agree(s settled) {
	b.t.Helper()
	b.ok(s.err)
	log := 0
	for _, r := range b.log(store.Filter{}) {
		if r.Commit.ID == s.receipt.ID {
			log++
		}
	}
	if s.committed {
		b.ok(s.receipt.Err)
		b.same("outcome", s.outcome.Events, s.receipt.Events)
		want(b, "events", log, len(s.receipt.Events))
		return
	}
	b.is(s.receipt.Err, store.ErrVoid)
	want(b, "events", log, 0)
}

func outcomeInFlight(b *bed) {
	call := b.giving(configured("a", 0))
	fn, deciding, goOn := call.Fn, make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(deciding) }) // Fn may run again
	call.Fn = func(view store.View) (store.Changes, error) {
		begun()
		<-goOn
		return fn(view)
	}
	var s settled
	b.ok(together(2, func(i int) error {
		if i == 0 {
			var receipts []store.Receipt
			if receipts, s.err = b.s.Decide(b.ctx, call); s.err == nil {
				s.receipt = receipts[0]
			}
			return s.err
		}
		<-deciding
		asking := make(chan struct{})
		answered := make(chan error, 1)
		go func() {
			var err error
			close(asking)
			s.outcome, s.committed, err = b.s.Outcome(b.ctx, call.ID)
			answered <- err
		}()
		<-asking
		close(goOn)
		return <-answered
	}))
	b.agree(s)
}

func outcomeRace(b *bed) {
	for i := range 20 {
		call := b.giving(configured(fmt.Sprint(i), 0))
		var s settled
		b.ok(together(2, func(i int) error {
			if i == 1 {
				var err error
				s.outcome, s.committed, err = b.s.Outcome(b.ctx, call.ID)
				return err
			}
			receipts, err := b.s.Decide(b.ctx, call)
			if err == nil {
				s.receipt = receipts[0]
			}
			return err
		}))
		b.agree(s)
	}
}
