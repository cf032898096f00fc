package postgres

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
)

// between is a clock that runs something once, when it has been asked for so many times.
type between struct {
	left atomic.Int64
	do   func()
}

func (b *between) clock() time.Time {
	if b.left.Add(-1) == 0 {
		b.do()
	}
	return time.Now()
}

// A claim holds the locks of its messages in its second round trip. Whoever had one of them and gave it back since the first has a lower token.
func TestTokenOfALockThatWasTriedIsHigherThanWhatWasGivenMeanwhile(t *testing.T) {
	dsn := pgtest.Database(t)
	var trip between
	slow := &beds{t, openAt(t, dsn, Options{Clock: trip.clock})}
	other := &beds{t, openAt(t, dsn, Options{Clock: time.Now})}
	slow.enqueue("slow", "l", 1)
	other.enqueue("other", "l", 1)
	one, two := slow.id(), slow.id()
	var earlier events.Token
	trip.do = func() { // the first round trip has been answered
		rows := other.claim(two, "other", 1)
		if len(rows) != 1 {
			t.Fatalf("%d claims, want 1", len(rows))
		}
		earlier = rows[0].LockToken
		other.settle(two, rows)
	}
	acquire, _ := calls.Acquire(slow.origin(), fsm.Acquire{Lock: "beside", Worker: one})
	claim := calls.Claim(slow.origin(), fsm.Claim{Worker: one, Asks: []fsm.Ask{{Topic: "slow", N: 1}}})
	trip.left.Store(3) // it is asked before the first round trip, for what is due, and at its end
	receipts, err := slow.s.Decide(t.Context(), acquire, claim)
	if err != nil || receipts[0].Err != nil || receipts[1].Err != nil {
		t.Fatalf("%v, %v", err, receipts)
	}
	var later events.Token
	for _, row := range receipts[1].Rows {
		if row.Entity.Kind == events.KindMessage && row.Worker == one {
			later = row.LockToken
		}
	}
	if earlier == 0 || later <= earlier {
		t.Errorf("token %d after token %d of the same lock", later, earlier)
	}
}

// What a worker holds is read in the first round trip, and the locks of it are held in the second. A permit that came back in between is not its any more.
func TestPermitThatCameBackBeforeItsLockWasHeldIsNotSeen(t *testing.T) {
	dsn := pgtest.Database(t)
	var trip between
	slow := &beds{t, openAt(t, dsn, Options{Clock: trip.clock})}
	other := &beds{t, openAt(t, dsn, Options{Clock: time.Now})}
	worker := slow.id()
	call, permit := calls.Acquire(other.origin(), fsm.Acquire{Lock: "l", Worker: worker})
	other.commit(call)
	trip.do = func() {
		call, _ := calls.Unlock(other.origin(), fsm.Unlock{Worker: worker, Permits: []fsm.PermitKey{permit.PermitKey}})
		other.commit(call)
	}
	var view store.View
	trip.left.Store(2)
	slow.commit(store.Call{
		ID: slow.id(), Command: events.Command{Name: "test"}, Need: store.Need{Claims: []store.Holder{{Worker: worker, N: 9}}},
		Fn: func(v store.View) (store.Changes, error) { view = v; return store.Changes{}, nil },
	})
	row, held := view.Rows[events.LockEntity("l")]
	if len(view.Permits) > 0 && !held {
		t.Errorf("the view has permit %+v of a lock that is free: %+v, %+v", view.Permits[0], row, view.History[events.LockEntity("l")])
	}
}
