package postgres

import (
	"sync"
	"time"
)

// ticks is what a store knows of the server's clock without asking.
type ticks struct {
	mu   sync.Mutex
	at   time.Time // the server's, when it was asked last
	seen time.Time // when the answer came, by this process's clock
}

// fresh is how long what the server said of its time is good for.
const fresh = time.Minute

// saw takes in the server's time that just came.
func (t *ticks) saw(at time.Time) {
	t.mu.Lock()
	t.at, t.seen = at, time.Now()
	t.mu.Unlock()
}

// atLeast is a time that the server's clock has passed, in whole microseconds: it showed at least what it showed then and what went by here since
// the answer came. One part in a thousand is left off for clocks of different pace. It is false where the server was not asked for long.
func (t *ticks) atLeast() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone := time.Since(t.seen)
	if t.at.IsZero() || gone > fresh {
		return time.Time{}, false
	}
	return t.at.Add(gone - gone/1000).UTC().Truncate(time.Microsecond), true
}

// lowerBound is a time that the store's clock has passed. It is false where none is known.
func (s *Store) lowerBound() (time.Time, bool) {
	if s.options.Clock != nil {
		return s.clock(), true
	}
	return s.ticks.atLeast()
}

// clock is the time of the clock that the options give.
func (s *Store) clock() time.Time { return s.options.Clock().UTC().Truncate(time.Microsecond) }

// nowColumn is the server's time in whole microseconds.
const nowColumn = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

// askTime has a pipeline ask for the store's time, behind all that it holds.
func (s *Store) askTime(p *pipeline, now *time.Time) {
	r := newRecord("now")
	p.query(r, func() error {
		*now = r.time(0)
		s.ticks.saw(*now)
		if s.options.Clock != nil {
			*now = s.clock()
		}
		return r.err
	}, "SELECT "+nowColumn)
}
