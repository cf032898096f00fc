package postgres

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
)

// This file keeps ranges of the log ready: a table for events and one for decisions, by the numbers of transactions. They are attached as checked
// plain tables, which stops no writer.

// The number of ranges is bounded, whatever the pace and however long nothing goes: a query by stream is planned for all of them, which takes
// 0.5 ms for 10 ranges, 10 ms for 100 and 100 ms for 500. So a range is a share of all numbers that are kept: a log that is pruned has as many as there
// are shares, beside those that are ready, and one that is kept for ever gets some seven more whenever its numbers have become e times as many: it has
// 40 with a thousand million of them, 90 with a million million.
const (
	leastRange = 1 << 20 // numbers
	shares     = 4
	rangeLasts = 10 * time.Minute // at the pace of the one in use, at least
	ahead      = 3                // ranges are ready beyond the one in use
)

// span is a range of numbers.
type span struct {
	lower, upper int64
	begun        time.Time // when a number of it had been drawn; zero where nobody noticed yet
}

// ranges is what a store knows of them.
type ranges struct {
	mu      sync.Mutex
	list    []span // in order
	newest  int64  // the highest number that was seen
	keeping bool   // somebody makes ranges, or notes that one has begun
	leaving leaving
}

const rangesQuery = "SELECT lower, upper, begun_at FROM @ranges ORDER BY lower"

// current is the range that the next number should lie in.
func (r *ranges) current() span {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.list {
		if r.newest+1 < s.upper {
			return s
		}
	}
	return span{}
}

// older reports whether there is, or was, a range before one: then entities may have events that the server does not compare new ones with.
func (r *ranges) older(s span) bool { return s.lower > 1 }

// trusts reports whether an entity with a minted id cannot have an event in an earlier range.
func (r *ranges) trusts(s span, id events.ID) bool {
	if !r.older(s) {
		return true
	}
	return !s.begun.IsZero() && id.Version() == 7 && store.MintedAt(id).After(s.begun.Add(skew))
}

// skew is how far the clocks of those who mint ids may be apart from the server's.
const skew = 5 * time.Minute

// saw takes in a number that was drawn, and has ranges made where few are left.
func (s *Store) saw(number int64) {
	r := &s.ranges
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest = max(r.newest, number)
	left, unnoted := 0, false
	for _, span := range r.list {
		if span.lower > r.newest {
			left++
		} else if r.newest < span.upper {
			unnoted = span.begun.IsZero()
		}
	}
	if (left < ahead || unnoted) && !r.keeping {
		r.keeping = true
		s.calls.Add(1) // the caller is one of those that Close waits for
		go func() {
			defer s.calls.Done()
			ctx, cancel := context.WithTimeout(context.Background(), 2*s.options.WriteTimeout)
			err := s.keepRanges(ctx) // whoever finds none makes one, or says why not
			if err != nil {
				_ = s.loadRanges(ctx) // those of others
			}
			cancel()
			if err != nil { // it may be that this role never can
				_ = s.rest(context.Background(), keepAgain)
			}
			r.mu.Lock()
			r.keeping = false
			r.mu.Unlock()
		}()
	}
}

// keepAgain is about how long nobody tries to make ranges ahead again who could not.
const keepAgain = 10 * time.Second

// rangesLock keeps two processes from making the same range.
const rangesLock = "ranges"

// keepRanges makes sure that ranges are ready, and learns which there are. What takes locks that may stop others is tried for a short time only.
func (s *Store) keepRanges(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(conn)
	p := s.pipeline()
	p.begin(beginWrite) // what whoever had the lock before has made is to be seen
	p.exec("SELECT pg_advisory_xact_lock($1)::text", s.lockKey(rangesLock, ""))
	if err := p.run(ctx, conn.Conn()); err != nil {
		return err
	}
	list, newest, now, err := s.readRanges(ctx, conn.Conn())
	if err != nil {
		return err
	}
	for missing := s.missing(list, newest, now); missing > 0; missing-- {
		made, err := s.makeRange(ctx, conn.Conn(), nextRange(list, newest, now))
		if err != nil {
			return err
		}
		list = append(list, made)
	}
	if err := s.noteBegun(ctx, conn.Conn(), list, newest, now); err != nil {
		return err
	}
	p = s.pipeline()
	p.exec("COMMIT")
	if err := p.run(ctx, conn.Conn()); err != nil {
		return err
	}
	s.ranges.mu.Lock()
	s.ranges.list, s.ranges.newest = list, newest // which is less than before where a backup was restored
	s.ranges.mu.Unlock()
	return nil
}

// haveRanges makes ranges ready, or, where this role may not, finds those that others have made. It is an error where there is none.
func (s *Store) haveRanges(ctx context.Context) error {
	denied := s.keepRanges(ctx)
	if code(denied) != codeDenied {
		return denied
	}
	err := s.loadRanges(ctx)
	if err == nil && s.ranges.current() == (span{}) {
		err = denied
	}
	return err
}

