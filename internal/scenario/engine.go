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

// openPostgres makes a database of its own for the store, which goes with it.
func openPostgres(ctx context.Context, _ string, clock func() time.Time) (store.Store, error) {
	hash, err := pgtest.HashOf(postgres.Migrations, "migrations")
	if err != nil {
		return nil, err
	}
	template := pgtest.Template{
		Hash:    hash,
		Migrate: func(ctx context.Context, dsn string) error { return postgres.Migrate(ctx, dsn, postgres.Options{}) },
	}
	dsn, drop, err := template.New(ctx)
	if err != nil {
		return nil, err
	}
	s, err := postgres.Open(ctx, dsn, postgres.Options{Clock: clock})
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	return &dropped{Store: s, drop: drop}, nil
}

// dropped is a store whose database goes when it is closed.
type dropped struct {
	store.Store
	drop func() error
}

// Unwrap gives what the engine can do beside.
func (d *dropped) Unwrap() store.Store { return d.Store }

// Close closes the store, and drops its database once.
func (d *dropped) Close() error {
	drop := d.drop
	d.drop = func() error { return nil }
	return errors.Join(d.Store.Close(), drop())
}
