package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// prunable are the sentences about what an engine that is a store.Pruner says may go.
func prunable() []sentence {
	return []sentence{
		{"a log that never was pruned begins at the zero cursor", neverPruned},
		{"nothing may go that nobody asked for", func(b *bed) {
			b.lives(3)
			p := b.offered(store.Prunable{Before: b.now().Add(time.Hour), Rows: 10})
			want(b, "through", p.Through, 0)
			want(b, "rows", len(p.Rows), 0)
		}},
		{"whole commits may go, from the oldest on, as many as were asked for but one at least", offeredCommits},
		{"nothing may go that a cursor has not passed", offeredUpto},
		{"nothing may go of a message without a row that was moved behind the cursor for the last time", offeredEnded},
		{"a cursor that Read would not take refuses the call that asks by it", offeredBadCursor},
		{"what needs a snapshot first are the kept rows with an event among those that may go and no newer one that says all of their state", offeredRows},
		{"rows that need a snapshot come in pages, each once", offeredPages},
		{"rows that need a snapshot are held", offeredHeld},
		{"what may go is asked behind what earlier calls did", offeredLater},
		{"a prune that is not what was said is refused", prunedOtherwise},
		{"a prune that no event tells of is refused", prunedSilently},
		{"a prune before a row that needs a snapshot has one is refused", prunedUntold},
	}
}

// unprunable are the sentences about an engine that is none.
func unprunable() []sentence {
	return []sentence{
		{"a call that asks for a prune is refused", func(b *bed) {
			b.lives(1)
			for _, asked := range []store.Prunable{b.everything(), {Events: 1}, {Rows: 1}} {
				receipts := b.decide(b.letting(asked), b.giving(configured("a", len(b.log(store.Filter{Entity: events.TopicEntity("a")})))))
				if receipts[0].Err == nil || len(receipts[0].Events) > 0 {
					b.t.Fatalf("a call that asks for %+v was not refused", asked)
				}
				b.ok(receipts[1].Err)
			}
		}},
		{"a prune is refused, whoever tells of it", func(b *bed) {
			log := func() []events.Recorded { return b.log(store.Filter{}) }
			b.lives(1)
			before := log()
			b.refuses("a prune", store.Changes{Rows: []store.Change{pruned(0, store.Pruning{Through: before[0].Position})}, Prune: before[0].Position})
			b.same("log", log()[:len(before)], before)
		}},
		{"the log begins at the zero cursor", func(b *bed) {
			b.lives(1)
			oldest, err := store.Oldest(b.ctx, b.s)
			b.ok(err)
			want(b, "oldest", oldest, store.Cursor(""))
		}},
	}
}

// everything asks for all of the log that is there.
func (b *bed) everything() store.Prunable {
	return store.Prunable{Before: b.now().Add(time.Hour), Events: 1 << 20, Rows: 1 << 10}
}

// offered is what the engine says to one that asks.
func (b *bed) offered(asked store.Prunable) store.Pruning {
	b.t.Helper()
	return b.seen(store.Need{Prune: asked}).Pruning
}

// exactPruning is how much may go, as text.
func exactPruning(p store.Pruning) string {
	return fmt.Sprintf("%d events through %d at %s", p.Events, p.Through, p.At.Format(time.RFC3339Nano))
}

// offer is how much of a log may go to one that asks, by the words of the contract, where its cursor has passed so many events.
func offer(log []events.Recorded, asked store.Prunable, passed int) (p store.Pruning) {
	for next := 0; asked.Events > 0 && next < len(log); {
		commit := log[next].Commit
		next += commit.Count
		if next > passed || !commit.At.Before(asked.Before) || p.Events > 0 && next > asked.Events {
			break
		}
		p.Through, p.At, p.Events = log[next-1].Position, commit.At, next
	}
	return p
}

// snapshotting is the change by which an entity tells its state once more, and nothing else changes.
func snapshotting(row store.Row) store.Change {
	said := events.Snapshot{State: row.Fields}
	event := map[events.Kind]events.Event{
		events.KindMessage: &events.MessageSnapshotted{Snapshot: said}, events.KindTopic: &events.TopicSnapshotted{Snapshot: said},
		events.KindWorker: &events.WorkerSnapshotted{Snapshot: said}, events.KindLock: &events.LockSnapshotted{Snapshot: said},
		events.KindLeader: &events.LeaderSnapshotted{Snapshot: said}, events.KindClock: &events.ClockSnapshotted{Snapshot: said},
	}[row.Entity.Kind]
	c := change(row.Entity, row.Version, event)
	c.Transitions[0].From, c.Transitions[0].To = row.State, row.State
	row.Version, row.Payload = c.Row.Version, nil
	c.Row = row
	return c
}

