package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

func bounds() []sentence {
	return []sentence{
		{"a commit of the most events is kept, one more is too large", mostEvents},
		{"the longest name is kept, one byte more is too large", longestName},
		{"what is too large refuses its call alone", func(b *bed) {
			receipts := b.decide(b.giving(configured("a", 0)), b.giving(configured(strings.Repeat("n", store.MaxName+1), 0)), b.giving(configured("b", 0)))
			b.ok(receipts[0].Err)
			b.ok(receipts[2].Err)
			b.is(receipts[1].Err, store.ErrTooLarge)
		}},
	}
}

func largest() []sentence {
	return []sentence{{"the largest payload is kept, one byte more is too large", largestPayload}}
}

// tooLarge ends the test unless the call is refused with the bound named and nothing kept.
func (b *bed) tooLarge(call store.Call, bound int) {
	b.t.Helper()
	head := b.head()
	err := b.decide(call)[0].Err
	b.is(err, store.ErrTooLarge)
	if !strings.Contains(err.Error(), fmt.Sprint(bound)) || !strings.Contains(err.Error(), fmt.Sprint(bound+1)) {
		b.t.Fatalf("error %q does not name the bound %d and what came, %d", err, bound, bound+1)
	}
	want(b, "head", b.head(), head)
}

func mostEvents(b *bed) {
	list := make([]events.Event, store.MaxEvents+1)
	for i := range list {
		list[i] = &events.TopicPaused{}
	}
	topic := events.TopicEntity("a")
	b.tooLarge(b.giving(change(topic, 0, list...)), store.MaxEvents)
	receipt := b.commit(b.giving(change(topic, 0, list[1:]...)))
	want(b, "events of the receipt", len(receipt.Events), store.MaxEvents)
	want(b, "events of the log", len(b.log(store.Filter{})), store.MaxEvents)
}

func largestPayload(b *bed) {
	enqueue := func(size int) store.Call {
		c := change(events.MessageEntity(b.id()), 0, &events.MessageEnqueued{})
		c.Payload = &store.Payload{Bytes: []byte(strings.Repeat("\x00\xff", size/2+1))[:size]}
		return b.giving(c)
	}
	b.tooLarge(enqueue(store.MaxPayload+1), store.MaxPayload)
	row := b.commit(enqueue(store.MaxPayload)).Rows[0]
	want(b, "payload", len(b.row(row.Entity).Payload.Bytes), store.MaxPayload)
}

func longestName(b *bed) {
	longest := strings.Repeat("é", store.MaxName/2)
	b.tooLarge(b.giving(configured(longest+"x", 0)), store.MaxName)
	key := func(name string, from int) store.Call {
		return b.made(store.Need{}, func(store.View) (store.Changes, error) {
			keys := []store.KeyChange{{Key: store.Key{Topic: longest, Name: name}, Row: store.KeyRow{Message: mint(time.Now())}}}
			return store.Changes{Rows: []store.Change{configured(longest, from)}, Keys: keys}, nil
		})
	}
	b.tooLarge(key(longest+"x", 0), store.MaxName)
	b.commit(key(longest, 0))
	keys := b.seen(store.Need{Keys: []store.Key{{Topic: longest, Name: longest}}}).Keys
	want(b, "keys", len(keys), 1)
	want(b, "topic", b.kept(store.RowFilter{})[0].Entity.Name, longest)
	b.longestLock(longest)
}

// longestLock is longestName for all that names a lock.
func (b *bed) longestLock(longest string) {
	b.t.Helper()
	b.tooLarge(b.moving([]store.Permit{permit(longest+"x", b.id(), 0)}), store.MaxName)
	b.tooLarge(b.enqueueing(b.locked("mail", longest+"x", 1)...), store.MaxName)
	b.queue("mail", longest, 2)
	m := b.claim(b.id(), 2, "mail")[0]
	view := b.seen(store.Need{Locks: []string{longest}, Permits: []store.PermitKey{store.PermitKey(m.Permit())}})
	want(b, "permits of the longest name", len(view.Permits), 1)
	want(b, "messages that wait for the longest name", len(view.Waiting[longest]), 1)
}

