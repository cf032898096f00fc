package postgres

import (
	"testing"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
)

// A process takes tables away over a connection of its own, which may lead to a server that took over without the prune.
func TestRangeIsNotTakenAwayWhereItWasNotPruned(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	b := &beds{t, s}
	b.enqueue("mail", "", 3)
	before := len(read(t, s, "", store.Filter{}))
	if err := s.leaveAll(t.Context(), s.ranges.list[:1]); err == nil {
		t.Error("no error")
	}
	if after := len(read(t, s, "", store.Filter{})); after != before || before == 0 {
		t.Errorf("%d events, want %d", after, before)
	}
}
