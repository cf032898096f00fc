package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// messageIn is a message as it is, also one that has ended.
func messageIn(view store.View, entity events.Entity) (fsm.Message, error) {
	if row, ok := view.Rows[entity]; ok {
		return calls.Message(row)
	}
	value, err := calls.Rest(entity, view.History[entity], view.PrunedAt)
	if err != nil {
		return fsm.Message{}, err
	}
	m, ok := value.(*fsm.Message)
	if !ok {
		return fsm.Message{}, fmt.Errorf("%s: want a message", entity)
	}
	return *m, nil
}

// peeked is what was read for many commands.
type peeked store.View

// of is what one of them must see.
func (p peeked) of(need store.Need) store.View {
	v := store.View{
		Now: p.Now, PrunedAt: p.PrunedAt, Rows: map[events.Entity]store.Row{}, History: map[events.Entity][]events.Recorded{}, Beats: map[events.ID]store.Beat{},
	}
	for _, entity := range held(need) {
		if row, kept := p.Rows[entity]; kept {
			v.Rows[entity] = row
		} else if history, known := p.History[entity]; known {
			v.History[entity] = history
		}
	}
	for _, permit := range p.Permits {
		if slices.Contains(need.Permits, permit.PermitKey) {
			v.Permits = append(v.Permits, permit)
		}
	}
	for _, worker := range need.Beats {
		if beat, ok := p.Beats[worker]; ok {
			v.Beats[worker] = beat
		}
	}
	return v
}

// held is the entities of a need.
func held(need store.Need) []events.Entity {
	entities := slices.Clone(need.Held)
	for _, lock := range need.Locks {
		entities = append(entities, events.LockEntity(lock))
	}
	return entities
}

// peek reads what commands must see, without holding any of it. What only a commit can see is left out: whether a key is taken, and which
// waiters a lock's permit would be offered to.
func peek(ctx context.Context, s store.Store, need store.Need) (peeked, error) {
	v := store.View{
		Rows: map[events.Entity]store.Row{}, History: map[events.Entity][]events.Recorded{}, Beats: map[events.ID]store.Beat{},
	}
	entities := held(need)
	for row, err := range s.Rows(ctx, store.RowFilter{Entities: entities}) {
		if err != nil {
			return peeked(v), err
		}
		v.Rows[row.Entity] = row
	}
	for _, entity := range entities {
		_, kept := v.Rows[entity]
		if _, read := v.History[entity]; kept || read {
			continue
		}
		for r, err := range logOf(ctx, s, store.Filter{Entity: entity}) {
			if err != nil {
				return peeked(v), err
			}
			v.History[entity] = append(v.History[entity], r)
		}
	}
	if err := peekPermits(ctx, s, need.Permits, &v); err != nil {
		return peeked(v), err
	}
	if heart, ok := store.As[store.Heart](s); ok && len(need.Beats) > 0 {
		beats, err := heart.Beats(ctx)
		if err != nil {
			return peeked(v), err
		}
		for _, b := range beats {
			v.Beats[b.Worker] = b
		}
	}
	var err error
	if v.PrunedAt, err = prunedAt(ctx, s); err != nil {
		return peeked(v), err
	}
	v.Now, err = s.Now(ctx)
	return peeked(v), err
}

// prunedAt is when the newest commit was decided that was pruned; zero while none was. Of what ended behind it the beginning may be gone.
func prunedAt(ctx context.Context, s store.Store) (at time.Time, err error) {
	oldest, err := store.Oldest(ctx, s)
	if err != nil || oldest == "" {
		return at, err
	}
	for r, err := range logOf(ctx, s, store.Filter{Entity: events.LogEntity()}) {
		if err != nil {
			return at, err
		}
		if pruned, ok := r.Event.(*events.LogPruned); ok && pruned.UntilAt.After(at) {
			at = pruned.UntilAt
		}
	}
	return at, nil
}

func peekPermits(ctx context.Context, s store.Store, keys []store.PermitKey, v *store.View) error {
	read := map[string]bool{} // locks
	for _, key := range keys {
		if read[key.Lock] {
			continue
		}
		read[key.Lock] = true
		for p, err := range s.Permits(ctx, store.PermitFilter{Lock: key.Lock}) {
			if err != nil {
				return err
			}
			if slices.Contains(keys, p.PermitKey) {
				v.Permits = append(v.Permits, p)
			}
		}
	}
	return nil
}
