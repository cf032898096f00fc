package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// moved is what a transaction has changed that a later call may have to see among rows.
type moved struct {
	due           map[string]bool    // topics with a message that is claimable and was not
	claimed       map[string]bool    // topics with a claim that began or ended
	workers       map[events.ID]bool // with such a claim
	waits         map[string]bool    // locks for which somebody waits and did not, or did and does not
	permitLocks   map[string]bool    // with a permit that went out or came back
	permitWorkers map[events.ID]bool // with one
}

func newMoved() moved {
	return moved{
		due: map[string]bool{}, claimed: map[string]bool{}, workers: map[events.ID]bool{}, waits: map[string]bool{},
		permitLocks: map[string]bool{}, permitWorkers: map[events.ID]bool{},
	}
}

func (m *moved) row(row *store.Row) {
	if row.Worker != (events.ID{}) {
		m.claimed[row.Topic], m.workers[row.Worker] = true, true
	}
	if row.Waiting != store.NotWaiting {
		m.waits[row.Lock] = true
	}
}

// keep takes in what a call decided.
func (a *attempt) keep(call *store.Call, now time.Time, changes store.Changes) (store.Receipt, error) {
	recording := store.Record(*call, changes, now)
	if a.events+len(recording.Stored) > blockSize {
		return store.Receipt{}, errCut
	}
	a.calls[call.ID] = true
	a.log = append(a.log, recording)
	told := recording.Events
	for i := range changes.Rows {
		n := len(changes.Rows[i].Transitions)
		a.put(&changes.Rows[i], told[:n])
		a.events += n
		told = told[n:]
	}
	a.forget(call, changes)
	for _, count := range changes.Counts {
		a.s.counts.learn(count.Topic)
		c := a.cells[events.TopicEntity(count.Topic)]
		if c == nil || !c.kept {
			a.deltas[count.Topic] += count.Delta
			continue
		}
		c.row.Running += count.Delta
		c.delta += count.Delta
	}
	for i := range changes.Keys {
		a.putKey(changes.Keys[i])
	}
	for i := range changes.Permits {
		a.putPermit(&changes.Permits[i])
	}
	a.woken = changes.Woken(a.woken)
	a.erase = append(a.erase, changes.Erase...)
	a.unstage(changes.Unstage)
	if changes.Prune != 0 {
		a.prune = a.offered
	}
	return store.Receipt{ID: call.ID, Events: recording.Events, Rows: a.rows(changes)}, nil
}

// forget takes topics for such whose claims change no count, where a claim has changed none.
func (a *attempt) forget(call *store.Call, changes store.Changes) {
	for _, page := range call.Need.Claim {
		counts := slices.ContainsFunc(changes.Counts, func(c store.Count) bool { return c.Topic == page.Topic })
		claims := slices.ContainsFunc(changes.Rows, func(c store.Change) bool {
			return c.Row.Topic == page.Topic && c.Row.Worker != (events.ID{}) && !c.Row.Counted
		})
		if claims && !counts {
			a.s.counts.forget(page.Topic)
		}
	}
}

// put replaces an entity's row.
func (a *attempt) put(change *store.Change, told []events.Recorded) {
	c := a.blank(change.Row.Entity)
	if c.kept {
		a.moved.row(&c.row)
	}
	switch {
	case change.From == 0:
		c.place, c.ordinal = 0, a.events
	case !c.kept && len(c.history) > 0 && c.place == 0:
		c.place = c.history[0].Position
	}
	if change.Gone && c.kept && c.entity.Kind == events.KindWorker {
		a.ended = append(a.ended, c.entity.ID)
	}
	running, payload := c.row.Running, c.row.Payload
	c.row, c.kept = change.Row, !change.Gone && tables[c.entity.Kind] != nil // else its history says all of it
	c.row.Running, c.row.Payload = running, payload
	c.known, c.held, c.history, c.told = true, true, nil, false
	if c.kept {
		a.moved.row(&c.row)
		if !c.row.DueAt.IsZero() {
			a.moved.due[c.row.Topic] = true
		}
	}
	if change.Payload != nil {
		c.row.Payload = change.Payload
		a.payloads = append(a.payloads, c)
	}
	a.note(c, change, told)
	if !c.dirty {
		c.dirty = true
		a.dirty = append(a.dirty, c)
	}
}

