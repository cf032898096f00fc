package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file says where the log begins and where it ends. Neither can be told by the events that are there: those before and behind might have
// been taken.

// source is where the log can be read: the writer, which sees its own transaction, or a reader's snapshot. It runs a query, reads its
// rows one by one into r and calls found for each.
type source func(r *record, found func() error, query string, args ...any) error

// reach is how far the log goes.
type reach struct {
	end         int64 // where it is said to end: the position of the newest event that was ever written
	first, last int64 // of the events that are there; 0 where there are none
	pruned
}

// pruned is how much of the beginning of the log was let go.
type pruned struct {
	through int64     // the position of the last event that went
	at      time.Time // when the newest commit that went was decided, or when it went where that was earlier
}

const (
	prunedColumns = "through, at, checksum"
	reachQuery    = "SELECT (SELECT max(seq) FROM sqlite_sequence WHERE name = 'events'), (SELECT min(position) FROM events)," +
		" (SELECT max(position) FROM events), p.through, p.at, p.checksum FROM (SELECT 1) LEFT JOIN pruned p ON p.id = 1"
	prunedWrite = "INSERT INTO pruned (id, through, at, checksum) VALUES (1, ?, ?, ?)" +
		" ON CONFLICT (id) DO UPDATE SET through = excluded.through, at = excluded.at, checksum = excluded.checksum"
)

// reachOf is how far the log goes. What says so is only stored bytes too, but what contradicts the events is left to who reads them.
func reachOf(from source) (l reach, err error) {
	r := newRecord("seq, first, last, " + prunedColumns)
	err = from(r, func() error {
		if !r.null(0) {
			l.end = r.whole(0, 0, math.MaxInt64)
		}
		if !r.null(1) {
			l.first, l.last = r.whole(1, math.MinInt64, math.MaxInt64), r.whole(2, math.MinInt64, math.MaxInt64)
		}
		if r.err != nil {
			return damaged(events.Entity{}, "the end of the log", r.err)
		}
		l.pruned = r.pruned(3)
		return damaged(events.LogEntity(), "up to where it was pruned", r.err)
	}, reachQuery)
	return l, err
}

// pruned is what was let go, whose columns begin at i. They are NULL while nothing was.
func (r *record) pruned(i int) (p pruned) {
	if r.null(i) {
		return p
	}
	p = pruned{through: r.whole(i, 1, math.MaxInt64), at: r.time(i + 1)}
	if sum := r.checksum(i + 2); r.err == nil && sum != p.checksum() {
		r.err = fmt.Errorf("checksum %08x, stored as %08x", p.checksum(), sum)
	}
	return p
}

// castagnoli is a constant of the format.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (p pruned) checksum() uint32 {
	b := binary.BigEndian.AppendUint64(nil, uint64(p.through))
	return crc32.Checksum(binary.BigEndian.AppendUint64(b, uint64(p.at.UnixMicro())), castagnoli)
}

func (w *writer) writePruned(p pruned) error {
	return w.exec(prunedWrite, p.through, p.at.UnixMicro(), int64(int32(p.checksum())))
}

// logOf is how far the log goes, where the events agree. Nobody may write behind its end, nor believe that nothing is there, while an event
// stands behind it.
func logOf(from source) (reach, error) {
	l, err := reachOf(from)
	if err == nil && l.last > l.end {
		err = beyond(from, l.end)
	}
	if err == nil {
		err = l.begins()
	}
	return l, err
}

// begins makes sure that the log begins where it is said to.
func (l reach) begins() error {
	if l.through > l.end {
		return &events.Corrupt{Entity: events.LogEntity(), Position: l.through, Detail: fmt.Sprintf("it was pruned up to here, and ends at %d", l.end)}
	}
	if l.through > 0 && l.first > 0 && l.first <= l.through {
		return &events.Corrupt{
			Entity: events.LogEntity(), Position: l.first, Detail: fmt.Sprintf("an event is there, and the log was pruned through %d", l.through),
		}
	}
	return nil
}

// beyond is the error of the first event that stands behind the end of the log.
func beyond(from source, end int64) error {
	r := newRecord(eventColumns)
	return from(r, func() error {
		e, err := r.event()
		if err == nil {
			err = &events.Corrupt{
				Entity: e.Entity, Version: e.Version, Position: e.Position,
				Detail: fmt.Sprintf("it stands behind %d, where the log is said to end", end),
			}
		}
		return err
	}, beyondQuery, end)
}

// behind is the position of a cursor behind which everything can be read. That the log ends before it is for others to say while something is
// there that it does not account for.
func (s *Store) behind(cursor store.Cursor, l reach) (int64, error) {
	position, err := cursor.Within(s.id, max(l.end, l.last))
	if err == nil {
		err = l.begins()
	}
	if err == nil && position < l.through {
		err = &store.PrunedError{Asked: cursor, First: store.CursorAt(s.id, l.through)}
	}
	return position, err
}

// Head implements store.Store.
func (s *Store) Head(ctx context.Context) (store.Cursor, error) {
	var l reach
	err := s.snapshot(ctx, func(from source) (err error) {
		l, err = logOf(from)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("sqlite: head: %w", err)
	}
	return store.CursorAt(s.id, l.end), nil
}

// First implements store.Pruner.
func (s *Store) First(ctx context.Context) (store.Cursor, error) {
	var l reach
	err := s.snapshot(ctx, func(from source) (err error) {
		l, err = reachOf(from)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("sqlite: first: %w", err)
	}
	if l.through == 0 {
		return "", nil
	}
	return store.CursorAt(s.id, l.through), nil
}
