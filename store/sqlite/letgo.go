package sqlite

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file lets go of what a call's changes say: the beginning of the log, with the contents of the messages that ended there, and contents
// that are to be erased.

// goingQuery selects among the events of messages in a stretch, e, whose arguments are the positions before and of its last event.
func goingQuery(column, with, where string) string {
	return "SELECT " + column + " FROM events e" + with + " WHERE e.position > ? AND e.position <= ? AND typeof(e.stream) = 'blob' AND " + where
}

// The first events, in a stretch, of messages that keep their place beyond it.
var beheadedQuery = goingQuery(of("e", eventColumns), "", "e.version = 1 AND "+newestMove+" > ?")

const (
	// The newest event that moved the entity of an event e.
	newestMove = "(SELECT n.position FROM events n INDEXED BY events_stream WHERE n.stream = e.stream AND n.version IS NOT NULL" +
		" ORDER BY n.version DESC LIMIT 1)"
	// Nothing moved the entity behind an event e.
	lastMove    = "e.version IS NOT NULL AND NOT EXISTS (SELECT 1 FROM events n WHERE n.stream = e.stream AND n.version > e.version)"
	payloadsOf  = "DELETE FROM payloads WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.place = payloads.place) AND place IN "
	whereItLies = " WHERE position > ? AND position <= ?"
)

// The statements of a prune, in their order. Each is given the positions before and of the last event, the third time that of the last once
// more. A message that has no row has ended, and one that has a row has told its state behind the stretch: so the newest event of a message
// says whether its contents go, and it needs its place and its topic for as long as it has one.
var pruneStatements = []struct {
	text string
	args int
}{
	{payloadsOf + "(" + goingQuery("e.position", "", "e.version = 1 AND "+newestMove+" <= ?") + ")", 3},
	{payloadsOf + "(" + goingQuery("p.place", " JOIN places p ON p.message = e.stream", lastMove) + ")", 2},
	{"DELETE FROM places WHERE message IN (" + goingQuery("e.stream", "", lastMove) + ")", 2},
	{"DELETE FROM results" + whereItLies, 2},
	{"DELETE FROM snapshots" + whereItLies, 2},
	{"DELETE FROM events" + whereItLies, 2},
	{"DELETE FROM commits WHERE first > ? AND first <= ?", 2},
}

// Keys that were kept beyond the end of their message and are no more, the oldest first.
const overKeys = "DELETE FROM keys WHERE (topic, name) IN (SELECT topic, name FROM keys INDEXED BY keys_over WHERE open = 0 AND until <= ?" +
	" ORDER BY until LIMIT ?)"

// The statements that erase the contents of a message.
const (
	erasePayload = "DELETE FROM payloads WHERE place = " + placeOf
	eraseResult  = "DELETE FROM results WHERE position IN (SELECT position FROM events WHERE stream = ?)"
	// What is deleted is written over, where SQLite else leaves it in the file until something else needs the room.
	overwrite       = "PRAGMA secure_delete = ON"
	overwriteNoMore = "PRAGMA secure_delete = OFF"
)

// letGo takes away what changes say, behind everything that they keep.
func (o *overlay) letGo(changes store.Changes) error {
	if changes.Prune == 0 && len(changes.Erase) == 0 {
		return nil
	}
	if err := o.flush(); err != nil {
		return err
	}
	if err := o.erase(changes.Erase); err != nil || changes.Prune == 0 {
		return err
	}
	return o.prune(o.offered)
}

// prune lets go of a stretch at the beginning of the log.
func (o *overlay) prune(s stretch) error {
	if err := o.behead(s); err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	for _, statement := range pruneStatements {
		args := []any{s.from, s.through, s.through}
		if err := o.w.exec(statement.text, args[:statement.args]...); err != nil {
			return fmt.Errorf("prune: %w", err)
		}
	}
	if err := o.w.exec(overKeys, o.now().UnixMicro(), s.through-s.from); err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	o.pruned.through, o.shrinks = s.through, true
	o.pruned.at = latest(o.pruned.at, s.newest)
	for _, c := range o.cells {
		if !c.kept {
			c.history, c.told = nil, false // it may have gone
		}
	}
	return o.w.writePruned(o.pruned)
}

// behead keeps the places and topics of messages whose first event goes while others stay that moved them.
func (o *overlay) behead(s stretch) error {
	var args []any
	r := newRecord(eventColumns)
	err := o.w.query(r, func() error {
		stored, err := r.event()
		if stored.Entity.ID == (events.ID{}) {
			return nil // nobody can be meant by it
		}
		topic := ""
		if err == nil {
			topic = topicOf(stored)
		}
		args = append(args, stream(stored.Entity), stored.Position, topic)
		return nil
	}, beheadedQuery, s.from, s.through, s.through)
	if err != nil {
		return err
	}
	return o.w.bulk(replacePlaces, args)
}

// topicOf is the topic of a message by its first event; empty where that cannot be read.
func topicOf(first events.Stored) string {
	r, err := first.Decode(nil)
	if enqueued, ok := r.Event.(*events.MessageEnqueued); ok && err == nil {
		return enqueued.Topic
	}
	return ""
}

// erase lets go of contents.
func (o *overlay) erase(list []store.Erasure) error {
	if len(list) == 0 {
		return nil
	}
	if err := o.w.exec(overwrite); err != nil {
		return err
	}
	for _, erasure := range list {
		id := erasure.Message[:]
		if err := o.w.exec(erasePayload, id, id, id); err != nil {
			return err
		}
		if err := o.w.exec(eraseResult, id); err != nil {
			return err
		}
		o.blank(events.MessageEntity(erasure.Message)).row.Payload = nil
	}
	return o.w.exec(overwriteNoMore)
}