// pruned is the change by which the log tells what of it goes, from a version on.
func pruned(from int, p store.Pruning) store.Change {
	c := change(events.LogEntity(), from, &events.LogPruned{Through: p.Through, UntilAt: p.At, Events: p.Events})
	c.Gone = true
	return c
}

// told is the changes by which the rows tell their state once more, and what may go does.
func told(view store.View) (changes store.Changes) {
	p, from := view.Pruning, 0
	if history := view.History[events.LogEntity()]; len(history) > 0 {
		from = history[len(history)-1].Version
	}
	for _, row := range p.Rows {
		changes.Rows = append(changes.Rows, snapshotting(row))
	}
	if changes.Prune = p.Through; p.Through > 0 {
		changes.Rows = append(changes.Rows, pruned(from, p))
	}
	return changes
}

// letting is the call that lets go of what may go. The rows that need a snapshot must be fewer than were asked for.
func (b *bed) letting(asked store.Prunable) store.Call {
	need := store.Need{Held: []events.Entity{events.LogEntity()}, Prune: asked}
	return b.made(need, func(view store.View) (store.Changes, error) { return told(view), nil })
}

// let lets go of what may go, and ends the test where that is nothing.
func (b *bed) let(asked store.Prunable) store.Receipt {
	b.t.Helper()
	receipt := b.commit(b.letting(asked))
	want(b, "events that tell of a prune", count(receipt.Events, events.TypeLogPruned), 1)
	return receipt
}

// through asks for the whole commits that are left of the first events of a log, whoever has passed them; for nothing where none are.
func (b *bed) through(log []events.Recorded, n int) store.Prunable {
	b.t.Helper()
	asked, left := b.everything(), b.behind(b.first(), store.Filter{})
	asked.Events = 0
	for next := 0; next < len(left) && left[next+left[next].Commit.Count-1].Position <= log[n-1].Position; asked.Events = next {
		next += left[next].Commit.Count
	}
	return asked
}

// first is the cursor before the oldest event that is kept.
func (b *bed) first() store.Cursor {
	b.t.Helper()
	pruner, _ := store.As[store.Pruner](b.s)
	first, err := pruner.First(b.ctx)
	b.ok(err)
	oldest, err := store.Oldest(b.ctx, b.s)
	b.ok(err)
	want(b, "oldest", oldest, first)
	return first
}

func neverPruned(b *bed) {
	want(b, "first", b.first(), store.Cursor(""))
	want(b, "offered of an empty log", exactPruning(b.offered(b.everything())), exactPruning(store.Pruning{}))
	b.lives(3)
	want(b, "first", b.first(), store.Cursor(""))
	want(b, "time of what was pruned", b.seen(store.Need{}).PrunedAt.IsZero(), true)
	want(b, "time of what was pruned", b.seen(store.Need{Prune: b.everything()}).PrunedAt.IsZero(), true)
	want(b, "first, after it was asked", b.first(), store.Cursor(""))
}

// uneven makes a log of commits of 4, 1, 3, 2, 3 and 1 events.
func (b *bed) uneven() []events.Recorded {
	b.t.Helper()
	b.enqueue("mail", 3)
	b.commit(b.configuring("other", 9))
	claimed := b.claim(b.id(), 3, "mail")
	b.commit(b.completing(claimed[:2]...))
	b.enqueue("print", 2)
	b.commit(b.completing(claimed[2]))
	log := b.log(store.Filter{})
	var counts []int
	for i := 0; i < len(log); i += log[i].Commit.Count {
		counts = append(counts, log[i].Commit.Count)
	}
	want(b, "events of the commits", fmt.Sprint(counts), "[4 1 3 2 3 1]")
	return log
}

func offeredCommits(b *bed) {
	log := b.uneven()
	for n := range len(log) + 3 {
		asked := b.everything()
		asked.Events = n
		want(b, fmt.Sprintf("offered of %d", n), exactPruning(b.offered(asked)), exactPruning(offer(log, asked, len(log))))
	}
	want(b, "offered to a time before all", exactPruning(b.offered(store.Prunable{Before: log[0].At(), Events: 9, Rows: 9})), exactPruning(store.Pruning{}))
	asked := b.everything()
	asked.Events = 5
	b.let(asked)
	left := b.behind(b.first(), store.Filter{})
	b.same("what is left", left[:len(left)-count(left, events.TypeTopicSnapshotted)-count(left, events.TypeLogPruned)], log[5:])
	for n := range len(left) + 2 {
		asked.Events = n
		want(b, fmt.Sprintf("offered of %d, once something went", n), exactPruning(b.offered(asked)), exactPruning(offer(left, asked, len(left))))
	}
}

