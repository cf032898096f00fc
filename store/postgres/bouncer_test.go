package postgres_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/foundling-go/foundling/store/storetest"
)

// The contract holds behind PgBouncer in transaction mode: nothing but hints from others and migrations belongs to a session.
func TestContractBehindPgBouncer(t *testing.T) {
	if os.Getenv("FOUNDLING_LONG") == "" {
		t.Skip("a long test: FOUNDLING_LONG=1 asks for it")
	}
	var bouncer *pgtest.Bouncer
	var mu sync.Mutex
	places := map[store.Store]string{}
	at := func(t *testing.T, direct string, clock func() time.Time) store.Store {
		t.Helper()
		s, err := postgres.Open(t.Context(), bouncer.DSN(direct), postgres.Options{Direct: direct, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		places[s] = direct
		return s
	}
	made := template(t)
	bouncer = pgtest.NewBouncer(t, made.Database(t), 3)
	storetest.Suite{
		Open: func(t *testing.T) store.Store { return at(t, made.Database(t), nil) },
		OpenAt: func(t *testing.T, clock func() time.Time) store.Store {
			return at(t, made.Database(t), clock)
		},
		Again: func(t *testing.T, s store.Store) store.Store {
			mu.Lock()
			place := places[s]
			mu.Unlock()
			return at(t, place, nil)
		},
		Light: true,
	}.Run(t)
}

// Transactions of many clients take turns on three connections to the server: nobody is given what belongs to another.
func TestCrowdBehindPgBouncer(t *testing.T) {
	c := newCrowd(t, 1, map[string]int{"narrow": 3, "wide": 0})
	bouncer := pgtest.NewBouncer(t, c.dsn, 3)
	c.stores = nil
	for range 2 {
		s, err := postgres.Open(t.Context(), bouncer.DSN(c.dsn), postgres.Options{Direct: c.dsn})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		c.stores = append(c.stores, s)
	}
	const batches, each = 5, 10
	for i := range batches {
		c.must(c.stores[i%2].Decide(c.ctx, c.enqueueing("narrow", "", each), c.enqueueing("wide", fmt.Sprint("lock", i%2), each)))
	}
	c.drain(6, 2*batches*each)
	c.checkClaims(c.log())
	c.quiet()
	c.verify()
}
