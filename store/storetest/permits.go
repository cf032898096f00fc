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

func permits() []sentence {
	return []sentence{
		{"a permit comes back as it was kept", permitComesBack},
		{"permits are given by their keys, those of them that are out", permitsByKey},
		{"permits of a lock come in pages: those that expire first, then the oldest", permitsByExpiry},
		{"permits of a worker come with its claims in pages, the oldest first, each once", permitsOfWorker},
		{"with a worker's permits come their locks, and who waits for them", locksOfWorker},
		{"a permit that is given out twice, or taken back when it is not out, refuses its call", permitRefused},
		{"what is refused leaves every permit as it was", permitsUntouched},
		{"a commit id that is used twice takes one permit", usedTwiceTakesOne},
		{"a later call sees the permits that earlier ones moved", permitsLater},
		{"tokens that are drawn rise over all calls and locks", fenceRises},
		{"concurrent calls never draw one token twice", fenceApart},
		{"Permits yields those that are out, by lock, then token", permitsInOrder},
		{"Permits filters by lock, worker and time, all at once", permitsFiltered},
		{"Permits holds nothing while the caller's loop body runs", writeWhilePermits},
	}
}

// exactPermits is permits as text, by lock, then token.
func exactPermits(list []store.Permit) []string {
	list = slices.Clone(list)
	slices.SortFunc(list, byKey)
	all := make([]string, len(list))
	for i, p := range list {
		all[i] = fmt.Sprintf("%q %d of %s for %s since %s until %s", p.Lock, p.Token, p.Worker, p.Message,
			p.AcquiredAt.Format(time.RFC3339Nano), p.ExpiresAt.Format(time.RFC3339Nano))
	}
	return all
}

func byKey(x, y store.Permit) int {
	return cmp.Or(strings.Compare(x.Lock, y.Lock), cmp.Compare(x.Token, y.Token))
}

// permitRow is a permit of the rules as a store keeps it.
func permitRow(p fsm.Permit) store.Permit {
	return store.Permit{
		PermitKey: store.PermitKey(p.PermitKey), Worker: p.Worker, Message: p.Message, AcquiredAt: p.AcquiredAt, ExpiresAt: p.ExpiresAt,
	}
}

// samePermits ends the test unless both lists hold the same permits, in whatever order.
func (b *bed) samePermits(what string, got, wanted []store.Permit) {
	b.t.Helper()
	want(b, what, strings.Join(exactPermits(got), "\n"), strings.Join(exactPermits(wanted), "\n"))
}

// moving is the call that gives permits out and takes others back, whatever their locks allow, each with its event. A permit without a
// token gets the next one, which stands in the list afterwards.
func (b *bed) moving(out []store.Permit, back ...store.Permit) store.Call {
	need := store.Need{}
	for _, p := range slices.Concat(out, back) {
		need.Locks = append(need.Locks, p.Lock)
	}
	given := slices.Clone(out)
	return b.made(need, func(view store.View) (store.Changes, error) {
		held, err := calls.Hold(view)
		if err != nil {
			return store.Changes{}, err
		}
		var changes store.Changes
		locks, at := map[string]fsm.Lock{}, map[string]int{}
		move := func(name string, event events.Event) {
			lock, moved := locks[name]
			if !moved {
				lock = held.Locks[name]
				lock.Name = name
				at[name] = len(changes.Rows)
				changes.Rows = append(changes.Rows, store.Change{From: lock.Version})
			}
			after := lock.Evolve(event, view.Now)
			c := &changes.Rows[at[name]]
			c.Transitions = append(c.Transitions, events.Transition{Event: event, Version: after.Version, From: lock.State, To: after.State})
			c.Row, c.Gone, locks[name] = calls.Row(&after), !after.Kept(), after
		}
		for i, p := range given {
			if p.Token == 0 {
				p.Token = view.Fence + events.Token(i)
			}
			out[i].Token = p.Token
			move(p.Lock, &events.LockAcquired{Token: p.Token, Worker: p.Worker, Message: p.Message, ExpiresAt: p.ExpiresAt})
			changes.Permits = append(changes.Permits, store.PermitChange{Permit: p})
		}
		for _, p := range back {
			move(p.Lock, &events.LockReleased{Token: p.Token})
			changes.Permits = append(changes.Permits, store.PermitChange{Permit: p, Back: true})
		}
		return changes, nil
	})
}

// out gives permits out by one commit, and gives them with their tokens.
func (b *bed) out(list ...store.Permit) []store.Permit {
	b.t.Helper()
	b.commit(b.moving(list))
	return list
}