// untold is the entities of kept rows that have an event among the first so many of a log, and no newer one that says all of them.
func (b *bed) untold(log []events.Recorded, n int) []events.Entity {
	b.t.Helper()
	newer := map[events.Entity]bool{}
	for _, r := range log[n:] {
		if r.Event.Type().Snapshots() {
			newer[r.Entity] = true
		}
	}
	var list []events.Entity
	for _, row := range b.kept(store.RowFilter{}) {
		old := slices.ContainsFunc(log[:n], func(r events.Recorded) bool { return r.Entity == row.Entity })
		if old && !newer[row.Entity] {
			list = append(list, row.Entity)
		}
	}
	return list
}

// needs ends the test unless the rows that need a snapshot before the first so many events of a log may go are those that do.
func (b *bed) needs(log []events.Recorded, n int) {
	b.t.Helper()
	p := b.offered(b.through(log, n))
	n = offer(log, b.everything(), n).Events
	want(b, "events that may go", p.Events, n)
	list := entities(p.Rows)
	slices.SortFunc(list, events.Entity.Compare)
	want(b, fmt.Sprintf("rows that need a snapshot before %d events go", n), fmt.Sprint(list), fmt.Sprint(b.untold(log, n)))
}

func offeredRows(b *bed) {
	b.mixed()
	log := b.log(store.Filter{})
	for n := range len(log) {
		b.needs(log, n+1)
	}
	kept := b.kept(store.RowFilter{})
	for i, row := range kept {
		if i%2 == 0 {
			b.commit(b.giving(snapshotting(row)))
		}
	}
	log = b.log(store.Filter{})
	for n := range len(log) {
		b.needs(log, n+1) // a snapshot that may go itself is none
	}
}

func offeredPages(b *bed) {
	b.mixed()
	log, kept := b.log(store.Filter{}), entities(b.kept(store.RowFilter{}))
	asked := b.through(log, len(log))
	asked.Rows = 0
	want(b, "rows that nobody asked for", len(b.offered(asked).Rows), 0)
	var seen []events.Entity
	for asked.Rows = 5; len(seen) <= len(kept); {
		p := b.offered(asked)
		want(b, "through", p.Through, log[len(log)-1].Position)
		if len(p.Rows) > asked.Rows {
			b.t.Fatalf("%d rows, %d were asked for", len(p.Rows), asked.Rows)
		}
		if len(p.Rows) == 0 {
			break
		}
		var page []store.Change
		for _, row := range p.Rows {
			seen = append(seen, row.Entity)
			page = append(page, snapshotting(row))
		}
		b.commit(b.giving(page...))
	}
	slices.SortFunc(seen, events.Entity.Compare)
	want(b, "rows", fmt.Sprint(seen), fmt.Sprint(kept))
	b.let(asked)
}

func offeredHeld(b *bed) {
	b.mixed()
	asked := b.everything()
	view := b.seen(store.Need{Prune: asked, Held: []events.Entity{events.TopicEntity("mail")}})
	want(b, "rows", len(view.Pruning.Rows), len(b.kept(store.RowFilter{})))
	for _, row := range view.Pruning.Rows {
		held := view.Rows[row.Entity]
		held.Payload, row.Payload = nil, nil
		kept := b.kept(store.RowFilter{Entities: []events.Entity{row.Entity}})
		b.sameRows("held", []store.Row{held}, kept)
		b.sameRows("that need a snapshot", []store.Row{row}, kept)
	}
	want(b, "held rows", len(view.Rows), len(view.Pruning.Rows))
}

func offeredLater(b *bed) {
	b.lives(2)
	b.enqueue("mail", 2)
	log := b.log(store.Filter{})
	asked := b.upto(log, len(log))
	seen := make([]store.Pruning, 3)
	asking := func(i int, asked store.Prunable) store.Call {
		call := b.letting(asked)
		fn := call.Fn
		call.Fn = func(view store.View) (store.Changes, error) {
			seen[i] = view.Pruning // of its last run
			return fn(view)
		}
		return call
	}
	told := b.giving(snapshotting(b.row(events.TopicEntity("mail"))))
	receipts := b.decide(told, asking(0, b.through(log, 3)), asking(1, asked), asking(2, asked))
	for _, r := range receipts {
		b.ok(r.Err)
	}
	want(b, "rows behind a snapshot", len(seen[0].Rows), 0)
	want(b, "events that may go first", seen[0].Events, 3)
	want(b, "events that may go then", seen[1].Events, len(log)-3)
	want(b, "rows that need a snapshot then", len(seen[1].Rows), 2)
	want(b, "events that may go at last", seen[2].Events, 0)
	want(b, "events of the last", len(receipts[3].Events), 0)
	want(b, "first", b.first(), b.s.After(log[len(log)-1]))
}

