package sqlite_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/store/sqlite"
)

// tables is what a file has, and the settings by which it is known, however they came about.
func tables(t *testing.T, path string) []string {
	t.Helper()
	db := raw(t, path)
	all := list(t, db, "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema WHERE tbl_name NOT IN ('schema_versions', 'sqlite_sequence') ORDER BY 1")
	all = append(all, list(t, db, "SELECT name || ' ' || type || ' ' || pk FROM pragma_table_info('schema_versions') ORDER BY 1")...)
	all = append(all, list(t, db, "SELECT version_id || ' ' || is_applied FROM schema_versions ORDER BY id")...)
	all = append(all, list(t, db, "SELECT kind || ' ' || code || ' ' || word FROM words ORDER BY 1")...)
	for _, pragma := range []string{"application_id", "auto_vacuum", "journal_mode"} {
		all = append(all, list(t, db, "PRAGMA "+pragma)...)
	}
	return all
}

// What is printed for an administrator does what Open does.
func TestScriptMakesWhatOpenMakes(t *testing.T) {
	text, err := sqlite.Script(0)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "store.db")
	db := raw(t, path)
	do(t, db, text)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, sqlite.Options{MustExist: true, NoMigrate: true})
	commit(t, s, enqueueing("mail", 3))
	clean(t, s)
	other := filepath.Join(t.TempDir(), "store.db")
	open(t, other, sqlite.Options{})
	if got, want := tables(t, path), tables(t, other); !slices.Equal(got, want) {
		t.Errorf("it has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if text, err := sqlite.Script(sqlite.SchemaVersion); text != "" || err != nil {
		t.Errorf("of this version: %v\n%s", err, text)
	}
	for _, version := range []int{-1, sqlite.SchemaVersion + 1} {
		if _, err := sqlite.Script(version); err == nil {
			t.Errorf("from version %d: no error", version)
		}
	}
}

// A store that somebody has migrated meanwhile is left as it is.
func TestScriptLeavesAStoreOfAnotherVersionAlone(t *testing.T) {
	path := made(t)
	text, err := sqlite.Script(2)
	if err != nil {
		t.Fatal(err)
	}
	before := tables(t, path)
	if _, err := raw(t, path).Exec(text); err == nil || !strings.Contains(err.Error(), "CHECK constraint failed: version = 2") {
		t.Errorf("%v", err)
	}
	if after := tables(t, path); !slices.Equal(before, after) {
		t.Errorf("it was\n%s\nit is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}
