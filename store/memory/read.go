package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// page is how many events or rows are copied at a time.
const page = 256

// Head implements store.Store.
func (s *Store) Head(ctx context.Context) (store.Cursor, error) {
	if err := s.enter(ctx); err != nil {
		return "", fmt.Errorf("memory: head: %w", err)
	}
	defer s.mu.Unlock()
	return store.CursorAt(s.id, int64(len(s.log))), nil
}

// After implements store.Store.
func (s *Store) After(r events.Recorded) store.Cursor { return store.CursorAt(s.id, r.Position) }

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		position, err := after.Position(s.id)
		if err != nil {
			yield(events.Recorded{}, fmt.Errorf("memory: read: %w", err))
			return
		}
		for given := 0; ; {
			list, next, err := s.readPage(ctx, position, f)
			if err != nil {
				yield(events.Recorded{}, fmt.Errorf("memory: read: %w", err))
				return
			}
			for _, r := range list {
				if given++; !yield(r, nil) || given == f.Limit {
					return
				}
			}
			if next == position {
				return
			}
			position = next
		}
	}
}

// readPage is the events of the next commits that pass the filter, and the position up to which it looked.
func (s *Store) readPage(ctx context.Context, after int64, f store.Filter) ([]events.Recorded, int64, error) {
	if err := s.enter(ctx); err != nil {
		return nil, after, err
	}
	defer s.mu.Unlock()
	if f.Entity != (events.Entity{}) {
		list, err := s.history(f.Entity)
		list = slices.DeleteFunc(list, func(r events.Recorded) bool { return r.Position <= after || !passes(f, r) })
		return list, after, err
	}
	var list []events.Recorded
	position := after
	for position < int64(len(s.log)) && position-after < page {
		first := position + 1
		for first > 1 && s.log[first-2].commit == s.log[position].commit {
			first-- // a cursor may stand within a commit
		}
		commit, err := s.decode(first, s.log[first-1].commit.Count)
		if err != nil {
			return list, position, err
		}
		for _, r := range commit {
			if r.Position > position && passes(f, r) {
				list = append(list, r)
			}
		}
		position = first + int64(len(commit)) - 1
	}
	return list, position, nil
}

func passes(f store.Filter, r events.Recorded) bool {
	return len(f.Types) == 0 || slices.Contains(f.Types, r.Event.Type())
}

// decode gives back the commit whose first event stands at a position, checked as every read is.
func (s *Store) decode(first int64, count int) ([]events.Recorded, error) {
	stored := make([]events.Stored, count)
	for i := range stored {
		stored[i] = s.log[first-1+int64(i)].stored
	}
	return events.DecodeCommit(*s.log[first-1].commit, stored)
}

// history is all events of one entity.
func (s *Store) history(entity events.Entity) ([]events.Recorded, error) {
	return s.decodeEach(s.streams[entity])
}

// decodeEach gives back events by their positions, each checked by itself.
func (s *Store) decodeEach(positions []int64) ([]events.Recorded, error) {
	list := make([]events.Recorded, 0, len(positions))
	for _, position := range positions {
		e := s.log[position-1]
		commit, err := e.commit.Header()
		if err != nil {
			return nil, err
		}
		r, err := e.stored.Decode(commit)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// Rows implements store.Store.
func (s *Store) Rows(ctx context.Context, f store.RowFilter) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		entities, err := s.entities(ctx, f)
		if err != nil {
			yield(store.Row{}, fmt.Errorf("memory: rows: %w", err))
			return
		}
		for chunk := range slices.Chunk(entities, page) {
			rows, err := s.rowsOf(ctx, chunk, f)
			if err != nil {
				yield(store.Row{}, fmt.Errorf("memory: rows: %w", err))
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// entities is who has a row that passes the filter now, in order.
func (s *Store) entities(ctx context.Context, f store.RowFilter) ([]events.Entity, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if len(f.Entities) > 0 {
		return slices.Compact(slices.SortedFunc(slices.Values(f.Entities), events.Entity.Compare)), nil
	}
	var list []events.Entity
	switch {
	case f.Select != store.All:
		list = s.selected(f)
	case f.Worker != (events.ID{}):
		for _, row := range take(s.running[events.WorkerEntity(f.Worker)], len(s.rows), nil) {
			list = append(list, row.Entity)
		}
	default:
		for entity, row := range s.rows {
			if wanted(f, row) {
				list = append(list, entity)
			}
		}
	}
	slices.SortFunc(list, events.Entity.Compare)
	return list, nil
}

func (s *Store) rowsOf(ctx context.Context, entities []events.Entity, f store.RowFilter) ([]store.Row, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var rows []store.Row
	for _, entity := range entities {
		row, ok := s.rows[entity]
		if !ok || !wanted(f, row) {
			continue
		}
		if f.Payloads {
			row = s.withPayload(row)
		}
		rows = append(rows, given(row))
	}
	return rows, nil
}

func wanted(f store.RowFilter, row store.Row) bool {
	return (f.Kind == events.KindNone || row.Entity.Kind == f.Kind) && (f.Topic == "" || row.Topic == f.Topic) &&
		(f.Worker == events.ID{} || row.Worker == f.Worker)
}