// times are the sentences for which the suite turns the store's clock.
func times() []sentence {
	return []sentence{
		{"the store's clock is the only one", func(b *bed) {
			b = b.turned()
			now, err := b.s.Now(b.ctx)
			b.ok(err)
			want(b, "now", now.Equal(b.now()), true)
			b.turn(time.Hour + 1500*time.Nanosecond)
			receipt := b.enqueue("mail", 1)
			want(b, "time of the commit", receipt.Events[0].At().Equal(b.now().Truncate(time.Microsecond)), true)
		}},
		{"a message is claimable from its due time on", dueByClock},
		{"a key that outlives its message is free when its time is over", func(b *bed) {
			b = b.turned()
			b.commit(b.keyed("k", time.Hour))
			b.commit(b.completing(b.claim(b.id(), 1, "mail")...))
			b.turn(time.Hour - time.Microsecond)
			want(b, "events", len(b.commit(b.keyed("k", 0)).Events), 0)
			b.turn(time.Microsecond)
			want(b, "events", len(b.commit(b.keyed("k", 0)).Events), 1)
		}},
		{"open claims come in the order of their times", func(b *bed) {
			b = b.turned()
			worker := b.id()
			var claimed []events.ID
			for range 5 {
				b.enqueue("mail", 2)
				b.turn(time.Microsecond)
				claimed = append(claimed, ids(b.claim(worker, 1, "mail"))...)
			}
			view := b.seen(store.Need{Claims: []store.Holder{{Worker: worker, N: 4}}})
			want(b, "claims", fmt.Sprint(ids(b.messages(view.Claims[worker]))), fmt.Sprint(claimed[:4]))
		}},
		{"an id that grew older than the horizon never runs as new", expiredByClock},
		{"an id never runs twice, whichever way the clock is turned", turnedClock},
		{"an id that was given up stays so for the horizon", func(b *bed) {
			b = b.turned()
			call := b.enqueueing(b.draft("mail"))
			b.outcome(call.ID)
			b.turn(store.Horizon)
			b.is(b.decide(call)[0].Err, store.ErrVoid)
		}},
	}
}

func dueByClock(b *bed) {
	b = b.turned()
	later, at := b.draft("mail"), b.draft("mail")
	later.Delay = time.Minute
	at.DueAt = b.now().Add(time.Minute + time.Microsecond)
	b.commit(b.enqueueing(later, at))
	b.turn(time.Minute - time.Microsecond)
	want(b, "claimable", len(b.claimable("mail", 5)), 0)
	for n := range 3 {
		want(b, "claimable", len(b.claimable("mail", 5)), n)
		b.turn(time.Microsecond)
	}
}

func expiredByClock(b *bed) {
	b = b.turned()
	used, unused := b.enqueueing(b.draft("mail")), b.enqueueing(b.draft("mail"))
	first := b.commit(used)
	b.turn(store.Horizon)
	b.same("receipt at the horizon", b.commit(used).Events, first.Events)
	b.turn(time.Minute)
	b.is(b.decide(unused)[0].Err, store.ErrExpired)
	_, _, err := b.s.Outcome(b.ctx, unused.ID)
	b.is(err, store.ErrExpired)
	// Whether one that was used is still known is the engine's business. That it has no second effect is not.
	if again := b.decide(used)[0]; again.Err != nil {
		b.is(again.Err, store.ErrExpired)
	} else {
		b.same("receipt behind the horizon", again.Events, first.Events)
	}
	b.same("log", b.log(store.Filter{}), first.Events)
	if settled, committed, err := b.s.Outcome(b.ctx, used.ID); !committed {
		b.is(err, store.ErrExpired)
	} else {
		b.ok(errors.Join(err, settled.Err))
	}
}

// turnedClock has a clock that runs two days ahead for a while, in which the store believes that it may forget.
func turnedClock(b *bed) {
	b = b.turned()
	used, void := b.enqueueing(b.draft("mail")), b.enqueueing(b.draft("mail"))
	first := b.commit(used)
	b.outcome(void.ID)
	const ahead = 2 * store.Horizon
	b.turn(ahead)
	for range 200 {
		b.enqueue("mail", 1)
	}
	b.turn(-ahead)
	log := b.log(store.Filter{})
	again := b.decide(used)[0]
	if again.Err != nil {
		b.is(again.Err, store.ErrExpired)
	} else {
		b.same("receipt", again.Events, first.Events)
	}
	if settled, committed, err := b.s.Outcome(b.ctx, used.ID); committed {
		b.same("outcome", settled.Events, first.Events)
	} else {
		b.is(err, store.ErrExpired)
	}
	if err := b.decide(void)[0].Err; !errors.Is(err, store.ErrVoid) {
		b.is(err, store.ErrExpired)
	}
	b.same("log", b.log(store.Filter{}), log)
	b.turn(time.Millisecond)
	b.enqueue("mail", 1) // what is minted from now on is new
}
