package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// unnoticed are settings for databases of tests that no crash of the server is part of.
var unnoticed = []string{"fsync = off", "full_page_writes = off"}

// sharedHost is the server the databases of this process are on, found or started when first asked for.
var sharedHost = sync.OnceValues(func() (*host, error) {
	hideSettings()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	for _, name := range []string{"FOUNDLING_POSTGRES", "DATABASE_URL"} {
		if dsn := os.Getenv(name); dsn != "" {
			h, err := newHost(ctx, dsn)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			h.keeps = true
			return h, nil
		}
	}
	c, err := newCluster(unnoticed)
	if errors.Is(err, errNoBinaries) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	h, err := newHost(ctx, c.admin())
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	h.cluster, h.keeps = c, true // the watchdog removes it after us
	return h, nil
})

// hideSettings takes from this process what would be added to every DSN (PGHOST, PGOPTIONS, PGSSLMODE and the like).
func hideSettings() {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "PG") {
			os.Unsetenv(name)
		}
	}
}

// shared is sharedHost for a test, which is skipped where postgres is not asked for and fails where there is none.
func shared(t testing.TB) *host {
	t.Helper()
	wanted(t)
	h, err := sharedHost()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return h
}

// LeftOut begins what a test says that is skipped since the run has no Postgres for it. What follows is its reason.
const LeftOut = "left out: "

// Wanted tells whether tests are asked to use Postgres: FOUNDLING_ENGINES names it or is not set.
func Wanted() bool {
	engines := os.Getenv("FOUNDLING_ENGINES")
	return engines == "" || slices.Contains(strings.Split(engines, ","), "postgres")
}

func wanted(t testing.TB) {
	t.Helper()
	if !Wanted() {
		t.Skip(LeftOut + "postgres is not among FOUNDLING_ENGINES")
	}
}

// FindBinaries is an error where this machine cannot start a server.
func FindBinaries() error {
	_, err := findBinaries()
	return err
}

// Run is the server of a whole run of tests.
type Run struct {
	DSN     string // of a role that may make databases
	Version string // as in "15.18"
	// Binaries is an error where this machine has no binaries, so that no test can start a server of its own.
	Binaries error

	cluster *cluster
}

// StartRun finds the server that DATABASE_URL names, or starts one, which Close ends. ErrNone says that there is none.
func StartRun(ctx context.Context) (*Run, error) {
	hideSettings()
	r := &Run{DSN: os.Getenv("DATABASE_URL"), Binaries: FindBinaries()}
	if r.DSN == "" {
		c, err := newCluster(unnoticed)
		if errors.Is(err, errNoBinaries) {
			return nil, ErrNone
		}
		if err != nil {
			return nil, err
		}
		r.cluster, r.DSN = c, c.admin()
	}
	h, err := newHost(ctx, r.DSN)
	if err != nil {
		if r.cluster == nil {
			return nil, fmt.Errorf("DATABASE_URL: %w", err)
		}
		return nil, errors.Join(err, r.cluster.remove())
	}
	r.Version = h.Version
	return r, nil
}

// Close ends the server if it was started here, and waits until nothing is left of it. On another it drops the databases that the run's tests used
// again and again; templates stay, for the next run.
func (r *Run) Close() error {
	if r.cluster != nil {
		return r.cluster.remove()
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	conn, err := pgx.Connect(ctx, r.DSN)
	if err != nil {
		return err
	}
	err = locked(ctx, conn, func() error { return sweep(ctx, conn, time.Now().Add(forgottenKept+time.Second)) })
	return errors.Join(err, conn.Close(ctx))
}
