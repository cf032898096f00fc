package calls

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// Prune is the call of fsm.Prune, of a store that is a store.Pruner, with what it saw as of the last run of its Fn. Where it saw locks whose permits
// it was not given it has changed nothing: it is made again with [Known.See].
func Prune(o Origin, c fsm.Prune, known Known) (store.Call, *fsm.Pruned) {
	need := store.Need{
		Held: []events.Entity{events.LogEntity(), events.ClockEntity()},
		Prune: store.Prunable{
			Before: c.Bound(known.Clock, known.Now), Ahead: known.Clock.StepAt, Upto: known.Upto, Events: c.Events, Rows: c.Rows,
		},
	}
	for lock, n := range known.locks {
		need.Holders = append(need.Holders, store.LockPage{Lock: lock, N: n})
	}
	slices.SortFunc(need.Holders, func(a, b store.LockPage) int { return strings.Compare(a.Lock, b.Lock) })
	call := o.call(c.Name(), &c, need)
	seen := new(fsm.Pruned)
	call.Fn = decide(func(held fsm.Held) (fsm.Outcome, error) {
		outcome, s, err := c.Decide(held)
		*seen = s
		return outcome, err
	})
	return call, seen
}

// Known is what a caller knows of a store before a Prune holds it.
type Known struct {
	Now   time.Time // by this and the clock it asks for what may be old enough; the rule looks again
	Clock fsm.Clock
	Upto  store.Cursor // nothing goes behind it, unless it is the zero: what the checkpoints of durable projections have passed
	locks map[string]int
}

// See is known with the permits of these locks to be held as well, as many as are out now and as may be before the next look.
func (k Known) See(locks []fsm.Lock) Known {
	held := maps.Clone(k.locks)
	if held == nil {
		held = map[string]int{}
	}
	for _, lock := range locks {
		held[lock.Name] = max(lock.Held, lock.Permits, 1)
	}
	k.locks = held
	return k
}

// Erase is the call of fsm.Erase, with the refusals of its messages as of the last run of its Fn.
func Erase(o Origin, c fsm.Erase) (store.Call, *[]*fsm.Refusal) {
	var need store.Need
	for _, id := range c.IDs {
		need.Held = append(need.Held, events.MessageEntity(id))
	}
	return refusing(o.call(c.Name(), nil, need), c.Decide)
}
