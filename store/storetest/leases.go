package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// leases are the sentences about an engine that is a store.Leaser.
func leases() []sentence {
	return []sentence{
		{"a turn is given the lease that was kept last, or none where nobody ever had it", leaseKept},
		{"a turn is given the store's time", leaseTime},
		{"leases of two names are two", func(b *bed) {
			b.term("a", 3)
			b.term("b'\"; --é", 1)
			b.term("a", 4)
			want(b, "term", b.leased("a").Term, 4)
			want(b, "term of another name", b.leased("b'\"; --é").Term, 1)
			want(b, "term of a third name", b.leased("A").Term, 0)
		}},
		{"turns at once are one after the other", leaseTurns},
		{"a lease is no event", func(b *bed) {
			head := b.head()
			b.term("a", 1)
			want(b, "head", b.head(), head)
			want(b, "rows", len(b.kept(store.RowFilter{})), 0)
		}},
		{"a turn whose context has ended is not taken", leaseWithdrawn},
	}
}

// sharedLeases are the sentences about several processes that have leases.
func sharedLeases() []sentence {
	return []sentence{
		{"turns of several processes are one after the other", func(b *bed) { b.leaseTogether([]*bed{b, b.again(), b.again()}) }},
		{"a lease is there after the store was closed", func(b *bed) {
			kept := b.term("beat", 3)
			b.ok(b.s.Close())
			c := b.again()
			want(c, "lease", exactLease(c.leased("beat")), exactLease(kept))
		}},
	}
}

// lease has a turn taken.
func (b *bed) lease(name string, turn func(store.Lease, time.Time) store.Lease) store.Lease {
	b.t.Helper()
	leaser, _ := store.As[store.Leaser](b.s)
	lease, err := leaser.Lease(b.ctx, name, turn)
	b.ok(err)
	return lease
}

// leased is the lease as it is kept.
func (b *bed) leased(name string) store.Lease {
	b.t.Helper()
	return b.lease(name, func(l store.Lease, _ time.Time) store.Lease { return l })
}

// term sets a lease's term.
func (b *bed) term(name string, term int) store.Lease {
	b.t.Helper()
	return b.lease(name, func(l store.Lease, now time.Time) store.Lease {
		return store.Lease{Holder: events.ID{byte(term)}, Term: term, UntilAt: now.Add(time.Second), Life: time.Second}
	})
}

func exactLease(l store.Lease) string {
	return fmt.Sprintf("term %d of %s until %s for %s, swept %s", l.Term, l.Holder, l.UntilAt.Format(time.RFC3339Nano), l.Life, l.SweptAt.Format(time.RFC3339Nano))
}

func leaseKept(b *bed) {
	last := store.Lease{}
	for _, next := range []store.Lease{
		{Holder: b.id(), Term: 1, UntilAt: someTime, Life: 1500 * time.Microsecond},
		{Holder: b.id(), Term: 1<<40 + 1, UntilAt: someTime.Add(time.Microsecond), Life: time.Hour, SweptAt: someTime.Add(-time.Hour)},
		{Term: 1<<40 + 1, UntilAt: someTime, SweptAt: someTime},
		{},
		{Term: 7},
	} {
		var given store.Lease
		kept := b.lease("beat", func(l store.Lease, _ time.Time) store.Lease {
			given = l
			return next
		})
		want(b, "given", exactLease(given), exactLease(last))
		want(b, "kept", exactLease(kept), exactLease(next))
		want(b, "kept, read again", exactLease(b.leased("beat")), exactLease(next))
		last = next
	}
}

func leaseTime(b *bed) {
	before, err := b.s.Now(b.ctx)
	b.ok(err)
	var given time.Time
	b.lease("beat", func(l store.Lease, now time.Time) store.Lease {
		given = now
		return l
	})
	after, err := b.s.Now(b.ctx)
	b.ok(err)
	if given.Before(before) || given.After(after) {
		b.t.Fatalf("the turn was given %s, it was between %s and %s", given, before, after)
	}
	want(b, "time in microseconds", given, given.Truncate(time.Microsecond))
	want(b, "location", given.Location(), time.UTC)
}

func leaseTurns(b *bed) { b.leaseTogether([]*bed{b, b, b, b}) }

// leaseTogether has several callers take the next term over and over. None is lost, and none is given twice.
func (b *bed) leaseTogether(callers []*bed) {
	b.t.Helper()
	const each = 20
	terms := make([][]int, len(callers))
	b.ok(together(len(callers), func(i int) error {
		leaser, _ := store.As[store.Leaser](callers[i].s)
		for range each {
			lease, err := leaser.Lease(b.ctx, "beat", func(l store.Lease, now time.Time) store.Lease {
				return store.Lease{Holder: events.ID{byte(i + 1)}, Term: l.Term + 1, UntilAt: now}
			})
			if err != nil {
				return err
			}
			terms[i] = append(terms[i], lease.Term)
		}
		return nil
	}))
	holder := map[int]int{}
	for i, list := range terms {
		for _, term := range list {
			if other, ok := holder[term]; ok {
				b.t.Fatalf("term %d was given to caller %d and to caller %d", term, other, i)
			}
			holder[term] = i
		}
	}
	want(b, "terms", len(holder), len(callers)*each)
	want(b, "last term", b.leased("beat").Term, len(callers)*each)
}

func leaseWithdrawn(b *bed) {
	b.term("beat", 1)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	leaser, _ := store.As[store.Leaser](b.s)
	lease, err := leaser.Lease(ctx, "beat", func(store.Lease, time.Time) store.Lease { return store.Lease{Term: 2} })
	if !errors.Is(err, context.Canceled) {
		b.t.Fatalf("lease %+v, error %v, want %v", lease, err, context.Canceled)
	}
	want(b, "term", b.leased("beat").Term, 1)
}
