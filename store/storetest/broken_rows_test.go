package storetest_test

import (
	"context"
	"iter"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// rowEngines are broken in which rows they list, and in which order.
func rowEngines() []broken {
	const inPages = "pages of rows are all of them, each once, in both orders"
	return []broken{
		{"lists every state", "Rows filters by state and lock, beside everything else", rowFilters(func(f *store.RowFilter) { f.States = nil })},
		{"lists the first state", "Rows filters by state and lock, beside everything else", rowFilters(func(f *store.RowFilter) { f.States = f.States[:min(1, len(f.States))] })},
		{"lists every lock", "Rows filters by state and lock, beside everything else", rowFilters(func(f *store.RowFilter) { f.Lock = "" })},
		{"knows no keys", "Rows finds the message that has a key", rowFilters(func(f *store.RowFilter) { f.Key = store.Key{} })},
		{"finds keys in no topic", "Rows finds the message that has a key", rowFilters(func(f *store.RowFilter) {
			if f.Key.Topic == "print" {
				f.Key.Topic = "mail"
			}
		})},
		{"heeds nothing beside a key", "Rows finds the message that has a key", rowFilters(func(f *store.RowFilter) {
			if f.Key != (store.Key{}) {
				*f = store.RowFilter{Key: f.Key, Payloads: f.Payloads}
			}
		})},
		{"always rises", "Rows falls within each kind where it is told to", rowFilters(func(f *store.RowFilter) { f.Order = store.Rising })},
		{"falls over the kinds", "Rows falls within each kind where it is told to", func(s store.Store) store.Store { return falling{s} }},
		{"begins anew", "Rows goes on behind any row, whether it is there or not", rowFilters(func(f *store.RowFilter) { f.After = events.Entity{} })},
		{"goes on behind a row alone", "Rows goes on behind any row, whether it is there or not", func(s store.Store) store.Store { return needy{s} }},
		{"knows no limit", inPages, rowFilters(func(f *store.RowFilter) { f.Limit = 0 })},
		{"counts what it filters", inPages, func(s store.Store) store.Store { return hasty{s} }},
	}
}

// listed is a page of rows.
func listed(list []store.Row, limit int) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for i, row := range list {
			if !yield(row, nil) || i+1 == limit {
				return
			}
		}
	}
}

func collect(all iter.Seq2[store.Row, error]) ([]store.Row, error) {
	var list []store.Row
	for row, err := range all {
		if err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, nil
}

// falling is an engine that turns the whole list around.
type falling struct{ store.Store }

func (f falling) Rows(ctx context.Context, filter store.RowFilter) iter.Seq2[store.Row, error] {
	limit := filter.Limit
	if filter.Order == store.Rising || filter.After != (events.Entity{}) {
		return f.Store.Rows(ctx, filter)
	}
	filter.Order, filter.Limit = store.Rising, 0
	list, err := collect(f.Store.Rows(ctx, filter))
	if err != nil {
		return func(yield func(store.Row, error) bool) { yield(store.Row{}, err) }
	}
	slices.Reverse(list)
	return listed(list, limit)
}

// needy is an engine that must find the row behind which it goes on.
type needy struct{ store.Store }

func (n needy) Rows(ctx context.Context, filter store.RowFilter) iter.Seq2[store.Row, error] {
	if filter.After != (events.Entity{}) {
		list, err := collect(n.Store.Rows(ctx, store.RowFilter{Entities: []events.Entity{filter.After}}))
		if err == nil && len(list) == 0 {
			return listed(nil, 0)
		}
	}
	return n.Store.Rows(ctx, filter)
}

// hasty is an engine that takes a page of all rows, and then those of them that pass.
type hasty struct{ store.Store }

func (h hasty) Rows(ctx context.Context, filter store.RowFilter) iter.Seq2[store.Row, error] {
	states := filter.States
	filter.States = nil
	return func(yield func(store.Row, error) bool) {
		for row, err := range h.Store.Rows(ctx, filter) {
			if err == nil && len(states) > 0 && !slices.Contains(states, row.State) {
				continue
			}
			if !yield(row, err) {
				return
			}
		}
	}
}
