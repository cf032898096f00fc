package main

import (
	"context"
	"iter"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// logOf is every event that passes the filter, from the oldest that the store still has.
func logOf(ctx context.Context, s store.Store, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		first, err := store.Oldest(ctx, s)
		if err != nil {
			yield(events.Recorded{}, err)
			return
		}
		s.Read(ctx, first, f)(yield)
	}
}
