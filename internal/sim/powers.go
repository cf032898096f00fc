package sim

import (
	"context"
	"errors"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// The powers of the engine, as a process sees them.

// errMute is the error of a heartbeat that does not come through, although the store is there.
var errMute = errors.New("heartbeats do not come through")

// Watch implements store.Waiter.
func (p *port) Watch(topics []string) (<-chan struct{}, func()) {
	waiter, ok := store.As[store.Waiter](p.behind)
	if !ok {
		return nil, func() {}
	}
	return waiter.Watch(topics)
}

// Beat implements store.Heart.
func (p *port) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	heart, _ := store.As[store.Heart](p.behind) // the engine has all powers
	if p.isMute() {
		p.rest()
		return time.Time{}, errMute
	}
	return hop(ctx, p, func(ctx context.Context) (time.Time, error) { return heart.Beat(ctx, b) })
}

// Beats implements store.Heart.
func (p *port) Beats(ctx context.Context) ([]store.Beat, error) {
	heart, _ := store.As[store.Heart](p.behind)
	return hop(ctx, p, heart.Beats)
}

// Still implements store.Heart.
func (p *port) Still(ctx context.Context, worker events.ID) error {
	heart, _ := store.As[store.Heart](p.behind)
	_, err := hop(ctx, p, func(ctx context.Context) (struct{}, error) { return struct{}{}, heart.Still(ctx, worker) })
	return err
}

// Lease implements store.Leaser.
func (p *port) Lease(ctx context.Context, name string, turn func(store.Lease, time.Time) store.Lease) (store.Lease, error) {
	leaser, _ := store.As[store.Leaser](p.behind)
	return hop(ctx, p, func(ctx context.Context) (store.Lease, error) { return leaser.Lease(ctx, name, turn) })
}

// First implements store.Pruner.
func (p *port) First(ctx context.Context) (store.Cursor, error) {
	pruner, _ := store.As[store.Pruner](p.behind)
	return hop(ctx, p, pruner.First)
}

// Save implements store.Shelf.
func (p *port) Save(ctx context.Context, c store.Checkpoint) (store.Checkpoint, error) {
	shelf, _ := store.As[store.Shelf](p.behind)
	return hop(ctx, p, func(ctx context.Context) (store.Checkpoint, error) { return shelf.Save(ctx, c) })
}

// Checkpoints implements store.Shelf.
func (p *port) Checkpoints(ctx context.Context, f store.CheckpointFilter) ([]store.Checkpoint, error) {
	shelf, _ := store.As[store.Shelf](p.behind)
	return hop(ctx, p, func(ctx context.Context) ([]store.Checkpoint, error) { return shelf.Checkpoints(ctx, f) })
}

// View implements store.Shelf.
func (p *port) View(ctx context.Context, k store.CheckpointKey) (store.Checkpoint, error) {
	shelf, _ := store.As[store.Shelf](p.behind)
	return hop(ctx, p, func(ctx context.Context) (store.Checkpoint, error) { return shelf.View(ctx, k) })
}

// Drop implements store.Shelf.
func (p *port) Drop(ctx context.Context, keys ...store.CheckpointKey) error {
	shelf, _ := store.As[store.Shelf](p.behind)
	_, err := hop(ctx, p, func(ctx context.Context) (struct{}, error) { return struct{}{}, shelf.Drop(ctx, keys...) })
	return err
}

// provingPort is the store of a process on a machine whose kernel proves deaths.
type provingPort struct{ *port }

// Attest implements store.ProcessWatcher. It is between the process and its kernel: no outage keeps it from that.
func (p provingPort) Attest(_ context.Context, worker events.ID) (func() error, error) {
	if err := p.stand(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return nil, errDead
	}
	p.sim.kernel.attest(worker)
	p.proofs = append(p.proofs, worker)
	return func() error {
		p.sim.kernel.release(worker)
		return nil
	}, nil
}

// Gone implements store.ProcessWatcher.
func (p provingPort) Gone(_ context.Context, workers ...events.ID) ([]events.ID, error) {
	if err := p.stand(); err != nil {
		return nil, err
	}
	return p.sim.kernel.gone(workers), nil
}

// store is the port with the powers that there are.
func (p *port) store() store.Store {
	if p.sim.kernel != nil {
		return provingPort{p}
	}
	return p
}
