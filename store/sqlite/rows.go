package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

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
		lists, err := s.listings(ctx, f)
		if err != nil {
			yield(store.Row{}, fmt.Errorf("sqlite: rows: %w", err))
			return
		}
		left := f.Limit
		upto := func(row store.Row, err error) bool {
			if err == nil {
				left--
			}
			return yield(row, err) && (f.Limit == 0 || left > 0)
		}
		for _, l := range lists {
			if !s.rowsOf(ctx, l, upto) {
				return
			}
		}
	}
}

// listings is a walk for each kind that a filter can pass.
func (s *Store) listings(ctx context.Context, f store.RowFilter) (lists []*listing, err error) {
	named, all := f.Entities, len(f.Entities) == 0
	if f.Key != (store.Key{}) {
		holder, err := s.holder(ctx, f.Key)
		if err != nil {
			return nil, err
		}
		if !all {
			holder = slices.DeleteFunc(holder, func(e events.Entity) bool { return !slices.Contains(named, e) })
		}
		named, all = holder, false
	}
	named = slices.Compact(slices.SortedFunc(slices.Values(named), events.Entity.Compare))
	if f.Order == store.Falling {
		slices.Reverse(named)
	}
	for _, kind := range events.Kinds() {
		t := tables[kind]
		if t == nil || kind < f.After.Kind || f.Kind != events.KindNone && f.Kind != kind || ofMessages(f) && kind != events.KindMessage {
			continue
		}
		l := &listing{table: t, filter: f}
		if kind == f.After.Kind {
			l.after = keyOf(f.After)
		}
		for _, entity := range named {
			if entity.Kind == kind {
				l.keys = append(l.keys, keyOf(entity))
			}
		}
		if all || len(l.keys) > 0 {
			lists = append(lists, l)
		}
	}
	return lists, nil
}

const holderQuery = "SELECT message FROM keys WHERE topic = ? AND name = ?"

// holder is the message that has a key.
func (s *Store) holder(ctx context.Context, key store.Key) (list []events.Entity, err error) {
	err = s.snapshot(ctx, func(from source) error {
		list = nil
		r := newRecord("message")
		return from(r, func() error {
			list = append(list, events.MessageEntity(r.array(0)))
			return damaged(events.TopicEntity(key.Topic), fmt.Sprintf("its key %q", key.Name), r.err)
		}, holderQuery, key.Topic, key.Name)
	})
	return list, err
}

// ofMessages reports whether a filter can pass messages alone.
func ofMessages(f store.RowFilter) bool {
	return f.Topic != "" || f.Worker != (events.ID{}) || f.Lock != ""
}

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
	var page page
	err = s.snapshot(ctx, func(from source) error {
		list, page = nil, l.page()
		if err := page.narrow(from); err != nil {
			return err
		}
		r := newRecord(page.columns)
		size := 0
		return from(r, func() error {
			item := l.read(r)
			list, page.last = append(list, item), r.values[l.table.keyAt()]
			if item.row.Payload != nil {
				size += len(item.row.Payload.Bytes)
			}
			if size >= pageBytes && len(list) < page.rows {
				return errPageFull
			}
			return nil
		}, page.query(), page.args...)
	})
	if errors.Is(err, errPageFull) {
		page.cut, err = true, nil
	}
	if isDamaged(err) {
		err = &events.Corrupt{Detail: fmt.Sprintf("somewhere among the %s: %v", l.table.name, err)}
	}
	page.found = len(list)
	l.passed(&page)
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
