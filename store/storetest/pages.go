package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

func pages() []sentence {
	return []sentence{
		{"Rows filters by state and lock, beside everything else", rowsByState},
		{"Rows finds the message that has a key", rowsByKey},
		{"Rows falls within each kind where it is told to", rowsFall},
		{"Rows goes on behind any row, whether it is there or not", rowsBehind},
		{"pages of rows are all of them, each once, in both orders", rowsInPages},
		{"a page of rows is what is there when it is asked for", rowsBetweenPages},
	}
}

// mixed fills a store with rows of every kind in many states, and gives a worker that has claims.
func (b *bed) mixed() (worker events.ID) {
	b.t.Helper()
	worker = b.id()
	b.commit(b.configuring("mail", 9))
	b.enqueue("mail", 6)
	b.enqueue("print", 3)
	b.queue("mail", "l", 3)
	b.queue("print", "m", 2)
	b.claim(worker, 5, "mail", "print")
	b.claim(b.id(), 9, "mail", "print") // one has each lock, the others are blocked by it
	b.dead(worker)
	b.commit(calls.OperateTopic(b.origin(), fsm.OperateTopic{Topic: "print", Command: fsm.PauseTopic{}}))
	b.commit(b.allotting("n", 2))
	b.commit(b.giving(
		change(events.WorkerEntity(worker), 0, &events.WorkerStarted{}), change(events.WorkerEntity(b.id()), 0, &events.WorkerStarted{}),
		change(events.LeaderEntity("beat"), 0, &events.LeaderElected{}), change(events.ClockEntity(), 0, &events.ClockStepped{}),
	))
	b.enqueue("mail", 2)
	return worker
}

// dead has a worker dead-letter the oldest of its claims.
func (b *bed) dead(worker events.ID) events.ID {
	b.t.Helper()
	m := b.messages(b.seen(store.Need{Claims: []store.Holder{{Worker: worker, N: 1}}}).Claims[worker])[0]
	call, _ := calls.Settle(b.origin(), fsm.Settle{Sender: worker, Recordable: 1, Items: []fsm.Settlement{
		{ID: m.ID, Command: fsm.DeadLetterMessage{Token: m.Token, Error: "no"}, Permit: m.Permit()},
	}}, nil)
	want(b, "events", count(b.commit(call).Events, events.TypeMessageDeadLettered), 1)
	return m.ID
}

// order compares rows as a filter has them come.
func order(f store.RowFilter) func(x, y store.Row) int {
	return func(x, y store.Row) int {
		c := x.Entity.Compare(y.Entity)
		if f.Order == store.Falling {
			c = -c
		}
		return cmp.Or(cmp.Compare(x.Entity.Kind, y.Entity.Kind), c)
	}
}

// sieve is the rows that a filter lets pass, by the words of its comments. It knows nothing of keys.
func sieve(all []store.Row, f store.RowFilter) []store.Row {
	var list []store.Row
	for _, row := range all {
		if (f.Kind == events.KindNone || row.Entity.Kind == f.Kind) && (f.Topic == "" || row.Topic == f.Topic) &&
			(f.Worker == events.ID{} || row.Worker == f.Worker) && (len(f.Entities) == 0 || slices.Contains(f.Entities, row.Entity)) &&
			(f.Lock == "" || row.Lock == f.Lock) && (len(f.States) == 0 || slices.Contains(f.States, row.State)) &&
			(f.After == events.Entity{} || order(f)(row, store.Row{Entity: f.After}) > 0) {
			list = append(list, row)
		}
	}
	slices.SortFunc(list, order(f))
	if f.Limit > 0 {
		list = list[:min(f.Limit, len(list))]
	}
	return list
}

// sieves is filters of every sort for the rows of mixed.
func sieves(all []store.Row, worker events.ID) []store.RowFilter {
	return []store.RowFilter{
		{},
		{States: []events.State{events.Queued}},
		{States: []events.State{events.Active}},
		{States: []events.State{events.Blocked, events.DeadLettered, events.Held}},
		{States: []events.State{events.Completed}},
		{Lock: "l"},
		{Lock: "unknown"},
		{Lock: "l", States: []events.State{events.Running}},
		{Kind: events.KindMessage},
		{Kind: events.KindMessage, States: []events.State{events.Running, events.Queued}, Topic: "mail"},
		{Kind: events.KindLock},
		{Kind: events.KindTopic, States: []events.State{events.Paused}},
		{Kind: events.KindWorker},
		{Kind: events.KindLeader},
		{Kind: events.KindClock},
		{Kind: events.KindLock, Lock: "l"},
		{Topic: "mail", Lock: "l"},
		{Topic: "print"},
		{Worker: worker},
		{Worker: worker, States: []events.State{events.Running}, Topic: "mail"},
		{Worker: worker, Lock: "l"},
		{Entities: entities(all[3:])},
		{Entities: entities(all), Topic: "mail", States: []events.State{events.Queued}},
	}
}

// sifts ends the test unless Rows gives what the sieve lets pass.
func (b *bed) sifts(all []store.Row, f store.RowFilter) []store.Row {
	b.t.Helper()
	list := b.kept(f)
	b.sameRows(fmt.Sprintf("%+v", f), list, sieve(all, f))
	return list
}

func rowsByState(b *bed) {
	worker := b.mixed()
	all := b.kept(store.RowFilter{})
	states := map[events.State]bool{}
	for _, row := range all {
		states[row.State] = true
	}
	for _, s := range []events.State{events.Queued, events.Blocked, events.Running, events.DeadLettered, events.Paused, events.Held, events.Free} {
		want(b, fmt.Sprintf("there is a row that is %s", s), states[s], true)
	}
	for _, f := range sieves(all, worker) {
		b.sifts(all, f)
	}
}

