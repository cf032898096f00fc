package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// prunedTimes are the sentences about prunes for which the suite turns the store's clock.
func prunedTimes() []sentence {
	return []sentence{
		{"what was decided before a time may go, up to the first that was not", offeredByTime},
		{"what was decided while the clock was ahead counts as of a time that is named, and else keeps what came after it", offeredWhenSetBack},
		{"a view tells the latest time of what was pruned, which never goes back", prunedAt},
		{"what was decided while the clock was ahead is pruned as of the prune", prunedAhead},
		{"a key goes when its time is over and its message has ended", prunedKeys},
		{"an id whose commit was pruned never runs as new, whichever way the clock is turned", prunedIDsByClock},
	}
}

// hourly makes a log of n commits of one event each, an hour apart.
func (b *bed) hourly(n int) []events.Recorded {
	b.t.Helper()
	b.commit(b.configuring("mail", 0))
	for range n - 1 {
		b.turn(time.Hour)
		b.enqueue("mail", 1)
	}
	return b.log(store.Filter{})
}

func offeredByTime(b *bed) {
	b = b.turned()
	log := b.hourly(5)
	for n, r := range log {
		for _, early := range []time.Duration{-time.Microsecond, 0, time.Microsecond} {
			asked := b.everything()
			asked.Before = r.At().Add(early)
			got := b.offered(asked)
			want(b, fmt.Sprintf("offered %s to the time of event %d", early, n), exactPruning(got), exactPruning(offer(log, asked, len(log))))
			wanted := n
			if early > 0 {
				wanted++
			}
			want(b, "events that may go", got.Events, wanted)
		}
	}
}

func offeredWhenSetBack(b *bed) {
	b = b.turned()
	log := b.hourly(3)
	b.turn(10 * time.Hour)
	b.enqueue("mail", 1)
	b.turn(-9 * time.Hour)
	b.enqueue("mail", 1)
	log = append(log, b.behind(b.s.After(log[2]), store.Filter{})...)
	offered := func(what string, before, ahead time.Time, wanted int) {
		b.t.Helper()
		asked := b.everything()
		asked.Before, asked.Ahead = before, ahead
		p := store.Pruning{Events: wanted, Through: log[wanted-1].Position, At: log[wanted-1].At()}
		want(b, what, exactPruning(b.offered(asked)), exactPruning(p))
	}
	now := b.now()
	far, tick := now.Add(100*time.Hour), time.Microsecond
	offered("behind what is ahead as of no time", far, time.Time{}, 3)
	offered("behind what is ahead as of a time that is too late", now.Add(tick), now.Add(tick), 3)
	offered("all, where what is ahead is old enough", now.Add(tick), now, 5)
	offered("what is ahead, but not what is too young behind it", now, now.Add(-tick), 4)
	b.turn(9 * time.Hour)
	offered("what is ahead no more, up to its time", log[3].At(), log[0].At(), 3)
	offered("what is ahead no more, behind its time", log[3].At().Add(tick), time.Time{}, 5)
}

func prunedAhead(b *bed) {
	b = b.turned()
	b.enqueue("mail", 1)
	b.turn(100 * time.Hour)
	ahead := b.draft("mail")
	ahead.ID = mint(b.now())
	b.commit(b.enqueueing(ahead))
	claimed := b.claim(b.id(), 2, "mail")
	b.turn(time.Minute - 100*time.Hour)
	b.commit(b.completing(claimed...))
	log := b.log(store.Filter{})
	asked := b.through(log, 3)
	asked.Ahead = b.now()
	b.let(asked)
	now := b.now()
	want(b, "time of what was pruned", b.seen(store.Need{}).PrunedAt.Format(time.RFC3339Nano), now.Format(time.RFC3339Nano))
	entity := events.MessageEntity(ahead.ID)
	b.refuses("a change from version 0 of what has ended, and has an id of a time to come",
		store.Changes{Rows: []store.Change{change(entity, 0, &events.MessageEnqueued{})}})
	want(b, "events that are left of it", len(b.behind(b.first(), store.Filter{Entity: entity})), 2)
	b.turn(time.Hour)
	asked = b.everything()
	asked.Ahead = now
	b.let(asked)
	want(b, "time of what was pruned then", b.seen(store.Need{}).PrunedAt.Format(time.RFC3339Nano), b.now().Format(time.RFC3339Nano))
}

func prunedAt(b *bed) {
	b = b.turned()
	log := b.hourly(3)
	told := func(what string, at time.Time) {
		b.t.Helper()
		want(b, what, b.seen(store.Need{}).PrunedAt.Equal(at), true)
		want(b, what+", asked for more", b.seen(store.Need{Prune: b.everything()}).PrunedAt.Equal(at), true)
	}
	told("before anything went", time.Time{})
	b.let(b.through(log, 2))
	told("once something went", log[1].At())
	b.turn(-time.Hour - time.Minute)
	b.enqueue("mail", 1)
	all := b.behind(b.first(), store.Filter{})
	b.turn(2 * time.Hour)
	b.let(b.through(all, len(all)))
	told("when the last that went was decided earlier than others", log[2].At())
	b.turn(time.Hour)
	newest := b.let(b.everything()).Events[0].At()
	b.turn(time.Hour)
	b.let(b.everything())
	told("at last", newest)
}

