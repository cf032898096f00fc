package postgres

import (
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
	firsts string // its arguments are the group that was seen last
	begin  []any  // before the first group
	group  string // all that the walk may take of one group, in order; its arguments are the group, and how many rows it gives
	takes  func(store.Row) bool
	of     func(*record) []any // the group of the row that was scanned
}

// grouping is how rows of an index form groups.
type grouping struct {
	group   string // the columns that are the same in one
	of      string // the condition that rows of the index fulfil
	begin   string // the arguments that are the group before the first
	last    string // the group of the row f that was found last
	ordered string // the columns by which the rows of a group stand
}

// walk is the text of a walk over the groups.
func (g grouping) walk() string {
	from := func(table, behind string) string {
		return fmt.Sprintf("(SELECT %s FROM %s WHERE %s(%s) > (%s) ORDER BY %s, %s LIMIT 1)", messageColumns, table, g.of, g.group, behind, g.group, g.ordered)
	}
	return fmt.Sprintf("WITH RECURSIVE f AS (%s UNION ALL SELECT n.* FROM f CROSS JOIN LATERAL %s n) SELECT * FROM f LIMIT %d",
		from("@messages", g.begin), from("@messages m", g.last), pageRows)
}

// openClaims is the open claims of a worker.
const openClaims = "SELECT " + messageColumns + " FROM @messages WHERE worker = $1 ORDER BY claimed_at, id LIMIT $2"

// blockedOf is those who are blocked by a lock, of one topic.
const blockedOf = "SELECT " + messageColumns + " FROM @messages" +
	" WHERE waiting <> 0 AND lock = $1 AND topic = $2 AND waiting = 1 ORDER BY priority, place LIMIT $3"

var walks = map[store.Selection]walk{
	store.FirstClaims: {
		firsts: grouping{group: "worker", begin: "$1", last: "f.worker", ordered: "claimed_at, id"}.walk(), begin: []any{events.ID{}}, group: openClaims,
		takes: func(row store.Row) bool { return row.Worker != (events.ID{}) },
		of:    func(r *record) []any { return []any{events.ID(r.array(workerAt))} },
	},
	store.FirstWaits: {
		firsts: grouping{
			group: "lock, topic", of: "waiting <> 0 AND ", begin: "$1, $2", last: "f.lock, f.topic", ordered: "waiting, priority, place",
		}.walk(), begin: []any{"", ""}, group: blockedOf,
		takes: func(row store.Row) bool { return row.Waiting == store.Blocked },
		of:    func(r *record) []any { return []any{r.text(lockAt), r.text(topicAt)} },
	},
}

// selected yields the rows that a filter selects: what cannot be read first, then the others by id.
func (s *Store) selected(ctx context.Context, f store.RowFilter, yield func(store.Row, error) bool) {
	w, known := walks[f.Select]
	if !known {
		yield(store.Row{}, fmt.Errorf("postgres: rows: selection %d is unknown to this version", f.Select))
		return
	}
	if f.Kind != events.KindNone && f.Kind != events.KindMessage {
		return
	}
	found := firsts{walk: w, last: w.begin}
	for more := true; more; {
		var err error
		if more, err = s.walkPage(ctx, &found); err != nil {
			yield(store.Row{}, fmt.Errorf("postgres: rows: %w", err))
			return
		}
	}
	for _, err := range found.spoilt {
		if !yield(store.Row{}, fmt.Errorf("postgres: rows: %w", err)) {
			return
		}
	}
	l := &listing{table: tables[events.KindMessage], kind: events.KindMessage, filter: f}
	slices.SortFunc(found.list, events.Entity.Compare)
	for _, entity := range found.list {
		if len(f.Entities) == 0 || slices.Contains(f.Entities, entity) {
			l.keys = append(l.keys, entity)
		}
	}
	if len(l.keys) > 0 {
		s.rowsOf(ctx, l, yield)
	}
}

// firsts is how far a walk has come.
type firsts struct {
	walk
	last   []any           // the group that was seen last
	list   []events.Entity // those that were found
	spoilt []error         // what is wrong with those that stand first in their group and cannot be read
}

// walkPage walks over the next groups. It is false where there are no more.
func (s *Store) walkPage(ctx context.Context, f *firsts) (more bool, err error) {
	var page firsts
	var unread [][]any // groups whose first cannot be read
	groups := 0
	err = s.ask(ctx, func(p *pipeline) {
		page, unread, groups = firsts{walk: f.walk, last: f.last}, nil, 0
		r := newRecord(messageColumns)
		p.query(r, func() error {
			groups++
			page.last = page.of(r)
			row, err := tables[events.KindMessage].row(r)
			switch {
			case err != nil:
				page.spoilt = append(page.spoilt, err)
				unread = append(unread, page.last)
			case page.takes(row):
				page.list = append(page.list, row.Entity)
			}
			return nil
		}, f.firsts, f.last...)
	})
	for _, group := range unread {
		if err == nil {
			err = s.firstLegible(ctx, &page, group)
		}
	}
	if isDamaged(err) {
		err = &events.Corrupt{Detail: fmt.Sprintf("somewhere among the messages: %v", err)}
	}
	if err == nil {
		f.last, f.list, f.spoilt = page.last, append(f.list, page.list...), append(f.spoilt, page.spoilt...)
	}
	return groups == pageRows, err
}

// mostPassedOver is how many damaged rows are passed over to find one that is not.
const mostPassedOver = 1024

// firstLegible takes the first of a group that can be read.
func (s *Store) firstLegible(ctx context.Context, f *firsts, group []any) error {
	for limit := 16; ; limit *= 4 {
		rows := 0
		var taken *events.Entity
		err := s.ask(ctx, func(p *pipeline) {
			rows, taken = 0, nil
			r := newRecord(messageColumns)
			p.query(r, func() error {
				rows++
				row, err := tables[events.KindMessage].row(r)
				if err == nil && taken == nil && f.takes(row) {
					taken = &row.Entity
				}
				return nil
			}, f.group, append(slices.Clone(group), limit)...)
		})
		if err == nil && taken != nil {
			f.list = append(f.list, *taken)
		}
		if err != nil || taken != nil || rows < limit || limit >= mostPassedOver {
			return err
		}
	}
}