// someTime is the time of permits that are made by hand.
var someTime = time.UnixMicro(1_780_000_000_123_456).UTC()

// permit is one to be given out, acquired so many microseconds after some time, which does not expire.
func permit(lock string, worker events.ID, us int) store.Permit {
	return store.Permit{PermitKey: store.PermitKey{Lock: lock}, Worker: worker, AcquiredAt: someTime.Add(time.Duration(us) * time.Microsecond)}
}

func permitComesBack(b *bed) {
	worker := b.id()
	plain, full := permit("l", worker, 0), permit("é'\"%_\\; --\n", b.id(), 1)
	full.Message, full.ExpiresAt = b.id(), someTime.Add(time.Hour+time.Microsecond)
	list := b.out(plain, full)
	want(b, "permits", fmt.Sprint(b.permitted(store.PermitFilter{})), fmt.Sprint(exactPermits(list)))
	b.samePermits("by key", b.seen(store.Need{Permits: []store.PermitKey{list[0].PermitKey, list[1].PermitKey}}).Permits, list)
	b.samePermits("by lock", b.seen(store.Need{Holders: []store.LockPage{{Lock: full.Lock, N: 9}}}).Permits, list[1:])
	b.samePermits("by worker", b.seen(store.Need{Claims: []store.Holder{{Worker: worker, N: 9}}}).Permits, list[:1])
	b.commit(b.moving(nil, list...))
	want(b, "permits that are back", len(b.permitted(store.PermitFilter{})), 0)
}

func permitsByKey(b *bed) {
	worker := b.id()
	list := b.out(permit("a", worker, 0), permit("a", worker, 1), permit("b", worker, 2), permit("b", worker, 3))
	b.commit(b.moving(nil, list[3]))
	need := store.Need{Permits: []store.PermitKey{
		list[0].PermitKey, list[2].PermitKey, list[3].PermitKey, list[0].PermitKey,
		{Lock: "b", Token: list[0].Token}, {Lock: "never", Token: list[1].Token}, {Lock: "a", Token: 1 << 40},
	}}
	b.samePermits("given", b.seen(need).Permits, []store.Permit{list[0], list[2]})
	want(b, "permits that nobody named", len(b.seen(store.Need{Locks: []string{"a", "b"}}).Permits), 0)
}

func permitsByExpiry(b *bed) {
	var list []store.Permit
	for i, expires := range []int{0, 9, 5, 0, 5, 7, 0} {
		p := permit("l", b.id(), []int{4, 3, 2, 1, 1, 9, 1}[i])
		if expires > 0 {
			p.ExpiresAt = someTime.Add(time.Duration(expires) * time.Microsecond)
		}
		list = append(list, p)
	}
	other := permit("m", b.id(), 0)
	other.ExpiresAt = someTime
	list = b.out(append(list, other)...)
	// Those of the same time are as old as their tokens are low.
	ordered := []store.Permit{list[4], list[2], list[5], list[1], list[3], list[6], list[0]}
	for n := range len(ordered) + 2 {
		view := b.seen(store.Need{Holders: []store.LockPage{{Lock: "l", N: n}, {Lock: "never", N: n}}})
		b.samePermits(fmt.Sprintf("a page of %d", n), view.Permits, ordered[:min(n, len(ordered))])
	}
	view := b.seen(store.Need{
		Holders: []store.LockPage{{Lock: "l", N: 2}, {Lock: "m", N: 2}, {Lock: "l", N: 3}}, Permits: []store.PermitKey{list[5].PermitKey, list[0].PermitKey},
	})
	b.samePermits("several pages and keys, each once", view.Permits, append(ordered[:3:3], list[0], list[7]))
	b.commit(b.moving(nil, ordered[0], ordered[2], ordered[6]))
	view = b.seen(store.Need{Holders: []store.LockPage{{Lock: "l", N: 3}}})
	b.samePermits("a page after three are back", view.Permits, []store.Permit{ordered[1], ordered[3], ordered[4]})
}

