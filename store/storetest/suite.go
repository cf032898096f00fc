// Package storetest is the contract of package store as a test suite that any engine can run. Each test is named for the sentence of
// the contract that it holds an engine to.
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return memory.New(memory.Options{}) })
//	}
//
// It drives the engine by the calls that Foundling itself makes, and where those cannot be bad enough by changes made by hand.
package storetest

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/store"
)

// Suite says what an engine offers. Open is all that it must have.
type Suite struct {
	// Open gives a new empty store, whose time is the machine's. The suite closes it; what else is to be cleaned up is registered with t.
	Open func(t *testing.T) store.Store
	// OpenAt is Open with the store's time read from a clock. Without it the tests that turn the clock are not among those that run.
	OpenAt func(t *testing.T, clock func() time.Time) store.Store
	// Again opens what a store keeps once more, as another process would, while it is open or after it was closed. Without it the tests
	// of several processes are not among those that run.
	Again func(t *testing.T, s store.Store) store.Store
	// Deaf says that hints of the store's Waiter may be lost, so that nothing can be asked of them.
	Deaf bool
}

// Run tests an engine of which no more is known than how to open a new empty store.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	Suite{Open: open}.Run(t)
}

// Run tests the engine: each sentence of the contract on a store of its own.
func (s Suite) Run(t *testing.T) {
	t.Helper()
	list := [][]sentence{commits(), commitIDs(), outcomes(), reads(), rows(), claiming(), counting(), views(), bounds(), locking(), permits(), waits(), lifetimes(), exactness()}
	if s.OpenAt != nil {
		list = append(list, times())
	}
	if s.Again != nil {
		list = append(list, neighbours())
	}
	probe := s.bed(t)
	if _, ok := store.As[store.Waiter](probe.s); ok && !s.Deaf {
		list = append(list, hints())
	}
	if _, ok := store.As[store.Heart](probe.s); ok {
		list = append(list, beats())
	}
	if _, ok := store.As[store.Leaser](probe.s); ok {
		list = append(list, leases())
		if s.Again != nil {
			list = append(list, sharedLeases())
		}
	}
	if _, ok := store.As[store.ProcessWatcher](probe.s); ok {
		list = append(list, proofs())
	}
	for _, group := range list {
		for _, it := range group {
			t.Run(it.says, func(t *testing.T) { it.test(s.bed(t)) })
		}
	}
}

// sentence is one sentence of the contract with its test.
type sentence struct {
	says string
	test func(*bed)
}
