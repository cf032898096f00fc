package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file gives the receipts of earlier commits.

// prunedReceipt is that of an earlier commit whose events have gone: that it was committed is all that is known.
func prunedReceipt(id store.CommitID) store.Receipt {
	return store.Receipt{ID: id, Err: fmt.Errorf("commit %s was kept, and its events are not any more: %w", id, store.ErrPruned)}
}

const (
	decisionsOf = "SELECT " + decisionColumns + " FROM @decisions WHERE number = ANY($1::bigint[])"
	eventsOf    = "SELECT " + "e.position, e.stream, e.version, e.type, e.schema, e.from_state, e.to_state, e.body, e.checksum" +
		" FROM unnest($1::bigint[]) AS u (n) CROSS JOIN LATERAL (SELECT " + eventColumns +
		" FROM @events WHERE position >= (u.n << 14) AND position < ((u.n + 1) << 14)) e ORDER BY e.position"
	// Events by position are found by an index that only such scans can use.
	bitmapOn  = "SELECT set_config('enable_bitmapscan', 'on', true)"
	bitmapOff = "SELECT set_config('enable_bitmapscan', 'off', true)"
)

// whole is transactions as they are kept.
type whole struct {
	decisions map[int64]decision
	events    map[int64][]events.Stored
	wrong     map[int64]error // the first of a transaction's events that is not what was written
}

// readWhole reads transactions by their numbers.
func readWhole(p *pipeline, numbers []int64) *whole {
	w := &whole{map[int64]decision{}, map[int64][]events.Stored{}, map[int64]error{}}
	d := newRecord(decisionColumns)
	p.query(d, func() error {
		found := d.decision(0)
		w.decisions[found.number] = found
		return nil
	}, decisionsOf, numbers)
	p.exec(bitmapOn)
	e := newRecord(eventColumns)
	p.query(e, func() error {
		stored, err := e.event()
		n := numberOf(stored.Position)
		if err != nil && w.wrong[n] == nil {
			w.wrong[n] = err
		}
		w.events[n] = append(w.events[n], stored)
		return nil
	}, eventsOf, numbers)
	p.exec(bitmapOff)
	return w
}

// receipt is that of one of the commits. What is not what was written is told by its Err.
func (w *whole) receipt(id store.CommitID, used usedID, gone pruned) store.Receipt {
	receipt := store.Receipt{ID: id}
	lost := func(detail string) store.Receipt {
		corrupt := &events.Corrupt{Position: firstOf(used.number), Detail: detail}
		if list := w.events[used.number]; len(list) > 0 {
			corrupt.Entity, corrupt.Version = list[0].Entity, list[0].Version
		}
		receipt.Err = corrupt
		return receipt
	}
	d, ok := w.decisions[used.number]
	if numberOf(gone.through) > used.number || !ok && numberOf(gone.through) == used.number {
		return prunedReceipt(id)
	}
	if !ok || d.wrong != nil || used.ordinal >= len(d.commits) || d.commits[used.ordinal].ID != id {
		return lost(fmt.Sprintf("its commit %s is missing or changed", id))
	}
	c := &d.commits[used.ordinal]
	if c.first <= gone.through {
		return prunedReceipt(id)
	}
	if err := w.wrong[used.number]; err != nil {
		receipt.Err = err
		return receipt
	}
	var list []events.Stored
	for _, e := range w.events[used.number] {
		if e.Position >= c.first && e.Position < c.next() {
			list = append(list, e)
		}
	}
	receipt.Events, receipt.Err = events.DecodeCommit(c.StoredCommit, list)
	return receipt
}

