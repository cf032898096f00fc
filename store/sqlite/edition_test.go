package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// TestStoreThatIsMigratedWhileItIsOpenIsLeftAlone has a newer program bring the schema to a version that this one does not know.
func TestStoreThatIsMigratedWhileItIsOpenIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{})
	call := enqueueing("mail", 2)
	commit(t, s, call)
	db := raw(t, path)
	do(t, db, "CREATE INDEX by_hand ON events (type)") // which is no migration
	commit(t, s, enqueueing("mail", 2))
	do(t, db, "DROP INDEX by_hand")
	do(t, db, "CREATE TABLE flows (name TEXT)")
	do(t, db, "INSERT INTO schema_versions (version_id, is_applied) VALUES (41, 1)")
	before := one(t, db, "SELECT count(*) || ' ' || (SELECT count(*) FROM used_ids) FROM events")
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), fmt.Sprintf("version 41, this program knows versions up to %d", sqlite.SchemaVersion)) {
			t.Errorf("%s: %v, want %v that names both versions", what, err, store.ErrNewer)
		}
	}
	_, err := s.Decide(t.Context(), enqueueing("mail", 1))
	refused("decide", err)
	_, _, err = s.Outcome(t.Context(), call.ID)
	refused("outcome", err)
	_, err = s.Head(t.Context())
	refused("head", err)
	for _, err := range s.Read(t.Context(), "", store.Filter{}) {
		refused("read", err)
	}
	for _, err := range s.Rows(t.Context(), store.RowFilter{}) {
		refused("rows", err)
	}
	_, err = s.Checkpoints(t.Context(), store.CheckpointFilter{})
	refused("checkpoints", err)
	refused("compact", s.Compact(t.Context()))
	if after := one(t, db, "SELECT count(*) || ' ' || (SELECT count(*) FROM used_ids) FROM events"); after != before {
		t.Errorf("events and ids: %s before, %s after", before, after)
	}
}

// TestProgramOfTheVersionBeforeWritesNoMore runs what it would: it knows nothing of a log without a beginning.
func TestProgramOfTheVersionBeforeWritesNoMore(t *testing.T) {
	db := raw(t, made(t))
	if got := one(t, db, "SELECT count(*) FROM commit_ids"); got != "1" {
		t.Errorf("it finds %s commits, want 1", got)
	}
	_, err := db.Exec("INSERT INTO commit_ids (id, first) VALUES (x'00', 7)")
	if err == nil || !strings.Contains(err.Error(), "schema version 3") || !strings.Contains(err.Error(), "knows version 2") {
		t.Errorf("error %v, want one that names both versions", err)
	}
}
