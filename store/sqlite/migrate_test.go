package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/pressly/goose/v3"
)

// list is the one column of a query.
func list(t *testing.T, db *sql.DB, query string) (values []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}

// version1 is a store of schema version 1 with all that a closed store has, as its migration makes it.
func version1(t *testing.T, from string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	db := raw(t, path)
	for _, pragma := range []string{"auto_vacuum = INCREMENTAL", "application_id = 0x466e646c", "journal_mode = WAL"} {
		do(t, db, "PRAGMA "+pragma)
	}
	steps, err := fs.Sub(sqlite.Migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, steps, goose.WithDisableGlobalRegistry(true),
		goose.WithTableName("schema_versions"), goose.WithLogger(goose.NopLogger()))
	if err == nil {
		_, err = provider.UpTo(t.Context(), 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	do(t, db, "ATTACH ? AS other", from)
	for _, table := range []string{"meta", "events", "commits", "commit_ids", "messages", "topics", "workers", "keys", "payloads", "words"} {
		columns := strings.Join(list(t, db, "SELECT name FROM pragma_table_info('"+table+"')"), ", ")
		do(t, db, fmt.Sprintf("INSERT INTO main.%s (%s) SELECT %s FROM other.%s", table, columns, columns, table))
	}
	do(t, db, "DELETE FROM main.words WHERE word LIKE 'lock.%'")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// everything is the log and the rows of a store, as text.
func everything(t *testing.T, s store.Store) (lines []string) {
	t.Helper()
	for r, err := range s.Read(t.Context(), "", store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprint(r.Position, r.Entity, r.Version, r.From, r.To, r.Event.Type()))
	}
	for row, err := range s.Rows(t.Context(), store.RowFilter{Payloads: true}) {
		if err != nil {
			t.Fatal(err)
		}
		payload := row.Payload
		row.Payload = nil
		lines = append(lines, fmt.Sprint(row, payload))
	}
	return lines
}

// clean ends the test unless log, rows and permits agree.
func clean(t *testing.T, s store.Store) {
	t.Helper()
	report, err := replay.Verify(t.Context(), s, replay.Options{})
	if err != nil || !report.Clean() {
		t.Fatalf("verify: %+v, %v", report, err)
	}
}

func TestFileOfVersionOneMigrates(t *testing.T) {
	from := filepath.Join(t.TempDir(), "store.db")
	s := open(t, from, sqlite.Options{})
	commit(t, s, calls.OperateWorker(origin(), fsm.OperateWorker{Worker: worker, Command: fsm.StartWorker{}}))
	commit(t, s, enqueueing("mail", 20))
	rows := commit(t, s, claiming("mail", 10)).Rows
	commit(t, s, completing(t, rows[:5]))
	before := everything(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := version1(t, from)
	open(t, version1(t, from), sqlite.Options{MustExist: true})
	var opened sync.WaitGroup
	for range 5 {
		opened.Go(func() {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err == nil {
				err = s.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	opened.Wait()
	s = open(t, path, sqlite.Options{})
	if after := everything(t, s); !slices.Equal(after, before) {
		t.Errorf("it was\n%s\nit is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	commit(t, s, completing(t, rows[5:]))
	commit(t, s, locking("mail", "door", 2))
	if n := len(commit(t, s, claiming("mail", 12)).Rows); n != 13 { // ten of the old, one of the new, the lock and the blocked one
		t.Errorf("%d rows after the claim, want 13", n)
	}
	clean(t, s)
	db := raw(t, path)
	for query, want := range map[string]string{
		"SELECT max(version_id) FROM schema_versions":                                 fmt.Sprint(sqlite.SchemaVersion),
		"SELECT count(*) FROM words WHERE kind = 'type'":                              fmt.Sprint(len(events.Types())),
		"SELECT group_concat(state || ' ' || lock) FROM queue WHERE lock IS NOT NULL": "running door,blocked door",
		"SELECT count(*) FROM queue WHERE lock IS NULL":                               "10",
		"PRAGMA integrity_check":                                                      "ok",
	} {
		if got := one(t, db, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func TestHeartbeatsOfAnOlderVersionAreKept(t *testing.T) {
	path := made(t)
	if err := errors.Join(removeAll(path+"-beats", path+"-beats-wal", path+"-beats-shm")); err != nil {
		t.Fatal(err)
	}
	db := raw(t, path+"-beats")
	do(t, db, "PRAGMA journal_mode = WAL")
	do(t, db, "CREATE TABLE beats (worker BLOB PRIMARY KEY, at INTEGER NOT NULL, interval INTEGER NOT NULL) STRICT, WITHOUT ROWID")
	do(t, db, "INSERT INTO beats VALUES (?, 1000000, 15000000)", worker[:])
	stores := make([]*sqlite.Store, 4)
	errs := make([]error, len(stores))
	var opened sync.WaitGroup
	for i := range stores {
		opened.Go(func() { stores[i], errs[i] = sqlite.Open(t.Context(), path, sqlite.Options{}) })
	}
	opened.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, s := range stores {
		defer s.Close()
	}
	want := store.Beat{Worker: worker, At: time.Unix(1, 0).UTC(), Interval: 15 * time.Second}
	for _, s := range stores {
		if list, err := s.Beats(t.Context()); err != nil || len(list) != 1 || list[0] != want {
			t.Fatalf("beats %v, %v, want %v", list, err, want)
		}
	}
	// A process of the older version goes on with its own statement.
	do(t, db, "UPDATE beats SET at = 2000000, interval = 15000000 WHERE worker = ?", worker[:])
	s := stores[0]
	if list, err := s.Beats(t.Context()); err != nil || len(list) != 1 || !list[0].At.Equal(time.Unix(2, 0)) {
		t.Errorf("beats %v, %v", list, err)
	}
	if _, err := s.Beat(t.Context(), store.Beat{Worker: worker, Interval: time.Second, FenceAfter: 90 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if list, err := stores[1].Beats(t.Context()); err != nil || len(list) != 1 || list[0].FenceAfter != 90*time.Second {
		t.Errorf("beats %v, %v", list, err)
	}
	taken, err := s.Lease(t.Context(), fsm.Beat, campaign(worker, 0))
	if err != nil || taken.Holder != worker || taken.Term != 1 {
		t.Errorf("lease %+v, %v", taken, err)
	}
}
