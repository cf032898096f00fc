package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// Rows implements store.Store.
func (s *Store) Rows(ctx context.Context, f store.RowFilter) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		entities, err := s.entities(ctx, f)
		if err != nil {
			yield(store.Row{}, fmt.Errorf("memory: rows: %w", err))
			return
		}
		given := 0
		for chunk := range slices.Chunk(entities, page) {
			rows, err := s.rowsOf(ctx, chunk, f)
			if err != nil {
				yield(store.Row{}, fmt.Errorf("memory: rows: %w", err))
				return
			}
			for _, row := range rows {
				if given++; !yield(row, nil) || given == f.Limit {
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
	list := s.candidates(f)
	order := ordered(f.Order)
	if f.After != (events.Entity{}) {
		list = slices.DeleteFunc(list, func(e events.Entity) bool { return order(e, f.After) <= 0 })
	}
	slices.SortFunc(list, order)
	return slices.Compact(list), nil
}

// candidates is whose rows may pass the filter, in no order. The list is the caller's.
func (s *Store) candidates(f store.RowFilter) (list []events.Entity) {
	switch {
	case len(f.Entities) > 0:
		list = slices.Clone(f.Entities)
	case f.Key != (store.Key{}):
		list = append(list, events.MessageEntity(s.keys.rows[f.Key].Message))
	case f.Select != store.All:
		list = s.selected(f)
	case f.Worker != (events.ID{}):
		for _, row := range take(s.running[events.WorkerEntity(f.Worker)], len(s.rows), nil) {
			list = append(list, row.Entity)
		}
	default:
		for entity, row := range s.rows {
			if s.wanted(f, row) {
				list = append(list, entity)
			}
		}
	}
	return list
}

// ordered compares entities in the order in which their rows come.
func ordered(o store.Order) func(a, b events.Entity) int {
	if o == store.Rising {
		return events.Entity.Compare
	}
	return func(a, b events.Entity) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), b.Compare(a)) }
}

func (s *Store) rowsOf(ctx context.Context, entities []events.Entity, f store.RowFilter) ([]store.Row, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var rows []store.Row
	for _, entity := range entities {
		row, ok := s.rows[entity]
		if !ok || !s.wanted(f, row) {
			continue
		}
		if f.Payloads {
			row = s.withPayload(row)
		}
		rows = append(rows, given(row))
	}
	return rows, nil
}

func (s *Store) wanted(f store.RowFilter, row store.Row) bool {
	return (f.Kind == events.KindNone || row.Entity.Kind == f.Kind) && (f.Topic == "" || row.Topic == f.Topic) &&
		(f.Worker == events.ID{} || row.Worker == f.Worker) && (f.Lock == "" || row.Lock == f.Lock) &&
		(len(f.States) == 0 || slices.Contains(f.States, row.State)) &&
		(f.Key == store.Key{} || row.Entity == events.MessageEntity(s.keys.rows[f.Key].Message))
}
