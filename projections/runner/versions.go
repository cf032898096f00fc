package runner

import (
	"context"
	"fmt"

	"github.com/foundling-go/foundling/store"
)

// Kept is what is kept of a version of a projection.
type Kept struct {
	View        View // the newest that can be read, without its bytes; where none can, no more than what is listed of the newest
	Checkpoints int  // its history
	Spoilt      int  // newer checkpoints that are not what was saved: they are passed over
}

// Versions tells what is kept of every version of every projection, by name, then version. ErrNoShelf where the store keeps nothing of the kind.
func Versions(ctx context.Context, s store.Store) ([]Kept, error) {
	shelf, ok := store.As[store.Shelf](s)
	if !ok {
		return nil, ErrNoShelf
	}
	all, err := listed(ctx, shelf, store.CheckpointFilter{})
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	var list []Kept
	for i, c := range all { // by name, then version
		if i == 0 || c.Name != all[i-1].Name || c.Version != all[i-1].Version {
			own, ok, err := newest(ctx, shelf, c.Name, c.Version)
			if err != nil {
				return nil, fmt.Errorf("checkpoints: %w", err)
			}
			if !ok && own.last == 0 {
				continue // it went meanwhile
			}
			if !ok {
				own.View = View{CheckpointKey: c.CheckpointKey, Cursor: c.Cursor, SavedAt: c.At}
			}
			own.Bytes = nil
			list = append(list, Kept{View: own.View, Spoilt: len(own.spoilt)})
		}
		if n := len(list); n > 0 && list[n-1].View.Name == c.Name && list[n-1].View.Version == c.Version {
			list[n-1].Checkpoints++
		}
	}
	return list, nil
}

// Forget drops every checkpoint of a projection, of all its versions, and says how many there were: for one that nobody runs any more, which would
// hold back pruning for ever (see store.Prunable). One that runs begins again with the oldest event that is kept. ErrNoShelf where the store keeps
// nothing of the kind.
func Forget(ctx context.Context, s store.Store, name string) (int, error) {
	shelf, ok := store.As[store.Shelf](s)
	if !ok {
		return 0, ErrNoShelf
	}
	all, err := listed(ctx, shelf, store.CheckpointFilter{Name: name})
	if err != nil {
		return 0, fmt.Errorf("checkpoints: %w", err)
	}
	keys := make([]store.CheckpointKey, len(all))
	for i, c := range all {
		keys[i] = c.CheckpointKey
	}
	if err := shelf.Drop(ctx, keys...); err != nil {
		return 0, fmt.Errorf("checkpoints of %s: %w", name, err)
	}
	return len(keys), nil
}
