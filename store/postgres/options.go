package postgres

import (
	"fmt"
	"log/slog"
	"regexp"
	"time"
)

// Options are the store's settings. The zero value works.
type Options struct {
	Schema string           // the schema that the store lives in: lower case letters, digits and _; "foundling" where it is empty
	Clock  func() time.Time // the store's time; nil is the server's. All processes of a store should have the same. For tests
	// Direct is a connection string of the same database that leads to the server itself, for hints from other processes (LISTEN), migrations and
	// taking away tables that a prune has emptied, where a pooler that gives each transaction another connection (PgBouncer in transaction mode) stands in the way of the other. Where it is
	// empty they take that too: then there are no hints behind a pooler, work of other processes is found by polling, and emptied tables stay.
	Direct string
	// Logger is told what no caller hears of: that there are no hints, that an epoch begins, whom readers wait for. nil is slog.Default.
	Logger *slog.Logger
	// MaxConns is the most connections for commits and reads; 8 where it is 0. Heartbeats, hints to others and hints from others have one
	// each beside them, once they need it.
	MaxConns int
	// LockTimeout is how long a statement waits for a lock before the commit is begun anew; 2 s where it is 0.
	LockTimeout time.Duration
	// WriteTimeout is how long a statement, and the answer to a commit, may take; 10 s where it is 0.
	WriteTimeout time.Duration
	// IdleTimeout is how long a process that was stopped between the two round trips of a commit can keep others from what it held: then the
	// server ends its connection; 2 s where it is 0.
	IdleTimeout time.Duration
	// ReadPatience is how long a read waits for commits under way to end, so as to see what was committed before it began; 1 s where it is 0.
	ReadPatience time.Duration
	// NoNotify has EnqueueTx and EnqueueSQLTx send no notification in the caller's transaction: workers find what is staged by looking for it, within
	// a second or so. For transactions that are to be prepared (PREPARE TRANSACTION), which may not notify, and for those who spare their server the
	// lock that commits take in turn where they notify. Otherwise a process notifies once a second at most.
	NoNotify bool
	// NoMigrate has Open find a store of this version and never make or migrate one: for roles that may not.
	NoMigrate bool
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// settled is the options with what was left out.
func (o Options) settled() (Options, error) {
	if o.Schema == "" {
		o.Schema = "foundling"
	}
	if !schemaName.MatchString(o.Schema) {
		return o, fmt.Errorf("option Schema: %q, want up to 40 lower case letters, digits and _, no digit first", o.Schema)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.MaxConns < 0 {
		return o, fmt.Errorf("option MaxConns: %d, want at least 1", o.MaxConns)
	}
	if o.MaxConns == 0 {
		o.MaxConns = 8
	}
	for _, d := range []struct {
		name string
		at   *time.Duration
		or   time.Duration
	}{
		{"LockTimeout", &o.LockTimeout, 2 * time.Second}, {"WriteTimeout", &o.WriteTimeout, 10 * time.Second},
		{"IdleTimeout", &o.IdleTimeout, 2 * time.Second}, {"ReadPatience", &o.ReadPatience, time.Second},
	} {
		if *d.at < 0 {
			return o, fmt.Errorf("option %s: %s, want more than 0", d.name, *d.at)
		}
		if *d.at == 0 {
			*d.at = d.or
		}
	}
	return o, nil
}
