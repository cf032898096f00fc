package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file lets go of the beginning of the log: how far it may, and which rows must tell their state before. A call that asks for it has a
// transaction of its own.
//
// Every entity that has an event in the stretch that is to go is found by reading that stretch, which is bounded; nothing else is walked over. What is
// damaged in it goes with the rest: only that what its commits share cannot be read stops it, since nobody knows then how old they are.

// stretch is a part of the log, of whole commits.
type stretch struct {
	from    int64 // the position before its first event
	through int64 // that of its last; 0 where it has none
	events  int
	at      time.Time
	newest  time.Time // of its commits, none of them later than the view that offers it: clocks step back
}

// untold is an entity that has an event in a stretch, and did not tell its state behind it.
type untold struct {
	*cell
	first int64 // the position of its first event there
}

const (
	agesQuery = "SELECT " + decisionColumns + " FROM @decisions WHERE number >= $1 AND number <= $2 ORDER BY number LIMIT $3"
	// The message whose stream a column is.
	asMessage = "encode(%s, 'hex')::uuid"
	inStretch = "e.position > $1 AND e.position <= $2"
	// The messages that have an event in it, with the position of the first.
	messagesIn = "(SELECT e.stream, min(e.position) AS first FROM @events e WHERE " + inStretch + " AND length(e.stream) = 16 GROUP BY e.stream)"
	// Whatever else has an event in it.
	othersQuery = "SELECT g.stream, g.first FROM (SELECT e.stream, min(e.position) AS first FROM @events e WHERE " + inStretch +
		" AND length(e.stream) <> 16 GROUP BY e.stream) g" +
		" WHERE NOT EXISTS (SELECT 1 FROM @snapshots s WHERE s.stream = g.stream AND s.position > $2)"
)

var (
	untoldColumns = of("m", messageColumns) + ", g.first"
	// Kept messages that have an event in a stretch and did not tell their state behind it, in the order of the log.
	untoldQuery = "SELECT " + untoldColumns + " FROM " + messagesIn + " g JOIN @messages m ON m.id = " + messageOfGroup +
		" WHERE NOT EXISTS (SELECT 1 FROM @snapshots s WHERE s.stream = g.stream AND s.position > $2) ORDER BY g.first LIMIT $3"

	messageOfGroup = fmt.Sprintf(asMessage, "g.stream")
	// Those that have a row keep it until the commit: so who ends one of them then does so behind what tells of the prune. Nobody is waited for.
	keepRowsQuery = "SELECT m.id FROM " + messagesIn + " g JOIN @messages m ON m.id = " + messageOfGroup + " ORDER BY m.id FOR KEY SHARE OF m NOWAIT"
	// The first event of one that has no row and was moved behind a position for the last time.
	endsBehindQuery = "SELECT min(g.first) FROM " + messagesIn + " g WHERE NOT EXISTS (SELECT 1 FROM @messages m WHERE m.id = " + messageOfGroup + ")" +
		" AND " + newestMoveOf("g") + " > $3"
)

// readPrunable finds how much of the beginning of the log may go, where the call asks, up to a number that is final.
func (a *attempt) readPrunable(ctx context.Context, call *store.Call, final int64, end int64) error {
	a.s.leave(a.pruned.through) // somebody may have been in the way of that
	p := &call.Need.Prune
	upto := int64(math.MaxInt64)
	if p.Upto != "" {
		var err error
		if upto, err = p.Upto.Within(a.s.id, end); err == nil {
			err = a.s.lasts(p.Upto, upto, &look{})
		}
		if err != nil {
			a.unprunable = atFault{err}
			return nil
		}
	}
	s, err := a.prunable(ctx, p, upto, final)
	if err == nil && s.through > 0 && p.Upto != "" {
		var open int64
		if open, err = a.endsBehind(ctx, s, upto); open > 0 {
			s, err = a.prunable(ctx, p, open-1, final)
		}
	}
	if err != nil || s.through == 0 {
		return err
	}
	a.offered = s
	if err := a.readUntold(ctx, s, p.Rows); err != nil || len(a.untold) >= p.Rows {
		return err // it does not go yet
	}
	return a.readBeheaded(ctx, s)
}

// prunable is the stretch that may go by age and number: whole commits from the oldest on, up to a position, of transactions up to a number.
func (a *attempt) prunable(ctx context.Context, p *store.Prunable, upto, final int64) (stretch, error) {
	s := stretch{from: a.pruned.through}
	full := false
	q := a.s.pipeline()
	r := newRecord(decisionColumns)
	q.query(r, func() error {
		d := r.decision(0)
		if d.wrong != nil && !full {
			a.unprunable = damaged(events.Entity{}, fmt.Sprintf("the commits of transaction %d", d.number), d.wrong)
			full = true
		}
		for i := range d.commits {
			full = full || d.commits[i].next()-1 > upto || !s.take(&d.commits[i], p, a.now)
		}
		return nil
	}, agesQuery, numberOf(s.from), final, p.Events+2)
	return s, q.run(ctx, a.conn.Conn())
}

