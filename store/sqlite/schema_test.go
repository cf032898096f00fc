package sqlite_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/google/uuid"
)

// one is the one value of a query.
func one(t *testing.T, db *sql.DB, query string, args ...any) string {
	t.Helper()
	var value string
	if err := db.QueryRow(query, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

func TestSchemaIsThatOfTheMigrations(t *testing.T) {
	path := made(t)
	steps, err := sqlite.Migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != sqlite.SchemaVersion {
		t.Errorf("schema version %d, %d migrations", sqlite.SchemaVersion, len(steps))
	}
	open(t, path, sqlite.Options{}) // migrates nothing
	db := raw(t, path)
	for query, want := range map[string]string{
		"SELECT max(version_id) FROM schema_versions":                  fmt.Sprint(sqlite.SchemaVersion),
		"SELECT count(*) FROM schema_versions":                         fmt.Sprint(sqlite.SchemaVersion + 1), // and goose's 0
		"SELECT count(*) FROM sqlite_schema WHERE name LIKE 'goose%'":  "0",
		"PRAGMA journal_mode":                                          "wal",
		"PRAGMA auto_vacuum":                                           "2",
		"PRAGMA integrity_check":                                       "ok",
		"SELECT count(*) FROM words WHERE kind = 'type'":               fmt.Sprint(len(events.Types())),
		"SELECT word FROM words WHERE kind = 'state' AND code = 7":     "dead_lettered",
		"SELECT word FROM words WHERE kind = 'priority' AND code = -1": "high",
		"SELECT count(*) FROM log":                                     "201",
	} {
		if got := one(t, db, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func TestOldCommitIDsAreTakenAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	now := time.Now()
	s := open(t, path, sqlite.Options{Clock: func() time.Time { return now }})
	for range 200 {
		commit(t, s, enqueueing("mail", 1))
	}
	old := one(t, raw(t, path), "SELECT count(*) FROM used_ids")
	now = now.Add(25 * time.Hour)
	for range 200 {
		commit(t, s, mintedAt(now, enqueueing("mail", 1)))
	}
	left := one(t, raw(t, path), "SELECT count(*) FROM used_ids")
	if old != "200" || left != "200" {
		t.Errorf("%s ids, a day later %s, want 200 both times", old, left)
	}
}

func TestProofGoesWithItsWorkerBeforeItIsLetGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{})
	release, err := s.Attest(t.Context(), worker)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, calls.OperateWorker(origin(), fsm.OperateWorker{Worker: worker, Command: fsm.StartWorker{}}))
	commit(t, s, calls.OperateWorker(origin(), fsm.OperateWorker{Worker: worker, Command: fsm.StopWorker{}}))
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(path + "-workers"); err != nil || len(list) > 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}

func TestProofsGoWithTheirWorkers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{})
	stopped, forgotten, known, fresh := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	file := func(worker events.ID) string { return filepath.Join(path+"-workers", worker.String()) }
	for _, worker := range []events.ID{stopped, forgotten, known, fresh} {
		release, err := s.Attest(t.Context(), worker)
		if err != nil {
			t.Fatal(err)
		}
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
	for _, worker := range []events.ID{stopped, known} {
		start := calls.OperateWorker(origin(), fsm.OperateWorker{Worker: worker, Command: fsm.StartWorker{}})
		commit(t, s, start)
		if again := commit(t, s, start); len(again.Events) != 1 { // an answer given twice takes nothing away
			t.Fatalf("%d events", len(again.Events))
		}
	}
	wantGone(t, s, stopped, true)
	commit(t, s, calls.OperateWorker(origin(), fsm.OperateWorker{Worker: stopped, Command: fsm.StopWorker{}}))
	wantGone(t, s, stopped, false)
	day := time.Now().Add(-25 * time.Hour)
	for _, worker := range []events.ID{forgotten, known} {
		if err := os.Chtimes(file(worker), day, day); err != nil {
			t.Fatal(err)
		}
	}
	again := open(t, path, sqlite.Options{})
	wantGone(t, again, forgotten, false) // swept: it never had a row
	wantGone(t, again, known, true)
	wantGone(t, again, fresh, true)
}
