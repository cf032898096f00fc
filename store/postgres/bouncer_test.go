package postgres_test

import (
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
