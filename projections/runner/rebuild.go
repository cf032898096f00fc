package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/store"
)

// ErrNoCheckpoint says that nothing is kept of a version of a projection.
var ErrNoCheckpoint = errors.New("nothing is kept of it")

// Rebuilt is a view that was folded again beside the one that is kept.
type Rebuilt struct {
	Stored View                // the newest that can be read
	Built  View                // at the same cursor
	Base   store.CheckpointKey // with which it began; zero is the beginning of the log
	Events int                 // that were folded
	last   int                 // the sequence of the newest checkpoint, readable or not
}

// Same reports whether both are the same, byte by byte.
func (r Rebuilt) Same() bool { return bytes.Equal(r.Stored.Bytes, r.Built.Bytes) }

// Rebuild folds the log again, up to the cursor of the newest checkpoint of the projection's version, beside what is kept; it saves nothing. Where the
// beginning of the log was let go, it begins with the oldest checkpoint of the version behind which all is there that the projection asks for: how
// much was folded is in the answer. ErrNoCheckpoint where nothing is kept.
func Rebuild(ctx context.Context, s store.Store, empty func() projections.Durable) (Rebuilt, error) {
	what := empty()
	rebuilt, err := rebuild(ctx, s, empty)
	if err != nil {
		return Rebuilt{}, fmt.Errorf("rebuild %s version %d: %w", what.Name(), what.Version(), err)
	}
	return rebuilt, nil
}

func rebuild(ctx context.Context, s store.Store, empty func() projections.Durable) (Rebuilt, error) {
	shelf, ok := store.As[store.Shelf](s)
	if !ok {
		return Rebuilt{}, ErrNoShelf
	}
	what := empty()
	own, ok, err := newest(ctx, shelf, what.Name(), what.Version())
	if err == nil && !ok {
		err = ErrNoCheckpoint
	}
	if err != nil {
		return Rebuilt{}, err
	}
	rebuilt, err := rebuildView(ctx, s, empty, own.View)
	rebuilt.last = own.last
	return rebuilt, err
}

func rebuildView(ctx context.Context, s store.Store, empty func() projections.Durable, stored View) (Rebuilt, error) {
	oldest, err := store.Oldest(ctx, s)
	if err != nil {
		return Rebuilt{}, err
	}
	if oldest == "" {
		rebuilt, err := refold(ctx, begin(s, empty(), ""), stored)
		if !errors.Is(err, store.ErrPruned) {
			return rebuilt, err
		}
	}
	shelf, _ := store.As[store.Shelf](s)
	list, err := listed(ctx, shelf, store.CheckpointFilter{Name: stored.Name, Version: stored.Version})
	if err != nil {
		return Rebuilt{}, err
	}
	for _, c := range list {
		if c.Sequence > stored.Sequence {
			break
		}
		v, ok, err := load(ctx, shelf, c.CheckpointKey)
		if errors.As(err, new(*events.Corrupt)) || err == nil && !ok {
			continue
		}
		if err != nil {
			return Rebuilt{}, err
		}
		base, err := restore(s, empty(), v)
		if err != nil {
			return Rebuilt{}, err
		}
		rebuilt, err := refold(ctx, base, stored)
		if rebuilt.Base = c.CheckpointKey; err == nil || !errors.Is(err, store.ErrPruned) {
			return rebuilt, err
		}
	}
	return Rebuilt{}, fmt.Errorf("its checkpoints went while it was built: %w", store.ErrMoved)
}

// refold folds up to where a view stands. It is an ErrPruned where the log has lost something that the projection asks for.
func refold(ctx context.Context, f *fold, stored View) (Rebuilt, error) {
	n, err := f.take(ctx, 0, stored.Cursor)
	if err == nil && f.lost > 0 {
		err = fmt.Errorf("the beginning of %d messages: %w", f.lost, store.ErrPruned)
	}
	if err == nil && f.cursor != stored.Cursor {
		err = fmt.Errorf("the log ends before cursor %q: %w", string(stored.Cursor), store.ErrAhead)
	}
	if err != nil {
		return Rebuilt{}, err
	}
	view, err := f.view()
	if err != nil {
		return Rebuilt{}, err
	}
	built := stored
	built.AsOf, built.Since, built.Passed, built.Bytes, built.Halt = f.head.asOf, f.head.since, f.passed, view, Halt{}
	return Rebuilt{Stored: stored, Built: built, Events: n}, nil
}

// Adopt saves a view that was rebuilt in the place of the one that is kept, as the next checkpoint: for one that is not what the log leads to.
// ErrMoved is that another one was saved meanwhile: it is to be built again.
func Adopt(ctx context.Context, s store.Store, r Rebuilt) error {
	shelf, ok := store.As[store.Shelf](s)
	if !ok {
		return fmt.Errorf("adopt: %w", ErrNoShelf)
	}
	next := store.Checkpoint{CheckpointKey: r.Stored.CheckpointKey, Cursor: r.Built.Cursor}
	next.Sequence = max(next.Sequence, r.last) + 1
	h := r.Built.head()
	h.halt = Halt{}
	next.View = h.seal(r.Built.Bytes)
	if _, err := shelf.Save(ctx, next); err != nil {
		return fmt.Errorf("adopt %s version %d: %w", next.Name, next.Version, err)
	}
	return nil
}
