package runner_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// mailbox is a store in a file, whose bytes can be damaged.
type mailbox struct {
	*sqlite.Store
	client *foundling.Client
	topic  foundling.Topic[[]byte]
	db     *sql.DB
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Synchronous: sqlite.SynchronousNormal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c, err := foundling.NewClient(s, foundling.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &mailbox{Store: s, client: c, topic: foundling.NewTopic[[]byte]("mail", foundling.TopicOptions{}), db: db}
}

// enqueue makes a commit of some messages.
func (m *mailbox) enqueue(t *testing.T, n int) {
	t.Helper()
	var list []foundling.Draft
	for range n {
		list = append(list, m.topic.Draft([]byte("hello"), foundling.EnqueueOptions{}))
	}
	if _, err := m.client.EnqueueMany(t.Context(), list...); err != nil {
		t.Fatal(err)
	}
}

func (m *mailbox) damage(t *testing.T, statement string, args ...any) {
	t.Helper()
	result, err := m.db.Exec(statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%s: changed %d rows, %v", statement, n, err)
	}
}

// counted is the view of a tally of some messages, the first of which told of its topic, too.
func counted(n int) string { return fmt.Sprintf(`{"message.enqueued":%d,"topic.configured":1}`, n) }

const flipEvent = "UPDATE events SET checksum = ~checksum WHERE position = ?"

// One event that is not what was written is passed over and told; what follows it is counted, by whoever comes to it.
func TestDamagedEventDoesNotEndTheCount(t *testing.T) {
	for _, c := range []struct {
		name    string
		at      int64         // which of 20 events, the last 4 of which are one commit
		saved   int           // events that were counted before it was damaged
		damaged runner.Passed // with what the store gives no more
	}{
		{"the first", 1, 0, runner.Passed{Events: 2, First: 1, Last: 2}},
		{"one in the middle", 9, 0, runner.Passed{Events: 1, First: 9, Last: 9}},
		{"the next one", 9, 8, runner.Passed{Events: 1, First: 9, Last: 9}},
		{"the first of several of a commit", 17, 0, runner.Passed{Events: 4, First: 17, Last: 20}},
		{"the last of several of a commit", 20, 0, runner.Passed{Events: 4, First: 17, Last: 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMailbox(t)
			mail := func(n int) {
				for range n {
					m.enqueue(t, 1)
				}
			}
			mail(max(0, c.saved-1)) // the first tells of its topic, too
			one := made(tally{name: "tally", version: 1})
			catchUp(t, start(t, m, small, one))
			mail(15 - max(0, c.saved-1))
			m.enqueue(t, 4)
			m.damage(t, flipEvent, c.at)
			for range 2 { // one process after the other, the second of which has nothing to pass over
				mail(2)
				r := start(t, m, runner.Options{Page: 3}, one)
				catchUp(t, r)
				same(t, r.Status()[0].Passed, c.damaged)
				same(t, r.Status()[0].Phase, runner.Following)
			}
			v := current(t, m, "tally")
			same(t, v.Passed, c.damaged)
			same(t, v.AsOf.Position, 24)
			want := counted(23 - c.damaged.Events)
			if c.at == 1 {
				want = `{"message.enqueued":22}`
			}
			same(t, string(v.Bytes), want)
			again, err := runner.Rebuild(t.Context(), m, one)
			if err != nil || !again.Same() || again.Built.Passed != c.damaged {
				t.Errorf("rebuilt: %v, %+v\n%s", err, again.Built.Passed, again.Built.Bytes)
			}
			lag, err := runner.LagOf(t.Context(), m, "", 30)
			same(t, fmt.Sprint(lag.Events, lag.More, err), "24 false <nil>")
			reading, err := runner.Read(t.Context(), m, one, 100)
			same(t, fmt.Sprint(reading.Passed, err), fmt.Sprint(c.damaged, error(nil)))
		})
	}
}

// Where no event is at fault there is nothing to pass over: the projection stops there and says so, with what it had taken.
func TestDamagedLogStopsTheCountWithWhatWasTaken(t *testing.T) {
	m := newMailbox(t)
	for range 12 { // 13 events
		m.enqueue(t, 1)
	}
	one := made(tally{name: "tally", version: 1})
	r := start(t, m, runner.Options{Page: 4}, one)
	for range 2 { // of which the first is saved
		if more, err := r.Step(t.Context()); err != nil || !more {
			t.Fatal(more, err)
		}
	}
	m.damage(t, "INSERT INTO pruned (id, through, at, checksum) VALUES (1, 0, 0, 7)")
	catchUp(t, r)
	status := r.Status()[0]
	same(t, status.Phase, runner.Halted)
	if text := status.Halt.String(); !status.Halt.Unread || !strings.HasPrefix(text, "the log cannot be read: ") || strings.Contains(text, "panic") {
		t.Errorf("halted: %s", text)
	}
	same(t, status.Saved.Position, 8)
	kept, err := runner.Versions(t.Context(), m)
	if err != nil || kept[0].View.Halt != status.Halt || kept[0].View.AsOf.Position != 8 {
		t.Errorf("kept: %v, %+v", err, kept)
	}
	m.damage(t, "DELETE FROM pruned")
	catchUp(t, start(t, m, small, one))
	same(t, string(current(t, m, "tally").Bytes), counted(12))
	same(t, current(t, m, "tally").Halt, runner.Halt{})
}

// A flipped bit in the newest checkpoints loses nothing: an older one is gone on from, by whoever looks, and they go with the next that is saved.
func TestSpoiltCheckpointIsPassedOver(t *testing.T) {
	for column, flip := range map[string]string{
		"view":   "UPDATE checkpoints SET view = zeroblob(length(view)) WHERE name = 'tally' AND sequence = ?",
		"cursor": "UPDATE checkpoints SET cursor = cursor || '0' WHERE name = 'tally' AND sequence = ?",
	} {
		t.Run(column, func(t *testing.T) {
			m := newMailbox(t)
			one := made(tally{name: "tally", version: 1})
			for range 4 {
				m.enqueue(t, 1)
				catchUp(t, start(t, m, small, one))
			}
			for sequence := range 2 {
				m.damage(t, flip, 4-sequence)
			}
			m.enqueue(t, 1)
			same(t, string(current(t, m, "tally").Bytes), counted(2))
			kept, err := runner.Versions(t.Context(), m)
			if err != nil || len(kept) != 1 || kept[0].View.Sequence != 2 || column == "view" && kept[0].Spoilt != 2 {
				t.Errorf("kept: %v, %+v", err, kept)
			}
			again, err := runner.Rebuild(t.Context(), m, one)
			if err != nil || !again.Same() || again.Stored.Sequence != 2 {
				t.Errorf("rebuilt: %v, %+v", err, again)
			}
			r := start(t, m, small, one)
			catchUp(t, r)
			if column == "view" {
				same(t, r.Status()[0].Spoilt, 2)
			}
			same(t, string(current(t, m, "tally").Bytes), counted(5))
			for _, c := range checkpoints(t, m, store.CheckpointFilter{}) { // what is spoilt would be an error
				if _, err := m.View(t.Context(), c.CheckpointKey); err != nil {
					t.Error(err)
				}
			}
			catchUp(t, start(t, m, small, made(tally{name: "tally", version: 2}))) // whose base is to be found among the old ones
			same(t, string(current(t, m, "tally").Bytes), counted(5))
		})
	}
}

// Where no checkpoint can be read, the count begins again.
func TestEveryCheckpointSpoilt(t *testing.T) {
	m := newMailbox(t)
	m.enqueue(t, 3)
	one := made(tally{name: "tally", version: 1})
	catchUp(t, start(t, m, small, one))
	m.damage(t, "UPDATE checkpoints SET view = zeroblob(length(view))")
	kept, err := runner.Versions(t.Context(), m)
	if err != nil || len(kept) != 1 || kept[0].View.Name != "tally" || kept[0].Spoilt != 1 {
		t.Errorf("kept: %v, %+v", err, kept)
	}
	if _, err := runner.Rebuild(t.Context(), m, one); err == nil {
		t.Error("rebuilt, though nothing is kept")
	}
	catchUp(t, start(t, m, small, one))
	same(t, string(current(t, m, "tally").Bytes), counted(3))
}
