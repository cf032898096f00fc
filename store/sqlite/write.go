package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// trust is what a commit believes of entities that a call makes without having named them in its Need.
type trust uint8

const (
	// trusting believes that they are new, which saves a look-up for every message that is enqueued under a fresh id.
	trusting trust = iota
	// doubting looks them up.
	doubting
)

// Decide implements store.Store.
func (s *Store) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	receipts, err := s.decide(ctx, calls, trusting)
	if isTaken(err) {
		// Some call made what exists already. All are run again, and the one at fault is refused by itself.
		receipts, err = s.decide(ctx, calls, doubting)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlite: decide: %w", err)
	}
	return receipts, nil
}

func (s *Store) decide(ctx context.Context, calls []store.Call, t trust) ([]store.Receipt, error) {
	receipts := make([]store.Receipt, len(calls))
	out := outside{store: s.id, now: s.now, beats: func(workers []events.ID) (map[events.ID]store.Beat, error) { return s.beatsOf(ctx, workers) }}
	var o *overlay
	err := s.transact(ctx, func(w *writer) error {
		var err error
		if o, err = newOverlay(w, t, out); err != nil {
			return err
		}
		if err := o.prefetch(calls); err != nil {
			return err
		}
		for i := range calls {
			if receipts[i], err = o.decide(&calls[i]); err != nil {
				return err
			}
		}
		if err := o.flush(); err != nil {
			return err
		}
		return w.dropSome(s.now(), len(o.ids))
	})
	if err != nil {
		return nil, err
	}
	s.hints.hint(o.woken)
	s.proofs.forget(o.ended)
	if o.shrinks {
		s.shrink(ctx)
	}
	return receipts, nil
}

// Outcome implements store.Store.
func (s *Store) Outcome(ctx context.Context, id store.CommitID) (store.Receipt, bool, error) {
	receipt, committed := store.Receipt{ID: id}, false
	err := s.transact(ctx, func(w *writer) error {
		first, used, err := w.commitID(id)
		if err != nil {
			return err
		}
		if used && first > 0 {
			committed = true
			receipt, err = w.receiptOf(id, first)
			return err
		}
		if used {
			return nil
		}
		dropped, err := w.dropped()
		if err == nil {
			err = checkID(id, s.now(), dropped)
		}
		if err != nil {
			return err
		}
		return w.exec("INSERT INTO used_ids (id, first) VALUES (?, 0)", id[:])
	})
	if err != nil {
		return store.Receipt{ID: id}, false, fmt.Errorf("sqlite: outcome: %w", err)
	}
	return receipt, committed, nil
}

// transact runs body in the writers' turn as one transaction. Once that has begun no context cancels it.
func (s *Store) transact(ctx context.Context, body func(*writer) error) (err error) {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	if err := s.turn.take(ctx); err != nil {
		return classed(err)
	}
	defer s.turn.give()
	if err := s.file.check(); err != nil {
		return err
	}
	if err := s.patiently(ctx, func() error { return s.writer.exec("BEGIN IMMEDIATE") }); err != nil {
		return classed(err)
	}
	open := true
	defer func() {
		if open {
			err = errors.Join(err, s.writer.rollback())
		}
	}()
	if err := s.schema.check(s.writer.query); err != nil {
		return classed(err)
	}
	if err := body(s.writer); err != nil {
		return classed(err)
	}
	if err := s.patiently(ctx, func() error { return s.writer.exec("COMMIT") }); err != nil {
		return commitError(err)
	}
	open = false
	return nil
}

// patiently tries something again, however often somebody outside of our turns is in the way (a shell, a process that recovers the file
// after a crash), until ctx ends or the store closes. Each try waits a while in SQLite.
func (s *Store) patiently(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !isBusy(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-s.closing:
			return errors.Join(store.ErrClosed, err)
		default:
		}
	}
}

// rollback takes back what is not committed. Where that fails (SQLite has rolled back by itself, or cannot), the connection goes, and
// with it every trace of the transaction.
func (w *writer) rollback() error {
	if err := w.exec("ROLLBACK"); err != nil {
		return w.drop()
	}
	return nil
}
