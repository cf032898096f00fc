package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file lets go of the beginning of the log: how far it may, and which rows must tell their state before.
//
// Every entity that has an event in the stretch that is to go is found by reading that stretch, which is bounded; nothing else is walked
// over. What is damaged in it goes with the rest: only that a commit's own columns cannot be read stops it, since nobody knows then how old
// it is.

// stretch is a part of the log, of whole commits.
type stretch struct {
	from    int64 // the position before its first event
	through int64 // that of its last; 0 where it has none
	at      time.Time
	newest  time.Time // of its commits, none of them later than the view that offers it: clocks step back
}

// The queries that a prune asks of the stretch that is to go.
const (
	ageColumns = "first, at, count"
	agesQuery  = "SELECT " + ageColumns + " FROM commits WHERE first > ? ORDER BY first"
	// Whatever else has an event in it.
	othersQuery = "SELECT stream, min(position) FROM events WHERE position > ? AND position <= ? AND typeof(stream) = 'text' GROUP BY stream"

	snapshotColumns = "position, stream"
)

// The first event in a stretch of a message that has no row and was moved behind a position for the last time.
var endsBehindQuery = goingQuery("e.position", "", "NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = e.stream) AND "+newestMove+" > ?") +
	" ORDER BY e.position LIMIT 1"

var (
	untoldColumns = of("m", messageColumns) + ", g.first"
	// Kept messages that have an event in a stretch and did not tell their state behind it, in the order of the log.
	untoldQuery = "SELECT " + untoldColumns + " FROM (SELECT stream, min(position) AS first FROM events WHERE position > ? AND position <= ?" +
		" AND typeof(stream) = 'blob' GROUP BY stream) g CROSS JOIN messages m ON m.id = g.stream" +
		" WHERE NOT EXISTS (SELECT 1 FROM snapshots s WHERE s.stream = m.id AND s.position > ?) ORDER BY g.first LIMIT ?"
	selectSnapshots = selecting(snapshotColumns, "snapshots", "stream")
)

// snapshot is an event that says all of its entity's state.
type snapshot struct {
	position int64
	entity   events.Entity
}

// snap notes which event says all of an entity's state, where a row of it is kept.
func (o *overlay) snap(c *cell, told []events.Recorded) {
	for i := range told {
		if c.kept && told[i].Event.Type().Snapshots() {
			o.snapshots = append(o.snapshots, snapshot{told[i].Position, c.entity})
		}
	}
}

// holdPrunable says how much of the beginning of the log may go, and holds the rows that must tell their state before. The tables must show
// what the transaction has changed so far.
func (v *viewer) holdPrunable(need *store.Need) error {
	v.offered = stretch{}
	p := &need.Prune
	if !p.Asks() {
		return nil
	}
	upto := v.head
	if p.Upto != "" {
		var err error
		if upto, err = p.Upto.Within(v.store, v.head); err != nil {
			return atFault{err}
		}
	}
	if err := v.flush(); err != nil {
		return err
	}
	s, err := v.prunable(p, upto)
	if err == nil && s.through > 0 && upto < v.head {
		var open int64
		if open, err = v.endsBehind(s, upto); open > 0 {
			s, err = v.prunable(p, open-1)
		}
	}
	if err != nil || s.through == 0 {
		return err
	}
	v.offered = s
	v.view.Pruning = store.Pruning{Through: s.through, At: s.at, Events: int(s.through - s.from)}
	return v.holdUntold(s, p.Rows)
}

// prunable is the stretch that may go by age and number: whole commits from the oldest on, up to a position.
func (v *viewer) prunable(p *store.Prunable, upto int64) (stretch, error) {
	s := stretch{from: v.pruned.through}
	// The end of a commit is where it says, unless the next one begins before: then its count is not what was written.
	take := func(c stretch, end int64) bool {
		c.through = min(c.through, end)
		if !p.Old(c.at, v.view.Now) || c.through > upto || s.through > 0 && c.through-s.from > int64(p.Events) {
			return false
		}
		s.through, s.at = c.through, c.at
		if s.newest = latest(s.newest, c.at); s.newest.After(v.view.Now) {
			s.newest = v.view.Now
		}
		return true
	}
	var last stretch // that was read, whose end the next one tells
	r := newRecord(ageColumns)
	err := v.w.query(r, func() error {
		next := stretch{from: r.whole(0, 1, math.MaxInt64) - 1, at: r.time(1)}
		next.through = next.from + r.whole(2, 1, store.MaxEvents)
		if r.err != nil {
			return damaged(events.Entity{}, fmt.Sprintf("the commit at %v", r.values[0]), r.err)
		}
		if last.through > 0 && !take(last, next.from) {
			last = stretch{}
			return errPageFull
		}
		last = next
		return nil
	}, agesQuery, v.pruned.through)
	if err != nil && !errors.Is(err, errPageFull) {
		return stretch{}, err
	}
	if last.through > 0 {
		take(last, v.head)
	}
	return s, nil
}

// endsBehind is the position of the first event in a stretch that is of a message that has no row and was moved behind a position for the last
// time; 0 where there is none.
func (v *viewer) endsBehind(s stretch, upto int64) (position int64, err error) {
	r := newRecord("position")
	err = v.w.query(r, func() error {
		position = r.whole(0, 1, math.MaxInt64)
		return r.err
	}, endsBehindQuery, s.from, s.through, upto)
	return position, err
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// untold is an entity that has an event in a stretch, and did not tell its state behind it.
type untold struct {
	*cell
	first int64 // the position of its first event there
}

// holdUntold holds the first such rows, in the order of the log. One that is not what was written refuses the call: nothing but its events can
// tell what it was.
func (v *viewer) holdUntold(s stretch, limit int) error {
	list, err := v.untoldMessages(s, limit)
	if err != nil {
		return err
	}
	others, err := v.untoldOthers(s)
	if err != nil {
		return err
	}
	list = append(list, others...)
	slices.SortFunc(list, func(a, b untold) int { return cmp.Compare(a.first, b.first) })
	for _, u := range list[:min(len(list), limit)] {
		if u.err != nil {
			return u.err
		}
		v.take(u.cell)
		v.view.Pruning.Rows = append(v.view.Pruning.Rows, u.row)
	}
	return nil
}

func (o *overlay) untoldMessages(s stretch, limit int) (list []untold, err error) {
	r := newRecord(untoldColumns)
	err = o.w.query(r, func() error {
		c := o.found(tables[events.KindMessage], r)
		list = append(list, untold{c, r.whole(width(messageColumns), 1, math.MaxInt64)})
		return nil
	}, untoldQuery, s.from, s.through, s.through, int64(limit))
	return list, err
}

func (o *overlay) untoldOthers(s stretch) ([]untold, error) {
	found := map[events.Entity]untold{}
	r := newRecord("stream, first")
	err := o.w.query(r, func() error {
		if entity := r.entity(0); r.err == nil { // else nobody can be meant by it
			found[entity] = untold{o.blank(entity), r.whole(1, 1, math.MaxInt64)}
		}
		return nil
	}, othersQuery, s.from, s.through)
	if err == nil {
		err = o.loadRows()
	}
	if err != nil {
		return nil, err
	}
	var streams []any
	for entity, u := range found {
		if u.kept {
			streams = append(streams, stream(entity))
		} else {
			delete(found, entity)
		}
	}
	r = newRecord(snapshotColumns)
	err = o.w.selectAll(selectSnapshots, streams, r, func() error {
		if r.whole(0, 1, math.MaxInt64) > s.through {
			delete(found, r.entity(1))
		}
		return nil
	})
	return slices.Collect(maps.Values(found)), err
}
