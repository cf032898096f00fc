package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// This file is what Verify does where the beginning of the log was let go.
//
// What had events there and is kept has told its state once more, at the latest in the commit of the newest log.pruned: see events.Type.Snapshots.
// Until an entity has done so its events are those of a headless one: that its versions and states follow each other and stand in its table is
// checked, and nothing else can be. Behind the newest log.pruned nothing is headless: whoever is still has lost its beginning to something else. But
// for a lock that rested when its beginning went, for which nobody tells anything: it begins where it is free, with nothing but that.

// beginning is what is known of where the log begins.
type beginning struct {
	first   store.Cursor // before the oldest event that is kept; the zero where nothing has gone
	oldest  int64        // the position of the first event that was read
	toldAt  int64        // the position of the newest log.pruned: by then every entity has told its state; 0 where nothing has gone
	log     *held        // the log itself
	without map[events.Entity]headless
}

// headless is an entity whose beginning was let go, as its last event has left it.
type headless struct {
	version  int
	state    events.State
	position int64
	lock     restingLock
}

// restingLock is what the events of a headless lock tell of it.
type restingLock struct {
	free    bool         // it was: all permits that are out were taken since
	permits int          // how many it has, where that was set since; 0 is not known, or not set
	token   events.Token // the newest of its permits
}

func newBeginning() beginning {
	return beginning{log: &held{value: &fsm.Log{}}, without: map[events.Entity]headless{}}
}

// locate finds where the log begins.
func (v *verifier) locate(ctx context.Context) error {
	first, err := store.Oldest(ctx, v.store)
	if err != nil || first == "" {
		return err
	}
	v.first, v.report.Head = first, first
	for r, err := range v.store.Read(ctx, first, store.Filter{Entity: events.LogEntity()}) {
		if err != nil {
			return err
		}
		v.toldAt = r.Position
		if e, ok := r.Event.(*events.LogPruned); ok {
			v.report.Through = e.Through
		}
	}
	if v.toldAt == 0 {
		v.violate(Violation{Entity: events.LogEntity(), Detail: fmt.Sprintf("its beginning is gone, before cursor %q, and nothing says so", string(first))})
	}
	return nil
}

// blind reports whether there may still be headless entities before an event, so that what is counted over many of them is not known.
func (v *verifier) blind(r events.Recorded) bool { return r.Position < v.toldAt }

// beheaded checks an event of a headless entity, and reports whether it was one. One that tells its state is none any more.
func (v *verifier) beheaded(ctx context.Context, r events.Recorded) (bool, error) {
	h, known := v.without[r.Entity]
	if !known {
		begins, err := v.begins(ctx, r)
		if err != nil || !begins {
			return false, err
		}
	}
	typ := r.Event.Type()
	switch life, err := fsm.LifecycleOf(r.Entity.Kind); {
	case err != nil:
		return false, err
	case !typ.Known():
		return false, nil // it is told of as everywhere
	case !typ.Moves():
		if r.From != r.To || r.To != h.state {
			v.fault(r, "%s from %s to %s is recorded, it was %s", typ, r.From, r.To, h.state)
		}
		return true, nil
	case known && r.Version != h.version+1:
		v.breaks(r, nil, fmt.Sprintf("%s: version %d follows version %d", typ, r.Version, h.version))
		return true, nil
	case known && r.From != h.state || !life.Leads(r.From, typ, r.To):
		v.breaks(r, nil, fmt.Sprintf("%s from %s to %s is recorded, it was %s", typ, r.From, r.To, h.state))
		return true, nil
	case typ.Snapshots():
		return false, nil
	}
	v.follows(r, h)
	return true, nil
}

// begins reports whether an event is the first one that is kept of an entity whose beginning was let go.
func (v *verifier) begins(ctx context.Context, r events.Recorded) (bool, error) {
	if !v.blind(r) || r.Version <= 1 || r.Event.Type().Snapshots() || v.held[r.Entity] != nil {
		return false, nil
	}
	if !v.ended.maybe(r.Entity) {
		return true, nil
	}
	again, err := v.again(ctx, r)
	return !again, err
}

// follows remembers what an event has left of a headless entity. One that has ended is history like any other.
func (v *verifier) follows(r events.Recorded, h headless) {
	h.version, h.state, h.position = r.Version, r.To, r.Position
	switch r.Entity.Kind {
	case events.KindLock:
		lock := &held{token: h.lock.token}
		v.keepPermit(r, lock)
		h.lock.token = lock.token
		h.lock.free = h.lock.free || r.To == events.Free
		if e, ok := r.Event.(*events.LockConfigured); ok {
			h.lock.permits = e.Permits
		}
	case events.KindMessage:
		if !open(&fsm.Message{State: r.To}) {
			v.gone(r.Entity)
			return
		}
	case events.KindWorker:
		if !open(&fsm.Worker{State: r.To}) {
			v.gone(r.Entity)
			return
		}
	}
	v.without[r.Entity] = h
}

// gone lets a headless entity go that has ended.
func (v *verifier) gone(entity events.Entity) {
	delete(v.without, entity)
	v.ended.add(entity)
	v.report.Entities++
}

// settleHeads ends the time of headless entities, at the newest log.pruned. A sweep never tells anything, and neither does a lock that rested.
func (v *verifier) settleHeads() {
	list := slices.SortedFunc(maps.Keys(v.without), func(a, b events.Entity) int {
		return cmp.Compare(v.without[a].position, v.without[b].position)
	})
	for _, entity := range list {
		h := v.without[entity]
		v.gone(entity)
		switch {
		case entity.Kind == events.KindSweep:
		case entity.Kind == events.KindLock && h.lock.free:
			v.settleLock(entity, h)
		default:
			v.violate(Violation{entity, h.version, h.position, fmt.Sprintf("it is %s, and neither its beginning nor a snapshot is kept", h.state)})
			v.disbelieve(entity, "")
		}
	}
}

// settleLock goes on with a lock that was free once since its beginning went.
func (v *verifier) settleLock(entity events.Entity, h headless) {
	lock := &fsm.Lock{Name: entity.Name, Version: h.version, State: h.state, Permits: h.lock.permits, Held: len(v.out(entity.Name))}
	if lock.Kept() {
		v.held[entity] = &held{value: lock, position: h.position, token: h.lock.token}
		return
	}
	v.resting.put(entity, rest{version: h.version, token: h.lock.token, position: h.position})
}

// out is the permits of a lock that are out.
func (v *verifier) out(lock string) map[events.Token]*out {
	list := map[events.Token]*out{}
	for key, p := range v.permits {
		if key.Lock == lock {
			list[key.Token] = p
		}
	}
	return list
}

// prunedLaw says what is wrong with an event that tells of what was let go.
func (v *verifier) prunedLaw(r events.Recorded, e *events.LogPruned) string {
	switch {
	case e.Through >= r.Position:
		return fmt.Sprintf("it lets go of what lies behind itself, up to position %d", e.Through)
	case r.Position <= v.toldAt && v.oldest <= e.Through:
		return fmt.Sprintf("it lets go of what is up to position %d, and an event at position %d is kept", e.Through, v.oldest)
	}
	return ""
}