// readRepeated reads the receipts of ids that were used before.
func (a *attempt) readRepeated(ctx context.Context) error {
	var numbers []int64
	for _, used := range a.used {
		if used.number > 0 {
			numbers = append(numbers, used.number)
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	slices.Sort(numbers)
	p := a.s.pipeline()
	w := readWhole(p, slices.Compact(numbers)) // several may have been kept together
	if err := p.run(ctx, a.conn.Conn()); err != nil {
		return err
	}
	a.repeated = map[store.CommitID]store.Receipt{}
	for id, used := range a.used {
		if used.number > 0 {
			a.repeated[id] = w.receipt(id, used, a.pruned)
		}
	}
	return nil
}

const (
	giveUp      = "INSERT INTO @used_ids (id, number, ordinal) VALUES ($1, 0, 0) ON CONFLICT (id) DO NOTHING RETURNING id"
	usedIDQuery = "SELECT number, ordinal FROM @used_ids WHERE id = $1"
	touchUsed   = "UPDATE @used_ids SET ordinal = ordinal WHERE id = $1"
)

// sure ends a transaction that found an id used, by a commit of its own. The server shows what it has written down itself, also where the standbys that
// were to have it first do not: whoever waited for them was called off or killed. It tells that commit only once they have all that was before it.
func (a *attempt) sure(ctx context.Context, id store.CommitID) error {
	p := a.s.pipeline()
	p.exec(touchUsed, id)
	p.exec("COMMIT")
	return a.s.finish(ctx, a.conn, p)
}

// Outcome implements store.Store.
func (s *Store) Outcome(ctx context.Context, id store.CommitID) (store.Receipt, bool, error) {
	none := store.Receipt{ID: id}
	if err := s.enter(ctx); err != nil {
		return none, false, fmt.Errorf("postgres: outcome: %w", err)
	}
	defer s.calls.Done()
	wait := leastWait
	for {
		receipt, committed, err := s.outcome(ctx, id)
		if code(err) == codeLocked || code(err) == codeDeadlock { // the commit is still under way
			if err := s.rest(ctx, wait); err != nil {
				return none, false, fmt.Errorf("postgres: outcome: %w", err)
			}
			wait = min(2*wait, mostWait)
			continue
		}
		if err != nil {
			return none, false, fmt.Errorf("postgres: outcome: %w", s.classed(err))
		}
		return receipt, committed, nil
	}
}

// outcome makes an id unusable where it is unused, which waits for a commit that is under way.
func (s *Store) outcome(ctx context.Context, id store.CommitID) (receipt store.Receipt, committed bool, err error) {
	receipt = store.Receipt{ID: id}
	a := newAttempt(s, &plan{})
	defer a.close()
	if a.conn, err = s.pool.Acquire(ctx); err != nil {
		return receipt, false, err
	}
	var used usedID
	made := false
	p := s.pipeline()
	p.begin(beginWrite)
	r := newRecord("id")
	p.query(r, func() error { made = true; return nil }, giveUp, id)
	u := newRecord("number, ordinal")
	p.query(u, func() error { used = u.used(0); return u.err }, usedIDQuery, id)
	state := newRecord("value, through, at, checksum")
	p.query(state, func() error { return a.readState(state) }, stateQuery)
	s.askTime(p, &a.now)
	if err := p.run(ctx, a.conn.Conn()); err != nil {
		return receipt, false, err
	}
	switch {
	case used.number > 0:
		p := s.pipeline()
		w := readWhole(p, []int64{used.number})
		if err := p.run(ctx, a.conn.Conn()); err != nil {
			return receipt, false, err
		}
		receipt := w.receipt(id, used, a.pruned)
		if err := corruptOf(receipt.Err); err != nil {
			return receipt, true, err
		}
		if err := a.sure(ctx, id); err != nil {
			return store.Receipt{ID: id}, false, err
		}
		return receipt, true, nil
	case !made:
		return receipt, false, a.sure(ctx, id)
	}
	if err := checkID(id, a.now, a.dropped); err != nil {
		return receipt, false, err
	}
	p = s.pipeline()
	p.exec("COMMIT")
	return receipt, false, s.finish(ctx, a.conn, p)
}

// corruptOf is an error of stored bytes, which is the store's where nobody asked for anything to be decided.
func corruptOf(err error) error {
	var corrupt *events.Corrupt
	if errors.As(err, &corrupt) {
		return err
	}
	return nil
}
