package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/store"
)

// ErrBuilding says that a version of a projection has not come to the end of the log yet, so that nobody is to see it.
var ErrBuilding = errors.New("it is still being built")

// Lag is how far something is behind the log.
type Lag struct {
	Events int           // that it has still to take
	More   bool          // there are more than that: it stopped counting
	For    time.Duration // how old the first of them is, by the store's clock; 0 where there is none
}

// LagOf is how far a cursor is behind the log, counted up to most events.
func LagOf(ctx context.Context, s store.Store, cursor store.Cursor, most int) (Lag, error) {
	var oldest time.Time
	at := place{store: s, cursor: cursor}
	n, err := at.each(ctx, most+1, "", func(r events.Recorded) error {
		if oldest.IsZero() {
			oldest = r.At()
		}
		return nil
	})
	if err != nil {
		return Lag{}, fmt.Errorf("lag: %w", err)
	}
	lag := Lag{Events: min(n, most), More: n > most}
	if oldest.IsZero() {
		return lag, nil
	}
	now, err := s.Now(ctx)
	if err != nil {
		return Lag{}, fmt.Errorf("lag: %w", err)
	}
	lag.For = max(0, now.Sub(oldest))
	return lag, nil
}

// Reading is a projection as it stands at the end of the log, for whoever shows it.
type Reading struct {
	What   projections.Durable
	AsOf   projections.Mark // the last event that it has taken
	Since  projections.Mark // the first event that it has taken, where older ones had been let go; zero where it counts from the beginning
	Passed Passed           // what it has not taken since it could not be read
	More   bool             // more events have come than it was to take: it is behind
}

// Read gives a projection as it stands at the end of the log: what its newest checkpoint holds, and up to most events that have come since. It saves
// nothing. It is ErrBuilding while the version is not current. Where it was never run, it takes the first events that are kept.
func Read(ctx context.Context, s store.Store, empty func() projections.Durable, most int) (Reading, error) {
	what := empty()
	f, err := reading(ctx, s, what)
	if err != nil {
		return Reading{}, fmt.Errorf("read %s version %d: %w", what.Name(), what.Version(), err)
	}
	n, err := f.take(ctx, most+1, "")
	if err != nil {
		return Reading{}, fmt.Errorf("read %s version %d: %w", what.Name(), what.Version(), err)
	}
	return Reading{What: what, AsOf: f.head.asOf, Since: f.head.since, Passed: f.passed, More: n > most}, nil
}

func reading(ctx context.Context, s store.Store, what projections.Durable) (*fold, error) {
	shelf, ok := store.As[store.Shelf](s)
	if !ok {
		return nil, ErrNoShelf
	}
	own, ok, err := newest(ctx, shelf, what.Name(), what.Version())
	switch {
	case err != nil:
		return nil, err
	case ok && !own.Current:
		return nil, ErrBuilding
	case ok:
		return restore(s, what, own.View)
	}
	oldest, err := store.Oldest(ctx, s)
	return begin(s, what, oldest), err
}
