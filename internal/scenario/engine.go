package scenario

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
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
	all := []Engine{{"memory", openMemory}, {"sqlite", openSQLite}}
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
