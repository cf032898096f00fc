package fsm_test

import (
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// logged is an event as the world's log has it.
type logged struct {
	commit   int
	position int
	at       time.Time
	entity   events.Entity
	events.Transition
}

// known is what a store knows of a message: all of it while its row is kept, and else what is left of its history.
func (w *world) known(id events.ID) fsm.Message {
	m := w.messages[id]
	if m.Live() || m.State == events.Absent {
		m.ID = id
		return m
	}
	var newest *logged
	for i, e := range w.log {
		if e.entity != events.MessageEntity(id) {
			continue
		}
		if e.Version == 1 || e.Event.Type().Snapshots() {
			return m
		}
		if newest == nil || e.Version > 0 {
			newest = &w.log[i]
		}
	}
	if newest == nil {
		return fsm.Message{ID: id}
	}
	rest, err := fsm.Rest(newest.recorded())
	if err != nil {
		w.fail("%v", err)
	}
	return *rest.(*fsm.Message)
}

func (e *logged) recorded() events.Recorded {
	return events.Recorded{Transition: e.Transition, Position: int64(e.position), Entity: e.entity, Commit: &events.Commit{At: e.at}}
}

// messageInto holds a message where the store knows it.
func (w *world) messageInto(h *fsm.Held, id events.ID) {
	if m := w.known(id); m.State != events.Absent {
		h.Messages[id] = m
	}
}

// pruning is how much of the beginning may go: whole commits that were decided before a time, about as many events as were asked for.
func (w *world) pruning(before time.Time, n, rows int) fsm.Pruning {
	var p fsm.Pruning
	for i := 0; i < len(w.log) && w.log[i].at.Before(before); {
		size := 0
		for _, e := range w.log[i:] {
			if e.commit != w.log[i].commit {
				break
			}
			size++
		}
		if p.Events > 0 && p.Events+size > n {
			break
		}
		i += size
		p = fsm.Pruning{Through: int64(w.log[i-1].position), At: w.log[i-1].at, Events: p.Events + size}
	}
	told := map[events.Entity]bool{}
	for _, e := range slices.Backward(w.log) {
		told[e.entity] = told[e.entity] || int64(e.position) > p.Through && e.Event.Type().Snapshots()
		if v := w.value(e.entity); int64(e.position) <= p.Through && !told[e.entity] && v.Kept() {
			told[e.entity] = true
			p.Rows = append(p.Rows, v)
		}
	}
	slices.SortFunc(p.Rows, func(a, b fsm.Value) int { return a.Entity().Compare(b.Entity()) })
	p.Rows = p.Rows[:min(rows, len(p.Rows))]
	return p
}

// prune lets go of what is older than some time, to the last page or not.
func (w *world) prune() {
	c := fsm.Prune{
		Retention: time.Duration(rapid.SampledFrom([]int{20, 200, 2000}).Draw(w.t, "retention")) * time.Second,
		Events:    rapid.IntRange(1, 20).Draw(w.t, "events"), Rows: rapid.IntRange(1, 8).Draw(w.t, "rows"),
	}
	w.say("what is older than %s goes", c.Retention)
	most := rapid.SampledFrom([]int{1, 2, 5, 2*len(w.log) + 1}).Draw(w.t, "commits")
	for n := range 2*len(w.log) + 1 {
		if n == most {
			return // killed
		}
		h := w.held()
		h.Log, h.Clock, h.Pruning = w.store, w.clock, w.pruning(c.Bound(w.clock, w.now), c.Events, c.Rows)
		o, seen, err := c.Decide(h)
		if len(seen.Unseen) > 0 {
			if len(o.Changes) > 0 || o.Prune > 0 {
				w.fail("locks were unseen, and %v happened", told(o))
			}
			w.permitsInto(&h, w.pageOf(len(w.permits), func(fsm.Permit) bool { return true })...)
			o, seen, err = c.Decide(h)
		}
		if err == nil && len(o.Changes) == 0 {
			if seen.Through != 0 {
				w.fail("nothing goes of %+v", seen.Pruning)
			}
			return
		}
		w.keep(o, err)
	}
	w.fail("it does not end")
}

// erase lets the contents of some messages go, whatever state they are in.
func (w *world) erase() {
	if len(w.places) == 0 {
		return
	}
	ids := rapid.SliceOfN(rapid.SampledFrom(w.places), 1, 3).Draw(w.t, "messages")
	h := w.held()
	h.Erased = map[events.ID]bool{}
	for _, id := range ids {
		w.messageInto(&h, id)
		h.Erased[id] = w.bare[id]
	}
	w.say("ops erase %d messages", len(ids))
	o, refusals, err := fsm.Erase{IDs: ids, By: "ops"}.Decide(h)
	w.keep(o, err)
	for i, id := range ids {
		if m, known := h.Messages[id]; (refusals[i] != nil) != (!known || m.Live()) {
			w.fail("%s is %s: %v", names.ID(id), m.State, refusals[i])
		}
	}
}

// lose checks what an outcome lets go before it is kept: what is open or may come back needs its contents, and has told its state.
func (w *world) lose(o fsm.Outcome) {
	for _, id := range o.Erase {
		if m := w.messages[id]; m.Live() {
			w.fail("the contents of %s go, which is %s", names.ID(id), m.State)
		}
	}
}

// letGo takes away what an outcome lets go.
func (w *world) letGo(o fsm.Outcome) {
	for _, id := range o.Erase {
		w.bare[id] = true
	}
	if o.Prune == 0 {
		return
	}
	newest := map[events.Entity]int{}
	for _, e := range w.log {
		if e.Version > 0 {
			newest[e.entity] = e.position
		}
		if m := w.messages[e.entity.ID]; int64(e.position) <= o.Prune && e.entity.Kind == events.KindMessage && !m.Live() && e.Version == m.Version {
			w.bare[m.ID] = true // its end went
		}
	}
	for name, l := range w.locks {
		if place, known := newest[events.LockEntity(name)]; known && int64(place) <= o.Prune && !l.Kept() {
			delete(w.locks, name) // a free lock begins again
		}
	}
	w.log = slices.DeleteFunc(w.log, func(e logged) bool { return int64(e.position) <= o.Prune })
}

// Law 1 on a log whose beginning is gone: whatever a store keeps a row of is what its events lead to, from its last snapshot or from its beginning. And
// law 4: what may still run has its contents.
func (w *world) nothingIsForgotten() {
	folded := w.folded()
	var kept []fsm.Value
	for id, m := range w.messages {
		kept = append(kept, &m)
		if m.Live() && w.bare[id] {
			w.fail("%s is %s, and its contents are gone", names.ID(id), m.State)
		}
	}
	for _, l := range w.locks {
		kept = append(kept, &l)
	}
	for _, topic := range w.topics {
		topic.Running = 0 // no event of it tells
		kept = append(kept, &topic)
	}
	for _, v := range w.workers {
		kept = append(kept, &v)
	}
	for _, v := range append(kept, &w.clock) {
		if diff := cmp.Diff(v, folded[v.Entity()]); v.Kept() && diff != "" {
			w.fail("%s is not what its events lead to (-kept +folded):\n%s", names.Entity(v.Entity()), diff)
		}
	}
}

// folded is what the events that are left lead to. An entity whose beginning is gone is not known before it tells its state. A lock that does not was
// free, and nobody had configured it, when the last of its events went: so what is told of it by events alone is all there is. Until it is certain
// that it tells nothing this is an assumption, which the snapshot overrules.
func (w *world) folded() map[events.Entity]fsm.Value {
	list, assumed := map[events.Entity]fsm.Value{}, map[events.Entity]bool{}
	for _, e := range w.log {
		v, snapshots := list[e.entity], e.Event.Type().Snapshots()
		if snapshots && assumed[e.entity] {
			v = nil
		}
		switch {
		case v == nil && e.Version > 1 && !snapshots && e.entity.Kind == events.KindLock && e.From == events.Free:
			l := fsm.RestingLock(e.entity.Name, events.Recorded{Transition: events.Transition{Version: e.Version - 1, To: e.From}})
			v, assumed[e.entity] = &l, true
		case v == nil && e.Version != 1 && !snapshots:
			continue
		case v == nil:
			v, _ = fsm.NewValue(e.entity)
			assumed[e.entity] = false
		}
		next, err := fsm.Apply(v, e.recorded())
		if err != nil {
			w.fail("%v", err)
		}
		list[e.entity] = next
	}
	return list
}
