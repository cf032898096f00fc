package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// damaged is a store with events of every kind, open, and the same file for who changes it behind the store's back.
type damaged struct {
	*sqlite.Store
	db  *sql.DB
	log []events.Recorded
}

func newDamaged(t *testing.T) *damaged {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	d := &damaged{Store: open(t, path, sqlite.Options{})}
	commit(t, d, calls.OperateWorker(origin(), fsm.OperateWorker{Worker: worker, Command: fsm.StartWorker{Started: events.WorkerStarted{Host: "here", PID: 7}}}))
	commit(t, d, enqueueing("mail", 3))
	rows := commit(t, d, claiming("mail", 2)).Rows
	commit(t, d, completing(t, rows[:1]))
	commit(t, d, completing(t, rows[:1])) // is refused, which the log keeps
	commit(t, d, completing(t, rows[1:]))
	var err error
	if d.log, err = d.all(""); err != nil {
		t.Fatal(err)
	}
	d.db = raw(t, path)
	do(t, d.db, "PRAGMA synchronous = OFF")
	return d
}

// all is what can be read behind a cursor, and the error that ends it.
func (d *damaged) all(after store.Cursor) ([]events.Recorded, error) {
	return d.filtered(after, store.Filter{})
}

func (d *damaged) filtered(after store.Cursor, f store.Filter) (list []events.Recorded, err error) {
	for r, err := range d.Read(context.Background(), after, f) {
		if err != nil {
			return list, err
		}
		list = append(list, r)
	}
	return list, nil
}

// corrupt ends the test unless the error is of stored bytes.
func corrupt(t *testing.T, err error) *events.Corrupt {
	t.Helper()
	var c *events.Corrupt
	if !errors.As(err, &c) {
		t.Fatalf("error %v, want a *events.Corrupt", err)
	}
	return c
}

// spoilt runs statements, lets the test look, and puts the tables back as they were.
func (d *damaged) spoilt(t *testing.T, look func(), statements ...string) {
	t.Helper()
	tables := []string{"events", "commits", "sqlite_sequence"}
	for _, table := range tables {
		do(t, d.db, "CREATE TEMP TABLE was_"+table+" AS SELECT * FROM main."+table)
	}
	for _, statement := range statements {
		do(t, d.db, statement)
	}
	look()
	for _, table := range tables {
		do(t, d.db, "DELETE FROM main."+table)
		if table != "sqlite_sequence" {
			do(t, d.db, "INSERT INTO main."+table+" SELECT * FROM was_"+table)
			do(t, d.db, "DROP TABLE was_"+table)
		}
	}
	do(t, d.db, "DELETE FROM main.sqlite_sequence")
	do(t, d.db, "INSERT INTO main.sqlite_sequence SELECT * FROM was_sqlite_sequence")
	do(t, d.db, "DROP TABLE was_sqlite_sequence")
	if list, err := d.all(""); err != nil || len(list) != len(d.log) {
		t.Fatalf("not put back: %d events, %v", len(list), err)
	}
}

// columns of an event, each with values that are not the one that was written.
var changes = map[string][]string{
	"stream": {
		"CASE typeof(stream) WHEN 'blob' THEN CAST(x'01a0ff' || substr(stream, 4) AS BLOB) ELSE 'topic/other' END", "'worker/0'", "5", "x'00'",
		"upper(stream) || ''", "'lock/mail'",
	},
	"version":    {"coalesce(version, 98) + 100", "0", "-1", "nullif(version, version)"},
	"type":       {"type + 1", "type + 65536", "-type", "200"},
	"schema":     {"schema + 1", "0", "schema + 65536"},
	"from_state": {"from_state + 1", "from_state + 256", "99"},
	"to_state":   {"to_state + 1", "to_state + 256", "99"},
	"body":       {`CAST(replace(body, '"', '~') || ' ' AS BLOB)`, "substr(body, 2)", "x''"},
	"checksum":   {"checksum + 1", "checksum + 4294967296", "~checksum"},
	"position":   {"position + 1000", "-position"},
}

func TestEveryChangedColumnOfAnEventIsFound(t *testing.T) {
	d := newDamaged(t)
	for column, values := range changes {
		for _, event := range d.log {
			for _, value := range values {
				d.change(t, event, column, value)
			}
		}
	}
}

func (d *damaged) change(t *testing.T, event events.Recorded, column, value string) {
	t.Helper()
	if same := d.same(t, event.Position, column, value); same {
		return
	}
	what := fmt.Sprintf("%s of position %d set to %s", column, event.Position, value)
	d.spoilt(t, func() {
		list, err := d.all("")
		c := corrupt(t, err)
		if c.Position != event.Position || len(list) >= int(event.Position) {
			t.Errorf("%s: %v after %d events", what, err, len(list))
		}
		if column != "stream" && column != "position" && c.Entity != event.Entity {
			t.Errorf("%s: %v names another entity than %s", what, err, event.Entity)
		}
		if column != "stream" && column != "position" && column != "version" && c.Version != event.Version {
			t.Errorf("%s: %v names another version than %d", what, err, event.Version)
		}
		if column != "stream" && column != "position" {
			_, err := d.filtered("", store.Filter{Entity: event.Entity})
			if c := corrupt(t, err); c.Position != event.Position || c.Entity != event.Entity {
				t.Errorf("%s: read by entity: %v", what, err)
			}
		}
	}, fmt.Sprintf("UPDATE events SET %s = %s WHERE position = %d", column, value, event.Position))
}

