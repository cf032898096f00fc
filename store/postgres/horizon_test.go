package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
)

func lookOf(server string, drawn int64, writers ...string) *look {
	l := &look{server: server, drawn: drawn, writers: map[string]struct{}{}}
	for _, w := range writers {
		l.writers[w] = struct{}{}
	}
	return l
}

func TestNothingIsFinalWhileAWriterThatWasSeenStays(t *testing.T) {
	var h horizon
	for _, c := range []struct {
		what        string
		before, now *look
		wanted      int64
	}{
		{"nobody writes", nil, lookOf("a", 5), 5},
		{"one writes", nil, lookOf("a", 7, "1/1"), 5},
		{"it stays, others come", lookOf("a", 7, "1/1"), lookOf("a", 9, "1/1", "2/1"), 5},
		{"it has gone, others stay", lookOf("a", 7, "1/1"), lookOf("a", 9, "2/1"), 7},
		{"one of two has gone", lookOf("a", 9, "2/1", "3/1"), lookOf("a", 9, "3/1"), 7},
		{"nobody is left", lookOf("a", 9, "2/1", "3/1"), lookOf("a", 12), 12},
		{"an older look teaches nothing", lookOf("a", 3, "9/1"), lookOf("a", 13, "4/1"), 12},
	} {
		got := int64(0)
		if c.before == nil {
			got = h.learn(c.now)
		} else {
			got = h.settle(c.before, c.now)
		}
		if got != c.wanted {
			t.Errorf("%s: final up to %d, want %d", c.what, got, c.wanted)
		}
	}
}

func TestWhatAnotherServerSaidIsForgotten(t *testing.T) {
	var h horizon
	h.learn(lookOf("a", 40))
	if got := h.learn(lookOf("b", 38, "1/1")); got != 0 {
		t.Errorf("after a restart, with a writer: final up to %d, want nothing", got)
	}
	if got := h.settle(lookOf("a", 40, "7/7"), lookOf("b", 41, "1/2")); got != 0 {
		t.Errorf("a look of the server before it was started again: final up to %d, want nothing", got)
	}
	h = horizon{}
	h.learn(lookOf("a", 40))
	if got := h.learn(lookOf("a", 12, "1/1")); got != 0 {
		t.Errorf("after the sequence was set back: final up to %d, want nothing", got)
	}
	h = horizon{}
	sealed := lookOf("b", 38, "1/1")
	sealed.sealed = 33
	if got := h.learn(sealed); got != 33 {
		t.Errorf("with a seal: final up to %d, want it", got)
	}
	sealed.sealed = 50
	if got := h.learn(sealed); got != 38 {
		t.Errorf("with a seal beyond what was drawn: final up to %d, want what was drawn", got)
	}
}

// Law 9: a reader waits for a writer that was there before it, and not for ever for one that is stuck; what is drawn behind such a one it leaves.
func TestAReaderNeitherWaitsForEverNorPassesAStuckWriter(t *testing.T) {
	dsn := pgtest.Database(t)
	s := openAt(t, dsn, Options{ReadPatience: 150 * time.Millisecond})
	one, stuck := newHand(t, s), newHand(t, s)
	first := one.commit("a")
	if got := numbers(read(t, s, "", store.Filter{})); !slices.Equal(got, []int64{first}) {
		t.Fatalf("transactions %v were read, want [%d]", got, first)
	}
	stuck.begin()
	stuck.hold("b")
	slow := stuck.draw()
	stuck.append(slow)
	second := one.commit("a")

	for _, f := range []store.Filter{{}, {Entity: one.topic("a")}} {
		began := time.Now()
		list := read(t, s, "", f)
		if got := numbers(list); !slices.Equal(got, []int64{first}) {
			t.Errorf("%+v: transactions %v were read while %d may still commit, want [%d]", f, got, slow, first)
		}
		if took := time.Since(began); took < 150*time.Millisecond || took > patienceOfTests {
			t.Errorf("%+v: the read took %s, want the reader's patience", f, took)
		}
	}
	head, err := s.Head(t.Context())
	if want := store.CursorAt(s.id, firstOf(first)); err != nil || head != want {
		t.Errorf("head %s, error %v, want %s", head, err, want)
	}
	// Another process has nothing that it remembers, and goes by what was written down.
	s.powers.seals.done.Wait()
	other := openAt(t, dsn, Options{ReadPatience: 20 * time.Millisecond})
	if got := numbers(read(t, other, "", store.Filter{})); !slices.Equal(got, []int64{first}) {
		t.Errorf("another process read %v, want [%d]", got, first)
	}

	stuck.do("COMMIT")
	if got := numbers(read(t, s, head, store.Filter{})); !slices.Equal(got, []int64{slow, second}) {
		t.Errorf("transactions %v were read behind the head once it had committed, want [%d %d]", got, slow, second)
	}
}

