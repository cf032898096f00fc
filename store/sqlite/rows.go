package sqlite

import (
	"context"
	"errors"
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
		if f.Select != store.All {
			s.selected(ctx, f, yield)
			return
		}
		named := slices.Compact(slices.SortedFunc(slices.Values(f.Entities), events.Entity.Compare))
		for _, kind := range events.Kinds() {
			t := tables[kind]
			if t == nil || f.Kind != events.KindNone && f.Kind != kind || ofMessages(f) && kind != events.KindMessage {
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
			if !s.rowsOf(ctx, &listing{table: t, filter: f, keys: keys}, yield) {
				return
			}
		}
	}
}

// ofMessages reports whether a filter can pass messages alone.
func ofMessages(f store.RowFilter) bool { return f.Topic != "" || f.Worker != (events.ID{}) }

// rowsOf yields the rows of one kind, a page at a time. It is false where nothing is to be yielded any more.
func (s *Store) rowsOf(ctx context.Context, l *listing, yield func(store.Row, error) bool) bool {
	for !l.done {
		list, err := s.rowPage(ctx, l)
		for _, item := range list {
			if !yield(item.row, item.err) {
				return false
			}
		}
		if err != nil {
			yield(store.Row{}, fmt.Errorf("sqlite: rows: %w", err))
			return false
		}
	}
	return true
}

// listed is a row, or what is wrong with it.
type listed struct {
	row store.Row
	err error
}

// errPageFull ends the reading of a page before its last row.
var errPageFull = errors.New("page is full")

// rowPage reads the next page: so many rows, or so many bytes of payloads.
func (s *Store) rowPage(ctx context.Context, l *listing) (list []listed, err error) {
	query, columns, args := l.next()
	r := newRecord(columns)
	var last any
	err = s.snapshot(ctx, func(from source) error {
		list = nil
		size := 0
		return from(r, func() error {
			item := l.read(r)
			list, last = append(list, item), r.values[l.table.keyAt()]
			if item.row.Payload != nil {
				size += len(item.row.Payload.Bytes)
			}
			if size >= pageBytes && len(list) < pageRows {
				return errPageFull
			}
			return nil
		}, query, args...)
	})
	full := errors.Is(err, errPageFull)
	if full {
		err = nil
	}
	if isDamaged(err) {
		err = &events.Corrupt{Detail: fmt.Sprintf("somewhere among the %s: %v", l.table.name, err)}
	}
	l.passed(len(list), last, full)
	return list, err
}

// read is the row that was scanned.
func (l *listing) read(r *record) listed {
	row, err := l.table.row(r)
	if err == nil && len(r.columns) > width(l.table.columns) {
		row.Payload = r.payload(width(l.table.columns))
		if r.err != nil {
			err = &events.Corrupt{Entity: row.Entity, Version: row.Version, Detail: "its payload: " + r.err.Error()}
		}
	}
	if err != nil {
		return listed{err: fmt.Errorf("sqlite: rows: %w", err)}
	}
	return listed{row: row}
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

// passed steps behind a page of n rows, the last of which has a key. full says that more may follow, however few they were.
func (l *listing) passed(n int, last any, full bool) {
	full = full || len(l.keys) == 0 && n == pageRows
	switch {
	case full:
		l.after = last
	case len(l.keys) > pageRows:
		l.keys = l.keys[pageRows:]
	default:
		l.done = true
	}
}
