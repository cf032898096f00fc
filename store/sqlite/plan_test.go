package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/store/sqlite"
)

// TestHotQueriesWalkOneIndex explains them on an empty store and on a filled one. Neither was ever analysed: nothing may depend on it.
func TestHotQueriesWalkOneIndex(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	for _, filled := range []bool{false, true} {
		if filled {
			commit(t, s, enqueueing("mail", 2000))
			commit(t, s, claiming("mail", 500))
		}
		for name, query := range sqlite.HotQueries() {
			steps, err := s.Plan(query)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			plan := strings.Join(steps, "; ")
			search := strings.Contains(plan, "SEARCH") || name == "ends"
			if !search || strings.Contains(plan, "TEMP B-TREE") && name != "histories" && name != "stream" || scans(steps) && name != "ends" {
				t.Errorf("%s (filled: %v): %s", name, filled, plan)
			}
		}
	}
}

// scans tells a walk over a whole table. The values that a statement was given are no table.
func scans(steps []string) bool {
	for _, step := range steps {
		if strings.HasPrefix(step, "SCAN ") && !strings.Contains(step, "CONSTANT ROW") && !strings.Contains(step, "VALUES") {
			return true
		}
	}
	return false
}
