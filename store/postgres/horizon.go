package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file says up to where the log is final: which numbers of transactions are drawn, and whether one of them may still commit.
//
// A writer holds a lock on the table of events before it draws its number, and until it has ended. So when the number L was drawn last, and
// none of those who held the lock afterwards holds it any more, nothing at or before L is still to come. The order of the two looks matters:
// whoever draws a number up to L had the lock before L was read.

// How long a reader waits between looks at the writers it has seen.
const (
	lookSoon = time.Millisecond
	lookLate = 20 * time.Millisecond
)

// look is what the server says of the log and of its writers.
type look struct {
	server  string // another one after a restart, and of another server
	standby bool
	drawn   int64 // the number that was drawn last
	sealed  int64 // up to where somebody found the log final
	writers map[string]struct{}
	newest  decisionEnd // of what can be read now
	epoch   string      // the newest
	pruned
}

// decisionEnd is where a transaction's events end.
type decisionEnd struct {
	number int64 // 0 where there is none
	events int
}

// position is that of its last event.
func (d decisionEnd) position() int64 {
	if d.number == 0 {
		return 0
	}
	return firstOf(d.number) + int64(d.events) - 1
}

// The queries of a look, in their order: what is drawn, who writes, what is there.
const (
	serverText   = "extract(epoch FROM pg_postmaster_start_time())::text || '/' || '@events'::regclass::oid::text || '/' || current_database()"
	drawnColumns = "standby, server, drawn"
	drawnQuery   = "SELECT pg_is_in_recovery(), " + serverText + ", CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM @blocks"
	writersQuery = "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND granted AND mode = 'RowExclusiveLock'" +
		" AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND relation = '@events'::regclass"
	endColumns   = "number, events"
	newestQuery  = "SELECT " + endColumns + " FROM @decisions ORDER BY number DESC LIMIT 1"
	edgesColumns = "safe, through, at, checksum, epoch"
	edgesQuery   = "SELECT h.safe, p.through, p.at, p.checksum, (" + newestEpoch + ") FROM (SELECT 1::smallint AS id) one" +
		" LEFT JOIN @log_head h ON h.id = one.id LEFT JOIN @pruned p ON p.id = one.id"
	// The last transaction up to a number.
	headQuery = "SELECT " + endColumns + " FROM @decisions WHERE number <= $1 ORDER BY number DESC LIMIT 1"
)

// lookNow asks the server, in one round trip.
func (s *Store) lookNow(ctx context.Context) (l *look, err error) {
	err = s.ask(ctx, func(p *pipeline) {
		l = &look{writers: map[string]struct{}{}}
		drawn, writers, newest, edges := newRecord(drawnColumns), newRecord("virtualtransaction"), newRecord(endColumns), newRecord(edgesColumns)
		p.query(drawn, func() error {
			l.standby, l.server, l.drawn = drawn.flag(0), drawn.text(1), drawn.whole(2, 0, math.MaxInt64>>blockBits)
			return damaged(events.LogEntity(), "the numbers of its transactions", drawn.err)
		}, drawnQuery)
		p.query(writers, func() error {
			l.writers[writers.text(0)] = struct{}{}
			return writers.err
		}, writersQuery)
		p.query(newest, func() error { return l.newest.read(newest) }, newestQuery)
		p.query(edges, func() error { return l.edges(edges) }, edgesQuery)
	})
	if err == nil {
		err = s.knows(ctx, l)
	}
	return l, err
}

func (d *decisionEnd) read(r *record) error {
	d.number, d.events = r.whole(0, 1, math.MaxInt64>>blockBits), int(r.whole(1, 1, blockSize))
	return damaged(events.LogEntity(), "one of its transactions", r.err)
}

// edges reads where the log was sealed and pruned.
func (l *look) edges(r *record) error {
	if !r.null(0) {
		l.sealed = r.whole(0, 0, math.MaxInt64>>blockBits)
	}
	if !r.null(1) {
		l.pruned = r.pruned(1)
	}
	if !r.null(4) {
		l.epoch = r.text(4)
	}
	return damaged(events.LogEntity(), "up to where it is sealed and pruned", r.err)
}

