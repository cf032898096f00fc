package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// begin makes the projection what its newest checkpoint says, or what it is before the first event that it can have.
func (f *follower) begin(ctx context.Context) error {
	f.fold, f.phase, f.fresh = nil, Waiting, 0
	own, known, err := newest(ctx, f.shelf, f.name, f.version)
	if err != nil {
		return err
	}
	f.saved, f.halt = own.last, own.Halt
	f.spoilt, f.seen = own.spoilt, max(f.seen, len(own.spoilt))
	f.kept = own.head()
	if known {
		now, err := f.store.Now(ctx)
		if err != nil {
			return err
		}
		f.since = time.Now().Add(-max(0, now.Sub(own.SavedAt)))
		switch err := reachable(ctx, f.store, own.Cursor); {
		case err == nil:
			return f.resume(own.View)
		case !errors.Is(err, store.ErrPruned):
			return err
		}
	}
	fold, err := f.base(ctx)
	if err == nil {
		f.fold, f.phase = fold, Building
	}
	return err
}

// resume goes on from a checkpoint of the projection's own version.
func (f *follower) resume(own View) error {
	fold, err := restore(f.store, f.empty(), own)
	if err != nil {
		return err
	}
	f.fold, f.phase = fold, Building
	if fold.head.current = own.Current; own.Current {
		f.phase = Following
	}
	return nil
}

// base is the projection before the first event that it can have: the log's first one, or behind the oldest checkpoint of an older version that
// it takes, or the oldest event that is kept.
func (f *follower) base(ctx context.Context) (*fold, error) {
	oldest, err := store.Oldest(ctx, f.store)
	if err != nil || oldest == "" {
		return begin(f.store, f.empty(), ""), err
	}
	list, err := listed(ctx, f.shelf, store.CheckpointFilter{Name: f.name})
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(c store.Checkpoint) bool { return c.Version >= f.version })
	slices.SortStableFunc(list, func(a, b store.Checkpoint) int { return a.At.Compare(b.At) })
	for _, c := range list {
		err := reachable(ctx, f.store, c.Cursor)
		if errors.Is(err, store.ErrPruned) || errors.Is(err, store.ErrAhead) || errors.Is(err, store.ErrCursor) {
			continue
		}
		if err != nil {
			return nil, err
		}
		v, ok, err := load(ctx, f.shelf, c.CheckpointKey)
		if errors.As(err, new(*events.Corrupt)) || err == nil && !ok {
			continue
		}
		if err != nil {
			return nil, err
		}
		if fold, err := restore(f.store, f.empty(), v); err == nil {
			return fold, nil
		}
	}
	return begin(f.store, f.empty(), oldest), nil
}

// reachable reports by its error whether the log goes on behind a cursor. What is damaged there is passed over by who reads it.
func reachable(ctx context.Context, s store.Store, cursor store.Cursor) error {
	for _, err := range s.Read(ctx, cursor, store.Filter{Limit: 1}) {
		if errors.As(err, new(*events.Corrupt)) {
			return nil
		}
		return err
	}
	return nil
}
