package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/foundling-go/foundling/store/storetest"
)

// suite is the contract on stores that lose nothing with their process: what a power cut does is not among the tests.
func suite(wrap func(store.Store) store.Store) storetest.Suite {
	paths := map[store.Store]string{}
	at := func(t *testing.T, path string, o sqlite.Options) store.Store {
		o.Synchronous = sqlite.SynchronousNormal
		s, err := sqlite.Open(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		wrapped := wrap(s)
		paths[wrapped] = path
		return wrapped
	}
	return storetest.Suite{
		Open: func(t *testing.T) store.Store { return at(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{}) },
		OpenAt: func(t *testing.T, clock func() time.Time) store.Store {
			return at(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{Clock: clock})
		},
		Again: func(t *testing.T, s store.Store) store.Store { return at(t, paths[s], sqlite.Options{}) },
	}
}

func TestContract(t *testing.T) {
	suite(func(s store.Store) store.Store { return s }).Run(t)
}

func TestContractInBatches(t *testing.T) {
	s := suite(store.Batch)
	s.Light = true
	s.Run(t)
}
