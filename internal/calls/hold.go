package calls

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

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
		Locks:     map[string]fsm.Lock{},
		Spoilt:    map[events.ID]int{},
		Unread:    map[string]error{},
		Waiting:   map[string][]fsm.Message{},
		Beats:     make(map[events.ID]fsm.Member, len(view.Beats)),
		Leaders:   map[string]fsm.Leader{},
		Sweeps:    map[events.ID]fsm.Sweep{},
		Erased:    map[events.ID]bool{},
		PrunedAt:  view.PrunedAt,
		Fence:     view.Fence,
	}
	for entity, row := range view.Rows {
		v, err := Value(row)
		if err := take(&h, entity, v, err); err != nil {
			return h, err
		}
	}
	for entity, history := range view.History {
		v, err := Rest(entity, history, view.PrunedAt)
		if err := take(&h, entity, v, err); err != nil {
			return h, err
		}
		if entity.Kind == events.KindMessage {
			h.Erased[entity.ID] = slices.ContainsFunc(history, erases) || !slices.ContainsFunc(history, moves)
		}
	}
	holdLocks(&h, view)
	for key, row := range view.Keys {
		h.Keys[fsm.Key(key)] = fsm.KeyHolder{Message: row.Message, Open: row.Open, UntilAt: row.UntilAt}
	}
	for topic, rows := range view.Claimable {
		h.Claimable[topic] = slices.DeleteFunc(legible(rows), func(m fsm.Message) bool { return h.Unread[m.Lock] != nil })
	}
	for worker, rows := range view.Claims {
		h.Claims[worker] = legible(rows)
		h.Spoilt[worker] = len(rows) - len(h.Claims[worker])
	}
	for topic, rows := range view.Uncounted {
		list, err := messages(rows)
		if err != nil {
			return h, err // a count without it would be wrong for ever
		}
		h.Uncounted[topic] = list
	}
	return h, holdPruning(&h, view.Pruning)
}

func erases(r events.Recorded) bool { return r.Event.Type() == events.TypeMessageErased }

func moves(r events.Recorded) bool { return r.Event.Type().Moves() }

// holdPruning gives the rules what may go, with its rows in an order of their own. One that cannot be read cannot tell its state, and its history is
// all that is left to repair it by: nothing goes.
func holdPruning(h *fsm.Held, p store.Pruning) error {
	h.Pruning = fsm.Pruning{Through: p.Through, At: p.At, Events: p.Events}
	for _, row := range p.Rows {
		v, err := Value(row)
		if err != nil {
			return fmt.Errorf("what is older than the retention stays: %w", err)
		}
		h.Pruning.Rows = append(h.Pruning.Rows, v)
	}
	slices.SortFunc(h.Pruning.Rows, func(a, b fsm.Value) int { return a.Entity().Compare(b.Entity()) })
	return nil
}

// holdLocks gives the rules what is not a row of its own: permits and heartbeats, and who waits for a lock, in orders of their own: the log must not
// depend on an engine's.
func holdLocks(h *fsm.Held, view store.View) {
	for worker, b := range view.Beats {
		h.Beats[worker] = Member(b)
	}
	for _, p := range view.Permits {
		if h.Unread[p.Lock] == nil {
			h.Permits = append(h.Permits, Permit(p))
		}
	}
	slices.SortFunc(h.Permits, func(a, b fsm.Permit) int {
		return cmp.Or(strings.Compare(a.Lock, b.Lock), cmp.Compare(a.Token, b.Token))
	})
	for lock, rows := range view.Waiting {
		h.Waiting[lock] = legible(rows)
		slices.SortFunc(h.Waiting[lock], func(a, b fsm.Message) int {
			return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Version, b.Version), bytes.Compare(a.ID[:], b.ID[:]))
		})
	}
}