// unpruned ends the test unless a call is refused and has let go of nothing.
func (b *bed) unpruned(what string, call store.Call) {
	b.t.Helper()
	log, kept, first := b.log(store.Filter{}), b.kept(store.RowFilter{}), b.first()
	receipt := b.decide(call)[0]
	if receipt.Err == nil || len(receipt.Events) > 0 || errors.Is(receipt.Err, store.ErrPruned) {
		b.t.Fatalf("%s was not refused: %v, error %v", what, receipt.Events, receipt.Err)
	}
	want(b, "first after "+what, b.first(), first)
	b.same("log after "+what, b.log(store.Filter{}), log)
	b.sameRows("rows after "+what, b.kept(store.RowFilter{}), kept)
}

// bending is a call that asks, and does something else with what it is given.
func (b *bed) bending(asked store.Prunable, bend func(*store.View, *store.Changes)) store.Call {
	call := b.letting(asked)
	call.Fn = func(view store.View) (store.Changes, error) {
		changes := told(view)
		bend(&view, &changes)
		return changes, nil
	}
	return call
}

func prunedOtherwise(b *bed) {
	log := b.uneven()
	for n, r := range log {
		if n == 7 { // the last of the third commit, which is what may go
			continue
		}
		b.unpruned(fmt.Sprintf("a prune through event %d of 8", n+1), b.bending(b.through(log, 8), func(view *store.View, c *store.Changes) {
			view.Pruning.Through = r.Position
			*c = told(*view)
		}))
	}
	b.unpruned("a prune that nobody asked for", b.made(store.Need{}, func(store.View) (store.Changes, error) {
		p := store.Pruning{Through: log[3].Position, At: log[3].At(), Events: 4}
		return told(store.View{Pruning: p}), nil
	}))
	b.unpruned("a prune of less than nothing", b.bending(b.through(log, 8), func(view *store.View, c *store.Changes) {
		view.Pruning.Through = -1
		*c = told(*view)
		c.Prune = -1
	}))
	b.let(b.through(log, 8))
}

func prunedSilently(b *bed) {
	log := b.uneven()
	for what, bend := range map[string]func(*store.View, *store.Changes){
		"a prune without an event": func(_ *store.View, c *store.Changes) { c.Rows = nil },
		"a prune with other events alone": func(_ *store.View, c *store.Changes) {
			c.Rows = slices.DeleteFunc(c.Rows, func(c store.Change) bool { return c.Row.Entity == events.LogEntity() })
		},
		"a prune whose event tells of another": func(v *store.View, c *store.Changes) {
			p := v.Pruning
			p.Through = log[3].Position
			c.Rows[len(c.Rows)-1] = pruned(0, p)
		},
	} {
		b.unpruned(what, b.bending(b.through(log, 8), bend))
	}
}

func prunedUntold(b *bed) {
	log := b.uneven()
	rows := len(b.offered(b.through(log, len(log))).Rows)
	want(b, "rows that need a snapshot", rows, 5)
	for i := range rows {
		b.unpruned(strings.Repeat("one later than ", i)+"a row without a snapshot", b.bending(b.through(log, len(log)), func(_ *store.View, c *store.Changes) {
			c.Rows = slices.Delete(c.Rows, i, i+1)
		}))
	}
	b.unpruned("a snapshot that is none", b.bending(b.through(log, len(log)), func(v *store.View, c *store.Changes) {
		row := v.Pruning.Rows[0]
		other := change(row.Entity, row.Version, &events.TopicPaused{})
		row.Version, other.Row = other.Row.Version, row
		c.Rows[0] = other
	}))
	for _, n := range []int{0, rows - 1, rows} { // there may be more of them
		asked := b.through(log, len(log))
		asked.Rows = n
		b.unpruned(fmt.Sprintf("a prune by one who asked for %d rows of %d", n, rows), b.letting(asked))
	}
	asked := b.through(log, len(log))
	asked.Rows = rows + 1
	b.let(asked)
}