func rowsByKey(b *bed) {
	b.enqueue("mail", 3)
	key := store.Key{Topic: "mail", Name: "né'\"; --"}
	found := func(what string, wanted ...events.Entity) {
		b.t.Helper()
		want(b, what, fmt.Sprint(entities(b.kept(store.RowFilter{Key: key}))), fmt.Sprint(wanted))
	}
	found("before anybody has it")
	b.commit(b.keyed(key.Name, 0))
	b.commit(b.keyed("other", 0))
	view := b.seen(store.Need{Keys: []store.Key{key}})
	entity := events.MessageEntity(view.Keys[key].Message)
	found("who has it", entity)
	for _, f := range []store.RowFilter{
		{Topic: "mail", Kind: events.KindMessage}, {States: []events.State{events.Queued}}, {Entities: []events.Entity{entity}},
		{Order: store.Falling, Limit: 1},
	} {
		f.Key = key
		want(b, "rows of a filter that it passes", len(b.kept(f)), 1)
	}
	for _, f := range []store.RowFilter{
		{Topic: "print"}, {Kind: events.KindTopic}, {States: []events.State{events.Running}}, {Lock: "l"}, {After: entity},
		{Entities: []events.Entity{events.TopicEntity("mail")}},
	} {
		f.Key = key
		want(b, fmt.Sprintf("rows of %+v, which it does not pass", f), len(b.kept(f)), 0)
	}
	want(b, "rows of the key in another topic", len(b.kept(store.RowFilter{Key: store.Key{Topic: "print", Name: key.Name}})), 0)
	b.sameRows("with its payload", b.kept(store.RowFilter{Key: key, Payloads: true}), []store.Row{b.row(entity)})

	claimed := b.claim(b.id(), 9, "mail")
	found("while it runs", entity)
	b.commit(b.completing(claimed...))
	found("after it ended")
	b.commit(b.keyed(key.Name, 0))
	want(b, "who has it next", len(b.kept(store.RowFilter{Key: key})), 1)
}

func rowsFall(b *bed) {
	worker := b.mixed()
	all := b.kept(store.RowFilter{})
	for _, f := range sieves(all, worker) {
		f.Order = store.Falling
		b.sifts(all, f)
	}
	newest := b.draft("mail")
	newest.ID = mint(b.now().Add(time.Minute))
	b.commit(b.enqueueing(newest))
	want(b, "the newest message", b.kept(store.RowFilter{Kind: events.KindMessage, Order: store.Falling, Limit: 1})[0].Entity.ID, newest.ID)
}

func rowsBehind(b *bed) {
	b.mixed()
	all := b.kept(store.RowFilter{})
	after := append(entities(all), events.MessageEntity(b.id()), events.MessageEntity(events.ID{}), events.MessageEntity(events.ID{15: 1}),
		events.TopicEntity("mail\x00"), events.TopicEntity("a"), events.TopicEntity("zz"), events.SweepEntity(b.id()), events.LogEntity(),
		events.WorkerEntity(b.id()), events.LockEntity("l "), events.LeaderEntity("a"))
	for _, e := range after {
		for _, o := range []store.Order{store.Rising, store.Falling} {
			b.sifts(all, store.RowFilter{After: e, Order: o})
			b.sifts(all, store.RowFilter{After: e, Order: o, Limit: 2})
			b.sifts(all, store.RowFilter{After: e, Order: o, Limit: 3, Kind: e.Kind})
			b.sifts(all, store.RowFilter{After: e, Order: o, Limit: 3, Kind: events.KindMessage, Topic: "mail", States: []events.State{events.Queued}})
		}
	}
}

func rowsInPages(b *bed) {
	worker := b.mixed()
	all := b.kept(store.RowFilter{})
	for _, f := range sieves(all, worker) {
		for _, o := range []store.Order{store.Rising, store.Falling} {
			f.Order = o
			for _, n := range []int{1, 4, len(all)} {
				b.sameRows(fmt.Sprintf("pages of %d of %+v", n, f), b.paged(f, n), sieve(all, f))
			}
		}
	}
}

// paged is the rows that pass a filter, read in pages of n.
func (b *bed) paged(f store.RowFilter, n int) (list []store.Row) {
	b.t.Helper()
	for f.Limit = n; ; {
		page := b.kept(f)
		if list = append(list, page...); len(page) < n || len(list) > 1000 {
			return list
		}
		f.After = page[n-1].Entity
	}
}

// rowsBetweenPages has rows come and go behind the page that was read, the last row of that page among them.
func rowsBetweenPages(b *bed) {
	b.enqueue("mail", 8)
	f := store.RowFilter{Kind: events.KindMessage, Limit: 3, Order: store.Falling}
	first := b.kept(f)
	want(b, "rows of the first page", len(first), 3)
	all := b.kept(store.RowFilter{Kind: events.KindMessage, Order: store.Falling})
	ends := map[events.ID]bool{all[2].Entity.ID: true, all[3].Entity.ID: true, all[6].Entity.ID: true} // the last of the first page, and two behind it
	claimed := slices.DeleteFunc(b.claim(b.id(), 8, "mail"), func(m fsm.Message) bool { return !ends[m.ID] })
	b.commit(b.completing(claimed...))
	b.enqueue("mail", 2)
	f.After = first[2].Entity
	wanted := sieve(b.kept(store.RowFilter{}), f)
	b.sameRows("the second page", b.kept(f), wanted)
	want(b, "rows of the second page", len(wanted), 3)
}
