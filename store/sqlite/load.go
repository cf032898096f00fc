package sqlite

import (
	"fmt"
	"iter"
	"maps"
	"math"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file brings into an overlay what a commit's calls need, for all of them in few queries.

// prefetch reads what the calls name by id.
func (o *overlay) prefetch(calls []store.Call) error {
	var ids []any
	var permits []*permitCell
	for i := range calls {
		ids = append(ids, calls[i].ID[:])
		need := &calls[i].Need
		for _, entity := range need.Held {
			o.blank(entity)
		}
		for j := range need.Known {
			o.blank(need.Known[j].Entity)
		}
		for _, page := range need.Claim {
			o.blank(events.TopicEntity(page.Topic))
		}
		for _, page := range need.Uncounted {
			o.blank(events.TopicEntity(page.Topic))
		}
		for _, lock := range need.Locks {
			o.blank(events.LockEntity(lock))
		}
		for _, key := range need.Permits {
			permits = append(permits, o.blankPermit(key))
		}
		for _, key := range need.Keys {
			o.keys[key] = &keyCell{KeyChange: store.KeyChange{Key: key}}
		}
	}
	var err error
	if o.ids, err = o.w.commitIDs(ids); err != nil {
		return err
	}
	if err := o.loadKeys(); err != nil {
		return err
	}
	if err := o.loadPermits(permits); err != nil {
		return err
	}
	if err := o.loadRows(); err != nil {
		return err
	}
	return o.loadHistories(maps.Values(o.cells))
}

// blank is the entity's cell, which may be still to be looked up.
func (o *overlay) blank(entity events.Entity) *cell {
	c := o.cells[entity]
	if c == nil {
		c = &cell{entity: entity}
		o.cells[entity] = c
	}
	return c
}

// cell is the entity's cell with its row, if it has one.
func (o *overlay) cell(entity events.Entity) (*cell, error) {
	c := o.blank(entity)
	if !c.known {
		if err := o.load(tables[entity.Kind], []*cell{c}); err != nil {
			return c, err
		}
	}
	return c, c.err
}

// loadRows looks up all blank cells.
func (o *overlay) loadRows() error {
	blank := map[*table][]*cell{}
	for entity, c := range o.cells {
		if t := tables[entity.Kind]; !c.known && t != nil {
			blank[t] = append(blank[t], c)
		}
	}
	for t, cells := range blank {
		if err := o.load(t, cells); err != nil {
			return err
		}
	}
	return nil
}

// load looks up cells of one kind. An entity of a kind that has no table has no row.
func (o *overlay) load(t *table, cells []*cell) error {
	keys := make([]any, len(cells))
	for i, c := range cells {
		c.known = true
		keys[i] = keyOf(c.entity)
	}
	if t == nil {
		return nil
	}
	r := newRecord(t.columns)
	return o.w.selectAll(t.selects, keys, r, func() error {
		o.found(t, r)
		return nil
	})
}

// found takes in the row that was read. What the transaction knows already is newer, or the same.
func (o *overlay) found(t *table, r *record) *cell {
	row, err := t.row(r)
	c := o.blank(row.Entity)
	if c.kept || c.dirty {
		return c
	}
	c.row, c.kept, c.stored, c.known, c.err = row, true, true, true, err
	if row.Entity.Kind == events.KindMessage {
		c.place = r.place()
	}
	return c
}

// loadHistories reads what the log knows of those of the cells that have no row: all of it, or of a kind that rests its newest event.
func (o *overlay) loadHistories(cells iter.Seq[*cell]) error {
	var streams, resting []any
	for c := range cells {
		switch {
		case c.kept || c.told:
			continue
		case c.entity.Kind.Rests():
			resting = append(resting, stream(c.entity))
		default:
			streams = append(streams, stream(c.entity))
		}
		c.told = true
	}
	var beheaded []any
	found := func(r events.Recorded, err error) {
		c := o.blank(r.Entity)
		if r.Entity.Kind == events.KindMessage && len(c.history) == 0 && r.Version != 1 {
			beheaded = append(beheaded, stream(r.Entity))
		}
		c.history = append(c.history, r)
		if err != nil && c.err == nil {
			c.err = err
		}
	}
	if err := o.w.histories(selectNewest, resting, found); err != nil {
		return err
	}
	if err := o.w.histories(selectHistories, streams, found); err != nil {
		return err
	}
	return o.loadPlaces(beheaded)
}

// loadPlaces reads the places of messages whose first event has gone.
func (o *overlay) loadPlaces(messages []any) error {
	r := newRecord(placeColumns)
	return o.w.selectAll(selectPlaces, messages, r, func() error {
		entity, place := events.MessageEntity(r.array(0)), r.whole(1, 1, math.MaxInt64)
		o.blank(entity).place = place
		return damaged(entity, "its place", r.err)
	})
}

// tell makes sure that the history of a cell without a row is there.
func (o *overlay) tell(c *cell) error {
	if !c.told {
		if err := o.flushLog(); err != nil {
			return err
		}
		if err := o.loadHistories(maps.Values(o.cells)); err != nil {
			return err
		}
	}
	return c.err
}

// loadKeys looks up all keys.
func (o *overlay) loadKeys() error {
	var pairs []any
	for key := range o.keys {
		pairs = append(pairs, key.Topic, key.Name)
	}
	r := newRecord(keyColumns)
	return o.w.selectAll(selectKeys, pairs, r, func() error {
		key, row := r.key()
		k := o.keys[key]
		k.Row = row
		if r.err != nil {
			k.err = atFault{fmt.Errorf("key %q of topic %q: %w", key.Name, key.Topic, r.err)}
		}
		return nil
	})
}

// loadPayloads reads the payloads of messages.
func (o *overlay) loadPayloads(cells []*cell) error {
	if len(cells) == 0 {
		return nil
	}
	places := make([]any, len(cells))
	at := make(map[int64]*cell, len(cells))
	for i, c := range cells {
		places[i] = c.place
		at[c.place] = c
	}
	r := newRecord(payloadColumns)
	return o.w.selectAll(selectPayloads, places, r, func() error {
		c := at[r.place()]
		if payload := r.payload(1); r.err == nil { // else as where it is claimed
			c.row.Payload = payload
		}
		return nil
	})
}

// damaged is the error of an entity's columns that are not what was written.
func damaged(entity events.Entity, what string, err error) error {
	if err == nil {
		return nil
	}
	return &events.Corrupt{Entity: entity, Detail: what + ": " + err.Error()}
}
