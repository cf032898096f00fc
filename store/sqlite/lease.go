package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"math"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

const (
	leaseColumns = "holder, term, until, life, swept"
	leaseQuery   = "SELECT " + leaseColumns + " FROM leases WHERE name = ?"
	leaseWrite   = "INSERT INTO leases (name, holder, term, until, life, swept) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name)" +
		" DO UPDATE SET holder = excluded.holder, term = excluded.term, until = excluded.until, life = excluded.life, swept = excluded.swept"
)

// Lease implements store.Leaser. A lease that is not what was written is a *events.Corrupt that names the leadership, and nobody has it.
func (s *Store) Lease(ctx context.Context, name string, turn func(store.Lease, time.Time) store.Lease) (store.Lease, error) {
	var lease store.Lease
	err := s.beating(ctx, func() error {
		conn, err := s.beats.Load().writer.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		lease, err = s.leaseOn(conn, name, turn)
		return err
	})
	if err != nil {
		return store.Lease{}, fmt.Errorf("sqlite: lease %q: %w", name, err)
	}
	return lease, nil
}

// leaseOn holds the lease by a transaction that no other process can share. No context cancels it: it would leave the connection in no known
// state.
func (s *Store) leaseOn(conn *sql.Conn, name string, turn func(store.Lease, time.Time) store.Lease) (lease store.Lease, err error) {
	exec := func(statement string, args ...any) error {
		_, err := conn.ExecContext(context.Background(), statement, args...)
		return err
	}
	if err := exec("BEGIN IMMEDIATE"); err != nil {
		return lease, err
	}
	open := true
	defer func() {
		if open && exec("ROLLBACK") != nil {
			_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn }) // which keeps it from being used again
		}
	}()
	r := newRecord(leaseColumns)
	rows, err := conn.QueryContext(context.Background(), leaseQuery, name)
	err = r.each(rows, err, func() error {
		lease = r.lease()
		return damaged(events.LeaderEntity(name), "its lease", r.err)
	})
	if err != nil {
		return lease, err
	}
	before := lease
	if lease = keptLease(turn(before, s.now())); lease != before {
		err = exec(leaseWrite, name, optional(&lease.Holder), int64(lease.Term), instant(lease.UntilAt), lease.Life.Microseconds(), instant(lease.SweptAt))
	}
	if err == nil {
		err = exec("COMMIT")
	}
	open = err != nil
	return lease, err
}

// lease is the lease that was scanned.
func (r *record) lease() store.Lease {
	l := store.Lease{Term: int(r.whole(1, 0, math.MaxInt64)), UntilAt: r.time(2), Life: r.length(3), SweptAt: r.time(4)}
	if !r.null(0) {
		l.Holder = r.array(0)
	}
	return l
}

// keptLease is a lease as it will be read: whoever gets it must not see more than others do.
func keptLease(l store.Lease) store.Lease {
	l.Life = l.Life.Truncate(time.Microsecond)
	for _, t := range []*time.Time{&l.UntilAt, &l.SweptAt} {
		if !t.IsZero() {
			*t = t.UTC().Truncate(time.Microsecond)
		}
	}
	return l
}