// endsBehind is the position of the first event in a stretch that is of a message that has no row and was moved behind a position for the last
// time; 0 where there is none.
func (a *attempt) endsBehind(ctx context.Context, s stretch, upto int64) (position int64, err error) {
	p := a.s.pipeline()
	p.exec(bitmapOn)
	p.exec(keepRowsQuery, s.from, s.through)
	r := newRecord("position")
	p.query(r, func() error {
		if !r.null(0) {
			position = r.whole(0, 1, math.MaxInt64)
		}
		return r.err
	}, endsBehindQuery, s.from, s.through, upto)
	p.exec(bitmapOff)
	return position, p.run(ctx, a.conn.Conn())
}

// take lengthens a stretch by a commit. It is false where the commit may not go, or has gone already it is true and nothing else.
func (s *stretch) take(c *placed, p *store.Prunable, now time.Time) bool {
	last := c.next() - 1
	if last <= s.from {
		return true
	}
	if !p.Old(c.At, now) || s.through > 0 && s.events+c.Count > p.Events {
		return false
	}
	s.through, s.at = last, c.At
	s.events += c.Count
	if s.newest = latest(s.newest, c.At); s.newest.After(now) {
		s.newest = now
	}
	return true
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// readUntold finds the first rows that must tell their state, in the order of the log. Those that are no messages must be held: where one is not, all
// is run again.
func (a *attempt) readUntold(ctx context.Context, s stretch, limit int) error {
	var hold errHold
	p := a.s.pipeline()
	p.exec(bitmapOn)
	r := newRecord(messageColumns + ", first")
	p.query(r, func() error {
		c := a.found(events.KindMessage, r)
		a.unheld(c)
		a.untold = append(a.untold, untold{c, r.whole(width(messageColumns), 1, math.MaxInt64)})
		return nil
	}, untoldQuery, s.from, s.through, limit)
	others := newRecord("stream, first")
	kinds := map[events.Kind][]events.Entity{}
	var found []untold
	p.query(others, func() error {
		entity := others.entity(0)
		if others.err != nil || tables[entity.Kind] == nil { // nobody can be meant by it, or no row of it is ever kept
			return nil
		}
		c := a.blank(entity)
		if !c.known {
			kinds[entity.Kind] = append(kinds[entity.Kind], entity)
		}
		found = append(found, untold{c, others.whole(1, 1, math.MaxInt64)})
		return nil
	}, othersQuery, s.from, s.through)
	p.exec(bitmapOff)
	if err := p.run(ctx, a.conn.Conn()); err != nil {
		return err
	}
	p = a.s.pipeline()
	for kind, list := range kinds {
		a.readRows(p, kind, list)
	}
	if err := p.run(ctx, a.conn.Conn()); err != nil {
		return err
	}
	for _, u := range found {
		if u.kept {
			a.untold = append(a.untold, u)
		}
	}
	slices.SortFunc(a.untold, func(a, b untold) int { return cmp.Compare(a.first, b.first) })
	a.untold = a.untold[:min(len(a.untold), limit)]
	for _, u := range a.untold {
		if u.entity.Kind != events.KindMessage && !u.alone {
			hold.entities = append(hold.entities, u.entity)
		}
	}
	if len(hold.entities) > 0 {
		return &hold
	}
	return nil
}

// holdPrunable says how much of the beginning of the log may go, and which rows must tell their state before. One that is not what was written
// refuses the call: nothing but its events can tell what it was.
func (v *viewer) holdPrunable(need *store.Need) error {
	if !need.Prune.Asks() {
		return nil
	}
	if v.unprunable != nil {
		return v.unprunable
	}
	s := v.offered
	if s.through == 0 {
		return nil
	}
	v.view.Pruning = store.Pruning{Through: s.through, At: s.at, Events: s.events}
	for _, u := range v.untold {
		if u.err != nil {
			return u.err
		}
		v.take(u.cell)
		v.view.Pruning.Rows = append(v.view.Pruning.Rows, u.row)
	}
	return nil
}

var _ store.Pruner = (*Store)(nil)

// First implements store.Pruner.
func (s *Store) First(ctx context.Context) (store.Cursor, error) {
	l, err := s.look(ctx)
	if err != nil {
		return "", fmt.Errorf("postgres: first: %w", err)
	}
	if l.through == 0 {
		return "", nil
	}
	return s.cursorAt(l.through), nil
}
