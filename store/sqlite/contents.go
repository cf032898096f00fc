package sqlite

import (
	"context"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file is the contents of messages. A payload lies at the place of its message, a result at that of the event that it came with.

const (
	resultColumns  = "position, salt, bytes"
	contentColumns = "salt, bytes"

	// The place of a message, by its id three times: of one that is kept, one whose first event is there, one whose first event has gone.
	placeOf = "coalesce((SELECT place FROM messages WHERE id = ?), (SELECT position FROM events WHERE stream = ? AND version = 1)," +
		" (SELECT place FROM places WHERE message = ?))"
	topicQuery   = "SELECT topic FROM places WHERE message = ?"
	payloadQuery = "SELECT " + contentColumns + " FROM payloads WHERE place = " + placeOf
	resultQuery  = "SELECT r.salt, r.bytes FROM events e CROSS JOIN results r ON r.position = e.position" +
		" WHERE e.stream = ? ORDER BY e.position DESC LIMIT 1"
)

// result is the result of a message, and where it lies.
type result struct {
	position int64
	*store.Payload
}

// newest is the position of the newest event of a change that moved its entity.
func newest(told []events.Recorded) (position int64) {
	for i := range told {
		if told[i].Version > 0 || position == 0 {
			position = told[i].Position
		}
	}
	return position
}

// Contents implements store.Store. What is not what was written is a *events.Corrupt that names the message; what can be read is beside it.
func (s *Store) Contents(ctx context.Context, message events.ID) (store.Contents, error) {
	var contents store.Contents
	var spoilt error
	id := message[:]
	err := s.snapshot(ctx, func(from source) error {
		contents, spoilt = store.Contents{}, nil
		check := func(what string, r *record) error {
			if spoilt == nil {
				spoilt = damaged(events.MessageEntity(message), "its "+what, r.err)
			}
			return nil
		}
		read := func(what string, into **store.Payload, query string, args ...any) error {
			r := newRecord(contentColumns)
			return from(r, func() error {
				if payload := r.payload(0); r.err == nil {
					*into = payload
				}
				return check(what, r)
			}, query, args...)
		}
		if err := read("payload", &contents.Payload, payloadQuery, id, id, id); err != nil {
			return err
		}
		if err := read("result", &contents.Result, resultQuery, id); err != nil {
			return err
		}
		r := newRecord("topic")
		return from(r, func() error {
			contents.Topic = r.text(0)
			return check("topic", r)
		}, topicQuery, id)
	})
	if err == nil {
		err = spoilt
	}
	if err != nil {
		return contents, fmt.Errorf("sqlite: contents: %w", err)
	}
	return contents, nil
}
