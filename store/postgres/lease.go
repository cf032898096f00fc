package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
)

// A lease is taken by comparing: it is read, a turn makes the next of it, and that is kept if the lease is still what was read. So nobody who is
// stopped between the two can keep others from it. One of those who try at once always succeeds.

const (
	leaseColumns = "holder, term, until, life, swept, checksum"

	leaseQuery  = "SELECT " + leaseColumns + " FROM @leases WHERE name = $1"
	leaseInsert = "INSERT INTO @leases (name, " + leaseColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING term"
	leaseUpdate = "UPDATE @leases SET holder = $2, term = $3, until = $4, life = $5, swept = $6, checksum = $7 WHERE name = $1" +
		" AND holder = $8 AND term = $9 AND until = $10 AND life = $11 AND swept IS NOT DISTINCT FROM $12 RETURNING term"
)

// Lease implements store.Leaser. A lease that is not what was written is a *events.Corrupt that names the leadership, and nobody has it.
func (s *Store) Lease(ctx context.Context, name string, turn func(store.Lease, time.Time) store.Lease) (store.Lease, error) {
	err := s.enter(ctx)
	var lease store.Lease
	if err == nil {
		defer s.calls.Done()
		err = s.classed(s.powers.pulse.do(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
			lease, err = s.leaseOn(ctx, conn, name, turn)
			return err
		}))
	}
	if err != nil {
		return store.Lease{}, fmt.Errorf("postgres: lease %q: %w", name, err)
	}
	return lease, nil
}

func (s *Store) leaseOn(ctx context.Context, conn *pgx.Conn, name string, turn func(store.Lease, time.Time) store.Lease) (store.Lease, error) {
	for {
		before, there, now, err := s.readLease(ctx, conn, name)
		if err != nil {
			return before, err
		}
		after := keptLease(turn(before, now))
		if after == before {
			return after, nil
		}
		kept := false
		query, args := leaseInsert, leaseArgs([]any{name}, after)
		args = append(args, int32(leaseSum(name, after)))
		if there {
			query, args = leaseUpdate, leaseArgs(args, before)
		}
		err = s.onPulse(ctx, conn, func(p *pipeline) {
			p.query(newRecord("term"), func() error { kept = true; return nil }, query, args...)
		})
		if err != nil || kept {
			return after, err
		}
	}
}

// readLease is the lease as it is kept, if it is, and the store's time.
func (s *Store) readLease(ctx context.Context, conn *pgx.Conn, name string) (lease store.Lease, there bool, now time.Time, err error) {
	err = s.onPulse(ctx, conn, func(p *pipeline) {
		r := newRecord(leaseColumns)
		p.query(r, func() error {
			there = true
			lease, err = r.lease(name)
			return err
		}, leaseQuery, name)
		s.askTime(p, &now)
	})
	return lease, there, now, err
}

// lease is the lease that was scanned.
func (r *record) lease(name string) (store.Lease, error) {
	l := store.Lease{
		Holder: r.array(0), Term: int(r.whole(1, 0, math.MaxInt64)), UntilAt: sometime(r.time(2)), Life: r.length(3), SweptAt: r.time(4),
	}
	if sum := r.checksum(5); r.err == nil && sum != leaseSum(name, l) {
		r.err = fmt.Errorf("checksum %08x, stored as %08x", leaseSum(name, l), sum)
	}
	return l, damaged(events.LeaderEntity(name), "its lease", r.err)
}

// sometime is a time whose zero is kept as what it is in microseconds.
func sometime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t
}

func leaseArgs(args []any, l store.Lease) []any {
	return append(args, l.Holder, int64(l.Term), l.UntilAt.UnixMicro(), l.Life.Microseconds(), instant(l.SweptAt))
}

func leaseSum(name string, l store.Lease) uint32 {
	b := append([]byte{}, l.Holder[:]...)
	for _, n := range []int64{int64(l.Term), l.UntilAt.UnixMicro(), l.Life.Microseconds(), l.SweptAt.UnixMicro()} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return crc32.Checksum(append(b, name...), castagnoli)
}

// keptLease is a lease as it will be read: whoever gets it must not see more than others do.
func keptLease(l store.Lease) store.Lease {
	l.Life = l.Life.Truncate(time.Microsecond)
	for _, t := range []*time.Time{&l.UntilAt, &l.SweptAt} {
		if *t = t.UTC().Truncate(time.Microsecond); t.IsZero() {
			*t = time.Time{}
		}
	}
	return l
}