func permitsOfWorker(b *bed) {
	mine, other := b.id(), b.id()
	list := b.out(permit("b", mine, 5), permit("a", mine, 9), permit("c", mine, 5), permit("a", other, 0), permit("d", mine, 1))
	ordered := []store.Permit{list[4], list[0], list[2], list[1]} // of the same time the one with the lower token
	for n := range 6 {
		view := b.seen(store.Need{Claims: []store.Holder{{Worker: mine, N: n}, {Worker: b.id(), N: n}}})
		b.samePermits(fmt.Sprintf("a page of %d", n), view.Permits, ordered[:min(n, len(ordered))])
	}
	b.commit(b.moving(nil, ordered[1]))
	ordered = slices.Delete(ordered, 1, 2)
	b.samePermits("a page after one is back", b.seen(store.Need{Claims: []store.Holder{{Worker: mine, N: 2}}}).Permits, ordered[:2])
	// With claims, whose permits are younger than all of these.
	b.queue("mail", "l1", 1)
	b.queue("mail", "l2", 1)
	var claimed []store.Permit
	for range 2 {
		for _, m := range b.claim(mine, 1, "mail") {
			claimed = append(claimed, store.Permit{PermitKey: store.PermitKey(m.Permit()), Worker: mine, Message: m.ID, AcquiredAt: m.ClaimedAt})
		}
	}
	want(b, "claimed", len(claimed), 2)
	for _, n := range []int{0, 2, 3, 5, 7} { // of two claims in one microsecond neither is older, so no page has one of them
		view := b.seen(store.Need{Claims: []store.Holder{{Worker: mine, N: n}}})
		page := append(ordered[:3:3], claimed...)[:min(n, 5)]
		for _, p := range claimed[:min(n, 2)] {
			if !slices.Contains(page, p) {
				page = append(page[:len(page):len(page)], p)
			}
		}
		b.samePermits(fmt.Sprintf("a page of %d with claims", n), view.Permits, page)
	}
}

func locksOfWorker(b *bed) {
	mine := b.id()
	b.acquire("x", mine)
	b.acquire("y", b.id())
	b.queue("mail", "l", 1)
	b.claim(mine, 1, "mail")
	waiting := map[string]events.ID{}
	for _, lock := range []string{"l", "x", "y"} {
		waiting[lock] = b.queue("of "+lock, lock, 1)[0]
		b.claim(b.id(), 1, "of "+lock)
	}
	view := b.seen(store.Need{Claims: []store.Holder{{Worker: mine, N: 9}}})
	want(b, "permits", len(view.Permits), 2)
	for _, lock := range []string{"l", "x"} {
		entity := events.LockEntity(lock)
		b.sameRows("lock", []store.Row{view.Rows[entity]}, []store.Row{b.row(entity)})
		want(b, "who waits for "+lock, b.waiters(view, lock), fmt.Sprintf("[blocked %s]", waiting[lock]))
	}
	_, brought := view.Rows[events.LockEntity("y")]
	want(b, "the lock of another worker's permit is there", brought, false)
}

func permitRefused(b *bed) {
	list := b.out(permit("l", b.id(), 0), permit("l", b.id(), 1))
	b.commit(b.moving(nil, list[1]))
	event := func(moves ...store.PermitChange) store.Changes {
		return store.Changes{Rows: []store.Change{configured("a", 0)}, Permits: moves}
	}
	fresh := store.Permit{PermitKey: store.PermitKey{Lock: "l", Token: list[1].Token + 1000}, Worker: b.id(), AcquiredAt: someTime}
	b.refuses("one that is out, given out", event(store.PermitChange{Permit: list[0]}))
	b.refuses("one that is out, given out to somebody else", event(store.PermitChange{Permit: store.Permit{PermitKey: list[0].PermitKey, Worker: b.id()}}))
	b.refuses("one that is back, taken back", event(store.PermitChange{Permit: list[1], Back: true}))
	b.refuses("one that never was out, taken back", event(store.PermitChange{Permit: fresh, Back: true}))
	b.refuses("one given out twice in one call", event(store.PermitChange{Permit: fresh}, store.PermitChange{Permit: fresh}))
	b.refuses("one taken back twice in one call", event(
		store.PermitChange{Permit: list[0], Back: true}, store.PermitChange{Permit: list[0], Back: true}))
	b.refuses("one without a token", event(store.PermitChange{Permit: store.Permit{PermitKey: store.PermitKey{Lock: "l"}, Worker: b.id()}}))
	b.refuses("one without a worker", event(store.PermitChange{Permit: store.Permit{PermitKey: fresh.PermitKey}}))
	want(b, "permits", fmt.Sprint(b.permitted(store.PermitFilter{})), fmt.Sprint(exactPermits(list[:1])))
}