// note takes in what stands beside an entity's events.
func (a *attempt) note(c *cell, change *store.Change, list []events.Recorded) {
	if change.Gone && c.entity.Kind.Rests() {
		c.rest(list)
	}
	newest := 0
	for i := range list {
		if list[i].Version > 0 || i == 0 {
			newest = i
		}
		if c.kept && list[i].Event.Type().Snapshots() {
			a.snapshots = append(a.snapshots, toldAt{a.events + i, c.entity})
		}
	}
	if change.Result != nil {
		a.results = append(a.results, result{a.events + newest, change.Result})
	}
}

// rest notes what is left of an entity that has no row any more: its newest event, where it is among those of the change.
func (c *cell) rest(list []events.Recorded) {
	for _, r := range slices.Backward(list) {
		if r.Version > 0 {
			c.history, c.told = []events.Recorded{r}, true
			return
		}
	}
}

// gone reports whether the transaction has changed an entity so that only the log knows it, which does not have its newest events yet.
func (c *cell) gone() bool { return c.dirty && !c.kept && !c.told }

func (a *attempt) putKey(change store.KeyChange) {
	k, ok := a.keys[change.Key]
	if !ok {
		k = &keyCell{}
		a.keys[change.Key] = k
	}
	k.KeyChange = change
	if !k.dirty {
		k.dirty = true
		a.dirtyKeys = append(a.dirtyKeys, k)
	}
}

// fill is a row of a receipt whose payload is read with the commit.
type fill struct {
	cell *cell
	row  *store.Row
}

// rows is the kept rows of a receipt, those of open claims with their payloads.
func (a *attempt) rows(changes store.Changes) []store.Row {
	kept := 0
	for i := range changes.Rows {
		if a.cells[changes.Rows[i].Row.Entity].kept {
			kept++
		}
	}
	if kept == 0 {
		return nil
	}
	list := make([]store.Row, 0, kept)
	for i := range changes.Rows {
		c := a.cells[changes.Rows[i].Row.Entity]
		if !c.kept {
			continue
		}
		if c.row.Worker == (events.ID{}) {
			list = append(list, given(c.row, nil))
			continue
		}
		list = append(list, given(c.row, c.row.Payload))
		if c.row.Payload == nil && c.stored {
			a.fills = append(a.fills, fill{c, &list[len(list)-1]})
		}
	}
	return list
}

// repeat is the receipt of an id that was used before.
func (a *attempt) repeat(id store.CommitID, used usedID) (store.Receipt, error) {
	if used.number == 0 {
		return store.Receipt{ID: id, Err: fmt.Errorf("commit %s: %w", id, store.ErrVoid)}, nil
	}
	receipt, ok := a.repeated[id]
	if !ok {
		return receipt, fmt.Errorf("commit %s: it was not read", id)
	}
	return receipt, nil
}

// storable refuses what the server cannot keep: text with a zero byte.
func storable(changes store.Changes) error {
	for i := range changes.Rows {
		row := &changes.Rows[i].Row
		if err := cmp.Or(zeroless(row.Entity.Kind.String(), row.Entity.Name), zeroless("topic", row.Topic), zeroless("lock", row.Lock)); err != nil {
			return err
		}
	}
	for _, count := range changes.Counts {
		if err := zeroless("topic", count.Topic); err != nil {
			return err
		}
	}
	for i := range changes.Keys {
		if err := cmp.Or(zeroless("topic", changes.Keys[i].Key.Topic), zeroless("key", changes.Keys[i].Key.Name)); err != nil {
			return err
		}
	}
	for i := range changes.Permits {
		if err := zeroless("lock", changes.Permits[i].Permit.Lock); err != nil {
			return err
		}
	}
	return nil
}

func zeroless(what, name string) error {
	if strings.IndexByte(name, 0) < 0 {
		return nil
	}
	return fmt.Errorf("%s %q: want no zero byte", what, name)
}
