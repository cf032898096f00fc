package reaper

import (
	"context"
	"errors"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// upkeep does what is due besides sweeps.
func (b *Beat) upkeep(ctx context.Context, step *Step) error {
	now, err := b.Store.Now(ctx)
	if err != nil {
		return err
	}
	return errors.Join(b.expire(ctx, now, step), b.repair(ctx, step), b.purge(ctx, now, step), b.purgeBeats(ctx, now))
}

// expire ends the permits whose time is over.
func (b *Beat) expire(ctx context.Context, now time.Time, step *Step) error {
	var errs error
	last := ""
	for p, err := range b.Store.Permits(ctx, store.PermitFilter{ExpiredAt: now}) {
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		if p.Lock == last { // permits come by lock, and one command ends all of a lock
			continue
		}
		last = p.Lock
		errs = errors.Join(errs, b.expireLock(ctx, p.Lock, step))
	}
	return errs
}

func (b *Beat) expireLock(ctx context.Context, lock string, step *Step) error {
	for {
		receipt, err := b.Decide(ctx, func(o calls.Origin) store.Call {
			return calls.ExpireLocks(o, fsm.ExpireLocks{Lock: lock})
		})
		if err != nil || len(receipt.Events) == 0 {
			return err
		}
		step.Expired += count(receipt, events.TypeLockExpired)
	}
}

// repair looks for waiters whom nobody told that their lock is free. There should be none: each is a fault, and recorded as one. Locks whose
// permits are all out cost a look at a row and no commit.
func (b *Beat) repair(ctx context.Context, step *Step) error {
	var errs error
	looked := map[string]bool{} // a lock comes once for each topic that waits for it
	for row, err := range b.Store.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Select: store.FirstWaits}) {
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		if looked[row.Lock] {
			continue
		}
		looked[row.Lock] = true
		free, err := b.free(ctx, row.Lock)
		if err != nil || !free {
			errs = errors.Join(errs, err)
			continue
		}
		receipt, err := b.Decide(ctx, func(o calls.Origin) store.Call {
			return calls.RepairLock(o, fsm.RepairLock{Lock: row.Lock})
		})
		errs = errors.Join(errs, err)
		step.Repaired += count(receipt, events.TypeMessageUnblocked)
	}
	return errs
}

// free reports whether a lock has a free permit. One without a row has.
func (b *Beat) free(ctx context.Context, lock string) (bool, error) {
	v, kept, err := calls.Kept(ctx, b.Store, events.LockEntity(lock))
	if err != nil || !kept {
		return err == nil, err
	}
	l, ok := v.(*fsm.Lock)
	return ok && l.Free() > 0, nil
}

// purge forgets workers that were lost long ago and hold nothing.
func (b *Beat) purge(ctx context.Context, now time.Time, step *Step) error {
	var errs error
	for row, err := range b.Store.Rows(ctx, store.RowFilter{Kind: events.KindWorker}) {
		if err != nil || row.State != events.Lost {
			continue // the sweep reports what cannot be read
		}
		v, err := calls.Value(row)
		w, ok := v.(*fsm.Worker)
		if err != nil || !ok || now.Sub(w.LostAt) < b.WorkerTTL {
			continue
		}
		receipt, err := b.Decide(ctx, func(o calls.Origin) store.Call {
			return calls.OperateWorker(o, fsm.OperateWorker{Worker: w.ID, Command: fsm.PurgeWorker{TTL: b.WorkerTTL}})
		})
		if err == nil && count(receipt, events.TypeWorkerPurged) > 0 {
			step.Purged++
			err = b.still(ctx, w.ID)
		}
		errs = errors.Join(errs, err)
	}
	return errs
}

// purgeBeats takes the heartbeat rows that no worker's row tells of: of one that stopped and could not take its own, or never came up.
func (b *Beat) purgeBeats(ctx context.Context, now time.Time) error {
	heart, ok := store.As[store.Heart](b.Store)
	if !ok {
		return nil
	}
	beats, err := heart.Beats(ctx)
	var old []events.Entity
	for _, beat := range beats {
		if now.Sub(beat.At) >= b.WorkerTTL {
			old = append(old, events.WorkerEntity(beat.Worker))
		}
	}
	if err != nil || len(old) == 0 {
		return nil // the sweep reports what cannot be read
	}
	known := map[events.Entity]bool{}
	for row, err := range b.Store.Rows(ctx, store.RowFilter{Entities: old}) {
		if err != nil && row.Entity == (events.Entity{}) {
			return err
		}
		known[row.Entity] = true // also one that cannot be read
	}
	var errs error
	for _, entity := range old {
		if !known[entity] {
			errs = errors.Join(errs, heart.Still(ctx, entity.ID))
		}
	}
	return errs
}

// still takes the heartbeat row of a worker that is forgotten: should it ever beat again, it starts under a new id.
func (b *Beat) still(ctx context.Context, worker events.ID) error {
	heart, ok := store.As[store.Heart](b.Store)
	if !ok {
		return nil
	}
	return heart.Still(ctx, worker)
}

func count(r store.Receipt, t events.Type) int {
	n := 0
	for _, e := range r.Events {
		if e.Event.Type() == t {
			n++
		}
	}
	return n
}
