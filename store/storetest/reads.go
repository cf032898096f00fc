package storetest

import (
	"fmt"
	"math"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

func reads() []sentence {
	return []sentence{
		{"an empty store has an empty log", func(b *bed) {
			want(b, "events", len(b.log(store.Filter{})), 0)
			want(b, "events behind the head", len(b.behind(b.head(), store.Filter{})), 0)
		}},
		{"the zero cursor is the beginning, the head is the end", fromZeroToHead},
		{"a cursor may stand behind any event", fromAnywhere},
		{"the order of the log never changes", orderStays},
		{"a cursor of another store is ErrCursor", foreignCursor},
		{"what never was a cursor is ErrCursor", garbageCursor},
		{"a cursor behind the end of the log is ErrAhead", aheadCursor},
		{"Read filters by entity, type and number", filtered},
		{"Read holds nothing while the caller's loop body runs", writeWhileReading},
		{"Read yields nothing late while others commit", nothingLate},
		{"a loop over Read or Rows may end early", endsEarly},
	}
}

// lives brings n messages through a life of three commits.
func (b *bed) lives(n int) {
	b.t.Helper()
	b.enqueue("mail", n)
	b.commit(b.completing(b.claim(b.id(), n, "mail")...))
}

func fromZeroToHead(b *bed) {
	var heads []store.Cursor
	heads = append(heads, b.head())
	for i := range 3 {
		b.lives(i + 1)
		heads = append(heads, b.head())
	}
	log := b.log(store.Filter{})
	want(b, "events", len(log), 3*6+1)
	for i, n := range []int{0, 1 + 3, 1 + 9, 1 + 18} {
		b.same(fmt.Sprintf("behind head %d", i), b.behind(heads[i], store.Filter{}), log[n:])
	}
	if want(b, "head", b.head(), heads[3]); heads[3] == heads[2] {
		b.t.Fatal("the head did not move with a commit")
	}
}

func fromAnywhere(b *bed) {
	b.lives(7)
	log := b.log(store.Filter{})
	for i, r := range log {
		after := b.s.After(r)
		b.same(fmt.Sprintf("behind event %d", i), b.behind(after, store.Filter{}), log[i+1:])
		b.same(fmt.Sprintf("one behind event %d", i), b.behind(after, store.Filter{Limit: 1}), log[i+1:min(i+2, len(log))])
	}
	want(b, "cursor behind the newest event", b.s.After(log[len(log)-1]), b.head())
}

func orderStays(b *bed) {
	var before []events.Recorded
	for range 4 {
		b.lives(3)
		log := b.log(store.Filter{})
		b.same("what was read before", log[:len(before)], before)
		before = log
	}
}

func foreignCursor(b *bed) {
	other := b.other()
	other.lives(1)
	b.lives(1)
	b.readFails(other.head(), store.ErrCursor)
	b.readFails(other.s.After(other.log(store.Filter{})[0]), store.ErrCursor)
}

func garbageCursor(b *bed) {
	b.lives(1)
	for _, text := range []store.Cursor{"x", "1", "-1", "@", b.head() + "x", "x" + b.head(), b.head() + b.head(), " " + b.head(), store.CursorAt(b.id(), 1)} {
		b.readFails(text, store.ErrCursor)
	}
}

// aheadCursor has the cursor behind an event that is not there: a store that was restored from a backup is asked for what came after it.
func aheadCursor(b *bed) {
	b.lives(2)
	newest := b.log(store.Filter{})
	next := newest[len(newest)-1]
	want(b, "events behind the newest", len(b.behind(b.s.After(next), store.Filter{})), 0)
	for _, ahead := range []int64{1, 2, 1 << 40} {
		next.Position = newest[len(newest)-1].Position + ahead
		b.readFails(b.s.After(next), store.ErrAhead)
	}
	b.enqueue("mail", 1)
	next.Position = newest[len(newest)-1].Position + 1
	log := b.log(store.Filter{}) // positions may have gaps, so the next event may stand behind the cursor
	wanted := slices.IndexFunc(append(log, events.Recorded{Position: math.MaxInt64}), func(r events.Recorded) bool { return r.Position > next.Position })
	b.same("behind it once the log has passed it", b.behind(b.s.After(next), store.Filter{}), log[wanted:])
}

// readFails ends the test unless reading behind the cursor yields one error of a class and nothing else, whatever is filtered.
func (b *bed) readFails(after store.Cursor, class error) error {
	b.t.Helper()
	var last error
	for _, f := range []store.Filter{
		{Types: []events.Type{events.TypeWorkerLost}}, {Entity: events.TopicEntity("mail")}, {Entity: events.MessageEntity(b.id())}, {Limit: 1}, {},
	} {
		yielded := 0
		for _, err := range b.s.Read(b.ctx, after, f) {
			yielded, last = yielded+1, err
		}
		if yielded != 1 || last == nil {
			b.t.Fatalf("read %+v behind %q: yielded %d times, error %v; want one error", f, after, yielded, last)
		}
		b.is(last, class)
	}
	return last
}

func filtered(b *bed) {
	for range 3 {
		b.lives(4)
	}
	log := b.log(store.Filter{})
	some := log[3].Entity
	claimedOrTopic := []events.Type{events.TypeMessageClaimed, events.TypeTopicConfigured}
	for _, f := range []store.Filter{
		{Entity: some},
		{Entity: events.TopicEntity("mail")},
		{Entity: events.MessageEntity(b.id())},
		{Entity: some, Types: claimedOrTopic},
		{Types: claimedOrTopic},
		{Types: []events.Type{events.TypeWorkerLost}},
		{Limit: 1},
		{Limit: 5},
		{Limit: len(log) + 1},
		{Entity: some, Limit: 2},
		{Types: claimedOrTopic, Limit: 6},
		{Entity: some, Types: claimedOrTopic, Limit: 1},
	} {
		for from := range 5 {
			after := store.Cursor("")
			if from > 0 {
				after = b.s.After(log[from-1])
			}
			b.same(fmt.Sprintf("%+v behind %d", f, from), b.behind(after, f), sift(log[from:], f))
		}
	}
}

// sift is what a filter lets pass, by the words of its comments.
func sift(log []events.Recorded, f store.Filter) (list []events.Recorded) {
	for _, r := range log {
		if f.Limit > 0 && len(list) == f.Limit {
			break
		}
		if (f.Entity == events.Entity{} || r.Entity == f.Entity) && (len(f.Types) == 0 || slices.Contains(f.Types, r.Event.Type())) {
			list = append(list, r)
		}
	}
	return list
}

func writeWhileReading(b *bed) {
	for range 6 {
		b.enqueue("mail", 100)
	}
	log := b.log(store.Filter{})
	var read []events.Recorded
	for r, err := range b.s.Read(b.ctx, "", store.Filter{}) {
		b.ok(err)
		if len(read)%300 == 0 && len(read) < len(log) {
			b.enqueue("mail", 1)
		}
		read = append(read, r)
	}
	b.same("what was there before the loop", read[:min(len(read), len(log))], log)
	b.same("what came while it ran", read[len(log):], b.log(store.Filter{})[len(log):len(read)])

	written, seen := 0, 0
	for row, err := range b.s.Rows(b.ctx, store.RowFilter{Kind: events.KindMessage}) {
		b.ok(err)
		if seen++; seen%300 == 1 && written < 3 {
			b.enqueue("mail", 1)
			written++
		}
		want(b, "kind", row.Entity.Kind, events.KindMessage)
	}
	if seen < len(log)-1 {
		b.t.Fatalf("%d rows were seen, %d messages were there before the loop", seen, len(log)-1)
	}
}

func nothingLate(b *bed) {
	const writers, each = 4, 12
	list := make([][]store.Call, writers)
	for i := range list {
		for range each {
			list[i] = append(list[i], b.enqueueing(b.drafts(fmt.Sprint("t", i), 3)...))
		}
	}
	done := make(chan error, 1)
	go func() {
		done <- together(writers, func(i int) error {
			for _, call := range list[i] {
				if _, err := b.s.Decide(b.ctx, call); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	var before []events.Recorded
	for running := true; running; {
		select {
		case err := <-done:
			b.ok(err)
			running = false
		default:
		}
		head := b.head()
		log := b.log(store.Filter{})
		b.same("what was read before", log[:min(len(before), len(log))], before)
		// What is behind the head now came after it, so all the rest must have been readable then.
		if rest := b.behind(head, store.Filter{}); len(rest) > 0 {
			all := b.log(store.Filter{})
			if at := slices.IndexFunc(all, func(r events.Recorded) bool { return r.Position == rest[0].Position }); at > len(log) {
				b.t.Fatalf("%d events were read when %d stood before the head", len(log), at)
			}
		}
		before = log
	}
	want(b, "events", len(before), writers*(each*3+1))
}

func endsEarly(b *bed) {
	b.lives(3)
	b.enqueue("mail", 3)
	for range 3 {
		for _, err := range b.s.Read(b.ctx, "", store.Filter{}) {
			b.ok(err)
			break
		}
		for _, err := range b.s.Rows(b.ctx, store.RowFilter{}) {
			b.ok(err)
			break
		}
	}
	b.enqueue("mail", 1)
}
