package postgres

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/shorthand"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5/pgxpool"
)

// This file commits what a transaction's calls have changed, in one round trip: first what guards that all is as it was seen, then rows in the order
// in which everybody takes them, then the number of the transaction, and behind it what stands at its positions, events last.

// commit keeps everything, and gives the events their positions.
func (a *attempt) commit(ctx context.Context) error {
	if len(a.log) == 0 {
		if ids := slices.Collect(maps.Keys(a.repeated)); len(ids) > 0 {
			return a.sure(ctx, ids[0]) // of all that was before it, whichever it is
		}
		return nil
	}
	p := a.s.pipeline()
	if a.blind {
		p.begin(beginWrite)
		p.exec(unmovedQuery, a.guarded.text, a.guarded.through.through)
	}
	a.confirm(p)
	a.fillRows(p) // before a later call's end of a message takes its row
	a.writeUnstaged(p)
	a.writeMessages(p)
	a.writeTopics(p)
	a.writeKeys(p)
	a.writePermits(p)
	a.writeOthers(p)
	a.drawNumber(p)
	a.writePlaced(p)
	a.writeLog(p)
	a.letGo(p)
	now := a.now
	a.s.askTime(p, &now)
	p.exec("COMMIT")
	if err := a.send(ctx, p); err != nil {
		if code(err) == codeMoved && !a.blind {
			for topic := range a.deltas {
				a.plan.topics[topic] = true
			}
		}
		return err
	}
	at := firstOf(a.number)
	for _, r := range a.log {
		r.Place(at)
		at += int64(len(r.Stored))
	}
	a.s.epochs.gave(at - 1)
	a.s.saw(a.number)
	a.s.leave(a.prune.through)
	a.s.added(len(a.log), now)
	a.s.committed(a.woken, a.ended)
	return nil
}

// send sends a transaction's last statements and COMMIT. No context calls that off: what the server has is done or not, whoever still waits for it.
func (a *attempt) send(ctx context.Context, p *pipeline) (err error) {
	if a.conn == nil {
		if a.conn, err = a.s.pool.Acquire(ctx); err != nil {
			return err
		}
	}
	defer a.close()
	if err := ctx.Err(); err != nil {
		return err
	}
	return a.s.finish(ctx, a.conn, p)
}

const (
	// Messages that were seen without being held are held now, if they are what they were. Whoever has one of them is not waited for.
	confirmQuery = seenQuery + " NOWAIT) q"
	// Those that two statements are to change are held in the order of their ids before.
	bothQuery = seenQuery + ") q"
	seenQuery = "SELECT @must(count(*), $3) FROM unnest($1::uuid[], $2::integer[]) AS u (id, version)" +
		" CROSS JOIN LATERAL (SELECT 1 FROM @messages WHERE id = u.id AND version = u.version FOR NO KEY UPDATE"
	deleteMessages = "WITH gone AS (DELETE FROM @messages m USING unnest($1::uuid[], $2::integer[]) AS u (id, version)" +
		" WHERE m.id = u.id AND m.version = u.version RETURNING 1) SELECT @must(count(*), $3) FROM gone"
	updateMessages = "WITH moved AS (UPDATE @messages m SET version = u.version, state = u.state, topic = u.topic, priority = u.priority," +
		" due = u.due, worker = u.worker, claimed_at = u.claimed_at, counted = u.counted, fields = u.fields, lock = u.lock," +
		" lock_token = u.lock_token, waiting = u.waiting FROM unnest($1::uuid[], $2::integer[], $3::smallint[], $4::text[], $5::smallint[]," +
		" $6::bigint[], $7::uuid[], $8::bigint[], $9::boolean[], $10::bytea[], $11::text[], $12::bigint[], $13::smallint[], $14::integer[])" +
		" AS u (id, version, state, topic, priority, due, worker, claimed_at, counted, fields, lock, lock_token, waiting, seen)" +
		" WHERE m.id = u.id AND m.version = u.seen RETURNING 1) SELECT @must(count(*), $15) FROM moved"
	insertMessages = "INSERT INTO @messages (id, version, state, topic, priority, due, worker, claimed_at, counted, fields, lock, lock_token," +
		" waiting, place) SELECT u.id, u.version, u.state, u.topic, u.priority, u.due, u.worker, u.claimed_at, u.counted, u.fields, u.lock," +
		" u.lock_token, u.waiting, " + placedAt + " FROM unnest($1::uuid[], $2::integer[], $3::smallint[], $4::text[], $5::smallint[]," +
		" $6::bigint[], $7::uuid[], $8::bigint[], $9::boolean[], $10::bytea[], $11::text[], $12::bigint[], $13::smallint[], $14::bigint[]," +
		" $15::bigint[]) AS u (id, version, state, topic, priority, due, worker, claimed_at, counted, fields, lock, lock_token, waiting, place, ordinal)"
	// The place that is known, or that of one of the transaction's events.
	placedAt = "coalesce(u.place, " + firstHere + " + u.ordinal)"
	// The position of the transaction's first event.
	firstHere = "((SELECT currval('@blocks')) << 14)"

	appendLock  = "LOCK TABLE ONLY @events IN ROW EXCLUSIVE MODE"
	numberQuery = "SELECT q.n, @within(q.n, $1, $2)::text, @started(" + serverText + ", $3)::text FROM (SELECT nextval('@blocks') AS n OFFSET 0) q"
)

