package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// Fold is the state that an entity's events lead to, every step of it checked. One that the log does not know is absent, which is no
// error. An event that cannot follow, or that this version does not know, is an *events.Corrupt.
//
// Where the beginning of the log was let go, an entity begins where it tells its state once more; of one that does so no more, since it has ended or
// rests, what its newest event says is all that is known.
func Fold(ctx context.Context, s store.Store, entity events.Entity) (fsm.Value, error) {
	if _, err := fsm.NewValue(entity); err != nil {
		return nil, fmt.Errorf("fold: %w", err)
	}
	for try := 1; ; try++ {
		v, err := fold(ctx, s, entity)
		if errors.Is(err, store.ErrPruned) && try < attempts {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("fold of %s: %w", entity, err)
		}
		return v, nil
	}
}

func fold(ctx context.Context, s store.Store, entity events.Entity) (fsm.Value, error) {
	first, err := store.Oldest(ctx, s)
	if err != nil {
		return nil, err
	}
	v, err := fsm.NewValue(entity)
	if err != nil {
		return nil, err
	}
	rests := false // it tells nothing, since it rested when its beginning went: it begins where it is free
	if first != "" && entity.Kind == events.KindLock {
		rests = true
		for _, err := range s.Read(ctx, first, store.Filter{Entity: entity, Types: []events.Type{events.TypeLockSnapshotted}, Limit: 1}) {
			if rests = false; err != nil {
				return nil, err
			}
		}
	}
	var headless *events.Recorded // the newest event of what has not told its state
	for r, err := range s.Read(ctx, first, store.Filter{Entity: entity}) {
		if err != nil {
			return nil, err
		}
		version, _ := v.At()
		switch {
		case version > 0 || first == "" || !r.Event.Type().Moves() || r.Version == 1 || r.Event.Type().Snapshots():
			if v, err = fsm.Apply(v, r); err != nil {
				return nil, err
			}
		case rests && r.To == events.Free:
			lock := fsm.RestingLock(entity.Name, r)
			v = &lock
		default:
			headless = &r
		}
	}
	if version, _ := v.At(); version == 0 && headless != nil {
		return fsm.Rest(*headless)
	}
	return v, nil
}
