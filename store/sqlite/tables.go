package sqlite

import (
	"math"
	"slices"
	"strings"
	"time"

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
	idColumns      = "id, first"
)

// Where some of messageColumns stand.
const (
	topicAt   = 4
	workerAt  = 7
	lockAt    = 11
	waitingAt = 13
)

var (
	selectKeys     = selecting(keyColumns, "keys", "topic, name")
	selectPayloads = selecting(payloadColumns, "payloads", "place")
	selectPlaces   = selecting(placeColumns, "places", "message")
	selectIDs      = selecting(idColumns, "used_ids", "id")
)

// table is how the rows of a kind are kept.
type table struct {
	name, key, columns string
	primary            string // the column by which rows are replaced and deleted, where that is another
	read               func(*record) store.Row
	args               func([]any, *cell) []any

	selects, inserts, updates, deletes *bulk
}

// A kind of which no row is ever kept (a sweep) has no table.
var tables = map[events.Kind]*table{
	events.KindMessage: newTable(table{
		name: "messages", key: "id", primary: "place", columns: messageColumns, read: (*record).message, args: messageArgs,
	}),
	events.KindTopic: newTable(table{
		name: "topics", key: "name", primary: "name", columns: topicColumns, read: (*record).topic, args: topicArgs,
	}),
	events.KindWorker: newTable(table{
		name: "workers", key: "id", primary: "id", columns: workerColumns, read: (*record).worker, args: workerArgs,
	}),
	events.KindLock:   newNamed("locks", events.LockEntity),
	events.KindLeader: newNamed("leaders", events.LeaderEntity),
	events.KindClock:  newNamed("clocks", func(name string) events.Entity { return events.Entity{Kind: events.KindClock, Name: name} }),
}

// newNamed is the table of a kind whose entities have a name and no columns of their own.
func newNamed(name string, entity func(string) events.Entity) *table {
	return newTable(table{
		name: name, key: "name", primary: "name", columns: namedColumns, args: namedArgs,
		read: func(r *record) store.Row {
			return store.Row{Entity: entity(r.text(0)), Version: r.version(1), State: r.state(2), Fields: r.bytes(3)}
		},
	})
}

func newTable(t table) *table {
	t.selects, t.inserts = selecting(t.columns, t.name, t.key), inserting(t.name, t.columns)
	t.updates, t.deletes = replacing(t.name, t.columns, t.primary), deleting(t.name, t.primary)
	return &t
}

// keyOf is the value of an entity's key column.
func keyOf(e events.Entity) any {
	if e.Kind.Named() {
		return e.Name
	}
	return e.ID[:]
}

// keyAt is the place of the key among the columns.
func (t *table) keyAt() int { return slices.Index(strings.Split(t.columns, ", "), t.key) }

// row is the row that was scanned. An error names the entity.
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
		Counted: r.whole(9, 0, 1) == 1, Fields: r.bytes(10), Waiting: store.Waiting(r.whole(waitingAt, 0, int64(store.Trying))),
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

func messageArgs(args []any, c *cell) []any {
	row := &c.row
	var lock, token any
	if row.Lock != "" {
		lock = row.Lock
	}
	if row.LockToken != 0 {
		token = int64(row.LockToken)
	}
	return append(args, c.place, row.Entity.ID[:], int64(row.Version), int64(row.State), row.Topic, int64(row.Priority),
		instant(row.DueAt), optional(&row.Worker), instant(row.ClaimedAt), flag(row.Counted), blob(row.Fields), lock, token, int64(row.Waiting))
}

func (r *record) topic() store.Row {
	return store.Row{
		Entity: events.TopicEntity(r.text(0)), Version: r.version(1), State: r.state(2),
		Running: int(r.whole(3, math.MinInt64, math.MaxInt64)), Fields: r.bytes(4),
	}
}

func topicArgs(args []any, c *cell) []any {
	row := &c.row
	return append(args, row.Entity.Name, int64(row.Version), int64(row.State), int64(row.Running), blob(row.Fields))
}

func (r *record) worker() store.Row {
	return store.Row{Entity: events.WorkerEntity(r.array(0)), Version: r.version(1), State: r.state(2), Fields: r.bytes(3)}
}

func workerArgs(args []any, c *cell) []any {
	row := &c.row
	return append(args, row.Entity.ID[:], int64(row.Version), int64(row.State), blob(row.Fields))
}

func namedArgs(args []any, c *cell) []any {
	row := &c.row
	return append(args, row.Entity.Name, int64(row.Version), int64(row.State), blob(row.Fields))
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
		store.KeyRow{Message: r.array(2), Open: r.whole(3, 0, 1) == 1, UntilAt: r.time(4)}
}

func keyArgs(args []any, c *store.KeyChange) []any {
	return append(args, c.Key.Topic, c.Key.Name, c.Row.Message[:], flag(c.Row.Open), instant(c.Row.UntilAt))
}

// instant is a time in whole microseconds, NULL where it is zero.
func instant(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// optional is an id, NULL where it is zero.
func optional(id *events.ID) any {
	if *id == (events.ID{}) {
		return nil
	}
	return id[:]
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// blob keeps nothing apart from NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
