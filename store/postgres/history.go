package postgres

import (
	"math"

	"github.com/foundling-go/foundling/events"
)

// This file reads what the log knows of entities that have no row.

const (
	aloneColumns = eventColumns + ", " + decisionColumns
)

// Events, each with what its transaction kept beside it.
var (
	aloneSelect    = "SELECT " + of("e", eventColumns) + ", " + of("d", decisionColumns)
	aloneJoin      = " LEFT JOIN @decisions d ON d.number = (e.position >> 14)"
	historiesQuery = aloneSelect + " FROM unnest($1::bytea[]) AS w (stream) CROSS JOIN LATERAL (SELECT " + eventColumns +
		" FROM @events WHERE stream = w.stream) e" + aloneJoin + " ORDER BY e.position"
	// The newest event of each stream that moved its entity.
	newestEventsQuery = aloneSelect + " FROM unnest($1::bytea[]) AS w (stream) CROSS JOIN LATERAL (SELECT " + eventColumns +
		" FROM @events WHERE stream = w.stream AND version IS NOT NULL ORDER BY version DESC LIMIT 1) e" + aloneJoin
	cameQuery   = "SELECT id FROM @messages WHERE id = ANY($1::uuid[])"
	placesQuery = "SELECT " + placeColumns + " FROM @places WHERE message = ANY($1::uuid[])"
)

// alone is an event that was read without the rest of its commit: aloneColumns.
func (r *record) alone() (events.Recorded, error) {
	stored, err := r.event()
	where := events.Recorded{Entity: stored.Entity, Position: stored.Position}
	if err != nil {
		return where, err
	}
	corrupt := func(detail string) (events.Recorded, error) {
		return where, &events.Corrupt{Entity: stored.Entity, Version: stored.Version, Position: stored.Position, Detail: "its commit: " + detail}
	}
	begin := width(eventColumns)
	if r.null(begin) {
		return corrupt("it is missing")
	}
	d := r.decision(begin)
	if d.wrong != nil {
		return corrupt(d.wrong.Error())
	}
	p := d.commitAt(stored.Position)
	if p == nil {
		return corrupt("it is missing")
	}
	commit, err := p.Header()
	if err != nil {
		return corrupt(err.Error())
	}
	return stored.Decode(commit)
}

// untoldStreams is the streams of what is held and has no row, and of locks that are about to be tried: those of which the newest event says all,
// and those of which all events are to be read.
func (a *attempt) untoldStreams(tries []string) (streams, resting [][]byte) {
	for entity, c := range a.cells {
		switch {
		case !c.known || c.kept || c.told || !c.held && entity.Kind != events.KindMessage:
			continue
		case entity.Kind == events.KindMessage && a.unheldSet[entity], entity.Kind == events.KindTopic && !c.alone:
			continue // it has a row, or nobody asked for more than that
		case entity.Kind.Rests():
			resting = append(resting, stream(entity))
		default:
			streams = append(streams, stream(entity))
		}
		c.told = true
	}
	for _, lock := range tries {
		c := a.blank(events.LockEntity(lock))
		c.told = true
		resting = append(resting, stream(c.entity))
	}
	return streams, resting
}

func (a *attempt) readHistories(p *pipeline, streams, resting [][]byte) {
	for _, q := range []struct {
		text    string
		streams [][]byte
	}{{newestEventsQuery, resting}, {historiesQuery, streams}} {
		if len(q.streams) == 0 {
			continue
		}
		r := newRecord(aloneColumns)
		p.query(r, func() error {
			event, err := r.alone()
			c := a.blank(event.Entity)
			c.history = append(c.history, event)
			if err != nil && c.err == nil && !c.kept {
				c.err = err
			}
			return nil
		}, q.text, q.streams)
	}
}

// readRowless makes sure that the messages without a row have none now that their keys are held, and reads the places of those whose first event
// has gone.
func (a *attempt) readRowless(p *pipeline, w *wants) {
	var ids []events.ID
	for id := range w.messages {
		if !a.blank(events.MessageEntity(id)).kept {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	came := newRecord("id")
	p.query(came, func() error { return appeared(events.MessageEntity(came.array(0))) }, cameQuery, ids)
	r := newRecord(placeColumns)
	p.query(r, func() error {
		entity, place := events.MessageEntity(r.array(0)), r.whole(1, 1, math.MaxInt64)
		a.blank(entity).place = place
		return damaged(entity, "its place", r.err)
	}, placesQuery, ids)
}
