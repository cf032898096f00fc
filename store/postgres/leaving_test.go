package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
)

// tables is the partitions of the log that the schema has, attached or not, and how many are half detached.
func (h *hand) tables() (names []string, pending int) {
	h.t.Helper()
	const query = "SELECT c.relname::text, coalesce(i.inhdetachpending, false) FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid" +
		" WHERE c.relname ~ '^(events|decisions)_[0-9]+$' AND c.relkind = 'r' ORDER BY length(c.relname), c.relname"
	rows, err := h.conn.Query(context.Background(), query)
	if err != nil {
		h.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var half bool
		if err := rows.Scan(&name, &half); err != nil {
			h.t.Fatal(err)
		}
		if names = append(names, name); half {
			pending++
		}
	}
	return names, pending
}

// skip goes to the end of the range in use, and over it.
func (b *beds) skip(h *hand) {
	b.t.Helper()
	h.do("SELECT setval('@blocks', $1)", b.s.ranges.current().upper-2)
	for range 4 {
		b.enqueue("mail", "", 1)
	}
	if err := b.s.keepRanges(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// finish completes whatever can be claimed.
func (b *beds) finish() {
	b.t.Helper()
	worker := b.id()
	for rows := b.claim(worker, "mail", 50); len(rows) > 0; rows = b.claim(worker, "mail", 50) {
		b.settle(worker, rows)
	}
}

// pruneAll lets all go that is there now. Each prune is told of in the log itself.
func (b *beds) pruneAll() {
	b.t.Helper()
	end, err := b.s.look(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for range 100 {
		b.let("", 50)
		now, err := b.s.look(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		if now.through >= end.newest.position() {
			return
		}
	}
	b.t.Fatal("it does not go")
}

// Ranges of which nothing is left go as whole tables, and nobody who writes or reads notices.
func TestRangesOfWhichNothingIsLeftAreDropped(t *testing.T) {
	dsn := pgtest.Database(t)
	b := &beds{t: t, s: openAt(t, dsn, Options{})}
	far := &beds{t: t, s: openAt(t, dsn, Options{})} // knows of the ranges as they are now
	h := newHand(t, b.s)
	b.configure("mail", 0)
	open := b.enqueue("mail", "", 1) // it stays open, and keeps no range
	held := b.claim(b.id(), "mail", 1)
	for range 2 {
		b.skip(h)
	}
	b.finish()
	before, _ := h.tables()
	b.pruneAll()
	b.s.waitLeft(t)
	after, pending := h.tables()
	gone := slices.DeleteFunc(slices.Clone(before), func(name string) bool { return slices.Contains(after, name) })
	first := b.s.ranges.list[0].lower
	if want := []string{"events_1", "decisions_1", fmt.Sprint("events_", leastRange), fmt.Sprint("decisions_", leastRange)}; pending != 0 ||
		!sameSet(gone, want) || first != 2*leastRange {
		t.Errorf("tables %v went, %d half, and the first range known is %d: want %v", gone, pending, first, want)
	}
	var left int
	if err := h.conn.QueryRow(t.Context(), b.s.sql("SELECT count(*) FROM @ranges WHERE lower < $1"), first).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d ranges are told of that are not there, %v", left, err)
	}
	far.enqueue("mail", "", 1)
	far.finish()
	far.pruneAll()
	if len(held) != 1 || held[0].Entity.ID != open.Rows[0].Entity.ID {
		t.Fatalf("claimed %+v", held)
	}
	far.settle(held[0].Worker, held)
	cursor, err := far.s.First(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if log := read(t, far.s, cursor, store.Filter{}); len(log) == 0 {
		t.Error("nothing is left of the log")
	}
	far.s.waitLeft(t)
	if list := far.s.ranges.list; list[0].lower < first {
		t.Errorf("the other process still knows of %v", list)
	}
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// dumping is a backup that has locked every table of the schema, and stays. Closing it lets go.
func dumping(t *testing.T, s *Store) (end func()) {
	t.Helper()
	h := newHand(t, s)
	h.do("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
	rows, err := h.conn.Query(t.Context(), "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"+
		" WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') ORDER BY c.oid", s.options.Schema)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	for _, name := range names {
		h.do("LOCK TABLE " + name + " IN ACCESS SHARE MODE")
	}
	return func() { h.do("ROLLBACK") }
}

// dumpingForReal is a pg_dump that has locked every table, and waits for one that it comes to last.
func dumpingForReal(t *testing.T, s *Store) (end func()) {
	t.Helper()
	h := newHand(t, s)
	h.do("CREATE TABLE @zz_last (n integer)")
	h.do("BEGIN")
	h.do("LOCK TABLE @zz_last IN ACCESS EXCLUSIVE MODE")
	wait := pgtest.StartDump(t, s.config.ConnString())
	other := newHand(t, s)
	for until := time.Now().Add(patienceOfTests); ; {
		var waits bool
		const query = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = '@zz_last'::regclass AND NOT granted) FROM (SELECT pg_sleep(0.02)) slept"
		if err := other.conn.QueryRow(t.Context(), s.sql(query)).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if waits {
			break
		}
		if time.Now().After(until) {
			t.Fatal("pg_dump does not come to the last table")
		}
	}
	return func() {
		h.do("ROLLBACK")
		if err := wait(); err != nil {
			t.Errorf("pg_dump: %v", err)
		}
	}
}

// A backup in progress holds its locks for hours. Meanwhile workers work, ranges are made, and prunes go on; what it is in the way of is done afterwards.
func TestADumpInProgressStopsNeitherWritersNorUpkeep(t *testing.T) {
	for name, dump := range map[string]func(*testing.T, *Store) func(){"by hand": dumping, "pg_dump": dumpingForReal} {
		t.Run(name, func(t *testing.T) {
			b := &beds{t: t, s: openAt(t, pgtest.Database(t), Options{LockTimeout: 300 * time.Millisecond})}
			h := newHand(t, b.s)
			b.configure("mail", 0)
			b.enqueue("mail", "", 3)
			end := dump(t, b.s)

			stop := b.works()
			first := b.s.ranges.current()
			b.skip(h)
			b.skip(h)
			last := b.s.ranges.list[len(b.s.ranges.list)-1]
			h.do("SELECT setval('@blocks', $1)", last.upper+5) // no range has the next number
			b.enqueue("mail", "", 1)
			stop()
			b.finish()
			b.pruneAll()
			b.s.waitLeft(t)
			names, pending := h.tables()
			if !slices.Contains(names, fmt.Sprint("events_", first.lower)) {
				t.Error("a table went that the dump reads")
			}
			if pending != 1 {
				t.Errorf("%d tables are half detached, want 1", pending)
			}
			if current := b.s.ranges.current(); current.lower < last.upper {
				t.Errorf("the range in use is %+v, want one behind %d", current, last.upper)
			}
			stop = b.works()
			stop()

			end()
			b.s.ranges.mu.Lock()
			b.s.ranges.leaving.again = time.Time{}
			b.s.ranges.mu.Unlock()
			b.pruneAll()
			b.s.waitLeft(t)
			names, pending = h.tables()
			if slices.Contains(names, fmt.Sprint("events_", first.lower)) || slices.Contains(names, fmt.Sprint("decisions_", first.lower)) || pending != 0 {
				t.Errorf("the dump has ended, and there are %v, %d of them half detached", names, pending)
			}
		})
	}
}

// waitLeft returns when nobody takes ranges away.
func (s *Store) waitLeft(t *testing.T) {
	t.Helper()
	for until := time.Now().Add(patienceOfTests); ; {
		s.ranges.mu.Lock()
		busy := s.ranges.leaving.busy
		s.ranges.mu.Unlock()
		if !busy {
			return
		}
		if time.Now().After(until) {
			t.Fatal("taking ranges away does not end")
		}
		if _, err := s.pool.Exec(t.Context(), "SELECT pg_sleep(0.02)"); err != nil {
			t.Fatal(err)
		}
	}
}

// works has some work until it is told to stop, which returns once each has done something.
func (b *beds) works() (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	var wg sync.WaitGroup
	for range 3 {
		began := make(chan struct{})
		wg.Go(func() {
			defer close(began)
			for n := 0; n == 0 || ctx.Err() == nil; n++ {
				b.enqueue("mail", "", 2)
				worker := b.id()
				b.settle(worker, b.claim(worker, "mail", 2))
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// Whoever finds no range for its number makes one. Somebody else may have the lock that it wants: then it waits, and does not fail.
func TestAWriterWithoutARangeWaitsForWhoeverIsInTheWayOfOne(t *testing.T) {
	b := &beds{t: t, s: openAt(t, pgtest.Database(t), Options{LockTimeout: 50 * time.Millisecond})}
	h := newHand(t, b.s)
	b.configure("mail", 0)
	h.do("BEGIN")
	h.do("LOCK TABLE ONLY @events IN SHARE UPDATE EXCLUSIVE MODE") // as ANALYZE does
	other := newHand(t, b.s)
	other.do("SELECT setval('@blocks', $1)", b.s.ranges.list[len(b.s.ranges.list)-1].upper+5)
	ctx, cancel := context.WithTimeout(t.Context(), patienceOfTests)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		receipts, err := b.s.Decide(ctx, b.enqueueing("mail", "", 1))
		done <- errors.Join(err, first(receipts).Err)
	}()
	h.do("SELECT pg_sleep(0.4)")
	select {
	case err := <-done:
		t.Errorf("it ended with %v while somebody was in the way", err)
		done <- nil
	default:
	}
	h.do("ROLLBACK")
	if err := <-done; err != nil {
		t.Errorf("error %v", err)
	}
	if n := len(read(t, b.s, "", store.Filter{Types: []events.Type{events.TypeMessageEnqueued}})); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
}

func first(receipts []store.Receipt) store.Receipt {
	if len(receipts) == 0 {
		return store.Receipt{}
	}
	return receipts[0]
}

// The number of ranges is bounded over years, at any pace: what is kept decides, and nothing else.
func TestTheNumberOfRangesIsBounded(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		what   string
		perDay int64
		days   int
		kept   int // days; 0 is all
		most   int
	}{
		{"a message a minute for ten years", 3 * 24 * 60, 3650, 0, 16},
		{"5,000 a second for ten years", 5000 * 86400, 3650, 0, 95},
		{"5,000 a second, 90 days kept", 5000 * 86400, 3650, 90, 70},
		{"100 a second, 90 days kept", 100 * 86400, 3650, 90, 45},
		{"100 a second for ten years", 100 * 86400, 3650, 0, 70},
	} {
		var list []span
		newest, most := int64(0), 0
		start := time.Unix(0, 0)
		const steps = 24 * 6 // a day, so that three ranges must last for ten minutes
		for step := range c.days * steps {
			now := start.Add(time.Duration(step) * day / steps)
			s := Store{}
			for missing := s.missing(list, newest, now); missing > 0; missing-- {
				list = append(list, nextRange(list, newest, now))
			}
			for i := range list {
				if newest >= list[i].lower && list[i].begun.IsZero() {
					list[i].begun = now
				}
			}
			newest += c.perDay / steps
			if end := list[len(list)-1].upper; newest >= end {
				t.Fatalf("%s: number %d is drawn in ten minutes, and ranges end at %d", c.what, newest, end)
			}
			if c.kept > 0 {
				through := newest - int64(c.kept)*c.perDay
				list = slices.DeleteFunc(list, func(s span) bool { return s.upper <= through })
			}
			most = max(most, len(list))
		}
		if most > c.most {
			t.Errorf("%s: up to %d ranges, want at most %d", c.what, most, c.most)
		}
		t.Logf("%s: up to %d ranges, %d in the end", c.what, most, len(list))
	}
}
