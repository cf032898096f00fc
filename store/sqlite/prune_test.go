package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// ticker is a store's clock that moves a millisecond whenever somebody looks at it.
type ticker struct {
	mu  sync.Mutex
	now time.Time
}

func newTicker() *ticker { return &ticker{now: time.Now().UTC().Truncate(time.Millisecond)} }

func (c *ticker) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Millisecond)
	return c.now
}

// letOnce lets go of at most n events that were decided before a time, and gives how many went. Rows are told 1,000 at a time before.
func letOnce(s store.Store, before time.Time, n int) (int, error) {
	known := calls.Known{}
	for {
		call, seen := calls.Prune(origin(), fsm.Prune{Before: before, Events: n, Rows: 1000, By: "a test"}, known)
		receipts, err := s.Decide(context.Background(), call)
		if err == nil {
			err = receipts[0].Err
		}
		if err != nil {
			return 0, err
		}
		for _, r := range receipts[0].Events {
			if e, ok := r.Event.(*events.LogPruned); ok {
				return e.Events, nil
			}
		}
		switch {
		case len(seen.Unseen) > 0:
			known = known.See(seen.Unseen)
		case len(receipts[0].Events) == 0:
			return 0, nil
		}
	}
}

// let lets go of what was decided before a time, which has come: else it would let go of its own commits for ever.
func let(t testing.TB, s store.Store, before time.Time) (gone int) {
	t.Helper()
	for {
		n, err := letOnce(s, before, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if gone += n; n == 0 {
			return gone
		}
	}
}

// folded ends the test unless every kept row is the fold of its events, from its newest one that says all of it on.
func folded(t testing.TB, s store.Store) {
	t.Helper()
	first, err := store.Oldest(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	history := map[events.Entity][]events.Recorded{}
	for r, err := range s.Read(t.Context(), first, store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Event.Type().Snapshots() {
			history[r.Entity] = nil
		}
		history[r.Entity] = append(history[r.Entity], r)
	}
	rows := 0
	for row, err := range s.Rows(t.Context(), store.RowFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		v, err := calls.Fold(row.Entity, history[row.Entity])
		if err != nil {
			t.Fatalf("fold of %s: %v", row.Entity, err)
		}
		if want := calls.Row(v); string(want.Fields) != string(row.Fields) || want.Version != row.Version {
			t.Fatalf("row of %s: version %d %s, its events lead to version %d %s", row.Entity, row.Version, row.Fields, want.Version, want.Fields)
		}
		rows++
	}
	if rows == 0 {
		t.Fatal("there is no row")
	}
}

// contents is the payload and the result of a message, as text.
func contents(t testing.TB, s store.Store, id events.ID) string {
	t.Helper()
	c, err := s.Contents(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	text := func(p *store.Payload) string {
		if p == nil {
			return "-"
		}
		return string(p.Bytes)
	}
	return text(c.Payload) + "/" + text(c.Result)
}

// resulting is the call that completes the messages of claimed rows, each with a result.
func resulting(t testing.TB, rows []store.Row, result string) store.Call {
	t.Helper()
	c := fsm.Settle{Sender: worker, Recordable: len(rows)}
	var results []*store.Payload
	for _, row := range rows {
		m, err := calls.Message(row)
		if err != nil {
			t.Fatal(err)
		}
		p := &store.Payload{Salt: [16]byte{1}, Bytes: []byte(result)}
		facts := events.Facts{Size: len(result), Commitment: events.Commitment(p.Salt, p.Bytes)}
		c.Items = append(c.Items, fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: m.Token, Result: facts}})
		results = append(results, p)
	}
	call, _ := calls.Settle(origin(), c, rows, results...)
	return call
}

// counts is how many rows the tables have that a prune takes from.
func counts(t testing.TB, path string) string {
	t.Helper()
	db := raw(t, path)
	defer db.Close()
	var list []string
	for _, table := range []string{"events", "commits", "payloads", "results", "places", "snapshots", "keys", "messages"} {
		var n int
		if err := db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(table, " ", n))
	}
	return strings.Join(list, ", ")
}

