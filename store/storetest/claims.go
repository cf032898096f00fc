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

func claiming() []sentence {
	return []sentence{
		{"messages are claimed in order of priority, due time and place of enqueueing", claimOrder},
		{"a message is not claimable before it is due", notDue},
		{"a claim is given up to N messages of each of its topics", claimPages},
		{"a claimed message is not claimable, one given back is", claimedOnce},
		{"concurrent claims never share a message", claimsApart},
		{"open claims of a worker come in pages, oldest first", claimsOfWorker},
		{"a worker's claims are given back page by page", reclaimed},
		{"a claim comes with its payload also where a later call has ended its message", claimedAndEnded},
	}
}

func counting() []sentence {
	return []sentence{
		{"open claims that do not count come in pages", uncounted},
		{"running counts add up", countsAddUp},
		{"concurrent claims never exceed a topic's limit", limitHolds},
	}
}

// ids is the ids of messages.
func ids(list []fsm.Message) []events.ID {
	all := make([]events.ID, len(list))
	for i, m := range list {
		all[i] = m.ID
	}
	return all
}

func claimOrder(b *bed) {
	now := b.now().Truncate(time.Microsecond)
	var queued []fsm.Draft
	for _, priority := range []events.Priority{events.Low, events.High, events.Normal} {
		for _, due := range []time.Duration{-time.Microsecond, 0, time.Second} {
			for range 3 {
				d := b.draft("mail")
				d.Priority = priority
				d.DueAt = now.Add(due - time.Hour)
				queued = append(queued, d)
			}
		}
	}
	// Messages that were due in the past are due when they come: to have due times apart they are made by hand.
	var list []store.Change
	for _, d := range queued {
		m := &fsm.Message{ID: d.ID, Version: 1, State: events.Queued, Topic: "mail", Priority: d.Priority, DueAt: d.DueAt}
		c := change(m.Entity(), 0, &events.MessageEnqueued{Topic: "mail"})
		c.Row = calls.Row(m)
		list = append(list, c)
	}
	b.decide(b.configuring("mail", 0), b.giving(list[:10]...), b.giving(list[10:]...))
	slices.SortStableFunc(queued, func(x, y fsm.Draft) int {
		return cmp.Or(cmp.Compare(x.Priority, y.Priority), x.DueAt.Compare(y.DueAt))
	})
	for len(queued) > 0 {
		page := queued[:min(4, len(queued))]
		claimable := b.claimable("mail", 4)
		want(b, "claimable", len(claimable), len(page))
		for i, row := range claimable {
			want(b, fmt.Sprintf("claimable %d", i), row.Entity.ID, page[i].ID)
		}
		want(b, "granted", len(b.claim(b.id(), 4, "mail")), len(page))
		queued = queued[len(page):]
	}
}

// seen is the view that a call with a need is given.
func (b *bed) seen(need store.Need) store.View {
	b.t.Helper()
	var view store.View
	b.commit(b.made(need, func(v store.View) (store.Changes, error) {
		view = v
		return store.Changes{}, nil
	}))
	return view
}

func (b *bed) claimable(topic string, n int) []store.Row {
	b.t.Helper()
	return b.seen(store.Need{Claim: []store.Page{{Topic: topic, N: n}}}).Claimable[topic]
}

func notDue(b *bed) {
	later, at := b.draft("mail"), b.draft("mail")
	later.Delay = time.Hour
	at.DueAt = b.now().Add(time.Hour)
	b.commit(b.enqueueing(later, at))
	want(b, "granted", len(b.claim(b.id(), 5, "mail")), 0)
	b.enqueue("mail", 1)
	want(b, "granted", len(b.claim(b.id(), 5, "mail")), 1)
}

func claimPages(b *bed) {
	for _, topic := range []string{"a", "b", "c"} {
		b.enqueue(topic, 3)
	}
	view := b.seen(store.Need{Claim: []store.Page{{Topic: "a", N: 2}, {Topic: "c", N: 5}, {Topic: "unknown", N: 1}}})
	want(b, "of a", len(view.Claimable["a"]), 2)
	want(b, "of c", len(view.Claimable["c"]), 3)
	want(b, "of b, nobody asked for it", len(view.Claimable["b"]), 0)
	want(b, "of an unknown topic", len(view.Claimable["unknown"]), 0)
	for _, topic := range []string{"a", "c"} {
		b.sameRows("topic "+topic, []store.Row{view.Rows[events.TopicEntity(topic)]}, b.kept(store.RowFilter{Entities: []events.Entity{events.TopicEntity(topic)}}))
		for _, row := range view.Claimable[topic] {
			want(b, "topic of a claimable message", row.Topic, topic)
			b.carries(row)
		}
	}
	granted := b.claim(b.id(), 2, "b", "a", "unknown")
	want(b, "granted", len(granted), 4)
	for i, topic := range []string{"b", "b", "a", "a"} {
		want(b, "topic", granted[i].Topic, topic)
	}
}

