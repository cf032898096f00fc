package reaper_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// torn is a store in which some rows and permits cannot be read: commits see bytes that mean nothing, and a walk over rows or permits meets an
// error in their places and goes on behind it.
type torn struct {
	store.Store
	rows  map[events.Entity]bool
	locks map[string]bool // whose permits cannot be read
}

func (s *torn) Unwrap() store.Store { return s.Store }

func (s *torn) Rows(ctx context.Context, f store.RowFilter) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for row, err := range s.Store.Rows(ctx, f) {
			if s.rows[row.Entity] {
				row, err = store.Row{}, &events.Corrupt{Entity: row.Entity, Version: row.Version, Detail: "its row"}
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

func (s *torn) Permits(ctx context.Context, f store.PermitFilter) iter.Seq2[store.Permit, error] {
	return func(yield func(store.Permit, error) bool) {
		for p, err := range s.Store.Permits(ctx, f) {
			if s.locks[p.Lock] {
				p, err = store.Permit{}, &events.Corrupt{Entity: events.LockEntity(p.Lock), Detail: "one of its permits"}
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

func (s *torn) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	list = slices.Clone(list)
	for i, call := range list {
		list[i].Fn = func(view store.View) (store.Changes, error) {
			view.Rows, view.Claims = maps.Clone(view.Rows), maps.Clone(view.Claims)
			for entity, row := range view.Rows {
				view.Rows[entity] = s.seen(row)
			}
			for worker, rows := range view.Claims {
				view.Claims[worker] = slices.Clone(rows)
				for j, row := range rows {
					view.Claims[worker][j] = s.seen(row)
				}
			}
			return call.Fn(view)
		}
	}
	return s.Store.Decide(ctx, list...)
}

func (s *torn) seen(row store.Row) store.Row {
	if s.rows[row.Entity] {
		row.Fields = []byte(`{"state":`)
	}
	return row
}

// tear makes rows of the stage's store unreadable.
func (s *stage) tear(entities ...events.Entity) *torn {
	t := &torn{Store: s.store.Store, rows: map[events.Entity]bool{}, locks: map[string]bool{}}
	for _, e := range entities {
		t.rows[e] = true
	}
	s.store.Store = t
	return t
}

// acquire takes a lock for a worker, without a message.
func (s *stage) acquire(lock string, worker events.ID, ttl time.Duration) {
	s.do(func(o calls.Origin) store.Call {
		call, _ := calls.Acquire(o, fsm.Acquire{Lock: lock, Worker: worker, TTL: ttl})
		return call
	})
}

func TestADamagedClaimKeepsNothingElseOfADeadWorkerFromComingBack(t *testing.T) {
	for _, name := range []string{"a claim", "the oldest claim", "a lock"} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 5, 5)
			s.acquire("car", s.holder, 0)
			s.acquire("boat", s.holder, 0)
			requeued, released := 4, 2
			switch name {
			case "a claim":
				s.tear(events.MessageEntity(s.held[2]))
			case "the oldest claim":
				s.tear(events.MessageEntity(s.held[0]))
			case "a lock":
				s.tear(events.LockEntity("car"))
				requeued, released = 5, 1
			}
			s.store.dead = []events.ID{s.holder}
			plan := s.sweepBy(events.ID{})
			if planned, err := plan.Plan(t.Context()); planned.Requeued != requeued || planned.LocksReleased != released {
				t.Errorf("plan: %v, %d requeued, %d locks released, want %d and %d", err, planned.Requeued, planned.LocksReleased, requeued, released)
			}
			report, err := s.sweep()
			if report.Requeued != requeued || report.LocksReleased != released {
				t.Errorf("sweep: %v, %d requeued, %d locks released, want %d and %d", err, report.Requeued, report.LocksReleased, requeued, released)
			}
			var corrupt *events.Corrupt
			if !errors.As(err, &corrupt) || report.Skipped == 0 {
				t.Errorf("sweep: %v, %d skipped, want it to name what it cannot read", err, report.Skipped)
			}
			again, err := s.sweep()
			if again.Requeued+again.LocksReleased > 0 || !errors.As(err, &corrupt) {
				t.Errorf("once more: %v, %+v", err, again)
			}
		})
	}
}

func TestADamagedPermitKeepsNoOtherLockFromExpiring(t *testing.T) {
	s := newStage(t, 2, 2)
	for _, lock := range []string{"boat", "car", "train"} {
		s.acquire(lock, s.holder, 20*time.Second)
	}
	s.pass(20*time.Second, s.sweeper)
	b := s.beatBy(s.sweeper)
	b.Store = &torn{Store: b.Store, locks: map[string]bool{"boat": true}}
	got, err := b.Step(t.Context(), s.own)
	var corrupt *events.Corrupt
	if !errors.As(err, &corrupt) || corrupt.Entity != events.LockEntity("boat") {
		t.Errorf("%v, want it to name the lock that cannot be read", err)
	}
	if got.Expired != 2 {
		t.Errorf("%d permits expired, want the two that can be read", got.Expired)
	}
}

// A sweep goes by what it can read also where it looks whether a lost worker holds anything.
func TestALostWorkerWithADamagedClaimAloneEndsTheSweep(t *testing.T) {
	s := newStage(t, 1, 1)
	s.tear(events.MessageEntity(s.held[0]))
	s.store.dead = []events.ID{s.holder}
	for range 3 {
		report, _ := s.sweep()
		if report.Requeued != 0 || report.Pages > 1 {
			t.Fatalf("%+v, want it to leave what it cannot read", report)
		}
	}
	if n := s.count(events.TypeWorkerLost); n != 1 {
		t.Errorf("worker.lost stands %d times in the log, want once", n)
	}
}
