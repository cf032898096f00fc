package sqlite

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// Rows implements store.Store.
func (s *Store) Rows(ctx context.Context, f store.RowFilter) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		named := slices.Compact(slices.SortedFunc(slices.Values(f.Entities), events.Entity.Compare))
		for _, kind := range events.Kinds() {
			if f.Kind != events.KindNone && f.Kind != kind || ofMessages(f) && kind != events.KindMessage {
				continue
			}
			var keys []any
			for _, entity := range named {
				if entity.Kind == kind {
					keys = append(keys, keyOf(entity))
				}
			}
			if len(named) > 0 && len(keys) == 0 {
				continue
			}
			for row, err := range s.rowsOf(ctx, &listing{table: tables[kind], filter: f, keys: keys}) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// ofMessages reports whether a filter can pass messages alone.
func ofMessages(f store.RowFilter) bool { return f.Topic != "" || f.Worker != (events.ID{}) }

// rowsOf yields the rows of one kind, a page at a time.
func (s *Store) rowsOf(ctx context.Context, l *listing) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for !l.done {
			list, err := s.rowPage(ctx, l)
			for _, row := range list {
				if !yield(row, nil) {
					return
				}
			}
			if err != nil {
				l.done = true
				yield(store.Row{}, fmt.Errorf("sqlite: rows: %w", err))
			}
		}
	}
}

// rowPage reads the next page.
func (s *Store) rowPage(ctx context.Context, l *listing) (list []store.Row, err error) {
	query, columns, args := l.next()
	r := newRecord(columns)
	err = s.snapshot(ctx, func(from source) error {
		list = nil
		return from(r, func() error {
			row, err := l.table.row(r)
			if err == nil && len(r.columns) > width(l.table.columns) {
				row.Payload = r.payload(width(l.table.columns))
				err = damaged(row.Entity, "its payload", r.err)
			}
			if err == nil {
				list = append(list, row)
			}
			return err
		}, query, args...)
	})
	l.passed(list)
	return list, err
}

// listing is where a walk over the rows of one kind stands.
type listing struct {
	table  *table
	filter store.RowFilter
	keys   []any // the rows that are asked for; none is all of them
	after  any   // the key of the last row that was given
	done   bool
}

// next is the query for the next page.
func (l *listing) next() (query, columns string, args []any) {
	t := l.table
	selected, from := of("t", t.columns), t.name+" t"
	columns = t.columns
	if l.filter.Worker != (events.ID{}) {
		from += " INDEXED BY messages_running"
	}
	if l.filter.Payloads && t == tables[events.KindMessage] {
		columns, selected, from = columns+", salt, bytes", selected+", p.salt, p.bytes", from+" LEFT JOIN payloads p ON p.place = t.place"
	}
	where := "1"
	add := func(condition string, values ...any) {
		where += " AND t." + condition
		args = append(args, values...)
	}
	if n := min(len(l.keys), pageRows); n > 0 {
		add(t.key+" IN (?"+strings.Repeat(", ?", n-1)+")", l.keys[:n]...)
	}
	if l.after != nil {
		add(t.key+" > ?", l.after)
	}
	if l.filter.Topic != "" {
		add("topic = ?", l.filter.Topic)
	}
	if l.filter.Worker != (events.ID{}) {
		add("worker = ?", l.filter.Worker[:])
	}
	query = fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY t.%s LIMIT %d", selected, from, where, t.key, pageRows)
	return query, columns, args
}

// passed steps behind a page.
func (l *listing) passed(page []store.Row) {
	if len(l.keys) > 0 {
		l.keys = l.keys[min(len(l.keys), pageRows):]
		l.done = len(l.keys) == 0
		return
	}
	if l.done = len(page) < pageRows; !l.done {
		l.after = keyOf(page[len(page)-1].Entity)
	}
}