func claimedOnce(b *bed) {
	b.enqueue("mail", 2)
	worker := b.id()
	m := b.claim(worker, 1, "mail")[0]
	for _, row := range b.claimable("mail", 5) {
		if row.Entity.ID == m.ID {
			b.t.Fatalf("%s is claimable while it is claimed", row.Entity)
		}
	}
	give, _ := calls.Settle(b.origin(), fsm.Settle{Sender: worker, Items: []fsm.Settlement{
		{ID: m.ID, Command: fsm.ReleaseMessage{Token: m.Token, Reason: events.ReasonReleased}},
	}}, nil)
	b.commit(give)
	want(b, "claimable", len(b.claimable("mail", 5)), 2)
	again := b.claim(worker, 1, "mail")[0]
	want(b, "message claimed again", again.ID, m.ID)
	if again.Token <= m.Token {
		b.t.Fatalf("token %d of the second claim does not rise over %d", again.Token, m.Token)
	}
}

func claimsApart(b *bed) {
	const workers, rounds, all = 6, 10, 100
	b.enqueue("mail", all)
	list := make([][]store.Call, workers)
	for i := range list {
		worker := b.id()
		for range rounds {
			list[i] = append(list[i], b.claiming(worker, 2, "mail"))
		}
	}
	b.ok(together(workers, func(i int) error {
		for _, call := range list[i] {
			receipts, err := b.s.Decide(b.ctx, call)
			if err != nil || receipts[0].Err != nil {
				return cmp.Or(err, receipts[0].Err)
			}
		}
		return nil
	}))
	holder := map[events.Entity]bool{}
	for _, r := range b.log(store.Filter{Types: []events.Type{events.TypeMessageClaimed}}) {
		if holder[r.Entity] {
			b.t.Fatalf("%s was claimed twice", r.Entity)
		}
		holder[r.Entity] = true
	}
	want(b, "claimed", len(holder), min(all, workers*rounds*2))
}

func claimsOfWorker(b *bed) {
	mine, other := b.id(), b.id()
	var claimed []fsm.Message
	for range 3 {
		b.enqueue("mail", 2)
		b.enqueue("print", 2)
		claimed = append(claimed, b.claim(mine, 1, "mail", "print")...)
		b.claim(other, 1, "mail", "print")
	}
	for _, n := range []int{1, 4, 6, 9} {
		view := b.seen(store.Need{Claims: []store.Holder{{Worker: mine, N: n}, {Worker: b.id(), N: n}}})
		want(b, "workers with claims", len(view.Claims[mine]), min(n, len(claimed)))
		for i, m := range b.messages(view.Claims[mine]) {
			want(b, fmt.Sprintf("time of claim %d of %d", i, n), m.ClaimedAt, claimed[i].ClaimedAt)
			want(b, "holder", m.Worker, mine)
			if !slices.Contains(ids(claimed), m.ID) {
				b.t.Fatalf("message %s is no claim of the worker", m.ID)
			}
		}
	}
}

// reclaiming is the call that gives back what a worker holds whose process has ended, up to n claims and n permits of it.
func (b *bed) reclaiming(worker events.ID, n int) store.Call {
	evidence := events.Evidence{Reason: events.ReasonProcessGone, Claimer: worker}
	call, _ := calls.Reclaim(b.origin(), fsm.Reclaim{Evidence: evidence, Page: n})
	return call
}

func reclaimed(b *bed) {
	worker := b.id()
	b.commit(calls.OperateWorker(b.origin(), fsm.OperateWorker{Worker: worker, Command: fsm.StartWorker{}}))
	b.commit(b.configuring("mail", 9))
	b.enqueue("mail", 5)
	b.claim(worker, 5, "mail")
	want(b, "running", b.row(events.TopicEntity("mail")).Running, 5)
	for _, n := range []int{2, 2, 1, 0} {
		receipt := b.commit(b.reclaiming(worker, 2))
		want(b, "orphaned", count(receipt.Events, events.TypeMessageOrphaned), n)
	}
	want(b, "running", b.row(events.TopicEntity("mail")).Running, 0)
	want(b, "claimable", len(b.claimable("mail", 9)), 5)
	for _, row := range b.kept(store.RowFilter{}) {
		b.folds(b.log(store.Filter{Entity: row.Entity}))
	}
}

