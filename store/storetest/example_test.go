package storetest_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/foundling-go/foundling/store/storetest"
)

// The test of an engine of which no more is known than how to open a new store. It stands beside the engine, as TestContract.
func ExampleRun() {
	_ = func(t *testing.T) {
		storetest.Run(t, func(*testing.T) store.Store { return memory.New(memory.Options{}) })
	}
	// Output:
}

// An engine whose clock can be given is tested with a clock that is turned; one that shares what it keeps has an Again too. The same suite
// over store.Batch has callers share commits.
func ExampleSuite() {
	suite := func(wrap func(store.Store) store.Store) storetest.Suite {
		return storetest.Suite{
			Open: func(*testing.T) store.Store { return wrap(memory.New(memory.Options{})) },
			OpenAt: func(_ *testing.T, clock func() time.Time) store.Store {
				return wrap(memory.New(memory.Options{Clock: clock}))
			},
		}
	}
	_ = func(t *testing.T) {
		suite(func(s store.Store) store.Store { return s }).Run(t)
	}
	_ = func(t *testing.T) {
		suite(store.Batch).Run(t)
	}
	// Output:
}