// loadRanges learns which ranges there are, and makes none.
func (s *Store) loadRanges(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(conn)
	list, newest, _, err := s.readRanges(ctx, conn.Conn())
	if err != nil {
		return err
	}
	s.ranges.mu.Lock()
	s.ranges.list, s.ranges.newest = list, newest // which is less than before where a backup was restored
	s.ranges.mu.Unlock()
	return nil
}

// readRanges is the ranges that there are, the highest number that was drawn, and the server's time.
func (s *Store) readRanges(ctx context.Context, conn *pgx.Conn) (list []span, newest int64, now time.Time, err error) {
	p := s.pipeline()
	r := newRecord("lower, upper, begun_at")
	p.query(r, func() error {
		list = append(list, span{r.whole(0, 1, math.MaxInt64), r.whole(1, 1, math.MaxInt64), r.time(2)})
		return damaged(events.LogEntity(), "its ranges", r.err)
	}, rangesQuery)
	last := newRecord("newest, now")
	p.query(last, func() error {
		newest, now = last.whole(0, 0, math.MaxInt64), last.time(1)
		return last.err
	}, "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END, "+nowColumn+" FROM @blocks")
	err = p.run(ctx, conn)
	return list, newest, now, err
}

// missing is how many ranges are to be made.
func (s *Store) missing(list []span, newest int64, _ time.Time) int {
	ready := 0
	for _, span := range list {
		if span.upper > newest+1 {
			ready++
		}
	}
	return max(0, ahead+1-ready)
}

// nextRange is the range behind those that there are, and behind all numbers that are drawn where the ranges end before them.
func nextRange(list []span, newest int64, now time.Time) span {
	if len(list) == 0 {
		lower := max(newest/leastRange*leastRange, 1)
		return span{lower: lower, upper: (newest/leastRange + 1) * leastRange}
	}
	last := list[len(list)-1].upper
	size := max(leastRange, (newest-list[0].lower)/shares)
	for _, s := range list {
		if used := newest - s.lower; used > 0 && newest < s.upper && !s.begun.IsZero() && now.Sub(s.begun) > time.Minute {
			size = max(size, int64(float64(used)*float64(rangeLasts)/float64(now.Sub(s.begun))))
		}
	}
	lower := max(last, newest/leastRange*leastRange)
	return span{lower: lower, upper: lower + (size+leastRange-1)/leastRange*leastRange}
}

// rangeTables is what makes the tables of a range.
func rangeTables(r span) []string {
	return []string{
		fmt.Sprintf("CREATE TABLE @events_%d (LIKE @events, CHECK (position >= %d AND position < %d))", r.lower, firstOf(r.lower), firstOf(r.upper)),
		fmt.Sprintf("CREATE UNIQUE INDEX ON @events_%d (stream, version)", r.lower),
		fmt.Sprintf("CREATE INDEX ON @events_%d USING brin (position) WITH (pages_per_range = 32, autosummarize = on)", r.lower),
		fmt.Sprintf("ALTER TABLE @events ATTACH PARTITION @events_%d FOR VALUES FROM (%d) TO (%d)", r.lower, firstOf(r.lower), firstOf(r.upper)),
		fmt.Sprintf("CREATE TABLE @decisions_%d (LIKE @decisions, CHECK (number >= %d AND number < %d))", r.lower, r.lower, r.upper),
		fmt.Sprintf("CREATE UNIQUE INDEX ON @decisions_%d (number)", r.lower),
		fmt.Sprintf("ALTER TABLE @decisions ATTACH PARTITION @decisions_%d FOR VALUES FROM (%d) TO (%d)", r.lower, r.lower, r.upper),
		fmt.Sprintf("INSERT INTO @ranges (lower, upper) VALUES (%d, %d)", r.lower, r.upper),
	}
}

// makeRange makes the tables of a range, in the transaction of the connection.
func (s *Store) makeRange(ctx context.Context, conn *pgx.Conn, r span) (span, error) {
	for _, text := range rangeTables(r) {
		// In the simple protocol: none of them is sent twice, so that there is nothing to remember of them.
		if _, err := conn.Exec(ctx, strings.ReplaceAll(text, "@", s.prefix), pgx.QueryExecModeSimpleProtocol); err != nil {
			return r, fmt.Errorf("range of numbers from %d: %w", r.lower, err)
		}
	}
	return r, nil
}

// noteBegun writes down that a range is in use.
func (s *Store) noteBegun(ctx context.Context, conn *pgx.Conn, list []span, newest int64, now time.Time) error {
	for i := range list {
		r := &list[i]
		if newest < r.lower || newest >= r.upper || !r.begun.IsZero() {
			continue
		}
		r.begun = now
		p := s.pipeline()
		p.exec("UPDATE @ranges SET begun_at = $2 WHERE lower = $1 AND begun_at IS NULL", r.lower, now.UnixMicro())
		return p.run(ctx, conn)
	}
	return nil
}