func permitsUntouched(b *bed) {
	list := b.out(permit("l", b.id(), 0))
	fresh := store.Permit{PermitKey: store.PermitKey{Lock: "l", Token: list[0].Token + 1}, Worker: b.id(), AcquiredAt: someTime}
	moves := []store.PermitChange{{Permit: fresh}, {Permit: list[0], Back: true}}
	refused := b.made(store.Need{}, func(store.View) (store.Changes, error) {
		return store.Changes{Rows: []store.Change{configured("a", 0)}, Permits: moves}, &fsm.Refusal{}
	})
	if b.decide(refused)[0].Err == nil {
		b.t.Fatal("a call that its Fn refused was kept")
	}
	b.refuses("permits beside a change from a version that the entity does not have", store.Changes{
		Rows: []store.Change{configured("a", 7)}, Permits: moves,
	})
	b.refuses("permits without an event", store.Changes{Permits: moves})
	want(b, "permits", fmt.Sprint(b.permitted(store.PermitFilter{})), fmt.Sprint(exactPermits(list)))
}

func usedTwiceTakesOne(b *bed) {
	call, _ := calls.Acquire(b.origin(), fsm.Acquire{Lock: "l", Worker: b.id()})
	receipts := b.decide(b.allotting("l", 9), call, call)
	b.same("second receipt", receipts[2].Events, receipts[1].Events)
	b.same("third receipt", b.commit(call).Events, receipts[1].Events)
	want(b, "permits", len(b.permitted(store.PermitFilter{})), 1)
	want(b, "held", b.lock(b.seen(store.Need{Locks: []string{"l"}}), "l").Held, 1)
}

func permitsLater(b *bed) {
	one, two, three := b.id(), b.id(), b.id()
	forcing := func() store.Call { return calls.ForceRelease(b.origin(), fsm.ForceRelease{Lock: "l", By: "ops"}) }
	acquiring := func(worker events.ID) store.Call {
		call, _ := calls.Acquire(b.origin(), fsm.Acquire{Lock: "l", Worker: worker})
		return call
	}
	receipts := b.decide(acquiring(one), acquiring(two), forcing(), acquiring(two), b.reclaiming(one, 9), b.reclaiming(two, 9), acquiring(three))
	for i, wanted := range []string{
		"[lock.acquired]", "[]", "[lock.force_released]", "[lock.acquired]", "[]", "[lock.orphaned lock.reclaimed]", "[lock.acquired]",
	} {
		want(b, fmt.Sprintf("events of call %d", i), fmt.Sprint(types(receipts[i].Events)), wanted)
		want(b, fmt.Sprintf("call %d was refused", i), receipts[i].Err != nil, i == 1)
	}
	receipts = b.decide(forcing(), forcing())
	want(b, "events of two that take it back", fmt.Sprint(types(receipts[0].Events), types(receipts[1].Events)), "[lock.force_released] []")
	want(b, "permits", len(b.permitted(store.PermitFilter{})), 0)
	b.folds(b.log(store.Filter{Entity: events.LockEntity("l")}))
}

func fenceApart(b *bed) {
	const callers, each = 6, 8
	list := make([][]store.Call, callers)
	for i := range list {
		for n := range each {
			call, _ := calls.Acquire(b.origin(), fsm.Acquire{Lock: fmt.Sprint(i, n), Worker: b.id()})
			list[i] = append(list[i], call)
		}
	}
	b.ok(together(callers, func(i int) error {
		for _, call := range list[i] {
			receipts, err := b.s.Decide(b.ctx, call)
			if err != nil || receipts[0].Err != nil {
				return cmp.Or(err, receipts[0].Err)
			}
		}
		return nil
	}))
	given := map[events.Token]int64{}
	for _, r := range b.log(store.Filter{Types: []events.Type{events.TypeLockAcquired}}) {
		token := r.Event.(*events.LockAcquired).Token
		if at, twice := given[token]; twice {
			b.t.Fatalf("token %d at position %d was given at position %d already", token, r.Position, at)
		}
		given[token] = r.Position
	}
	want(b, "permits", len(b.permitted(store.PermitFilter{})), callers*each)
}

