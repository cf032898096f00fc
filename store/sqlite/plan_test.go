package sqlite_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/store/sqlite"
)

// TestHotQueriesWalkOneIndex explains them on an empty store and on a filled one. Neither was ever analysed: nothing may depend on it.
func TestHotQueriesWalkOneIndex(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	for _, filled := range []bool{false, true} {
		if filled {
			commit(t, s, enqueueing("mail", 2000))
			commit(t, s, claiming("mail", 500))
			commit(t, s, locking("press", "big", 500))
			commit(t, s, claiming("press", 400))
		}
		for name, query := range sqlite.HotQueries() {
			steps, err := s.Plan(query)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			plan := strings.Join(steps, "; ")
			search := strings.Contains(plan, "SEARCH") || name == "ends"
			if !search || strings.Contains(plan, "TEMP B-TREE") && !sorts(name) || scans(steps) && name != "ends" {
				t.Errorf("%s (filled: %v): %s", name, filled, plan)
			}
			for _, part := range ranges[name] {
				if !strings.Contains(plan, part) {
					t.Errorf("%s (filled: %v): %s: want %s", name, filled, plan, part)
				}
			}
		}
	}
}

// ranges is what some queries must narrow down of their index: with less they would walk over what they are to skip.
var ranges = map[string][]string{
	"waiters":                              {"(lock=? AND (topic,waiting)>(?,?))"},
	"waiters of a topic":                   {"(lock=? AND topic=? AND waiting=?)"},
	"blocked":                              {"(lock=? AND topic=? AND waiting=?)"},
	"walk 1":                               {"SETUP; SEARCH messages USING COVERING INDEX messages_running (worker>?)", "2; SEARCH messages USING COVERING INDEX messages_running (worker>?)"},
	"walk 2":                               {"SEARCH messages USING COVERING INDEX messages_waiting ((lock,topic)>(?,?))", "SEARCH n USING COVERING INDEX messages_waiting ((lock,topic)>(?,?))"},
	"newest":                               {"(stream=? AND version>?)"},
	"permits":                              {"(lock=? AND token=?)"},
	"permits back":                         {"(lock=? AND token=?)"},
	"next page of permits of a lock":       {"(lock=? AND token>?)"},
	"next page of permits of a worker":     {"(worker=?)"},
	"next page of permits of what expired": {"(expires_at<?)"},
	"untold":                               {"SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", "SEARCH m USING INDEX messages_id (id=?)"},
	"others":                               {"(rowid>? AND rowid<?)"},
	"ends behind":                          {"SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", "SEARCH m USING COVERING INDEX messages_id (id=?)"},
	"prune 1":                              {"SEARCH payloads USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	"prune 2":                              {"SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", "SEARCH p USING PRIMARY KEY (message=?)"},
	"prune 3":                              {"SEARCH places USING PRIMARY KEY (message=?)", "SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	"beheaded":                             {"SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	"over keys":                            {"SEARCH keys USING COVERING INDEX keys_over (until<?)"},
	"page of states":                       {"SEARCH t USING INDEX messages_id (id>?)"},
	"page of a lock":                       {"SEARCH t USING INDEX messages_id (id>?)"},
	"page of falling":                      {"SEARCH t USING INDEX messages_id (id<?)"},
}

// sorts tells the queries that sort what they give: all of it, and no more than that.
func sorts(name string) bool {
	return name == "histories" || name == "stream" || name == "others" || name == "untold" || name == "result" || strings.HasSuffix(name, "a worker") && name != "permits of a worker" ||
		strings.HasSuffix(name, "what expired")
}

// scans tells a walk over a whole table. The values that a statement was given are no table, nor is what it has found itself.
func scans(steps []string) bool {
	for _, step := range steps {
		what, scan := strings.CutPrefix(step, "SCAN ")
		if scan && !strings.Contains(step, "CONSTANT ROW") && !strings.Contains(step, "VALUES") && !strings.HasPrefix(what, "(subquery") &&
			!slices.Contains([]string{"w", "f", "h", "g", "firsts"}, what) {
			return true
		}
	}
	return false
}

// What retention needs is found when something is pruned: a message that is enqueued, claimed and completed pays nothing for it.
func TestMessagesRunNoStatementForRetention(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{})
	lives(t, s, 100)
	let(t, s, time.Now())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, sqlite.Options{})
	ofRetention := func() (list []string) {
		for _, statement := range s.Statements() {
			if strings.Contains(statement, "places") || strings.Contains(statement, "snapshots") || strings.Contains(statement, "results") {
				list = append(list, statement)
			}
		}
		return list
	}
	lives(t, s, 100)
	lives(t, s, 1)
	if list := ofRetention(); len(list) > 0 {
		t.Errorf("statements of retention: %q", list)
	}
	let(t, s, time.Now())
	if list := ofRetention(); len(list) == 0 {
		t.Error("no statement of retention is seen where something is pruned")
	}
}

// A claim and an ack of messages without locks pay nothing for those that have them.
func TestMessagesWithoutLocksRunNoStatementForLocks(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	lives(t, s, 100)
	lives(t, s, 1)
	ofLocks := func() (list []string) {
		for _, statement := range s.Statements() {
			if strings.Contains(statement, "permits") || strings.Contains(statement, "locks") || strings.Contains(statement, "wanted") {
				list = append(list, statement)
			}
		}
		return list
	}
	if list := ofLocks(); len(list) > 0 {
		t.Errorf("statements of locks: %q", list)
	}
	commit(t, s, locking("press", "big", 1))
	commit(t, s, claiming("press", 1))
	if list := ofLocks(); len(list) == 0 {
		t.Error("no statement of locks is seen where there is one")
	}
}
