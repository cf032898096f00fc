package calls

import (
	"errors"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// Hold gives the rules their values out of what an engine holds.
func Hold(view store.View) (fsm.Held, error) {
	h := fsm.Held{
		Now:       view.Now,
		Messages:  make(map[events.ID]fsm.Message, len(view.Rows)),
		Topics:    map[string]fsm.Topic{},
		Workers:   map[events.ID]fsm.Worker{},
		Keys:      make(map[fsm.Key]fsm.KeyHolder, len(view.Keys)),
		Claimable: map[string][]fsm.Message{},
		Claims:    map[events.ID][]fsm.Message{},
		Uncounted: map[string][]fsm.Message{},
	}
	for _, row := range view.Rows {
		v, err := Value(row)
		if err != nil {
			return h, err
		}
		put(h, v)
	}
	for entity, history := range view.History {
		v, err := Fold(entity, history)
		if err != nil {
			return h, err
		}
		put(h, v)
	}
	for key, row := range view.Keys {
		h.Keys[fsm.Key(key)] = fsm.KeyHolder{Message: row.Message, Open: row.Open, UntilAt: row.UntilAt}
	}
	for topic, rows := range view.Claimable {
		h.Claimable[topic] = legible(rows)
	}
	err := errors.Join(
		pages(h.Claims, view.Claims),
		pages(h.Uncounted, view.Uncounted),
	)
	return h, err
}

func put(h fsm.Held, v fsm.Value) {
	switch v := v.(type) {
	case *fsm.Message:
		h.Messages[v.ID] = *v
	case *fsm.Topic:
		h.Topics[v.Name] = *v
	case *fsm.Worker:
		h.Workers[v.ID] = *v
	}
}

// legible is the messages of rows, without those that cannot be read: nobody is granted one, and the others of its topic go on. Whoever
// names it is told.
func legible(rows []store.Row) []fsm.Message {
	list := make([]fsm.Message, 0, len(rows))
	for _, row := range rows {
		if m, err := Message(row); err == nil {
			list = append(list, m)
		}
	}
	return list
}

// pages gives the messages of each page of rows.
func pages[K comparable](to map[K][]fsm.Message, from map[K][]store.Row) error {
	for key, rows := range from {
		list := make([]fsm.Message, len(rows))
		for i, row := range rows {
			m, err := Message(row)
			if err != nil {
				return err
			}
			list[i] = m
		}
		to[key] = list
	}
	return nil
}

// Fold gives the state that an entity's whole history leads to, every step of it checked.
func Fold(entity events.Entity, history []events.Recorded) (fsm.Value, error) {
	v, err := fsm.NewValue(entity)
	for _, r := range history {
		if err != nil {
			break
		}
		v, err = fsm.Apply(v, r)
	}
	if err != nil {
		return nil, fmt.Errorf("fold of %s: %w", entity, err)
	}
	return v, nil
}

// Changes gives an engine the rows of what the rules decided.
func Changes(outcome fsm.Outcome) store.Changes {
	changes := store.Changes{Rows: make([]store.Change, len(outcome.Changes))}
	for i, c := range outcome.Changes {
		changes.Rows[i] = store.Change{Row: Row(c.Value), Gone: !c.Value.Kept(), From: c.From, Transitions: c.Transitions}
	}
	for _, c := range outcome.Counts {
		if c.Delta != 0 {
			changes.Counts = append(changes.Counts, store.Count(c))
		}
	}
	for _, k := range outcome.Keys {
		changes.Keys = append(changes.Keys, store.KeyChange{
			Key: store.Key(k.Key),
			Row: store.KeyRow{Message: k.Holder.Message, Open: k.Holder.Open, UntilAt: k.Holder.UntilAt},
		})
	}
	return changes
}
