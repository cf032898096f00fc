// Package replay asks the log: what an entity's events lead to, and whether the log and the stored state are equal.
package replay

import (
	"context"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// Fold is the state that an entity's events lead to, every step of it checked. One that the log does not know is absent, which is no
// error. An event that cannot follow, or that this version does not know, is an *events.Corrupt.
func Fold(ctx context.Context, s store.Store, entity events.Entity) (fsm.Value, error) {
	v, err := fsm.NewValue(entity)
	if err != nil {
		return nil, fmt.Errorf("fold: %w", err)
	}
	for r, err := range s.Read(ctx, "", store.Filter{Entity: entity}) {
		if err == nil {
			v, err = fsm.Apply(v, r)
		}
		if err != nil {
			return nil, fmt.Errorf("fold of %s: %w", entity, err)
		}
	}
	return v, nil
}
