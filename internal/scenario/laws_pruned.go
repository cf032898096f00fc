package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// place is where an entity stands in the log.
type place struct {
	kept  []int64 // its events that are left
	moved int64   // the newest that moved it
	told  int64   // the newest that says all of its state; 0 where none does
	ended int64   // the event that ended it; 0 while it is open, or may come back
}

// pruned is what the log says of its own beginning.
type pruned struct {
	at      int64 // where the engine has the event that is taken in
	through int64
	total   int
	places  map[events.Entity]*place
	erased  map[events.ID]bool
}

// placed takes in where an event stands.
func (l *laws) placed(r events.Recorded) {
	p := l.places[r.Entity]
	if p == nil {
		p = new(place)
		l.places[r.Entity] = p
	}
	p.kept = append(p.kept, l.at)
	if r.Event.Type().Snapshots() {
		p.told = l.at
	}
	if r.Version == 0 {
		return
	}
	if p.moved, p.ended = l.at, 0; over(r.To) {
		p.ended = l.at
	}
}

// over reports whether an entity in the state has ended for good.
func over(s events.State) bool {
	switch s {
	case events.Completed, events.Cancelled, events.Discarded, events.Stopped, events.Purged, events.Finished, events.Refused:
		return true
	}
	return false
}

// prunedEvent takes in that the beginning of the log is gone: what is open, or may come back, has told all of its state since.
func (l *laws) prunedEvent(e *events.LogPruned) error {
	if e.Through <= l.through || e.Events <= 0 || e.Total != l.total+e.Events || e.Through >= l.at {
		return fmt.Errorf("law 1: %d events through %d make %d, before it were %d through %d", e.Events, e.Through, e.Total, l.total, l.through)
	}
	l.through, l.total = e.Through, e.Total
	var errs []error
	for _, entity := range slices.SortedFunc(maps.Keys(l.places), events.Entity.Compare) {
		p := l.places[entity]
		all := len(p.kept)
		p.kept = slices.DeleteFunc(p.kept, func(at int64) bool { return at <= e.Through })
		switch {
		case len(p.kept) == all || p.told > e.Through:
		case entity.Kind == events.KindLock && l.rests(entity.Name):
			if p.moved <= e.Through { // it begins again; its tokens rise all the same
				k := l.locks[entity.Name]
				k.state, k.version = events.Absent, 0
			}
		case entity.Kind == events.KindSweep || p.ended != 0:
		default:
			errs = append(errs, fmt.Errorf("law 1: the beginning of %s is gone, and it has not told its state since", entity))
		}
	}
	return errors.Join(errs...)
}

// rests reports whether a lock is free, and nobody configured it: then it has no row.
func (l *laws) rests(name string) bool { k := l.locks[name]; return len(k.out) == 0 && k.permits == 0 }

// told takes in that a lock told its state once more, with who holds it.
func (k *lock) told(r events.Recorded, e *events.LockSnapshotted) error {
	if len(e.Out) != len(k.out) {
		return fmt.Errorf("law 7: it tells of %d permits, %d are out", len(e.Out), len(k.out))
	}
	for _, out := range e.Out {
		p := k.out[out.Token]
		got := store.Permit{
			PermitKey: store.PermitKey{Lock: r.Entity.Name, Token: out.Token}, Worker: out.Worker, Message: out.Message,
			AcquiredAt: out.AcquiredAt, ExpiresAt: out.ExpiresAt,
		}
		if p == nil || got != p.Permit {
			return fmt.Errorf("law 7: it tells of %+v, which is not out", got)
		}
	}
	return nil
}

// keepsContents reports whether the contents of a message must still be there: it was not erased, and its end, if it had one, was not let go.
func (l *laws) keepsContents(id events.ID) bool {
	p := l.places[events.MessageEntity(id)]
	return !l.erased[id] && (p.ended == 0 || p.ended > l.through)
}
