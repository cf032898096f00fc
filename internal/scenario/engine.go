package scenario

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/foundling-go/foundling/store/sqlite"
)

// Engine makes stores to tell stories to.
type Engine struct {
	Name string
	// Open makes a new store, in the empty folder dir where it needs files, whose time is the clock's.
	Open func(ctx context.Context, dir string, clock func() time.Time) (store.Store, error)
}

// Engines lists the engines that FOUNDLING_ENGINES names, all where it is not set. Memory comes first.
func Engines() []Engine {
	all := []Engine{{"memory", openMemory}, {"sqlite", openSQLite}, {"postgres", openPostgres}}
	chosen := os.Getenv("FOUNDLING_ENGINES")
	if chosen == "" {
		return all
	}
	return slices.DeleteFunc(all, func(e Engine) bool { return !slices.Contains(strings.Split(chosen, ","), e.Name) })
}

func openMemory(_ context.Context, _ string, clock func() time.Time) (store.Store, error) {
	return memory.New(memory.Options{Clock: clock}), nil
}

// openSQLite leaves it to the operating system when a commit reaches the disk: a story has no power cuts.
func openSQLite(ctx context.Context, dir string, clock func() time.Time) (store.Store, error) {
	return sqlite.Open(ctx, filepath.Join(dir, "store.db"), sqlite.Options{Clock: clock, Synchronous: sqlite.SynchronousNormal})
}

// openPostgres borrows a database for the store alone, which is given back with it.
func openPostgres(ctx context.Context, _ string, clock func() time.Time) (store.Store, error) {
	hash, err := pgtest.HashOf(postgres.Migrations, "migrations")
	if err != nil {
		return nil, err
	}
	template := pgtest.Template{
		Hash:    hash,
		Migrate: func(ctx context.Context, dsn string) error { return postgres.Migrate(ctx, dsn, postgres.Options{}) },
	}
	dsn, giveBack, err := template.Borrow(ctx)
	if err != nil {
		return nil, err
	}
	s, err := postgres.Open(ctx, dsn, postgres.Options{Clock: clock})
	if err != nil {
		return nil, errors.Join(err, giveBack())
	}
	return &borrowed{Store: s, giveBack: giveBack}, nil
}

// borrowed is a store whose database is given back when it is closed.
type borrowed struct {
	store.Store
	giveBack func() error
}

// Unwrap gives what the engine can do beside.
func (b *borrowed) Unwrap() store.Store { return b.Store }

// Close closes the store, and gives back its database once.
func (b *borrowed) Close() error {
	giveBack := b.giveBack
	b.giveBack = func() error { return nil }
	return errors.Join(b.Store.Close(), giveBack())
}