// Rest is the state that an entity without a row is in: its history folded or, of a kind that rests, what its newest event says. Where the log was
// pruned the beginning of a history may be gone: it is folded from the event on that tells all of its state, and without one the newest event
// says what there is to say.
func Rest(entity events.Entity, history []events.Recorded, prunedAt time.Time) (fsm.Value, error) {
	if len(history) == 0 {
		return fsm.NewValue(entity)
	}
	newest := history[len(history)-1]
	if entity.Kind.Rests() {
		return fsm.Rest(newest)
	}
	if prunedAt.IsZero() || history[0].Version == 1 {
		return Fold(entity, history)
	}
	if at := slices.IndexFunc(history, func(r events.Recorded) bool { return r.Event.Type().Snapshots() }); at >= 0 {
		return Fold(entity, history[at:])
	}
	for _, r := range slices.Backward(history) {
		if moves(r) {
			return fsm.Rest(r)
		}
	}
	return fsm.Rest(newest) // it ended in what is gone, and refused something since
}

// Member is an incarnation by its heartbeat row.
func Member(b store.Beat) fsm.Member {
	return fsm.Member{Worker: b.Worker, LastBeatAt: b.At, Interval: b.Interval, FenceAfter: b.FenceAfter}
}

// Permit is a permit as the rules know it.
func Permit(p store.Permit) fsm.Permit {
	return fsm.Permit{
		PermitKey: fsm.PermitKey(p.PermitKey), Worker: p.Worker, Message: p.Message, AcquiredAt: p.AcquiredAt, ExpiresAt: p.ExpiresAt,
	}
}

// take gives the rules one value. A lock that cannot be read keeps nobody else from going on: what would take it is not granted, what holds it
// ends without it, and whoever names it is told.
func take(h *fsm.Held, entity events.Entity, v fsm.Value, err error) error {
	if err != nil && entity.Kind == events.KindLock {
		h.Unread[entity.Name] = err
		return nil
	}
	if err == nil {
		put(h, v)
	}
	return err
}

func put(h *fsm.Held, v fsm.Value) {
	switch v := v.(type) {
	case *fsm.Message:
		h.Messages[v.ID] = *v
	case *fsm.Topic:
		h.Topics[v.Name] = *v
	case *fsm.Worker:
		h.Workers[v.ID] = *v
	case *fsm.Lock:
		h.Locks[v.Name] = *v
	case *fsm.Leader:
		h.Leaders[v.Name] = *v
	case *fsm.Sweep:
		h.Sweeps[v.ID] = *v
	case *fsm.Clock:
		h.Clock = *v
	case *fsm.Log:
		h.Log = *v
	}
}

// legible is the messages of rows, without those that cannot be read: nobody is granted one, none is given back with its worker's others, and
// they all go on. Whoever names it is told.
func legible(rows []store.Row) []fsm.Message {
	list := make([]fsm.Message, 0, len(rows))
	for _, row := range rows {
		if m, err := Message(row); err == nil {
			list = append(list, m)
		}
	}
	return list
}

// messages is the messages of rows.
func messages(rows []store.Row) ([]fsm.Message, error) {
	list := make([]fsm.Message, len(rows))
	for i, row := range rows {
		m, err := Message(row)
		if err != nil {
			return nil, err
		}
		list[i] = m
	}
	return list, nil
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
		change := store.Change{Row: columns(c.Value), Gone: !c.Value.Kept(), From: c.From, Transitions: c.Transitions}
		if !change.Gone { // else nobody reads them
			change.Row.Fields = fields(c.Value)
		}
		changes.Rows[i] = change
	}
	for _, c := range outcome.Counts {
		if c.Delta != 0 {
			changes.Counts = append(changes.Counts, store.Count(c))
		}
	}
	for _, p := range outcome.Permits {
		changes.Permits = append(changes.Permits, store.PermitChange{Back: p.Back, Permit: store.Permit{
			PermitKey: store.PermitKey(p.Permit.PermitKey), Worker: p.Permit.Worker, Message: p.Permit.Message,
			AcquiredAt: p.Permit.AcquiredAt, ExpiresAt: p.Permit.ExpiresAt,
		}})
	}
	for _, k := range outcome.Keys {
		changes.Keys = append(changes.Keys, store.KeyChange{
			Key: store.Key(k.Key),
			Row: store.KeyRow{Message: k.Holder.Message, Open: k.Holder.Open, UntilAt: k.Holder.UntilAt},
		})
	}
	changes.Prune = outcome.Prune
	for _, id := range outcome.Erase {
		changes.Erase = append(changes.Erase, store.Erasure{Message: id})
	}
	return changes
}
