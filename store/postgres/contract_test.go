package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/foundling-go/foundling/store/storetest"
)

// template is a database in which the schema has been made, and no store was opened.
func template(t *testing.T) pgtest.Template {
	t.Helper()
	hash, err := pgtest.HashOf(postgres.Migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	return pgtest.Template{
		Hash:    hash,
		Migrate: func(ctx context.Context, dsn string) error { return postgres.Migrate(ctx, dsn, postgres.Options{}) },
	}
}

// suite is the contract on databases that are lent from one test to the next.
func suite(wrap func(store.Store) store.Store) storetest.Suite {
	var mu sync.Mutex
	places := map[store.Store]string{}
	at := func(t *testing.T, dsn string, o postgres.Options) store.Store {
		t.Helper()
		s, err := postgres.Open(t.Context(), dsn, o)
		if err != nil {
			t.Fatal(err)
		}
		wrapped := wrap(s)
		mu.Lock()
		places[wrapped] = dsn
		mu.Unlock()
		return wrapped
	}
	return storetest.Suite{
		Open: func(t *testing.T) store.Store {
			return at(t, template(t).Borrowed(t), postgres.Options{})
		},
		OpenAt: func(t *testing.T, clock func() time.Time) store.Store {
			return at(t, template(t).Borrowed(t), postgres.Options{Clock: clock})
		},
		Again: func(t *testing.T, s store.Store) store.Store {
			mu.Lock()
			place := places[s]
			mu.Unlock()
			return at(t, place, postgres.Options{})
		},
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
