package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file finds one message for each of something, by an index that is walked from one group to the next, past all who stand behind the
// first of a group.

// A walk is such a query: the first of each group behind one, some groups at a time.
type walk struct {
	firsts string // its arguments are the group that was seen last, and how many groups it gives at most
	begin  []any  // before the first group
	at     []int  // where the group stands among messageColumns
	group  string // all that the walk may take of one group, in order; its arguments are the group, and how many rows it gives
	takes  func(store.Row) bool
}

// A text stands before all bytes. Without its plus a column has an affinity, and SQLite would walk over the whole group.
var walks = map[store.Selection]walk{
	store.FirstClaims: {
		firsts: `WITH RECURSIVE holders (worker) AS (
  SELECT min(worker) FROM messages INDEXED BY messages_running WHERE worker > ?
  UNION ALL
  SELECT (SELECT min(worker) FROM messages INDEXED BY messages_running WHERE worker > h.worker) FROM holders h WHERE h.worker IS NOT NULL
  LIMIT ?
)
SELECT ` + of("m", messageColumns) + ` FROM holders h CROSS JOIN messages m ON m.place =
  (SELECT place FROM messages INDEXED BY messages_running WHERE worker = h.worker ORDER BY claimed_at, id LIMIT 1)`,
		begin: []any{""}, at: []int{workerAt}, group: claimsQuery,
		takes: func(row store.Row) bool { return row.Worker != (events.ID{}) },
	},
	store.FirstWaits: {
		firsts: `WITH RECURSIVE firsts (place) AS (
  SELECT place FROM (SELECT place FROM messages INDEXED BY messages_waiting WHERE waiting <> 0 AND (lock, topic) > (?, ?)
                     ORDER BY lock, topic, waiting, priority, place LIMIT 1)
  UNION ALL
  SELECT (SELECT n.place FROM messages n INDEXED BY messages_waiting WHERE n.waiting <> 0 AND (n.lock, n.topic) > (+m.lock, +m.topic)
          ORDER BY n.lock, n.topic, n.waiting, n.priority, n.place LIMIT 1)
  FROM firsts f CROSS JOIN messages m ON m.place = f.place
  LIMIT ?
)
SELECT ` + of("m", messageColumns) + " FROM firsts f CROSS JOIN messages m ON m.place = f.place",
		begin: []any{"", ""}, at: []int{lockAt, topicAt}, group: blockedQuery,
		takes: func(row store.Row) bool { return row.Waiting == store.Blocked },
	},
}

// Those who are blocked by a lock, of one topic.
const blockedQuery = "SELECT " + messageColumns + " FROM messages INDEXED BY messages_waiting" +
	" WHERE waiting <> 0 AND lock = ? AND topic = ? AND waiting = 1 ORDER BY priority, place LIMIT ?"

// selected yields the rows that a filter selects: what cannot be read first, then the others by id.
func (s *Store) selected(ctx context.Context, f store.RowFilter, yield func(store.Row, error) bool) {
	w, known := walks[f.Select]
	if !known {
		yield(store.Row{}, fmt.Errorf("sqlite: rows: selection %d is unknown to this version", f.Select))
		return
	}
	if f.Kind != events.KindNone && f.Kind != events.KindMessage {
		return
	}
	found := firsts{walk: w, last: w.begin}
	for more := true; more; {
		var err error
		if more, err = s.walkPage(ctx, &found); err != nil {
			yield(store.Row{}, fmt.Errorf("sqlite: rows: %w", err))
			return
		}
	}
	for _, err := range found.spoilt {
		if !yield(store.Row{}, fmt.Errorf("sqlite: rows: %w", err)) {
			return
		}
	}
	l := &listing{table: tables[events.KindMessage], filter: f}
	slices.SortFunc(found.ids, func(a, b events.ID) int { return bytes.Compare(a[:], b[:]) })
	for i, id := range found.ids {
		if len(f.Entities) == 0 || slices.Contains(f.Entities, events.MessageEntity(id)) {
			l.keys = append(l.keys, found.ids[i][:])
		}
	}
	if len(l.keys) > 0 {
		s.rowsOf(ctx, l, yield)
	}
}

// firsts is how far a walk has come.
type firsts struct {
	walk
	last   []any       // the group that was seen last
	ids    []events.ID // of those that were found
	spoilt []error     // what is wrong with those that stand first in their group and cannot be read
}

// walkPage walks over the next groups. It is false where there are no more.
func (s *Store) walkPage(ctx context.Context, f *firsts) (more bool, err error) {
	err = s.snapshot(ctx, func(from source) error {
		page := firsts{walk: f.walk, last: f.last}
		more, err = page.next(from)
		if err == nil {
			f.last, f.ids, f.spoilt = page.last, append(f.ids, page.ids...), append(f.spoilt, page.spoilt...)
		}
		return err
	})
	if isDamaged(err) {
		err = &events.Corrupt{Detail: fmt.Sprintf("somewhere among the messages: %v", err)}
	}
	return more, err
}

// next takes the first of each of the next groups.
func (f *firsts) next(from source) (more bool, err error) {
	var unread [][]any // groups whose first cannot be read
	groups := 0
	r := newRecord(messageColumns)
	err = from(r, func() error {
		groups++
		f.last = nil
		for _, i := range f.at {
			f.last = append(f.last, r.values[i])
		}
		row, err := tables[events.KindMessage].row(r)
		switch {
		case err != nil:
			f.spoilt = append(f.spoilt, err)
			unread = append(unread, f.last)
		case f.takes(row):
			f.ids = append(f.ids, row.Entity.ID)
		}
		return nil
	}, f.firsts, append(slices.Clone(f.last), int64(pageRows))...)
	for _, group := range unread {
		if err == nil {
			err = f.behind(from, group)
		}
	}
	return groups == pageRows, err
}

// behind takes the first of a group that can be read.
func (f *firsts) behind(from source, group []any) error {
	r := newRecord(messageColumns)
	for over := more(0); ; over = more(over) {
		rows, taken := 0, false
		err := from(r, func() error {
			rows++
			row, err := tables[events.KindMessage].row(r)
			if err == nil && !taken && f.takes(row) {
				taken = true
				f.ids = append(f.ids, row.Entity.ID)
			}
			return nil
		}, f.group, append(slices.Clone(group), int64(over))...)
		if err != nil || taken || rows < over || over >= maxPassedOver {
			return err
		}
	}
}
