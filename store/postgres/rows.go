package postgres

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
		lists, err := s.listings(ctx, f)
		if err != nil {
			yield(store.Row{}, fmt.Errorf("postgres: rows: %w", err))
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
	if !nameable(f.Topic) || !nameable(f.Lock) || !nameable(f.Key.Topic) || !nameable(f.Key.Name) {
		return nil, s.ask(ctx, func(*pipeline) {}) // nothing has such a name
	}
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
		l := &listing{table: t, kind: kind, filter: f}
		if kind == f.After.Kind {
			l.after = &f.After
		}
		for _, entity := range named {
			if entity.Kind == kind && nameable(entity.Name) {
				l.keys = append(l.keys, entity)
			}
		}
		if all || len(l.keys) > 0 {
			lists = append(lists, l)
		}
	}
	return lists, nil
}

// nameable reports whether a text can be kept: the server has no zero in one.
func nameable(text string) bool { return !strings.Contains(text, "\x00") }

const holderQuery = "SELECT message FROM @keys WHERE topic = $1 AND name = $2"

// holder is the message that has a key.
func (s *Store) holder(ctx context.Context, key store.Key) (list []events.Entity, err error) {
	err = s.ask(ctx, func(p *pipeline) {
		list = nil
		r := newRecord("message")
		p.query(r, func() error {
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
			yield(store.Row{}, fmt.Errorf("postgres: rows: %w", err))
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

// rowPage reads the next page: so many rows, or so many bytes of payloads.
func (s *Store) rowPage(ctx context.Context, l *listing) (list []listed, err error) {
	page := l.page()
	if err = s.narrow(ctx, page); err == nil {
		list, err = s.fetch(ctx, page)
	}
	if isDamaged(err) {
		err = &events.Corrupt{Detail: fmt.Sprintf("somewhere among the %s: %v", l.table.name, err)}
	}
	l.passed(page)
	return list, err
}

// fetch reads the rows of a page.
func (s *Store) fetch(ctx context.Context, page *page) (list []listed, err error) {
	err = s.ask(ctx, func(p *pipeline) {
		list, page.found, page.cut = nil, 0, false
		r := newRecord(page.columns)
		size := 0
		p.query(r, func() error {
			item := page.read(r)
			list, page.last = append(list, item), page.table.entityAt(page.kind, r)
			if item.row.Payload != nil {
				size += len(item.row.Payload.Bytes)
			}
			page.found++
			page.cut = size >= pageBytes // those behind it were left out, if there are any
			return nil
		}, page.query(), page.args...)
	})
	return list, err
}

// entityAt is the entity of the row that was scanned, whatever else is wrong with it.
func (t *table) entityAt(kind events.Kind, r *record) events.Entity {
	was := r.err
	defer func() { r.err = was }()
	if kind.Named() {
		return events.Entity{Kind: kind, Name: r.text(t.keyAt())}
	}
	return events.Entity{Kind: kind, ID: r.array(t.keyAt())}
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
		return listed{err: fmt.Errorf("postgres: rows: %w", err)}
	}
	return listed{row: row}
}

// isDamaged tells that the server cannot read what it has stored: data_corrupted, index_corrupted.
func isDamaged(err error) bool {
	var corrupt *events.Corrupt
	c := code(err)
	return (c == "XX001" || c == "XX002") && !errors.As(err, &corrupt)
}
