package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// Beat implements store.Heart.
func (s *Store) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, fmt.Errorf("memory: beat: %w", err)
	}
	defer s.mu.Unlock()
	if _, ok := s.beats[b.Worker]; !ok && !b.First {
		return time.Time{}, fmt.Errorf("memory: beat of %s: %w", b.Worker, store.ErrNotBeating)
	}
	b.At = s.now()
	s.beats[b.Worker] = b
	return b.At, nil
}

// Beats implements store.Heart.
func (s *Store) Beats(ctx context.Context) ([]store.Beat, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("memory: beats: %w", err)
	}
	defer s.mu.Unlock()
	list := make([]store.Beat, 0, len(s.beats))
	for _, b := range s.beats {
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b store.Beat) int { return cmp.Compare(string(a.Worker[:]), string(b.Worker[:])) })
	return list, nil
}

// Still implements store.Heart.
func (s *Store) Still(ctx context.Context, worker events.ID) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("memory: still: %w", err)
	}
	defer s.mu.Unlock()
	delete(s.beats, worker)
	return nil
}

// Lease implements store.Leaser.
func (s *Store) Lease(ctx context.Context, name string, turn func(store.Lease, time.Time) store.Lease) (store.Lease, error) {
	if err := s.enter(ctx); err != nil {
		return store.Lease{}, fmt.Errorf("memory: lease %q: %w", name, err)
	}
	defer s.mu.Unlock()
	lease := turn(s.leases[name], s.now())
	s.leases[name] = lease
	return lease, nil
}

type watcher struct{ hints chan struct{} }

// Watch implements store.Waiter. Every commit is a hint, whatever its topics.
func (s *Store) Watch([]string) (<-chan struct{}, func()) {
	w := &watcher{hints: make(chan struct{}, 1)}
	s.mu.Lock()
	s.watchers[w] = struct{}{}
	s.mu.Unlock()
	return w.hints, func() {
		s.mu.Lock()
		delete(s.watchers, w)
		s.mu.Unlock()
	}
}

// hint wakes who watches. The mutex is held.
func (s *Store) hint() {
	for w := range s.watchers {
		select {
		case w.hints <- struct{}{}:
		default:
		}
	}
}