// TestNothingOfAMessageIsLeftOnceItsEndIsPruned follows four messages over three prunes: one that ends before the first, one that ends
// between the first and the second, one that is snapshotted before it ends, and one that stays.
func TestNothingOfAMessageIsLeftOnceItsEndIsPruned(t *testing.T) {
	path, clock := filepath.Join(t.TempDir(), "store.db"), newTicker()
	s := open(t, path, sqlite.Options{Clock: clock.time})
	commit(t, s, enqueueing("mail", 4))
	rows := commit(t, s, claiming("mail", 2)).Rows
	commit(t, s, resulting(t, rows[:1], "early"))
	first := clock.time()
	commit(t, s, resulting(t, rows[1:], "late"))
	second := clock.time()
	look := func(when, want string, kept ...string) {
		t.Helper()
		if got := counts(t, path); got != want {
			t.Errorf("%s: %s\nwant %s", when, got, want)
		}
		folded(t, s)
		ids := []events.ID{rows[0].Entity.ID, rows[1].Entity.ID}
		for i, want := range kept {
			if got := contents(t, s, ids[i]); got != want {
				t.Errorf("%s: contents of message %d: %s, want %s", when, i+1, got, want)
			}
		}
	}
	look("at first", "events 9, commits 4, payloads 4, results 2, places 0, snapshots 0, keys 0, messages 2",
		"payload 000000000000/early", "payload 000000000001/late")
	let(t, s, first)
	look("after one prune", "events 5, commits 2, payloads 3, results 1, places 3, snapshots 3, keys 0, messages 2",
		"-/-", "payload 000000000001/late")
	let(t, s, second)
	look("after the end of the second", "events 5, commits 2, payloads 2, results 0, places 2, snapshots 3, keys 0, messages 2", "-/-", "-/-")
	rows = append(rows[:1], commit(t, s, claiming("mail", 1)).Rows...)
	commit(t, s, resulting(t, rows[1:], "third"))
	third := clock.time()
	look("after the third has ended", "events 7, commits 4, payloads 2, results 1, places 2, snapshots 3, keys 0, messages 1",
		"-/-", "payload 000000000002/third")
	let(t, s, third)
	look("at last", "events 3, commits 1, payloads 1, results 0, places 1, snapshots 2, keys 0, messages 1", "-/-", "-/-")
	if n := len(commit(t, s, claiming("mail", 9)).Rows); n != 1 {
		t.Errorf("%d are claimed, want 1", n)
	}
}

func TestPrunedKeysGo(t *testing.T) {
	path, clock := filepath.Join(t.TempDir(), "store.db"), newTicker()
	s := open(t, path, sqlite.Options{Clock: clock.time})
	keyed := func(n int, unique time.Duration) {
		for i := range n {
			c := fsm.Enqueue{Topics: map[string]fsm.TopicStart{"mail": {}}, Drafts: []fsm.Draft{{ID: origin().ID, EnqueueMessage: fsm.EnqueueMessage{
				Topic: "mail", Key: fmt.Sprint(unique, i), UniqueFor: unique, Payload: events.Facts{Commitment: events.Commitment([16]byte{}, nil)},
			}}}}
			call, _ := calls.Enqueue(origin(), c, make([]store.Payload, 1))
			commit(t, s, call)
		}
	}
	keyed(40, time.Second)
	keyed(5, time.Hour)
	rows := running(commit(t, s, claiming("mail", 43)))
	commit(t, s, completing(t, rows))
	clock.now = clock.now.Add(time.Minute)
	let(t, s, clock.time().Add(-time.Second))
	if got := one(t, raw(t, path), "SELECT group_concat(open || coalesce(until, '') > '0', '') FROM keys"); got != "11111" {
		t.Errorf("keys that are left: %s, want 3 that are kept for an hour and 2 of open messages", got)
	}
	folded(t, s)
}

func TestReaderThatIsOvertakenByAPruneIsTold(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	for range 12 {
		lives(t, s, 100)
	}
	n, last := 0, store.Cursor("")
	var failed error
	for r, err := range s.Read(t.Context(), "", store.Filter{}) {
		if failed = err; err != nil {
			break
		}
		if n++; n == 1 {
			let(t, s, time.Now())
		}
		if last = s.After(r); r.Position != int64(n) {
			t.Fatalf("event %d stands at %d", n, r.Position)
		}
	}
	first, err := s.First(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var gone *store.PrunedError
	if !errors.As(failed, &gone) || gone.Asked != last || gone.First != first {
		t.Errorf("after %d events: %v, want one that asks behind %s and is sent to %s", n, failed, last, first)
	}
}

// BenchmarkPrune lets go of 5,000 events of messages that have ended, in a store that has a hundred thousand more of them.
func BenchmarkPrune(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "store.db"), sqlite.Options{Synchronous: sqlite.SynchronousNormal})
	fill := func(n int) {
		for range n / 100 {
			lives(b, s, 100)
		}
	}
	fill(40_000)
	for b.Loop() {
		if n, err := letOnce(s, time.Now().Add(time.Hour), 5000); err != nil || n < 4900 {
			b.Fatal(n, err)
		}
		b.StopTimer()
		fill(1700)
		b.StartTimer()
	}
}
