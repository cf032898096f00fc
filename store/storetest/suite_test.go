package storetest_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/faulty"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/foundling-go/foundling/store/storetest"
)

// Every sentence of the suite is run here, those of several processes included: they share one memory.
func TestSuite(t *testing.T) {
	storetest.Suite{
		Open: func(*testing.T) store.Store { return newProcess(memory.New(memory.Options{})) },
		OpenAt: func(_ *testing.T, clock func() time.Time) store.Store {
			return newProcess(memory.New(memory.Options{Clock: clock}))
		},
		Again: func(_ *testing.T, s store.Store) store.Store { return newProcess(s.(process).memory) },
	}.Run(t)
}

// process is a store that others use too: closing it leaves what it keeps to them.
type process struct {
	store.Store
	memory *memory.Store
	closed *atomic.Bool
}

func newProcess(m *memory.Store) process {
	closed := new(atomic.Bool)
	return process{memory: m, closed: closed, Store: faulty.New(m, func(faulty.Call) faulty.Fault {
		if closed.Load() {
			return faulty.StopBefore
		}
		return faulty.None
	})}
}

func (p process) Unwrap() store.Store { return p.Store }

func (p process) Close() error {
	p.closed.Store(true)
	return nil
}
