package sqlite

import (
	"math"

	"github.com/foundling-go/foundling/events"
)

// This file says what is known of an event that is not there. Positions have no gaps, so that one is missing is certain; whose it was
// is told by what stands around it. The queries may walk the whole log: they run once, when it is damaged already.

const (
	// A later event of the same stream whose predecessor is not there. Where the beginning of the log was pruned, that is nothing to be said
	// of the first one that is left of a stream.
	successorQuery = "SELECT e.stream, e.version - 1 FROM events e WHERE e.position > ? AND e.version > 1 AND NOT EXISTS" +
		" (SELECT 1 FROM events p WHERE p.stream = e.stream AND p.version = e.version - 1) AND (? = 0 OR EXISTS" +
		" (SELECT 1 FROM events p WHERE p.stream = e.stream AND p.version < e.version)) ORDER BY e.position LIMIT 1"
	// A row whose version no event led to.
	orphanedRowQuery = "SELECT id, version FROM messages m WHERE NOT EXISTS" +
		" (SELECT 1 FROM events WHERE stream = m.id AND version = m.version)" +
		" UNION ALL SELECT stream, version FROM (SELECT 'topic/' || name AS stream, version FROM topics" +
		" UNION ALL SELECT 'lock/' || name, version FROM locks UNION ALL SELECT 'leader/' || name, version FROM leaders" +
		" UNION ALL SELECT 'clock/' || name, version FROM clocks) t WHERE NOT EXISTS" +
		" (SELECT 1 FROM events WHERE stream = t.stream AND version = t.version) LIMIT 1"
	// The next event, or else the last one.
	neighbourQuery = "SELECT stream, coalesce(version, 0) FROM (SELECT * FROM (SELECT * FROM events WHERE position > ?1 ORDER BY position LIMIT 1)" +
		" UNION ALL SELECT * FROM (SELECT * FROM events WHERE position < ?1 ORDER BY position DESC LIMIT 1)) LIMIT 1"
)

// missing is the error of an event that is not there.
func missing(from source, position int64) error {
	c := &events.Corrupt{Position: position}
	l, err := reachOf(from)
	if err != nil {
		return err
	}
	for _, clue := range []struct {
		query, detail string
		args          []any
	}{
		{successorQuery, "the event is missing: a later one of its entity is there", []any{position, l.through}},
		{orphanedRowQuery, "the event is missing: its entity has a row at this version", nil},
		{neighbourQuery, "the event at this position is missing; the one beside it is named", []any{position}},
	} {
		found := false
		r := newRecord("stream, version")
		err := from(r, func() error {
			c.Entity, c.Version, c.Detail = r.entity(0), int(r.whole(1, 0, math.MaxInt64)), clue.detail
			found = r.err == nil
			return nil
		}, clue.query, clue.args...)
		if err != nil {
			return err
		}
		if found {
			return c
		}
	}
	c.Detail = "the event is missing, as are all others"
	return c
}

// lost is the error of a position that no commit accounts for as it should.
func lost(from source, position int64, detail string) error {
	stored, err := readEvents(from, position, position)
	if err != nil {
		return err
	}
	if len(stored) == 0 {
		return missing(from, position)
	}
	e := &stored[0]
	return &events.Corrupt{Entity: e.Entity, Version: e.Version, Position: position, Detail: detail}
}