func TestAReaderWaitsForAWriterThatIsAboutToCommit(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{ReadPatience: 20 * time.Second})
	one, slow := newHand(t, s), newHand(t, s)
	slow.begin()
	slow.hold("b")
	first := slow.draw()
	slow.append(first)
	second := one.commit("a")
	done := make(chan string, 1)
	go func() {
		list, err := s.all(context.Background(), "", store.Filter{})
		done <- fmt.Sprint(numbers(list), err)
	}()
	slow.do("SELECT pg_sleep(0.1)")
	select {
	case got := <-done:
		t.Fatalf("%s was read before the writer had ended", got)
	default:
	}
	slow.do("COMMIT")
	if got, want := <-done, fmt.Sprint([]int64{first, second}, nil); got != want {
		t.Errorf("%s was read, want %s", got, want)
	}
}

// Somebody whose horizon was wider may give a cursor that lies behind the horizon of somebody else.
func TestACursorBehindTheOwnHorizonIsNoneAheadOfTheLog(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{ReadPatience: 20 * time.Millisecond})
	one, stuck := newHand(t, s), newHand(t, s)
	stuck.begin()
	stuck.draw()
	number := one.commit("a")
	list, err := s.all(t.Context(), store.CursorAt(s.id, firstOf(number)), store.Filter{})
	if err != nil || len(list) > 0 {
		t.Errorf("%d events, error %v; want none", len(list), err)
	}
	stuck.do("ROLLBACK")
	if got := numbers(read(t, s, "", store.Filter{})); !slices.Equal(got, []int64{number}) {
		t.Errorf("transactions %v, want [%d]", got, number)
	}
}

func TestSequencesThatWouldLoseEventsAreRefused(t *testing.T) {
	for _, spoil := range []string{
		"ALTER SEQUENCE @blocks CACHE 20", "ALTER SEQUENCE @blocks INCREMENT 2", "ALTER SEQUENCE @fences CACHE 2", "ALTER SEQUENCE @blocks CYCLE",
	} {
		dsn := pgtest.Database(t)
		s := openAt(t, dsn, Options{})
		newHand(t, s).do(spoil)
		other, err := Open(t.Context(), dsn, Options{})
		if err == nil {
			t.Errorf("%s: the store was opened", spoil)
			_ = other.Close()
			continue
		}
		if text := err.Error(); !containsAll(text, "sequence", "cache 1") {
			t.Errorf("%s: error %q", spoil, text)
		}
	}
}

func TestTheSafeEndOfTheLogIsWrittenDownForStandbys(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	one := newHand(t, s)
	number := one.commit("a")
	read(t, s, "", store.Filter{})
	s.powers.seals.done.Wait()
	l, err := s.lookNow(t.Context())
	if err != nil || l.sealed != number {
		t.Fatalf("sealed up to %d, error %v, want %d", l.sealed, err, number)
	}
	// What was found of a server that was started again since is not written.
	l.server = "another"
	if err := s.writeSeal(t.Context(), l.server, number); err != nil {
		t.Fatal(err)
	}
	next := one.commit("a")
	if err := s.writeSeal(t.Context(), l.server, next); err != nil {
		t.Fatal(err)
	}
	if l, err = s.lookNow(t.Context()); err != nil || l.sealed != number {
		t.Errorf("sealed up to %d by what was found of another server, error %v, want %d", l.sealed, err, number)
	}
	// Nor what was not drawn.
	if err := s.writeSeal(t.Context(), l.server, next+5); err != nil {
		t.Fatal(err)
	}
	if l, err = s.lookNow(t.Context()); err != nil || l.sealed != number {
		t.Errorf("sealed up to %d, which was never drawn, error %v, want %d", l.sealed, err, number)
	}
	// On a standby that is all that may be read.
	l.standby = true
	if final := s.powers.horizon.learn(l); final != number {
		t.Errorf("a standby reads up to %d, want %d", final, number)
	}
}

// A session that somebody left open in the table of events keeps every reader from going on, and is no fault that anything else shows.
func TestWhoKeepsReadersWaitingIsNamed(t *testing.T) {
	dsn := pgtest.Database(t)
	var log lines
	b := &beds{t: t, s: openAt(t, dsn, Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)), WriteTimeout: 100 * time.Millisecond, ReadPatience: 50 * time.Millisecond,
	})}
	b.configure("mail", 0)
	before := len(read(t, b.s, "", store.Filter{}))
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, text := range []string{"SET application_name = 'somebody''s shell'", "BEGIN", b.s.sql("LOCK TABLE @events IN ROW EXCLUSIVE MODE")} {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	b.enqueue("mail", "", 1)
	await(t, "it is said who is waited for", func() bool {
		if n := len(read(t, b.s, "", store.Filter{})); n != before {
			t.Fatalf("%d events were read, want the %d from before", n, before)
		}
		return log.count("somebody's shell") > 0
	})
	if pid := fmt.Sprint("pid=", conn.PgConn().PID()); log.count(pid) != 1 || log.count("readers of the log wait") != 1 {
		t.Errorf("want it said once, with %s:\n%s", pid, log.text.String())
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if n := len(read(t, b.s, "", store.Filter{})); n != before+1 {
		t.Errorf("%d events once it has ended, want %d", n, before+1)
	}
}