// confirm makes sure that what views had without its being held is as it was.
func (a *attempt) confirm(p *pipeline) {
	list := make([]*cell, 0, len(a.unheldSet))
	for entity := range a.unheldSet {
		if c := a.cells[entity]; c.stored {
			list = append(list, c)
		}
	}
	a.guard(p, confirmQuery, list)
}

func (a *attempt) guard(p *pipeline, query string, list []*cell) {
	if len(list) == 0 {
		return
	}
	ids, versions := a.seen(list)
	p.exec(query, ids, versions, len(list))
}

// seen is the ids of messages, in their order, and the versions that they were seen at.
func (a *attempt) seen(list []*cell) (ids []events.ID, versions []int32) {
	byID(list)
	for _, c := range list {
		ids, versions = append(ids, c.entity.ID), append(versions, int32(c.from))
	}
	return ids, versions
}

func byID(list []*cell) {
	slices.SortFunc(list, func(a, b *cell) int { return a.entity.Compare(b.entity) })
}

// writeMessages writes the rows of messages that have one already.
func (a *attempt) writeMessages(p *pipeline) {
	var updates, deletes []*cell
	for _, c := range a.dirty {
		switch {
		case c.entity.Kind != events.KindMessage || !c.stored:
		case c.kept:
			updates = append(updates, c)
		default:
			deletes = append(deletes, c)
		}
	}
	if a.blind && len(updates) > 0 && len(deletes) > 0 {
		a.guard(p, bothQuery, slices.Concat(updates, deletes))
	}
	a.guard(p, deleteMessages, deletes)
	if len(updates) > 0 {
		ids, versions := a.seen(updates)
		p.exec(updateMessages, append(messageArgs(ids, updates), versions, len(updates))...)
	}
}

// messageArgs is columns of messages, id to waiting.
func messageArgs(ids []events.ID, list []*cell) []any {
	n := len(list)
	versions, states, topics, priorities := make([]int32, n), make([]int16, n), make([]string, n), make([]int16, n)
	dues, workers, claims, counted := make([]*int64, n), make([]*events.ID, n), make([]*int64, n), make([]bool, n)
	fields, locks, tokens, waiting := make([][]byte, n), make([]*string, n), make([]*int64, n), make([]int16, n)
	for i, c := range list {
		row := &c.row
		versions[i], states[i], topics[i], priorities[i] = int32(row.Version), int16(row.State), row.Topic, int16(row.Priority)
		dues[i], claims[i], counted[i], fields[i] = instant(row.DueAt), instant(row.ClaimedAt), row.Counted, shorthand.Append(nil, row.Fields)
		waiting[i] = int16(row.Waiting)
		if row.Worker != (events.ID{}) {
			workers[i] = &row.Worker
		}
		if row.Lock != "" {
			locks[i] = &row.Lock
		}
		if row.LockToken != 0 {
			token := int64(row.LockToken)
			tokens[i] = &token
		}
	}
	return []any{ids, versions, states, topics, priorities, dues, workers, claims, counted, fields, locks, tokens, waiting}
}

// blob keeps nothing apart from NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// drawNumber draws the number of the transaction, behind the lock by which readers know that it is under way.
func (a *attempt) drawNumber(p *pipeline) {
	p.exec(appendLock)
	r := newRecord("number, within, started")
	p.query(r, func() error {
		a.number = r.whole(0, 1, math.MaxInt64>>blockBits)
		return r.err
	}, numberQuery, a.span.lower, a.span.upper, a.start)
}

// newMessages is the rows of messages that have none yet.
func (a *attempt) newMessages(p *pipeline) {
	var list []*cell
	for _, c := range a.dirty {
		if c.entity.Kind == events.KindMessage && c.kept && !c.stored {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return
	}
	byID(list)
	ids := make([]events.ID, len(list))
	for i, c := range list {
		ids[i] = c.entity.ID
	}
	places, ordinals := placesOf(list)
	p.exec(insertMessages, append(messageArgs(ids, list), places, ordinals)...)
}

// placesOf is where messages have their place: a position, or else the ordinal of an event.
func placesOf(list []*cell) (places []*int64, ordinals []int64) {
	places, ordinals = make([]*int64, len(list)), make([]int64, len(list))
	for i, c := range list {
		if ordinals[i] = int64(c.ordinal); c.place > 0 {
			places[i] = &c.place
		}
	}
	return places, ordinals
}

// finish sends what ends with COMMIT, and says what is known afterwards.
func (s *Store) finish(ctx context.Context, conn *pgxpool.Conn, p *pipeline) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.options.WriteTimeout)
	defer cancel()
	c := conn.Conn()
	s.warnings.clear(c.PgConn())
	err := p.run(ctx, c)
	if warning := s.warnings.clear(c.PgConn()); err == nil && warning != nil {
		return fmt.Errorf("%w: commit: %w", store.ErrUnknown, warning)
	}
	if err == nil || refused(err) || code(err) == codeIdleTooLong { // the session was ended before it was sent anything of this
		return err
	}
	return fmt.Errorf("%w: commit: %w", store.ErrUnknown, err)
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
