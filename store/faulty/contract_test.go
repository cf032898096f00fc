package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/faulty"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/foundling-go/foundling/store/storetest"
)

// contract is the suite for the memory store behind faults, as wrap puts them there.
func contract(wrap func(store.Store) store.Store) storetest.Suite {
	return storetest.Suite{
		Light: true,
		Open:  func(*testing.T) store.Store { return wrap(memory.New(memory.Options{})) },
		OpenAt: func(_ *testing.T, clock func() time.Time) store.Store {
			return wrap(memory.New(memory.Options{Clock: clock}))
		},
	}
}

// What a caller cannot notice is no fault to the contract.
func TestContractWithBenignFaults(t *testing.T) {
	pause := func(c faulty.Call) {
		for range c.N % 4 {
			runtime.Gosched()
		}
	}
	suite := contract(func(s store.Store) store.Store {
		plan := faulty.Any(faulty.Every(2, faulty.Twice), faulty.Only(faulty.Hint, faulty.Every(2, faulty.LoseHint)))
		return faulty.New(s, faulty.Delayed(pause, plan))
	})
	suite.Deaf = true
	suite.Run(t)
}

// Lost answers are no fault to the contract of a caller who asks again under the same id.
func TestContractWithLostAnswers(t *testing.T) {
	for _, fault := range []faulty.Fault{faulty.LostBefore, faulty.LostAfter, faulty.Late} {
		t.Run(fault.String(), func(t *testing.T) {
			contract(func(s store.Store) store.Store { return settling{faulty.New(s, commits(faulty.Every(2, fault)))} }).Run(t)
		})
	}
	t.Run("mixed, in batches", func(t *testing.T) {
		seed := uint64(0)
		contract(func(s store.Store) store.Store {
			seed++
			return settling{store.Batch(faulty.New(s, commits(faulty.Random(seed, faulty.Rates{
				faulty.LostBefore: .15, faulty.LostAfter: .15, faulty.Late: .1, faulty.Twice: .2,
			}))))}
		}).Run(t)
	})
}

// commits is a plan for the calls that commit and those that settle them.
func commits(plan faulty.Plan) faulty.Plan {
	return faulty.Any(faulty.Only(faulty.Decide, plan), faulty.Only(faulty.Outcome, plan))
}

// settling is a store whose callers never see an answer lost: it asks again until there is one.
type settling struct{ store.Store }

// attempts bounds how often it asks.
const attempts = 100

func (s settling) Unwrap() store.Store { return s.Store }

func (s settling) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	receipts, err := s.Store.Decide(ctx, calls...)
	if !errors.Is(err, store.ErrUnknown) {
		return receipts, err
	}
	for range attempts {
		receipts, err = s.Store.Decide(ctx, calls...)
		if !errors.Is(err, store.ErrUnknown) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	for i := range receipts {
		if err := s.settle(ctx, &receipts[i]); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

// settle checks that Outcome says the same as the receipt that came at last, and gives it the rows that only the lost one had.
func (s settling) settle(ctx context.Context, r *store.Receipt) error {
	if r.Err != nil || len(r.Events) == 0 {
		return nil
	}
	settled, committed, err := outcome(ctx, s.Store, r.ID)
	if err != nil || !committed || len(settled.Events) != len(r.Events) {
		return fmt.Errorf("outcome of %s: committed %t with %d events, want %d: %w", r.ID, committed, len(settled.Events), len(r.Events), err)
	}
	rows := map[events.Entity]store.Row{}
	for row, err := range s.Rows(ctx, store.RowFilter{Entities: entities(r.Events), Payloads: true}) {
		if err != nil {
			return err
		}
		rows[row.Entity] = row
	}
	r.Rows = nil
	for _, e := range entities(r.Events) {
		if row, ok := rows[e]; ok {
			r.Rows = append(r.Rows, row)
		}
	}
	return nil
}

func (s settling) Outcome(ctx context.Context, id store.CommitID) (store.Receipt, bool, error) {
	return outcome(ctx, s.Store, id)
}

// outcome asks until the answer is none that the plan made up.
func outcome(ctx context.Context, s store.Store, id store.CommitID) (receipt store.Receipt, committed bool, err error) {
	for range attempts {
		if receipt, committed, err = s.Outcome(ctx, id); !errors.Is(err, faulty.ErrPlanned) {
			break
		}
	}
	return receipt, committed, err
}

// entities is whose events they are, each once.
func entities(list []events.Recorded) []events.Entity {
	var all []events.Entity
	seen := map[events.Entity]bool{}
	for _, r := range list {
		if !seen[r.Entity] {
			all = append(all, r.Entity)
		}
		seen[r.Entity] = true
	}
	return all
}
