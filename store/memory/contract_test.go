package memory_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/foundling-go/foundling/store/storetest"
)

func open(*testing.T) store.Store { return memory.New(memory.Options{}) }

func openAt(_ *testing.T, clock func() time.Time) store.Store {
	return memory.New(memory.Options{Clock: clock})
}

func TestContract(t *testing.T) {
	storetest.Suite{Open: open, OpenAt: openAt}.Run(t)
}

func TestContractInBatches(t *testing.T) {
	storetest.Suite{
		Light:  true,
		Open:   func(t *testing.T) store.Store { return store.Batch(open(t)) },
		OpenAt: func(t *testing.T, clock func() time.Time) store.Store { return store.Batch(openAt(t, clock)) },
	}.Run(t)
}
