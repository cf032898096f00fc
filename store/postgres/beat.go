package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// Heartbeats are written past the commits, on a connection of their own. Their time is the server's, which puts it into the row and its checksum by
// itself: a checksum over the rest, in which the halves of the time are folded.

const (
	beatColumns = "worker, at, every, fence_after, checksum"

	// The time, or one that is given.
	beatTime  = "(SELECT coalesce($1::bigint, " + nowColumn + ") AS at OFFSET 0) t"
	beatSum   = "((($5::bigint # (t.at & 4294967295) # (t.at >> 32)) & 4294967295) << 32 >> 32)::integer"
	beatFirst = "INSERT INTO @beats AS b (worker, at, every, fence_after, checksum) SELECT $2, t.at, $3, $4, " + beatSum + " FROM " + beatTime +
		" ON CONFLICT (worker) DO UPDATE SET at = excluded.at, every = excluded.every, fence_after = excluded.fence_after, checksum = excluded.checksum" +
		" RETURNING b.at"
	beatAgain = "UPDATE @beats b SET at = t.at, every = $3, fence_after = $4, checksum = " + beatSum + " FROM " + beatTime +
		" WHERE b.worker = $2 RETURNING b.at"
	beatsQuery = "SELECT " + beatColumns + " FROM @beats ORDER BY worker"
	beatsOf    = "SELECT " + beatColumns + " FROM @beats WHERE worker = ANY ($1)"
	beatStill  = "DELETE FROM @beats WHERE worker = $1"
)

// given is the time of the clock that the options give; nil where it is the server's.
func (s *Store) given() *int64 {
	if s.options.Clock == nil {
		return nil
	}
	return instant(s.clock())
}

// Beat implements store.Heart.
func (s *Store) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	query := beatAgain
	if b.First {
		query = beatFirst
	}
	var at time.Time
	err := s.beating(ctx, func(p *pipeline) {
		at = time.Time{}
		r := newRecord("at")
		p.query(r, func() error {
			at = r.time(0)
			return r.err
		}, query, s.given(), b.Worker, b.Interval.Microseconds(), b.FenceAfter.Microseconds(), int64(beatDigest(&b)))
	})
	if err == nil && at.IsZero() {
		err = store.ErrNotBeating
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("postgres: beat of %s: %w", b.Worker, err)
	}
	return at, nil
}

// beatDigest is a checksum over all of a beat but its time.
func beatDigest(b *store.Beat) uint32 {
	sum := binary.BigEndian.AppendUint64(b.Worker[:len(b.Worker):len(b.Worker)], uint64(b.Interval.Microseconds()))
	return crc32.Checksum(binary.BigEndian.AppendUint64(sum, uint64(b.FenceAfter.Microseconds())), castagnoli)
}

// folded is a digest with a time.
func folded(digest uint32, at time.Time) uint32 {
	us := uint64(at.UnixMicro())
	return digest ^ uint32(us) ^ uint32(us>>32)
}

// beat is the heartbeat that was scanned.
func (r *record) beat() (store.Beat, error) {
	b := store.Beat{Worker: r.array(0), At: r.time(1), Interval: r.length(2), FenceAfter: r.length(3)}
	if sum := r.checksum(4); r.err == nil && sum != folded(beatDigest(&b), b.At) {
		r.err = fmt.Errorf("checksum %08x, stored as %08x", folded(beatDigest(&b), b.At), sum)
	}
	return b, damaged(events.WorkerEntity(b.Worker), "its heartbeat", r.err)
}

// length is a length of time, which is kept in whole microseconds.
func (r *record) length(i int) time.Duration {
	return time.Duration(r.whole(i, 0, math.MaxInt64/1000)) * time.Microsecond
}

// Beats implements store.Heart. One that is not what was written is told of by itself: the others are listed beside the error.
func (s *Store) Beats(ctx context.Context) ([]store.Beat, error) {
	var list []store.Beat
	var spoilt []error
	err := s.beating(ctx, func(p *pipeline) {
		list, spoilt = nil, nil
		r := newRecord(beatColumns)
		p.query(r, func() error {
			b, err := r.beat()
			if err != nil {
				spoilt = append(spoilt, fmt.Errorf("postgres: beats: %w", err))
			} else {
				list = append(list, b)
			}
			return nil
		}, beatsQuery)
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: beats: %w", err)
	}
	return list, errors.Join(spoilt...)
}

// Still implements store.Heart.
func (s *Store) Still(ctx context.Context, worker events.ID) error {
	if err := s.beating(ctx, func(p *pipeline) { p.exec(beatStill, worker) }); err != nil {
		return fmt.Errorf("postgres: still: %w", err)
	}
	return nil
}
