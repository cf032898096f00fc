package postgres

import (
	"context"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file is the contents of messages. A payload lies at the place of its message, a result at the position of the event that it came with.

const (
	contentColumns = "salt, bytes"

	// The place of a message, by its id and its stream: of one that is kept, one whose first event is there, one whose first event has gone.
	placeOf = "coalesce((SELECT place FROM @messages WHERE id = $1), (SELECT position FROM @events WHERE stream = $2 AND version = 1)," +
		" (SELECT place FROM @places WHERE message = $1))"
	contentsQuery = "SELECT p.salt, p.bytes, r.salt, r.bytes, (SELECT topic FROM @places WHERE message = $1) FROM (SELECT 1) one LEFT JOIN @payloads p ON p.place = " + placeOf +
		" LEFT JOIN LATERAL (SELECT r.salt, r.bytes FROM @events e JOIN @results r ON r.position = e.position" +
		" WHERE e.stream = $2 AND e.version IS NOT NULL ORDER BY e.version DESC LIMIT 1) r ON true"
)

// Contents implements store.Store. What is not what was written is a *events.Corrupt that names the message; what can be read is beside it.
func (s *Store) Contents(ctx context.Context, message events.ID) (store.Contents, error) {
	var contents store.Contents
	var spoilt error
	err := s.ask(ctx, func(p *pipeline) {
		contents, spoilt = store.Contents{}, nil
		r := newRecord(contentColumns + ", " + contentColumns + ", topic")
		p.query(r, func() error {
			for i, into := range []**store.Payload{&contents.Payload, &contents.Result} {
				r.err = nil
				if payload := r.payload(2 * i); r.err == nil {
					*into = payload
				} else if spoilt == nil {
					spoilt = damaged(events.MessageEntity(message), []string{"its payload", "its result"}[i], r.err)
				}
			}
			if !r.null(4) {
				contents.Topic = r.text(4)
			}
			return nil
		}, contentsQuery, message, stream(events.MessageEntity(message)))
	})
	if err == nil {
		err = spoilt
	}
	if err != nil {
		return contents, fmt.Errorf("postgres: contents: %w", err)
	}
	return contents, nil
}
