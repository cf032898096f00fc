package postgres

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/foundling-go/foundling/events"
)

// This file reads the events of one entity. Those that moved it are found in order by their versions, which rise with their positions; the
// others (refusals) by themselves, and put between.

const pageStream = 256

const (
	movesQuery = "SELECT " + eventColumns + " FROM @events WHERE stream = $1 AND version > $2 AND position > $3 AND position <= $4" +
		" ORDER BY version LIMIT $5"
	notesQuery = "SELECT " + eventColumns + " FROM @events WHERE stream = $1 AND version IS NULL AND position > $2 AND position <= $3" +
		" ORDER BY position LIMIT $4"
	decisionsByIDs = "SELECT " + decisionColumns + " FROM @decisions WHERE number = ANY ($1)"
)

// streamPage is the next events of one entity up to a position.
func (r *reader) streamPage(ctx context.Context, through int64) ([]events.Recorded, error) {
	limit := min(r.most(), pageStream)
	var moves, notes []lone
	name := stream(r.filter.Entity)
	err := r.ask(ctx, func(p *pipeline) {
		moves, notes = nil, nil
		p.lone(&moves, movesQuery, name, r.version, r.at, through, limit)
		p.lone(&notes, notesQuery, name, r.at, through, limit)
	})
	if err != nil {
		return nil, err
	}
	end := through
	for _, list := range [][]lone{moves, notes} {
		if len(list) == limit {
			end = min(end, list[limit-1].Position)
		}
	}
	page := slices.Concat(moves, notes)
	slices.SortFunc(page, func(a, b lone) int { return cmp.Compare(a.Position, b.Position) })
	page = page[:slices.IndexFunc(append(page, lone{Stored: events.Stored{Position: end + 1}}), func(a lone) bool { return a.Position > end })]
	list, err := r.recorded(ctx, page)
	if err == nil {
		r.at = end
	} else if len(list) > 0 {
		r.at = list[len(list)-1].Position
	}
	for _, event := range list {
		r.version = max(r.version, event.Version)
	}
	return list, err
}

// lone is an event that was read without the rest of its commit, or what is wrong with it.
type lone struct {
	events.Stored
	wrong error
}

// lone adds a query for events.
func (p *pipeline) lone(list *[]lone, text string, args ...any) {
	r := newRecord(eventColumns)
	p.query(r, func() error {
		event, err := r.event()
		*list = append(*list, lone{event, err})
		return nil
	}, text, args...)
}

// recorded gives events back with what their commits share, up to the first that is not what was written. Each has its own checksum.
func (r *reader) recorded(ctx context.Context, page []lone) ([]events.Recorded, error) {
	if len(page) == 0 {
		return nil, nil
	}
	var numbers []int64
	for _, a := range page {
		if n := numberOf(a.Position); len(numbers) == 0 || numbers[len(numbers)-1] != n {
			numbers = append(numbers, n)
		}
	}
	var commits map[int64]shared
	err := r.store.ask(ctx, func(p *pipeline) {
		commits = map[int64]shared{}
		rec := newRecord(decisionColumns)
		p.query(rec, func() error {
			d := rec.decision(0)
			for _, a := range page {
				if numberOf(a.Position) == d.number {
					commits[a.Position] = d.share(a.Position)
				}
			}
			return nil
		}, decisionsByIDs, numbers)
		p.within(r.look)
	})
	if err != nil {
		return nil, err
	}
	list := make([]events.Recorded, 0, len(page))
	for _, a := range page {
		recorded, err := a.decode(commits[a.Position])
		if err != nil {
			return list, err
		}
		list = append(list, recorded)
	}
	return list, nil
}

// shared is the commit of an event that was read by itself, or what is wrong with it.
type shared struct {
	commit *placed
	wrong  error
}

// share is the commit of an event by itself: the others of its transaction may be large, and are not held.
func (d *decision) share(position int64) shared {
	if d.wrong != nil {
		return shared{wrong: d.wrong}
	}
	c := d.commitAt(position)
	if c != nil {
		c.Body = bytes.Clone(c.Body)
	}
	return shared{commit: c}
}

// decode checks an event by itself.
func (a *lone) decode(of shared) (events.Recorded, error) {
	switch {
	case a.wrong != nil:
		return events.Recorded{}, a.wrong
	case of.wrong != nil:
		return events.Recorded{}, lost(a.Stored, "its commit: "+of.wrong.Error())
	case of.commit == nil:
		return events.Recorded{}, lost(a.Stored, "its commit is missing")
	}
	commit, err := of.commit.Header()
	if err != nil {
		return events.Recorded{}, lost(a.Stored, "its commit: "+err.Error())
	}
	return a.Stored.Decode(commit)
}
