package sqlite_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// kept is a copy of a store that an earlier version wrote, and what that version read of it.
func kept(t *testing.T, name string) (path string, lines []string) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name+".db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "store.db")
	write(t, path, content)
	return path, strings.Split(strings.TrimSpace(string(read(t, filepath.Join("testdata", name+".txt")))), "\n")
}

// told is what can be read of a store, in the form of the lines that are kept of one.
func told(t *testing.T, s store.Store) (lines []string) {
	t.Helper()
	add := func(err error, parts ...any) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintln(parts...)))
	}
	for r, err := range s.Read(t.Context(), "", store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		add(nil, r.Position, r.Entity, r.Version, r.From, r.To, r.Event.Type(), string(events.Encode(r.Entity, r.Transition).Body), r.Commit.ID, r.Commit.At.UnixMicro())
	}
	for row, err := range s.Rows(t.Context(), store.RowFilter{Payloads: true}) {
		payload := ""
		if row.Payload != nil {
			payload = string(row.Payload.Bytes)
		}
		add(err, row.Entity, row.Version, row.State, string(row.Fields), row.Topic, row.Running, payload)
	}
	for p, err := range s.Permits(t.Context(), store.PermitFilter{}) {
		add(err, p.Lock, p.Token, p.Worker, p.Message)
	}
	return lines
}

// mintedAt gives a call an id of the store's time, which need not be that of this machine.
func mintedAt(now time.Time, call store.Call) store.Call {
	ms := now.UnixMilli()
	for i := range 6 {
		call.ID[i] = byte(ms >> (40 - 8*i))
	}
	return call
}

func TestStoreOfAnEarlierVersionIsReadMigratedAndGoesOn(t *testing.T) {
	path, want := kept(t, "schema2")
	if got := one(t, raw(t, path), "SELECT max(version_id) FROM schema_versions"); got != "2" {
		t.Fatalf("the file that is kept has schema version %s", got)
	}
	now := time.Date(2026, 11, 29, 23, 0, 0, 0, time.UTC) // hours after it was written
	s := open(t, path, sqlite.Options{MustExist: true, Clock: func() time.Time { now = now.Add(time.Millisecond); return now }})
	for i := range want {
		want[i] = strings.TrimSpace(want[i])
	}
	if got := told(t, s); !slices.Equal(got, want) {
		t.Errorf("it is read as\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := one(t, raw(t, path), "SELECT max(version_id) FROM schema_versions"); got != fmt.Sprint(sqlite.SchemaVersion) {
		t.Errorf("it was brought to schema version %s, want %d", got, sqlite.SchemaVersion)
	}
	clean(t, s)
	ended, payloads := 0, 0
	for r, err := range s.Read(t.Context(), "", store.Filter{Types: []events.Type{events.TypeMessageCompleted}}) {
		if err != nil {
			t.Fatal(err)
		}
		if ended++; strings.HasPrefix(contents(t, s, r.Entity.ID), `{"to":"`) {
			payloads++
		}
	}
	if ended == 0 || payloads != ended {
		t.Errorf("%d of %d completed messages have their payload", payloads, ended)
	}
	rows := running(commit(t, s, mintedAt(now, claiming("mail", 4))))
	if len(rows) != 4 { // three that never were claimed and the one that failed
		t.Errorf("%d are claimed, want 4", len(rows))
	}
	commit(t, s, mintedAt(now, resulting(t, rows, "done")))
	folded(t, s)
	if got := one(t, raw(t, path), "PRAGMA integrity_check"); got != "ok" {
		t.Error(got)
	}
}

// A process that only looked at a store migrated it, and everybody who worked on it was shut out.
func TestAStoreOfAnOlderSchemaIsNotMigratedByWhoOnlyLooks(t *testing.T) {
	path, _ := kept(t, "schema2")
	before := read(t, path)
	for _, o := range []sqlite.Options{{NoMigrate: true}, {NoMigrate: true, MustExist: true}} {
		_, err := sqlite.Open(t.Context(), path, o)
		older := (*sqlite.OlderError)(nil)
		if !errors.As(err, &older) || older.Version != 2 || !strings.Contains(err.Error(), "schema version 2, which is older than this program's, 3") {
			t.Fatalf("%+v: %v", o, err)
		}
	}
	if !slices.Equal(read(t, path), before) {
		t.Error("the file has changed")
	}
	open(t, path, sqlite.Options{})
	open(t, path, sqlite.Options{NoMigrate: true})
	open(t, filepath.Join(t.TempDir(), "new.db"), sqlite.Options{NoMigrate: true})
}
