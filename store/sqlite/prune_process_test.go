package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// pruneOn lets messages live, of which some stay open for some rounds and one in twenty for ever, and lets go of what is a moment old, while it
// is told to, which it asks before each prune.
func pruneOn(s store.Store, topic string, goOn func() bool) error {
	var open []store.Row
	for {
		begun := time.Now().Add(-5 * time.Millisecond)
		list := []store.Call{enqueueing(topic, 20), claimingBy(worker, topic, 19)}
		if len(open) > 40 {
			call, err := settlingAll(worker, open[:20])
			if err != nil {
				return err
			}
			list, open = append(list, call), open[20:]
		}
		receipts, err := s.Decide(context.Background(), list...)
		if err != nil {
			return err
		}
		for _, r := range receipts {
			if r.Err != nil {
				return r.Err
			}
		}
		open = append(open, running(receipts[1])...)
		if !goOn() {
			return nil
		}
		if _, err := letOnce(s, begun, 100); err != nil {
			return err
		}
	}
}

// beginning are sentences about the tables that hold whatever was pruned, each a query that gives 0.
var beginning = map[string]string{
	"the log begins behind what was pruned": "SELECT (SELECT min(position) FROM events) - 1 - (SELECT through FROM pruned)",
	"so do its commits":                     "SELECT (SELECT min(first) FROM commits) - 1 - (SELECT through FROM pruned)",
	"no event is missing":                   "SELECT max(position) - min(position) + 1 - count(*) FROM events",
	"a payload is that of a message of which something is left": "SELECT count(*) FROM payloads p WHERE NOT EXISTS (SELECT 1 FROM messages WHERE place = p.place)" +
		" AND NOT EXISTS (SELECT 1 FROM places WHERE place = p.place) AND NOT EXISTS (SELECT 1 FROM events WHERE position = p.place AND version = 1)",
	"a message of which something is left has its payload": "SELECT count(*) FROM events e WHERE typeof(stream) = 'blob' AND NOT EXISTS" +
		" (SELECT 1 FROM payloads WHERE place = coalesce((SELECT place FROM places WHERE message = e.stream)," +
		" (SELECT position FROM events WHERE stream = e.stream AND version = 1)))",
	"a place is that of a message whose first event has gone, and not its last": "SELECT count(*) FROM places p WHERE place > (SELECT through FROM pruned)" +
		" OR NOT EXISTS (SELECT 1 FROM events WHERE stream = p.message)",
	"the topic beside a place is that of its message": "SELECT count(*) FROM places p WHERE topic = ''" +
		" OR topic <> coalesce((SELECT topic FROM messages WHERE id = p.message), topic)",
	"a snapshot is there": "SELECT count(*) FROM snapshots s WHERE NOT EXISTS (SELECT 1 FROM events WHERE position = s.position AND stream = s.stream)",
	"an open message whose first event has gone has told its state": "SELECT count(*) FROM messages m WHERE place <= (SELECT through FROM pruned)" +
		" AND NOT EXISTS (SELECT 1 FROM snapshots WHERE stream = m.id)",
}

// lacksNothing ends the test unless a store that was pruned lacks nothing, and has nothing more.
func lacksNothing(t *testing.T, path string) {
	t.Helper()
	db := raw(t, path)
	defer db.Close()
	for what, query := range beginning {
		if got := one(t, db, query); got != "0" {
			t.Errorf("%s: %s", what, got)
		}
	}
	s := open(t, path, sqlite.Options{Synchronous: sqlite.SynchronousNormal})
	folded(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestProcessThatIsKilledWhileItPrunesLeavesAWholeStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	for round := range 6 {
		c := startChild(t, rolePrune, path, "mail")
		for range 4 + 3*round {
			c.line(t)
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		lacksNothing(t, path)
	}
	if got := one(t, raw(t, path), "SELECT through > 100 FROM pruned"); got != "1" {
		t.Error("nothing was pruned")
	}
}

func TestTwoProcessesThatPruneAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{})
	c := startChild(t, rolePrune, path, "theirs")
	end := time.Now().Add(1500 * time.Millisecond)
	if err := pruneOn(s, "mine", func() bool { return time.Now().Before(end) }); err != nil {
		t.Fatal(err)
	}
	c.line(t)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	first, err := s.First(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var newest *events.LogPruned
	for r, err := range s.Read(t.Context(), first, store.Filter{Entity: events.LogEntity()}) {
		if err != nil {
			t.Fatal(err)
		}
		newest = r.Event.(*events.LogPruned)
	}
	if newest == nil || int64(newest.Total) != newest.Through || newest.Through < 100 {
		t.Errorf("the newest prune says %+v: all that went, once", newest)
	}
	if got := one(t, raw(t, path), "SELECT through FROM pruned"); newest != nil && got != fmt.Sprint(newest.Through) {
		t.Errorf("the log says that events through %d have gone, the store through %s", newest.Through, got)
	}
	lacksNothing(t, path)
}
