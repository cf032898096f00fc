package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// raw is the file as any program sees it.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func do(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// made is the path of a closed store with some messages.
func made(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{})
	commit(t, s, enqueueing("mail", 200))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenRefusesWhatIsNoStore(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(t *testing.T, path string)
		is     error
		naming string
	}{
		{"a file that is no database", func(t *testing.T, path string) {
			write(t, path, bytes.Repeat([]byte("never a database\n"), 1000))
		}, store.ErrForeign, "not a database"},
		{"a few bytes", func(t *testing.T, path string) { write(t, path, []byte("xy")) }, store.ErrForeign, "it has 2 bytes"},
		{"a truncated file", func(t *testing.T, path string) { truncate(t, path, 2) }, store.ErrForeign, "malformed"},
		{"a file cut within its header", func(t *testing.T, path string) { write(t, path, read(t, path)[:90]) }, store.ErrForeign, "SQLite"},
		{"another program's database", func(t *testing.T, path string) {
			write(t, path, nil)
			do(t, raw(t, path), "CREATE TABLE accounts (n)")
		}, store.ErrForeign, "tables accounts"},
		{"a database with an application id", func(t *testing.T, path string) {
			write(t, path, nil)
			do(t, raw(t, path), "PRAGMA application_id = 77")
		}, store.ErrForeign, "0x4d"},
		{"a newer store", func(t *testing.T, path string) {
			do(t, raw(t, path), "INSERT INTO schema_versions (version_id, is_applied) VALUES (41, 1)")
		}, store.ErrNewer, "version 41, this program knows versions up to 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := made(t)
			c.spoil(t, path)
			before := read(t, path)
			_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.naming) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want %q that names %q and the path", err, c.is, c.naming)
			}
			if !bytes.Equal(read(t, path), before) {
				t.Error("the file was changed")
			}
		})
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// truncate leaves one part of a file.
func truncate(t *testing.T, path string, parts int) {
	t.Helper()
	content := read(t, path)
	write(t, path, content[:len(content)/parts])
}

func TestOpenRefusesBadOptionsAndPaths(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, path string
		o          sqlite.Options
		naming     string
	}{
		{"no path", "", sqlite.Options{}, "path is empty"},
		{"a directory", dir, sqlite.Options{}, dir},
		{"a directory that is not there", filepath.Join(dir, "none", "store.db"), sqlite.Options{}, "none"},
		{"an unknown setting", filepath.Join(dir, "store.db"), sqlite.Options{Synchronous: 7}, "Synchronous: synchronous(7)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := sqlite.Open(t.Context(), c.path, c.o)
			if err == nil || errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), c.naming) {
				t.Errorf("error %v, want one that names %q", err, c.naming)
			}
		})
	}
}

func TestOpenFinishesAStoreWhoseMakerDied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	write(t, path, nil)
	do(t, raw(t, path), "PRAGMA application_id = 0x466e646c")
	commit(t, open(t, path, sqlite.Options{}), enqueueing("mail", 1))
}

func TestWordsSayWhatTheNumbersMean(t *testing.T) {
	path := made(t)
	db := raw(t, path)
	do(t, db, "DELETE FROM words WHERE word = 'message.enqueued'") // as if an older version had made the store
	s := open(t, path, sqlite.Options{})
	rows := commit(t, s, claiming("mail", 1)).Rows
	commit(t, s, completing(t, rows))
	var from, to, typ, entity, at, command string
	err := db.QueryRow("SELECT from_state, to_state, type, entity, at, command FROM log ORDER BY position DESC LIMIT 1").
		Scan(&from, &to, &typ, &entity, &at, &command)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join([]string{from, to, typ, entity}, " ")
	if want := "running completed message.completed " + rows[0].Entity.String(); got != want {
		t.Errorf("the log shows %q, want %q", got, want)
	}
	if _, err := time.Parse(time.RFC3339, at); err != nil || !strings.Contains(command, `"settle"`) {
		t.Errorf("the log shows %q, %q", at, command)
	}
	var first, state, priority, topic string
	if err := db.QueryRow("SELECT type FROM log ORDER BY position LIMIT 1 OFFSET 1").Scan(&first); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("SELECT state, priority, topic FROM queue LIMIT 1").Scan(&state, &priority, &topic); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(first, " ", state, " ", priority, " ", topic); got != "message.enqueued queued normal mail" {
		t.Errorf("the views show %q", got)
	}
}

func TestBusyEndsWithTheContext(t *testing.T) {
	path := made(t)
	s := open(t, path, sqlite.Options{})
	db := raw(t, path)
	do(t, db, "BEGIN IMMEDIATE")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	call := enqueueing("mail", 1)
	if _, err := s.Decide(ctx, call); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v while somebody else writes", err)
	}
	do(t, db, "ROLLBACK")
	commit(t, s, call)
}

func TestCommitInDoubtIsSettledByItsID(t *testing.T) {
	s := open(t, made(t), sqlite.Options{})
	if err := s.FailCommits(func() int32 { return 1 }); err != nil {
		t.Fatal(err)
	}
	call := enqueueing("mail", 1)
	if _, err := s.Decide(t.Context(), call); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("error %v, want %v", err, store.ErrUnknown)
	}
	if err := s.FailCommits(nil); err != nil {
		t.Fatal(err)
	}
	if _, committed, err := s.Outcome(t.Context(), call.ID); committed || err != nil {
		t.Errorf("committed: %v, %v", committed, err)
	}
	receipts, err := s.Decide(t.Context(), call)
	if err != nil || !errors.Is(receipts[0].Err, store.ErrVoid) {
		t.Errorf("errors %v, %v, want %v", err, receipts[0].Err, store.ErrVoid)
	}
}

func TestCallThatMakesWhatExistsIsRefusedAlone(t *testing.T) {
	s := open(t, made(t), sqlite.Options{})
	again, fine := enqueueing("mail", 1), enqueueing("mail", 2)
	first := commit(t, s, again)
	again.ID = origin().ID
	receipts, err := s.Decide(t.Context(), fine, again)
	if err != nil {
		t.Fatal(err)
	}
	if receipts[0].Err != nil || len(receipts[0].Events) != 2 {
		t.Errorf("the other call: %v, %d events", receipts[0].Err, len(receipts[0].Events))
	}
	if err := receipts[1].Err; err == nil || !strings.Contains(err.Error(), first.Events[0].Entity.String()) {
		t.Errorf("error %v, want one that names %s", err, first.Events[0].Entity)
	}
}