func fenceRises(b *bed) {
	last := events.Token(0)
	rises := func(what string, list ...store.Permit) {
		b.t.Helper()
		for _, p := range list {
			if p.Token <= last {
				b.t.Fatalf("%s: token %d of lock %q does not rise over %d", what, p.Token, p.Lock, last)
			}
			last = p.Token
		}
	}
	worker := b.id()
	rises("the first", b.out(permit("a", worker, 0))...)
	rises("several of one call", b.out(permit("a", worker, 0), permit("b", worker, 0), permit("a", worker, 0))...)
	lists := [][]store.Permit{{permit("c", worker, 0), permit("a", worker, 0)}, {permit("b", worker, 0)}, {permit("b", worker, 0)}}
	for _, r := range b.decide(b.moving(lists[0]), b.moving(lists[1]), b.moving(lists[2])) {
		b.ok(r.Err)
	}
	rises("calls of one Decide", slices.Concat(lists...)...)
	for range 3 {
		p := b.acquire("free", worker)
		rises("a lock that was free", permitRow(p))
		b.commit(b.unlocking(worker, p))
	}
	for range 3 {
		b.queue("mail", "free", 1)
		m := b.claim(worker, 1, "mail")[0]
		rises("a claim", store.Permit{PermitKey: store.PermitKey(m.Permit())})
		b.commit(b.completing(m))
	}
	for what, need := range map[string]store.Need{
		"a lock": {Locks: []string{"a"}}, "a free lock": {Locks: []string{"free"}}, "a lock that never was": {Locks: []string{"never"}},
		"a lock as an entity": {Held: []events.Entity{events.LockEntity("a")}}, "a worker's permits": {Claims: []store.Holder{{Worker: worker, N: 1}}},
	} {
		if fence := b.seen(need).Fence; fence <= last {
			b.t.Errorf("a call that holds %s is given fence %d, a token was %d", what, fence, last)
		}
	}
}

func permitsInOrder(b *bed) {
	worker := b.id()
	var list []store.Permit
	for _, lock := range []string{"b", "a", "é", "a b", "a", "b", "Z", "a"} {
		list = append(list, permit(lock, worker, 0))
	}
	b.out(list[:5]...)
	b.out(list[5:]...)
	slices.SortFunc(list, byKey)
	var yielded []store.PermitKey
	for p, err := range b.s.Permits(b.ctx, store.PermitFilter{}) {
		b.ok(err)
		yielded = append(yielded, p.PermitKey)
	}
	var wanted []store.PermitKey
	for _, p := range list {
		wanted = append(wanted, p.PermitKey)
	}
	want(b, "permits", fmt.Sprint(yielded), fmt.Sprint(wanted))
	b.commit(b.moving(nil, list[0], list[3]))
	want(b, "permits after two are back", len(b.permitted(store.PermitFilter{})), len(list)-2)
}

func permitsFiltered(b *bed) {
	one, two := b.id(), b.id()
	var list []store.Permit
	for i, lock := range []string{"a", "b", "a", "c", "a", "b"} {
		p := permit(lock, []events.ID{one, two, two, one}[i%4], i)
		if i%3 < 2 {
			p.ExpiresAt = someTime.Add(time.Duration(i) * time.Microsecond)
		}
		list = append(list, p)
	}
	list = b.out(list...)
	for _, lock := range []string{"", "a", "b", "never"} {
		for _, worker := range []events.ID{{}, one, two, b.id()} {
			for _, us := range []int{-2, -1, 0, 1, 3, 4, 9} {
				f := store.PermitFilter{Lock: lock, Worker: worker}
				if us > -2 {
					f.ExpiredAt = someTime.Add(time.Duration(us) * time.Microsecond)
				}
				var wanted []store.Permit
				for _, p := range list {
					over := f.ExpiredAt.IsZero() || !p.ExpiresAt.IsZero() && !p.ExpiresAt.After(f.ExpiredAt)
					if over && (lock == "" || p.Lock == lock) && (worker == events.ID{} || p.Worker == worker) {
						wanted = append(wanted, p)
					}
				}
				want(b, fmt.Sprintf("%+v", f), fmt.Sprint(b.permitted(f)), fmt.Sprint(exactPermits(wanted)))
			}
		}
	}
}

func writeWhilePermits(b *bed) {
	var list []store.Permit
	for i := range 700 {
		list = append(list, permit(fmt.Sprintf("lock %03d", i/7), b.id(), i))
	}
	b.out(list...)
	late := permit("zzz", b.id(), 0)
	var yielded []store.Permit
	for p, err := range b.s.Permits(b.ctx, store.PermitFilter{}) {
		b.ok(err)
		if len(yielded) == 10 {
			b.out(late)
		}
		if p.Lock != late.Lock {
			yielded = append(yielded, p)
		}
	}
	b.samePermits("what was out before the loop", yielded, list)
	for range b.s.Permits(b.ctx, store.PermitFilter{}) {
		break
	}
	b.acquire("again", b.id())
}
