package faulty

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// power is a store with one optional power. It unwraps to the one with the next.
type power struct {
	*Store
	behind store.Store
}

// Unwrap is the next link of the chain.
func (p power) Unwrap() store.Store { return p.behind }

// link makes a power of each that the store behind the faults has; the last unwraps to that store. So [store.As] finds the powers that
// there are, with faults, and passes one that this package does not know as it is.
func (s *Store) link() store.Store {
	next := s.inner
	if inner, ok := store.As[store.Waiter](s.inner); ok {
		next = waiter{power{s, next}, inner}
	}
	if inner, ok := store.As[store.ProcessWatcher](s.inner); ok {
		next = processWatcher{power{s, next}, inner}
	}
	if inner, ok := store.As[store.Heart](s.inner); ok {
		next = heart{power{s, next}, inner}
	}
	if inner, ok := store.As[store.Leaser](s.inner); ok {
		next = leaser{power{s, next}, inner}
	}
	if inner, ok := store.As[store.Pruner](s.inner); ok {
		next = pruner{power{s, next}, inner}
	}
	if inner, ok := store.As[store.Shelf](s.inner); ok {
		next = shelf{power{s, next}, inner}
	}
	return next
}

type waiter struct {
	power
	inner store.Waiter
}

// Watch implements store.Waiter. Each hint passes the plan on its way.
func (w waiter) Watch(topics []string) (<-chan struct{}, func()) {
	from, stopInner := w.inner.Watch(topics)
	to, quit, ended := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-from:
				w.pass(to)
			case <-quit:
				return
			}
		}
	}()
	return to, sync.OnceFunc(func() {
		stopInner()
		close(quit)
		<-ended
	})
}

// pass is one hint.
func (w waiter) pass(to chan<- struct{}) {
	// LoseHint is all that befalls a hint: when one comes is a matter of timing, and a stop must not be.
	if w.plan(w.count(Hint)) == LoseHint || w.Stopped() {
		return
	}
	select {
	case to <- struct{}{}:
	default: // the one before was not taken yet
	}
}

type processWatcher struct {
	power
	inner store.ProcessWatcher
}

// proof is an attestation that this process holds.
type proof struct{ release func() error }

// Attest implements store.ProcessWatcher.
func (w processWatcher) Attest(ctx context.Context, worker events.ID) (func() error, error) {
	p, err := do(w.Store, Attest, func() (*proof, error) {
		release, err := w.inner.Attest(ctx, worker)
		if err != nil {
			return nil, err
		}
		return w.keep(release)
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		if !w.drop(p) {
			return nil // a stop has let go of it
		}
		return p.release()
	}, nil
}

// keep holds a proof for as long as its process lives.
func (s *Store) keep(release func() error) (*proof, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, errors.Join(stopped(Attest), release())
	}
	p := &proof{release}
	s.proofs[p] = struct{}{}
	return p, nil
}

// drop takes a proof out of those held, unless it is not among them any more.
func (s *Store) drop(p *proof) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, held := s.proofs[p]
	delete(s.proofs, p)
	return held
}

// Gone implements store.ProcessWatcher.
func (w processWatcher) Gone(ctx context.Context, workers ...events.ID) ([]events.ID, error) {
	return do(w.Store, Gone, func() ([]events.ID, error) { return w.inner.Gone(ctx, workers...) })
}

type heart struct {
	power
	inner store.Heart
}

// Beat implements store.Heart.
func (h heart) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	return do(h.Store, Beat, func() (time.Time, error) { return h.inner.Beat(ctx, b) })
}

// Beats implements store.Heart.
func (h heart) Beats(ctx context.Context) ([]store.Beat, error) {
	return do(h.Store, Beats, func() ([]store.Beat, error) { return h.inner.Beats(ctx) })
}

// Still implements store.Heart.
func (h heart) Still(ctx context.Context, worker events.ID) error {
	_, err := do(h.Store, Still, func() (struct{}, error) { return struct{}{}, h.inner.Still(ctx, worker) })
	return err
}

type leaser struct {
	power
	inner store.Leaser
}

// Lease implements store.Leaser.
func (l leaser) Lease(ctx context.Context, name string, turn func(store.Lease, time.Time) store.Lease) (store.Lease, error) {
	return face(l.Store, Lease, func(fault Fault) (store.Lease, error) {
		if fault != Twice {
			return l.inner.Lease(ctx, name, turn)
		}
		return l.inner.Lease(ctx, name, func(lease store.Lease, now time.Time) store.Lease {
			turn(store.Lease{}, now) // thrown away, as the contract says
			return turn(lease, now)
		})
	})
}

type pruner struct {
	power
	inner store.Pruner
}

// First implements store.Pruner.
func (p pruner) First(ctx context.Context) (store.Cursor, error) {
	return do(p.Store, FirstKept, func() (store.Cursor, error) { return p.inner.First(ctx) })
}

type shelf struct {
	power
	inner store.Shelf
}

// Save implements store.Shelf.
func (s shelf) Save(ctx context.Context, c store.Checkpoint) (store.Checkpoint, error) {
	return do(s.Store, Save, func() (store.Checkpoint, error) { return s.inner.Save(ctx, c) })
}

// Checkpoints implements store.Shelf.
func (s shelf) Checkpoints(ctx context.Context, f store.CheckpointFilter) ([]store.Checkpoint, error) {
	return do(s.Store, Checkpoints, func() ([]store.Checkpoint, error) { return s.inner.Checkpoints(ctx, f) })
}

// View implements store.Shelf.
func (s shelf) View(ctx context.Context, k store.CheckpointKey) (store.Checkpoint, error) {
	return do(s.Store, View, func() (store.Checkpoint, error) { return s.inner.View(ctx, k) })
}

// Drop implements store.Shelf.
func (s shelf) Drop(ctx context.Context, keys ...store.CheckpointKey) error {
	_, err := do(s.Store, Drop, func() (struct{}, error) { return struct{}{}, s.inner.Drop(ctx, keys...) })
	return err
}