func uncounted(b *bed) {
	b.enqueue("mail", 7)
	b.enqueue("print", 2)
	b.claim(b.id(), 3, "mail")
	b.claim(b.id(), 2, "mail", "print")
	b.commit(b.configuring("mail", 6))
	for _, n := range []int{2, 5, 9} {
		view := b.seen(store.Need{Uncounted: []store.Page{{Topic: "mail", N: n}}})
		want(b, "uncounted", len(view.Uncounted["mail"]), min(n, 5))
		want(b, "topic", view.Rows[events.TopicEntity("mail")].Entity.Name, "mail")
		for _, row := range view.Uncounted["mail"] {
			want(b, "topic", row.Topic, "mail")
			want(b, "counted", row.Counted, false)
		}
	}
	want(b, "granted while counting", len(b.claim(b.id(), 1, "mail")), 0)
	for _, n := range []int{2, 2, 1} {
		receipt := b.commit(calls.CountClaims(b.origin(), fsm.CountClaims{Topic: "mail", Page: 2}))
		want(b, "counted", count(receipt.Events, events.TypeMessageCounted), n)
	}
	want(b, "running", b.row(events.TopicEntity("mail")).Running, 5)
	want(b, "granted after counting", len(b.claim(b.id(), 5, "mail")), 1)
	want(b, "uncounted", len(b.seen(store.Need{Uncounted: []store.Page{{Topic: "mail", N: 9}}}).Uncounted["mail"]), 0)
}

func countsAddUp(b *bed) {
	b.commit(b.configuring("mail", 4))
	b.enqueue("mail", 9)
	running := func(n int) {
		b.t.Helper()
		want(b, "running", b.row(events.TopicEntity("mail")).Running, n)
		want(b, "running in a view", b.seen(store.Need{Held: []events.Entity{events.TopicEntity("mail")}}).Rows[events.TopicEntity("mail")].Running, n)
	}
	running(0)
	claimed := b.claim(b.id(), 3, "mail")
	running(3)
	b.commit(b.completing(claimed[:2]...))
	running(1)
	more := b.claim(b.id(), 9, "mail")
	want(b, "granted", len(more), 3)
	running(4)
	b.commit(b.configuring("mail", 2)) // the topic's row is written by others too, and its count stays
	running(4)
	b.commit(b.completing(append(more, claimed[2])...))
	running(0)
	refused := b.made(store.Need{}, func(store.View) (store.Changes, error) {
		return store.Changes{Counts: []store.Count{{Topic: "mail", Delta: 5}}}, &fsm.Refusal{}
	})
	b.decide(refused)
	running(0)
}

func limitHolds(b *bed) {
	const workers, rounds, limit = 8, 12, 3
	b.commit(b.configuring("mail", limit))
	b.enqueue("mail", workers*rounds*2+1)
	b.claim(b.id(), 1, "mail") // one slot is taken all the while, so that a count that nobody sees is wrong even where no two meet
	list := make([][]store.Call, workers)
	for i := range list {
		worker := b.id()
		for range rounds {
			list[i] = append(list[i], b.claiming(worker, 2, "mail"))
		}
	}
	b.ok(together(workers, func(i int) error {
		for _, call := range list[i] {
			receipts, err := b.s.Decide(b.ctx, call)
			if err != nil || receipts[0].Err != nil {
				return cmp.Or(err, receipts[0].Err)
			}
			if err := b.complete(receipts[0].Rows); err != nil {
				return err
			}
		}
		return nil
	}))
	b.within(limit)
}

// within ends the test unless the log never has more claims open than the limit, and the topic's count is that of the log.
func (b *bed) within(limit int) {
	b.t.Helper()
	running, most := 0, 0
	for _, r := range b.log(store.Filter{}) {
		switch e := r.Event.(type) {
		case *events.MessageClaimed:
			running++
			most = max(most, running)
			want(b, fmt.Sprintf("running at position %d", r.Position), e.Running, running)
		case *events.MessageCompleted:
			running--
		}
	}
	if most == 0 || most > limit {
		b.t.Fatalf("%d claims were open at once, the limit is %d", most, limit)
	}
	want(b, "running", b.row(events.TopicEntity("mail")).Running, running)
}

// complete completes claimed messages, in any goroutine.
func (b *bed) complete(claimed []store.Row) error {
	var list []fsm.Message
	for _, row := range claimed {
		m, err := calls.Message(row)
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		return nil
	}
	receipts, err := b.s.Decide(b.ctx, b.completing(list...))
	if err != nil {
		return err
	}
	return receipts[0].Err
}

func claimedAndEnded(b *bed) {
	b.enqueue("mail", 1)
	row := b.kept(store.RowFilter{Kind: events.KindMessage})[0]
	claim := change(row.Entity, row.Version, &events.MessageClaimed{Worker: b.id()})
	claim.Row.Worker, claim.Row.ClaimedAt = b.id(), b.now().UTC().Truncate(time.Microsecond)
	end := change(row.Entity, claim.Row.Version, &events.MessageCompleted{})
	end.Gone = true
	receipts := b.decide(b.giving(claim), b.giving(end))
	b.ok(receipts[1].Err)
	for _, row := range receipts[0].Rows { // none where it was asked again, after the end
		b.carries(row)
	}
}