// same reports whether a value is the one that is stored.
func (d *damaged) same(t *testing.T, position int64, column, value string) (same bool) {
	t.Helper()
	err := d.db.QueryRow(fmt.Sprintf("SELECT (%s) IS %s FROM events WHERE position = ?", value, column), position).Scan(&same)
	if err != nil {
		t.Fatal(err)
	}
	return same
}

func TestEveryChangedColumnOfACommitIsFound(t *testing.T) {
	d := newDamaged(t)
	seen := map[events.ID]bool{}
	for _, event := range d.log {
		if seen[event.Commit.ID] {
			continue
		}
		seen[event.Commit.ID] = true
		last := event.Position + int64(event.Commit.Count) - 1
		for column, values := range map[string][]string{
			"first":    {"first + 1000", "-first"},
			"id":       {"CAST(x'00' || substr(id, 2) AS BLOB)", "x''"},
			"at":       {"at + 1", "at - 1000000"},
			"count":    {"count + 1", "count - 1", "0", "count + 4294967296"},
			"body":     {"CAST(body || ' ' AS BLOB)", "x''", "x'7b7d'"},
			"checksum": {"checksum + 1", "checksum + 4294967296"},
		} {
			for _, value := range values {
				d.spoilt(t, func() {
					list, err := d.all("")
					c := corrupt(t, err)
					if c.Position < event.Position || c.Position > last+1 || c.Entity == (events.Entity{}) || len(list) > int(last) {
						t.Errorf("%s of commit at %d to %d set to %s: %v after %d events", column, event.Position, last, value, err, len(list))
					}
				}, fmt.Sprintf("UPDATE commits SET %s = %s WHERE first = %d", column, value, event.Position))
			}
		}
	}
}

func TestEventsThatAreTakenOrSwappedAreFound(t *testing.T) {
	d := newDamaged(t)
	for _, event := range d.log {
		d.spoilt(t, func() {
			list, err := d.all("")
			if c := corrupt(t, err); c.Position != event.Position || c.Entity == (events.Entity{}) {
				t.Errorf("event at %d deleted: %v after %d events", event.Position, err, len(list))
			}
		}, fmt.Sprintf("DELETE FROM events WHERE position = %d", event.Position))
		if event.Position == 1 {
			continue
		}
		d.spoilt(t, func() {
			_, err := d.all("")
			if c := corrupt(t, err); c.Position < event.Position-1 || c.Position > event.Position+int64(event.Commit.Count) {
				t.Errorf("events at %d and before swapped: %v", event.Position, err)
			}
		}, "UPDATE events SET position = -1 WHERE position = "+fmt.Sprint(event.Position),
			fmt.Sprintf("UPDATE events SET position = %d WHERE position = %d", event.Position, event.Position-1),
			fmt.Sprintf("UPDATE events SET position = %d WHERE position = -1", event.Position-1))
	}
}

func TestWholeCommitsThatAreTakenAreFound(t *testing.T) {
	d := newDamaged(t)
	for _, event := range d.log {
		first, last := event.Position, event.Position+int64(event.Commit.Count)-1
		if first > 1 && d.log[first-2].Commit.ID == event.Commit.ID {
			continue
		}
		for _, c := range []struct {
			what       string
			statements []string
		}{
			{"deleted with its events", []string{
				fmt.Sprintf("DELETE FROM events WHERE position BETWEEN %d AND %d", first, last), fmt.Sprintf("DELETE FROM commits WHERE first = %d", first),
			}},
			{"deleted without its events", []string{fmt.Sprintf("DELETE FROM commits WHERE first = %d", first)}},
			{"bared of its events", []string{fmt.Sprintf("DELETE FROM events WHERE position BETWEEN %d AND %d", first, last)}},
			{"behind the end", []string{fmt.Sprintf("UPDATE sqlite_sequence SET seq = %d WHERE name = 'events'", first-1)}},
		} {
			d.spoilt(t, func() {
				list, err := d.all("")
				if at := corrupt(t, err); at.Position != first || at.Entity == (events.Entity{}) {
					t.Errorf("commit at %d %s: %v after %d events", first, c.what, err, len(list))
				}
				_, err = d.all(d.After(d.log[first-1]))
				if first != last && c.what != "behind the end" {
					corrupt(t, err)
				}
			}, c.statements...)
		}
	}
}