func prunedKeys(b *bed) {
	b = b.turned()
	short, long, open := store.Key{Topic: "mail", Name: "short"}, store.Key{Topic: "mail", Name: "long"}, store.Key{Topic: "mail", Name: "open"}
	b.commit(b.keyed(short.Name, time.Hour))
	b.commit(b.keyed(long.Name, 3*time.Hour))
	b.commit(b.completing(b.claim(b.id(), 9, "mail")...))
	b.commit(b.keyed(open.Name, time.Minute))
	held := func(what string, wanted ...store.Key) {
		b.t.Helper()
		view := b.seen(store.Need{Keys: []store.Key{short, long, open}})
		want(b, what+": keys", len(view.Keys), len(wanted))
		for _, key := range wanted {
			if _, ok := view.Keys[key]; !ok {
				b.t.Fatalf("%s: key %q is gone", what, key.Name)
			}
		}
	}
	b.let(b.everything())
	held("before any is over", short, long, open)
	b.turn(time.Hour - time.Microsecond)
	b.enqueue("mail", 1)
	b.let(b.everything())
	held("a moment before", short, long, open)
	b.turn(time.Microsecond)
	b.let(b.everything())
	held("when one is over", long, open)
	b.turn(time.Hour)
	want(b, "a message of one that is kept", len(b.commit(b.keyed(long.Name, 0)).Events), 0)
	b.turn(2 * time.Hour)
	want(b, "a message of one that is over", len(b.commit(b.keyed(short.Name, time.Minute)).Events), 1)
	want(b, "a message of another that is over", len(b.commit(b.keyed(long.Name, 0)).Events), 1)
	b.turn(time.Hour)
	for range 2 {
		b.let(b.everything())
		held("when all are over that have an open message", short, long, open)
	}
	b.commit(b.completing(b.claim(b.id(), 9, "mail")...))
	b.let(b.everything())
	held("when all have ended")
}

func prunedIDsByClock(b *bed) {
	b = b.turned()
	call := b.enqueueing(b.draft("mail"))
	b.commit(call)
	void := b.enqueueing(b.draft("mail"))
	b.outcome(void.ID)
	b.let(b.everything())
	b.turn(store.Horizon)
	b.let(b.everything())
	b.is(b.decide(call)[0].Err, store.ErrPruned)
	const ahead = 2 * store.Horizon
	b.turn(ahead)
	for range 200 {
		b.enqueue("mail", 1)
	}
	b.let(b.everything())
	b.turn(-ahead - store.Horizon)
	head := b.head()
	for _, c := range []struct {
		call  store.Call
		class error
	}{{call, store.ErrPruned}, {void, store.ErrVoid}} {
		if err := b.decide(c.call)[0].Err; !errors.Is(err, store.ErrExpired) {
			b.is(err, c.class)
		}
	}
	want(b, "head", b.head(), head)
}

// sharedPruning are the sentences about prunes of several processes.
func sharedPruning() []sentence {
	return []sentence{
		{"processes see each other's prunes", func(b *bed) {
			c := b.again()
			b.busy()
			log := b.log(store.Filter{})
			b.ok(b.pruneOften(1, wholePage(), b.s.After(log[20])))
			want(c, "first", c.first(), b.first())
			c.readFails("", store.ErrPruned)
			b.ok(c.pruneOften(1, wholePage(), ""))
			want(b, "first", b.first(), c.first())
			b.same("log", b.behind(b.first(), store.Filter{}), c.behind(c.first(), store.Filter{}))
			b.sound()
			c.sound()
			b.busy()
			c.sound()
		}},
		{"processes that prune at once let go of everything once", prunedTogether},
		{"what was pruned is so after the store was closed", reopenedPruned},
	}
}

func prunedTogether(b *bed) {
	b.busy()
	upto := b.head()
	beds := []*bed{b, b.again(), b.again()}
	b.ok(together(len(beds), func(i int) error { return beds[i].pruneOften(40, page{10, 1 << 10}, upto) }))
	for _, c := range beds {
		want(c, "first", c.first(), upto)
	}
	b.sound()
	positions := map[int64]bool{}
	for _, r := range b.behind(b.first(), store.Filter{Entity: events.LogEntity()}) {
		through := r.Event.(*events.LogPruned).Through
		want(b, "told twice", positions[through], false)
		positions[through] = true
	}
}

func reopenedPruned(b *bed) {
	b.busy()
	call := b.enqueueing(b.draft("mail"))
	b.commit(call)
	b.ok(b.pruneOften(1, wholePage(), ""))
	claimed := b.claim(b.id(), 1, "mail")
	b.commit(b.resulting(claimed...))
	first, log, kept, head := b.first(), b.behind(b.first(), store.Filter{}), b.kept(store.RowFilter{Payloads: true}), b.head()
	at := b.seen(store.Need{}).PrunedAt
	var order []events.ID
	for _, row := range b.claimable("mail", 99) {
		order = append(order, row.Entity.ID)
	}
	topic := b.contentsOf(claimed[0].ID).Topic
	b.ok(b.s.Close())

	c := b.again()
	want(c, "first", c.first(), first)
	want(c, "topic", c.contentsOf(claimed[0].ID).Topic, topic)
	want(c, "head", c.head(), head)
	c.same("log", c.behind(first, store.Filter{}), log)
	c.sameRows("rows", c.kept(store.RowFilter{Payloads: true}), kept)
	c.readFails("", store.ErrPruned)
	want(c, "time of what was pruned", c.seen(store.Need{}).PrunedAt.Equal(at), true)
	c.is(c.decide(call)[0].Err, store.ErrPruned)
	c.holds("contents", claimed[0].ID, result(claimed[0].ID))
	var again []events.ID
	for _, row := range c.claimable("mail", 99) {
		again = append(again, row.Entity.ID)
	}
	want(c, "claimable", fmt.Sprint(again), fmt.Sprint(order))
	if receipt := c.enqueue("mail", 1); c.s.After(receipt.Events[0]) == head || receipt.Events[0].Position <= log[len(log)-1].Position {
		c.t.Fatalf("position %d was used before", receipt.Events[0].Position)
	}
	c.sound()
}