// horizon remembers up to which number the log is final. What a server said is worth nothing once it was started again: numbers that it drew
// and never wrote down are drawn once more.
type horizon struct {
	mu     sync.Mutex
	server string
	final  int64
	stuck  stuck
}

// learn takes what a look proves by itself, and says up to where the log is final.
func (h *horizon) learn(l *look) int64 {
	if l.standby {
		return l.sealed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server != l.server || h.final > l.drawn {
		h.server, h.final, h.stuck = l.server, 0, stuck{}
	}
	proven := min(l.sealed, l.drawn)
	if len(l.writers) == 0 {
		proven = l.drawn
	}
	h.final = max(h.final, proven)
	return h.final
}

// settle takes what a later look proves of an earlier one.
func (h *horizon) settle(before, now *look) int64 {
	final := h.learn(now)
	if now.standby || before.standby || now.server != before.server || before.drawn > now.drawn {
		return final
	}
	for writer := range before.writers {
		if _, still := now.writers[writer]; still {
			return final
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server == before.server {
		h.final = max(h.final, before.drawn)
	}
	return h.final
}

// settled is up to where the log is final, once those who wrote at a look have ended, or the reader's patience has. What it says is never more
// than what is proven: behind a writer who stays, everything that comes stays unread until it has gone.
func (s *Store) settled(ctx context.Context, l *look) (int64, error) {
	final := s.powers.horizon.learn(l)
	until := time.Now().Add(s.options.ReadPatience)
	for wait := lookSoon; !l.standby && final < l.drawn && time.Now().Before(until); wait = min(2*wait, lookLate) {
		if err := pause(ctx, wait); err != nil {
			return 0, err
		}
		now, err := s.look(ctx)
		if err != nil {
			return 0, err
		}
		final = s.powers.horizon.settle(l, now)
		if now.server != l.server || now.standby != l.standby || now.drawn < l.drawn {
			l = now // nothing that was seen of the writers is true any more
		}
	}
	if !l.standby && final < l.drawn {
		s.tellStuck(ctx, l)
	}
	s.seal(l, final)
	return final, nil
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// behind is the position of a cursor behind which everything can be read. A cursor that somebody was given whose horizon was wider is none that
// is ahead of the log: what it has passed is there. On a standby nobody can tell one that is ahead from one that comes from the primary.
func (s *Store) behind(cursor store.Cursor, l *look) (int64, error) {
	position, err := cursor.Position(s.id)
	if err == nil {
		err = s.lasts(cursor, position, l)
	}
	if err == nil && !l.standby {
		_, err = cursor.Within(s.id, max(l.newest.position(), l.through))
	}
	if err == nil && position < l.through {
		err = &store.PrunedError{Asked: cursor, First: s.cursorAt(l.through)}
	}
	return position, err
}

// Head implements store.Store. It waits for writers as Read does.
func (s *Store) Head(ctx context.Context) (store.Cursor, error) {
	for {
		l, err := s.look(ctx)
		var end int64
		if err == nil {
			end, err = s.head(ctx, l)
		}
		if err != nil && !errors.Is(err, errEpoch) {
			return "", fmt.Errorf("postgres: head: %w", err)
		}
		if err == nil {
			return s.cursorIn(upTo(s.epochs.known(), l.epoch), end, time.Time{}), nil
		}
		if err := pause(ctx, lookLate); err != nil { // what stands in between may lead to one server and to another for a while
			return "", fmt.Errorf("postgres: head: %w", err)
		}
	}
}

func (s *Store) head(ctx context.Context, l *look) (int64, error) {
	final, err := s.settled(ctx, l)
	if err != nil {
		return 0, err
	}
	newest := decisionEnd{}
	err = s.ask(ctx, func(p *pipeline) {
		r := newRecord(endColumns)
		p.query(r, func() error { return newest.read(r) }, headQuery, final)
		p.within(l)
	})
	return max(newest.position(), l.through), err
}