// What says where the log ends is itself only stored bytes.
func TestEventsBehindTheEndOfTheLogAreFound(t *testing.T) {
	d := newDamaged(t)
	for _, c := range []struct {
		statement string
		end       int64
	}{
		{"DELETE FROM sqlite_sequence WHERE name = 'events'", 0},
		{"UPDATE sqlite_sequence SET seq = 0 WHERE name = 'events'", 0},
		{"UPDATE sqlite_sequence SET name = 'event' WHERE name = 'events'", 0},
		{"UPDATE sqlite_sequence SET seq = 2 WHERE name = 'events'", 2},
	} {
		d.spoilt(t, func() {
			next := d.log[c.end]
			named := func(what string, err error) {
				t.Helper()
				if at := corrupt(t, err); at.Position != next.Position || at.Entity != next.Entity || at.Version != next.Version {
					t.Errorf("%s: %s: %v, want what stands at %d", c.statement, what, err, next.Position)
				}
			}
			list, err := d.all("")
			if named("read", err); len(list) > int(c.end) {
				t.Errorf("%s: %d events were read", c.statement, len(list))
			}
			_, err = d.Head(t.Context())
			named("head", err)
			_, err = d.Decide(t.Context(), enqueueing("mail", 1))
			named("decide", err)
		}, c.statement)
	}
	d.spoilt(t, func() {
		_, err := d.all("")
		corrupt(t, err)
	}, "UPDATE sqlite_sequence SET seq = 'none' WHERE name = 'events'")
}

func TestCursorOfALogThatWasLongerIsAnError(t *testing.T) {
	d := newDamaged(t)
	last := d.log[len(d.log)-1]
	last.Position += 5
	for _, f := range []store.Filter{{}, {Entity: last.Entity}} {
		list, err := d.filtered(d.After(last), f)
		if !errors.Is(err, store.ErrAhead) || !strings.Contains(err.Error(), string(d.After(last))) || len(list) > 0 {
			t.Errorf("error %v after %d events, want %v that names the cursor", err, len(list), store.ErrAhead)
		}
	}
}

func TestDamageIsNamedByWhoeverMeetsIt(t *testing.T) {
	d := newDamaged(t)
	ended := d.log[len(d.log)-1]
	d.spoilt(t, func() {
		call := store.Call{ID: origin().ID, Need: store.Need{Held: []events.Entity{ended.Entity}}}
		call.Fn = func(store.View) (store.Changes, error) { return store.Changes{}, nil }
		fine := enqueueing("mail", 1)
		receipts, err := d.Decide(t.Context(), call, fine)
		if err != nil {
			t.Fatal(err)
		}
		if c := corrupt(t, receipts[0].Err); c.Position != ended.Position || c.Entity != ended.Entity {
			t.Error(receipts[0].Err)
		}
		if receipts[1].Err != nil {
			t.Error(receipts[1].Err)
		}
		_, _, err = d.Outcome(t.Context(), ended.Commit.ID)
		corrupt(t, err)
		do(t, d.db, "DELETE FROM commits WHERE first > ?", ended.Position)
	}, fmt.Sprintf("UPDATE events SET checksum = checksum + 1 WHERE position = %d", ended.Position))
}

func TestDamagedRowIsNamed(t *testing.T) {
	d := newDamaged(t)
	for _, statement := range []string{
		"UPDATE messages SET state = 300", "UPDATE messages SET version = 0", "UPDATE messages SET worker = x'01'",
		"UPDATE topics SET version = -1", "UPDATE workers SET state = -1", "UPDATE payloads SET salt = x''",
	} {
		do(t, d.db, "SAVEPOINT before")
		do(t, d.db, statement)
		do(t, d.db, "RELEASE before")
		var err error
		for _, e := range d.Rows(t.Context(), store.RowFilter{Payloads: true}) {
			err = errors.Join(err, e)
		}
		if c := corrupt(t, err); c.Entity == (events.Entity{}) {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

func TestUnknownEventIsKeptAndNotFolded(t *testing.T) {
	d := newDamaged(t)
	var row store.Row
	for r, err := range d.Rows(t.Context(), store.RowFilter{Kind: events.KindMessage}) {
		if err != nil {
			t.Fatal(err)
		}
		row = r
	}
	unknown := &events.Unknown{Code: 200, Schema: 1, Body: []byte(`{"new":1}`)}
	call := store.Call{ID: origin().ID, Need: store.Need{Held: []events.Entity{row.Entity}}}
	call.Fn = func(view store.View) (store.Changes, error) {
		change := store.Change{Row: view.Rows[row.Entity], From: row.Version, Gone: true}
		change.Row.Version++
		change.Transitions = []events.Transition{{Event: unknown, Version: row.Version + 1, From: events.Queued, To: events.State(99)}}
		return store.Changes{Rows: []store.Change{change}}, nil
	}
	commit(t, d, call)
	list, err := d.all("")
	if err != nil {
		t.Fatal(err)
	}
	last := list[len(list)-1]
	if u, ok := last.Event.(*events.Unknown); !ok || u.Code != 200 || !strings.Contains(string(u.Body), `"new":1`) {
		t.Errorf("the event was read as %#v", last.Event)
	}
	history, err := d.filtered("", store.Filter{Entity: row.Entity})
	if err != nil {
		t.Fatal(err)
	}
	_, err = calls.Fold(row.Entity, history)
	if c := corrupt(t, err); c.Position != last.Position || !strings.Contains(c.Detail, "unknown(200)") {
		t.Error(err)
	}
}
