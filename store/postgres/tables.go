package postgres

import (
	"math"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file is the tables of rows: one for each kind of entity, with the columns of what a store.Row has for it.

const (
	messageColumns = "place, id, version, state, topic, priority, due, worker, claimed_at, counted, fields, lock, lock_token, waiting"
	topicColumns   = "name, version, state, running, fields"
	workerColumns  = "id, version, state, fields"
	namedColumns   = "name, version, state, fields"
	keyColumns     = "topic, name, message, open, until"
	payloadColumns = "place, salt, bytes"
	placeColumns   = "message, place"
	permitColumns  = "lock, token, worker, message, acquired_at, expires_at"
)

// Where some of messageColumns stand.
const (
	topicAt   = 4
	workerAt  = 7
	lockAt    = 11
	waitingAt = 13
)

// table is how the rows of a kind are kept.
type table struct {
	name, key, columns string
	read               func(*record) store.Row
}

// A kind of which no row is ever kept (a sweep) has no table.
var tables = map[events.Kind]*table{
	events.KindMessage: {name: "messages", key: "id", columns: messageColumns, read: (*record).message},
	events.KindTopic:   {name: "topics", key: "name", columns: topicColumns, read: (*record).topic},
	events.KindWorker:  {name: "workers", key: "id", columns: workerColumns, read: (*record).worker},
	events.KindLock:    newNamed("locks", events.LockEntity),
	events.KindLeader:  newNamed("leaders", events.LeaderEntity),
	events.KindClock:   newNamed("clocks", func(name string) events.Entity { return events.Entity{Kind: events.KindClock, Name: name} }),
}

// newNamed is the table of a kind whose entities have a name and no columns of their own.
func newNamed(name string, entity func(string) events.Entity) *table {
	return &table{name: name, key: "name", columns: namedColumns, read: func(r *record) store.Row {
		return store.Row{Entity: entity(r.text(0)), Version: r.version(1), State: r.state(2), Fields: r.bytes(3)}
	}}
}

// keyAt is the place of the key among the columns.
func (t *table) keyAt() int { return slices.Index(strings.Split(t.columns, ", "), t.key) }

// row is the row that was scanned, whose columns are the first of the record. An error names the entity.
func (t *table) row(r *record) (store.Row, error) {
	row := t.read(r)
	if r.err != nil {
		return row, &events.Corrupt{Entity: row.Entity, Version: row.Version, Detail: "its row: " + r.err.Error()}
	}
	return row, nil
}

func (r *record) message() store.Row {
	r.place()
	row := store.Row{
		Entity: events.MessageEntity(r.array(1)), Version: r.version(2), State: r.state(3), Topic: r.text(topicAt),
		Priority: events.Priority(r.whole(5, math.MinInt8, math.MaxInt8)), DueAt: r.time(6), ClaimedAt: r.time(8),
		Counted: r.flag(9), Fields: r.expanded(10), Waiting: store.Waiting(r.whole(waitingAt, 0, int64(store.Trying))),
	}
	if !r.null(workerAt) {
		row.Worker = r.array(workerAt)
	}
	if !r.null(lockAt) {
		row.Lock = r.text(lockAt)
	}
	if !r.null(12) {
		row.LockToken = r.token(12)
	}
	return row
}

// place is that of a message's row.
func (r *record) place() int64 { return r.whole(0, 1, math.MaxInt64) }

func (r *record) topic() store.Row {
	return store.Row{
		Entity: events.TopicEntity(r.text(0)), Version: r.version(1), State: r.state(2),
		Running: int(r.whole(3, math.MinInt32, math.MaxInt32)), Fields: r.bytes(4),
	}
}

func (r *record) worker() store.Row {
	return store.Row{Entity: events.WorkerEntity(r.array(0)), Version: r.version(1), State: r.state(2), Fields: r.bytes(3)}
}

// payload is the payload whose columns salt and bytes begin at i; nil where there is none.
func (r *record) payload(i int) *store.Payload {
	if r.null(i) && r.null(i+1) {
		return nil
	}
	return &store.Payload{Salt: r.array(i), Bytes: r.bytes(i + 1)}
}

func (r *record) key() (store.Key, store.KeyRow) {
	return store.Key{Topic: r.text(0), Name: r.text(1)},
		store.KeyRow{Message: r.array(2), Open: r.flag(3), UntilAt: r.time(4)}
}

// permit is the permit that was scanned. An error names its lock.
func (r *record) permit() (store.Permit, error) {
	p := store.Permit{
		PermitKey: store.PermitKey{Lock: r.text(0), Token: r.token(1)}, Worker: r.array(2), AcquiredAt: r.time(4), ExpiresAt: r.time(5),
	}
	if !r.null(3) {
		p.Message = r.array(3)
	}
	return p, damaged(events.LockEntity(p.Lock), "one of its permits", r.err)
}
