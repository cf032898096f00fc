package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/foundling-go/foundling/store"
)

// shelf is where the checkpoints of one projection's version lie.
type shelf struct {
	name    string
	version int
}

func shelfOf(k store.CheckpointKey) shelf { return shelf{k.Name, k.Version} }

// Save implements store.Shelf.
func (s *Store) Save(ctx context.Context, c store.Checkpoint) (store.Checkpoint, error) {
	if err := s.enter(ctx); err != nil {
		return store.Checkpoint{}, fmt.Errorf("memory: save: %w", err)
	}
	defer s.mu.Unlock()
	if err := c.Check(); err != nil {
		return store.Checkpoint{}, fmt.Errorf("memory: save: %w", err)
	}
	at, newest := shelfOf(c.CheckpointKey), 0
	if list := s.shelf[at]; len(list) > 0 {
		newest = list[len(list)-1].Sequence
	}
	if c.Sequence != newest+1 {
		return store.Checkpoint{}, fmt.Errorf("memory: save %s version %d: sequence %d, the newest is %d: %w", c.Name, c.Version, c.Sequence, newest, store.ErrMoved)
	}
	c.At = s.now()
	kept := c
	kept.View = bytes.Clone(c.View)
	s.shelf[at] = append(s.shelf[at], kept)
	return c, nil
}

// Checkpoints implements store.Shelf.
func (s *Store) Checkpoints(ctx context.Context, f store.CheckpointFilter) ([]store.Checkpoint, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("memory: checkpoints: %w", err)
	}
	defer s.mu.Unlock()
	var all []store.Checkpoint
	for at, list := range s.shelf {
		if f.Name != "" && at.name != f.Name || f.Version != 0 && at.version != f.Version {
			continue
		}
		if f.Newest {
			list = list[len(list)-1:]
		}
		for _, c := range list {
			c.View = nil
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b store.Checkpoint) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Sequence, b.Sequence))
	})
	return all, nil
}

// View implements store.Shelf.
func (s *Store) View(ctx context.Context, k store.CheckpointKey) (store.Checkpoint, error) {
	if err := s.enter(ctx); err != nil {
		return store.Checkpoint{}, fmt.Errorf("memory: view: %w", err)
	}
	defer s.mu.Unlock()
	for _, c := range s.shelf[shelfOf(k)] {
		if c.CheckpointKey == k {
			c.View = bytes.Clone(c.View)
			return c, nil
		}
	}
	return store.Checkpoint{}, fmt.Errorf("memory: view of checkpoint %d of %s version %d: %w", k.Sequence, k.Name, k.Version, store.ErrMoved)
}

// Drop implements store.Shelf.
func (s *Store) Drop(ctx context.Context, keys ...store.CheckpointKey) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("memory: drop: %w", err)
	}
	defer s.mu.Unlock()
	for _, k := range keys {
		at := shelfOf(k)
		s.shelf[at] = slices.DeleteFunc(s.shelf[at], func(c store.Checkpoint) bool { return c.CheckpointKey == k })
		if len(s.shelf[at]) == 0 {
			delete(s.shelf, at)
		}
	}
	return nil
}
