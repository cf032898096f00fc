package postgres

import (
	"context"
	"fmt"

	"github.com/foundling-go/foundling/events"
)

// This file lets go of what a call's changes say: the beginning of the log, with the contents of the messages that ended there, and contents that are
// to be erased.

const (
	// It is written so that nobody looks for it by the index of streams and versions, which would be walked from end to end: the stretch is read.
	isFirst = "e.version + 0 = 1"
	// Nothing moved the entity behind an event e.
	lastMove = "e.version + 0 IS NOT NULL AND NOT EXISTS (SELECT 1 FROM @events n WHERE n.stream = e.stream AND n.version > e.version)"
	// Events of messages in the stretch.
	ofMessage   = " FROM @events e WHERE " + inStretch + " AND length(e.stream) = 16 AND "
	whereItLies = " WHERE position > $1 AND position <= $2"
)

var (
	messageOf = fmt.Sprintf(asMessage, "e.stream")
	// Those of first events whose messages may keep their place beyond the stretch: all but those that have ended in it.
	beheadedQuery = "SELECT " + of("e", eventColumns) + ofMessage + isFirst + " AND (" + newestMoveOf("e") + " > $2" +
		" OR EXISTS (SELECT 1 FROM @messages m WHERE m.id = " + messageOf + "))"
)

// newestMoveOf is the newest event that moved the entity whose stream a table has.
func newestMoveOf(table string) string {
	return "(SELECT n.position FROM @events n WHERE n.stream = " + table + ".stream AND n.version IS NOT NULL ORDER BY n.version DESC LIMIT 1)"
}

// The statements of a prune, in their order. Each is given the positions before and of the last event. A message that has no row has ended, and one
// that has a row has told its state behind the stretch: so the newest event of a message says whether its contents go, and it needs its place for as
// long as it has one, which was written before. Rows that others may write at the same time are passed over where they do: what they write stands behind the stretch.
var pruneStatements = []string{
	"DELETE FROM @payloads WHERE place IN (SELECT e.position" + ofMessage + isFirst + " AND " + newestMoveOf("e") + " <= $2" +
		" AND NOT EXISTS (SELECT 1 FROM @messages m WHERE m.id = " + messageOf + "))",
	"DELETE FROM @payloads WHERE place IN (SELECT p.place FROM @events e JOIN @places p ON p.message = " + messageOf + " WHERE " + inStretch +
		" AND length(e.stream) = 16 AND " + lastMove + " AND NOT EXISTS (SELECT 1 FROM @messages m WHERE m.id = p.message))",
	"DELETE FROM @places WHERE message IN (SELECT " + messageOf + ofMessage + lastMove + ")",
	"DELETE FROM @results" + whereItLies,
	"DELETE FROM @snapshots WHERE stream IN (SELECT stream FROM @snapshots" + whereItLies + " FOR UPDATE SKIP LOCKED)",
	"DELETE FROM @events" + whereItLies,
	"DELETE FROM @decisions WHERE number >= ($1::bigint >> 14) AND number <= ($2::bigint >> 14) AND (number << 14) + events - 1 <= $2",
}

const (
	// Keys that were kept beyond the end of their message and are no more, the oldest first.
	overKeys = "DELETE FROM @keys k USING (SELECT topic, name FROM @keys WHERE NOT open AND until <= $1 ORDER BY until LIMIT $2" +
		" FOR UPDATE SKIP LOCKED) o WHERE k.topic = o.topic AND k.name = o.name"
	writePlaces = "INSERT INTO @places (message, place, topic) SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[])" +
		" ON CONFLICT (message) DO UPDATE SET place = excluded.place, topic = excluded.topic"
	prunedWrite = "INSERT INTO @pruned (id, through, at, checksum) VALUES (1, $1, $2, $3)" +
		" ON CONFLICT (id) DO UPDATE SET through = excluded.through, at = excluded.at, checksum = excluded.checksum"

	erasePayload = "DELETE FROM @payloads WHERE place = " + placeOf
	eraseResult  = "DELETE FROM @results WHERE position IN (SELECT position FROM @events WHERE stream = $1)"
)

// letGo takes away what changes say, behind everything that they keep.
func (a *attempt) letGo(p *pipeline) {
	for _, erasure := range a.erase {
		id := erasure.Message
		p.exec(erasePayload, id, stream(events.MessageEntity(id)))
		p.exec(eraseResult, stream(events.MessageEntity(id)))
	}
	s := a.prune
	if s.through == 0 {
		return
	}
	a.writeBeheaded(p)
	p.exec(bitmapOn)
	for _, text := range pruneStatements {
		p.exec(text, s.from, s.through)
	}
	p.exec(overKeys, a.now.UnixMicro(), s.events)
	gone := pruned{through: s.through, at: latest(a.pruned.at, s.newest)}
	p.exec(prunedWrite, gone.through, gone.at.UnixMicro(), int32(gone.checksum()))
}

// beheaded is a message whose first event goes while others stay that moved it.
type beheaded struct {
	id    events.ID
	place int64
	topic string // empty where the event cannot be read
}

// readBeheaded finds the messages that keep their place beyond a stretch. Of those that have a row the newest event that moved them stands behind it
// once the prune is committed, and no other one is moved any more.
func (a *attempt) readBeheaded(ctx context.Context, s stretch) error {
	p := a.s.pipeline()
	p.exec(bitmapOn)
	r := newRecord(eventColumns)
	p.query(r, func() error {
		stored, err := r.event()
		b := beheaded{id: stored.Entity.ID, place: stored.Position}
		if err == nil {
			b.topic = topicOf(stored)
		}
		a.beheaded = append(a.beheaded, b)
		return nil
	}, beheadedQuery, s.from, s.through)
	p.exec(bitmapOff)
	return p.run(ctx, a.conn.Conn())
}

// topicOf is the topic of a message by its first event; empty where that cannot be read.
func topicOf(first events.Stored) string {
	r, err := first.Decode(nil)
	if enqueued, ok := r.Event.(*events.MessageEnqueued); ok && err == nil {
		return enqueued.Topic
	}
	return ""
}

// writeBeheaded keeps the places and topics of messages whose first event goes.
func (a *attempt) writeBeheaded(p *pipeline) {
	n := len(a.beheaded)
	if n == 0 {
		return
	}
	ids, places, topics := make([]events.ID, n), make([]int64, n), make([]string, n)
	for i, b := range a.beheaded {
		ids[i], places[i], topics[i] = b.id, b.place, b.topic
	}
	p.exec(writePlaces, ids, places, topics)
}
