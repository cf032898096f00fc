package replay

import (
	"context"
	"hash/maphash"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// resting remembers in fixed memory where entities rest that have no row and will go on from their newest event: free locks. There may be
// as many as the log has names. It never errs: of one that it had no room to remember, the log itself tells, which costs a reading of
// that lock's events. Whoever was looked for last stays longest, so that a lock in frequent use is not read again and again.
type resting struct {
	seed maphash.Seed
	sets [][restWays]rest
}

// rest is where one rests. Two names of one hash do not happen: 64 bits under a random seed.
type rest struct {
	hash     uint64
	version  int
	token    events.Token // the newest of its permits
	position int64        // of its newest event
}

const (
	restSets = 1 << 14 // 4 MiB: the last 131072 locks
	restWays = 8
)

func newResting(sets int) resting { return resting{maphash.MakeSeed(), make([][restWays]rest, sets)} }

// put remembers one in the first place of its set; whoever was in the last place is forgotten.
func (r resting) put(entity events.Entity, place rest) {
	place.hash = maphash.Comparable(r.seed, entity)
	set := &r.sets[place.hash%uint64(len(r.sets))]
	at := restWays - 1
	for i := range set {
		if set[i].hash == place.hash {
			at = i
			break
		}
	}
	copy(set[1:at+1], set[:at])
	set[0] = place
}

func (r resting) get(entity events.Entity) (rest, bool) {
	hash := maphash.Comparable(r.seed, entity)
	for _, place := range r.sets[hash%uint64(len(r.sets))] {
		if place.hash == hash && place.version > 0 {
			return place, true
		}
	}
	return rest{}, false
}

// wake gives an entity that may rest the state that its events before a position have left it in. One whose newest event was let go is one that never
// was.
func (v *verifier) wake(ctx context.Context, entity events.Entity, before int64) (*held, error) {
	lock := &fsm.Lock{Name: entity.Name}
	h := &held{value: lock}
	if place, ok := v.resting.get(entity); ok {
		if place.position <= v.log.value.(*fsm.Log).Through {
			return h, nil
		}
		lock.Version, lock.State, h.token = place.version, events.Free, place.token
		return h, nil
	}
	if !v.ended.maybe(entity) {
		return h, nil
	}
	for r, err := range v.store.Read(ctx, v.first, store.Filter{Entity: entity}) {
		if err != nil {
			return nil, err
		}
		if r.Position >= before {
			break
		}
		if e, ok := r.Event.(*events.LockAcquired); ok {
			h.token = e.Token
		}
		if r.Version > 0 {
			*lock = fsm.RestingLock(entity.Name, r)
		}
	}
	return h, nil
}
