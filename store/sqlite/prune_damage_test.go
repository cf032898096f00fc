package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// newPruned is a store like newDamaged whose first commits were let go, with what is left of its log.
func newPruned(t *testing.T) (d *damaged, first store.Cursor) {
	t.Helper()
	d = newDamaged(t)
	commit(t, d, enqueueing("mail", 2))
	gone := let(t, d, d.log[5].At()) // the worker, the topic and the messages
	first, err := d.First(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.log, err = d.all(first); err != nil || gone == 0 || d.log[0].Position != int64(gone+1) {
		t.Fatalf("%d events have gone, %v, %d are left", gone, err, len(d.log))
	}
	return d, first
}

// putBack runs statements, lets the test look, and puts back what the tables had.
func (d *damaged) putBack(t *testing.T, tables []string, look func(), statements ...string) {
	t.Helper()
	for _, table := range tables {
		do(t, d.db, "CREATE TEMP TABLE was_"+table+" AS SELECT * FROM main."+table)
	}
	for _, statement := range statements {
		do(t, d.db, statement)
	}
	look()
	for _, table := range tables {
		do(t, d.db, "DELETE FROM main."+table)
		do(t, d.db, "INSERT INTO main."+table+" SELECT * FROM was_"+table)
		do(t, d.db, "DROP TABLE was_"+table)
	}
}

func TestEventsThatAreMissingBehindThePrunedPartAreFound(t *testing.T) {
	d, first := newPruned(t)
	for _, e := range d.log {
		d.putBack(t, []string{"events"}, func() {
			list, err := d.all(first)
			if c := corrupt(t, err); c.Position != e.Position || c.Entity == (events.Entity{}) || int64(len(list)) >= e.Position {
				t.Errorf("event at %d deleted: %v after %d events", e.Position, err, len(list))
			}
			if c := corrupt(t, err); strings.Contains(c.Detail, "a later one") && c.Entity != e.Entity {
				t.Errorf("event of %s deleted: %v", e.Entity, err)
			}
		}, fmt.Sprintf("DELETE FROM events WHERE position = %d", e.Position))
	}
	d.putBack(t, []string{"events", "commits"}, func() {
		_, err := d.all(first)
		if c := corrupt(t, err); c.Position != d.log[0].Position {
			t.Errorf("first commit deleted: %v", err)
		}
	}, fmt.Sprintf("DELETE FROM commits WHERE first = %d", d.log[0].Position),
		fmt.Sprintf("DELETE FROM events WHERE position < %d", d.log[0].Position+int64(d.log[0].Commit.Count)))
	if list, err := d.all(first); err != nil || len(list) != len(d.log) {
		t.Errorf("not put back: %d events, %v", len(list), err)
	}
}

// What says up to where the log was pruned is itself only stored bytes.
func TestChangedBeginningOfTheLogIsFound(t *testing.T) {
	d, first := newPruned(t)
	for _, statement := range []string{
		"UPDATE pruned SET through = through + 1", "UPDATE pruned SET through = through - 1", "UPDATE pruned SET at = at + 1",
		"UPDATE pruned SET checksum = ~checksum", "UPDATE pruned SET through = 0", "DELETE FROM pruned",
		"INSERT INTO events SELECT 2, stream, 99, type, schema, from_state, to_state, body, checksum FROM events LIMIT 1",
	} {
		d.putBack(t, []string{"pruned", "events"}, func() {
			for _, after := range []store.Cursor{"", first} {
				if statement == "DELETE FROM pruned" && after == first {
					continue // behind it all is there
				}
				_, err := d.all(after)
				corrupt(t, err)
			}
			if _, err := d.Decide(t.Context(), enqueueing("mail", 1)); statement != "DELETE FROM pruned" {
				corrupt(t, err)
			} else if err != nil {
				t.Error(err)
			}
			if _, err := d.Head(t.Context()); statement != "DELETE FROM pruned" {
				corrupt(t, err)
			}
		}, statement)
	}
}

// Retention is not held up by damage in what it lets go, but for that of a row whose events are all that tells what it was.
func TestDamageIsPrunedWithTheRest(t *testing.T) {
	for _, statement := range []string{
		"UPDATE events SET checksum = ~checksum WHERE position = 3", "DELETE FROM events WHERE position = 3", "DELETE FROM commits WHERE first = 2",
		"UPDATE events SET stream = 'worker/0' WHERE position = 3", "UPDATE commits SET checksum = ~checksum", "UPDATE commits SET count = 9000 WHERE first = 2",
		"DELETE FROM payloads WHERE place = 3",
	} {
		d := newDamaged(t)
		commit(t, d, enqueueing("mail", 2))
		do(t, d.db, statement)
		before := time.Now()
		commit(t, d, enqueueing("mail", 2))
		let(t, d, before)
		first, err := d.First(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if list, err := d.all(first); err != nil || list[0].Commit.At.Before(before.Truncate(time.Microsecond)) {
			t.Errorf("%s: %d events are left, from %s on: %v", statement, len(list), list[0].Commit.At, err)
		}
		folded(t, d)
	}
}

func TestRowThatIsNotWhatWasWrittenKeepsItsEvents(t *testing.T) {
	d := newDamaged(t)
	id := commit(t, d, enqueueing("mail", 1)).Events[0].Entity
	do(t, d.db, "UPDATE messages SET state = 300 WHERE id = ?", id.ID[:])
	_, err := letOnce(d, time.Now(), 1000)
	if c := corrupt(t, err); c.Entity != id {
		t.Errorf("error %v, want one that names %s", err, id)
	}
	if _, err := d.all(""); err != nil {
		t.Error(err)
	}
}

func TestOneFlippedByteOfACheckpointIsFound(t *testing.T) {
	d := newDamaged(t)
	head, err := d.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	save := func(sequence int) {
		t.Helper()
		c := store.Checkpoint{CheckpointKey: store.CheckpointKey{Name: "totals", Version: 1, Sequence: sequence}, Cursor: head, View: []byte(`{"n":1}`)}
		if _, err := d.Save(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	save(1)
	save(2)
	newest := store.CheckpointKey{Name: "totals", Version: 1, Sequence: 2}
	for column, value := range map[string]string{
		"cursor": "replace(cursor, '@1', '@2')", "at": "at + 1", "view": "CAST(replace(view, '1', '3') AS BLOB)", "digest": "digest + 1", "checksum": "~checksum",
		"sequence": "7", "version": "-1", "name": "'totale'",
	} {
		d.putBack(t, []string{"checkpoints"}, func() {
			_, err := d.View(t.Context(), newest)
			switch column {
			case "name", "version", "sequence":
				if !errors.Is(err, store.ErrMoved) {
					t.Errorf("%s: view: %v, want %v", column, err, store.ErrMoved)
				}
			default:
				if c := corrupt(t, err); !strings.Contains(c.Detail, `"totals"`) || !strings.Contains(c.Detail, "checkpoint 2") {
					t.Errorf("%s: view: %v does not name the checkpoint", column, err)
				}
			}
			list, err := d.Checkpoints(t.Context(), store.CheckpointFilter{})
			if column == "view" { // which a list does not read
				if err != nil || len(list) != 2 {
					t.Errorf("%s: %d checkpoints, %v", column, len(list), err)
				}
				return
			}
			corrupt(t, err)
			if len(list) != 1 || list[0].Sequence != 1 || list[0].Cursor != head {
				t.Errorf("%s: %v are listed beside it", column, list)
			}
			save(2) // behind the newest that can be read
			if _, err := d.View(t.Context(), newest); err != nil {
				t.Errorf("%s: %v once it was saved again", column, err)
			}
		}, "UPDATE checkpoints SET "+column+" = "+value+" WHERE sequence = 2")
	}
}

// The first event of a message tells its topic as it goes. Where it cannot be read the topic is not known, and everything else is as it was.
func TestTopicOfADamagedFirstEventIsUnknown(t *testing.T) {
	for name, damage := range map[string]string{
		"its checksum": "checksum = ~checksum", "its body": "body = x'7b'", "its type": "type = -1",
	} {
		path, clock := filepath.Join(t.TempDir(), "store.db"), newTicker()
		s := open(t, path, sqlite.Options{Clock: clock.time})
		commit(t, s, enqueueing("mail", 2))
		rows := running(commit(t, s, claiming("mail", 2)))
		before := clock.time()
		commit(t, s, resulting(t, rows, "done"))
		do(t, raw(t, path), "UPDATE events SET "+damage+" WHERE version = 1 AND stream = ?", rows[0].Entity.ID[:])
		let(t, s, before)
		for i, want := range []string{"", "mail"} {
			c, err := s.Contents(t.Context(), rows[i].Entity.ID)
			if err != nil || c.Topic != want || c.Payload == nil || c.Result == nil {
				t.Errorf("%s: message %d: %+v, %v, want topic %q and its contents", name, i, c, err, want)
			}
		}
	}
}
