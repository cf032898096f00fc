package postgres

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
)

// This file lets go of what a call's changes say: the beginning of the log, with the contents of the messages that ended there, and contents that are
// to be erased.

const (
	// The newest event that moved the entity of an event e.
	newestMove = "(SELECT n.position FROM @events n WHERE n.stream = e.stream AND n.version IS NOT NULL ORDER BY n.version DESC LIMIT 1)"
	// Nothing moved the entity behind an event e.
	lastMove = "e.version IS NOT NULL AND NOT EXISTS (SELECT 1 FROM @events n WHERE n.stream = e.stream AND n.version > e.version)"
	// Events of messages in the stretch.
	ofMessage   = " FROM @events e WHERE " + inStretch + " AND length(e.stream) = 16 AND "
	whereItLies = " WHERE position > $1 AND position <= $2"
)

var messageOf = fmt.Sprintf(asMessage, "e.stream")

// The statements of a prune, in their order. Each is given the positions before and of the last event. A message that has no row has ended, and one
// that has a row has told its state behind the stretch: so the newest event of a message says whether its contents go, and it needs its place for as
// long as it has one. Rows that others may write at the same time are passed over where they do: what they write stands behind the stretch.
var pruneStatements = []string{
	"DELETE FROM @payloads WHERE place IN (SELECT e.position" + ofMessage + "e.version = 1 AND " + newestMove + " <= $2" +
		" AND NOT EXISTS (SELECT 1 FROM @messages m WHERE m.id = " + messageOf + "))",
	"DELETE FROM @payloads WHERE place IN (SELECT p.place FROM @events e JOIN @places p ON p.message = " + messageOf + " WHERE " + inStretch +
		" AND length(e.stream) = 16 AND " + lastMove + " AND NOT EXISTS (SELECT 1 FROM @messages m WHERE m.id = p.message))",
	"DELETE FROM @places WHERE message IN (SELECT " + messageOf + ofMessage + lastMove + ")",
	"INSERT INTO @places (message, place) SELECT " + messageOf + ", e.position" + ofMessage + "e.version = 1 AND " + newestMove + " > $2" +
		" ON CONFLICT (message) DO UPDATE SET place = excluded.place",
	"DELETE FROM @results" + whereItLies,
	"DELETE FROM @snapshots WHERE stream IN (SELECT stream FROM @snapshots" + whereItLies + " FOR UPDATE SKIP LOCKED)",
	"DELETE FROM @events" + whereItLies,
	"DELETE FROM @decisions WHERE number >= ($1 >> 14) AND number <= ($2 >> 14) AND (number << 14) + events - 1 <= $2",
}

const (
	// Keys that were kept beyond the end of their message and are no more, the oldest first.
	overKeys = "DELETE FROM @keys k USING (SELECT topic, name FROM @keys WHERE NOT open AND until <= $1 ORDER BY until LIMIT $2" +
		" FOR UPDATE SKIP LOCKED) o WHERE k.topic = o.topic AND k.name = o.name"
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
	p.exec(bitmapOn)
	for _, text := range pruneStatements {
		p.exec(text, s.from, s.through)
	}
	p.exec(overKeys, a.now.UnixMicro(), s.events)
	gone := pruned{through: s.through, at: a.pruned.at}
	if s.newest.After(gone.at) {
		gone.at = s.newest
	}
	p.exec(prunedWrite, gone.through, gone.at.UnixMicro(), int32(gone.checksum()))
}
