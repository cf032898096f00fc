package sqlite_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// TestFewRowsAmongManyAreFoundAPieceAtATime looks for three rows among 45,000 by what no index knows.
func TestFewRowsAmongManyAreFoundAPieceAtATime(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{Synchronous: sqlite.SynchronousNormal})
	for range 45 {
		commit(t, s, enqueueing("mail", 1000))
	}
	commit(t, s, locking("press", "door", 3))
	rows := running(commit(t, s, claiming("mail", 3)))
	var ids []events.Entity
	for _, row := range rows {
		ids = append(ids, row.Entity)
	}
	slices.SortFunc(ids, events.Entity.Compare)
	for name, c := range map[string]struct {
		filter store.RowFilter
		want   []events.Entity
	}{
		"by state":          {store.RowFilter{States: []events.State{events.Running, events.Orphaned}}, ids},
		"and topic":         {store.RowFilter{States: []events.State{events.Running}, Topic: "mail", Kind: events.KindMessage}, ids},
		"of another topic":  {store.RowFilter{States: []events.State{events.Running}, Topic: "press"}, nil},
		"behind the first":  {store.RowFilter{States: []events.State{events.Running}, After: ids[0]}, ids[1:]},
		"at most two":       {store.RowFilter{States: []events.State{events.Running}, Limit: 2, Payloads: true}, ids[:2]},
		"falling":           {store.RowFilter{States: []events.State{events.Running}, Order: store.Falling}, []events.Entity{ids[2], ids[1], ids[0]}},
		"falling, behind":   {store.RowFilter{States: []events.State{events.Running}, Order: store.Falling, After: ids[2]}, []events.Entity{ids[1], ids[0]}},
		"named":             {store.RowFilter{States: []events.State{events.Running}, Entities: []events.Entity{ids[1], ids[2]}}, ids[1:]},
		"of a lock":         {store.RowFilter{Lock: "door", States: []events.State{events.Running}}, nil},
		"of a worker":       {store.RowFilter{Worker: worker, States: []events.State{events.Running}, Limit: 1}, ids[:1]},
		"in no known state": {store.RowFilter{States: []events.State{99}}, nil},
	} {
		list, errs := rowsOf(t, s, c.filter)
		var got []events.Entity
		for _, row := range list {
			got = append(got, row.Entity)
		}
		if !slices.Equal(got, c.want) || len(errs) > 0 {
			t.Errorf("%s: %v, %v, want %v", name, got, errs, c.want)
		}
	}
	if list, _ := rowsOf(t, s, store.RowFilter{Lock: "door"}); len(list) != 3 {
		t.Errorf("%d take the lock, want 3", len(list))
	}
	if pages := s.PageSizes(t.Context(), store.RowFilter{States: []events.State{events.Running}}); len(pages) != 3 {
		t.Errorf("rows on pages: %v, want 3 pages of 20,000 that are looked at", pages)
	}
}
