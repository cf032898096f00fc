package replay

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/store"
)

// What has ended leaves the maps: the memory of a verification does not grow with history.
func TestVerifierHoldsOnlyWhatIsOpen(t *testing.T) {
	h := history.New(func(int) int { return 0 })
	worker := events.ID{15: 9}
	for range 300 {
		ids, err := h.Enqueue("mail", 1, fsm.EnqueueMessage{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Claim(worker, "mail", 1); err != nil {
			t.Fatal(err)
		}
		if err := h.Settle(worker, fsm.Settlement{ID: ids[0], Command: fsm.CompleteMessage{Token: 2}}); err != nil {
			t.Fatal(err)
		}
	}
	v := newVerifier(h.Store, Options{})
	if err := v.verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v.report.Entities != 301 || len(v.held) != 1 || len(v.commits) != 0 || len(v.counted) != 1 {
		t.Errorf("after %d entities %d are held, %d commits, %d counts", v.report.Entities, len(v.held), len(v.commits), len(v.counted))
	}
}

// Of what ends without having told its state nothing is held either.
func TestVerifierForgetsWhatHasNoBeginning(t *testing.T) {
	h := history.New(func(n int) int { return min(1, n-1) }) // so that time passes
	worker := events.ID{15: 9}
	ids, err := h.Enqueue("mail", 300, fsm.EnqueueMessage{})
	if err != nil {
		t.Fatal(err)
	}
	for range ids {
		if _, err := h.Claim(worker, "mail", 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Busy(1); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := h.Settle(worker, fsm.Settlement{ID: id, Command: fsm.CompleteMessage{Token: 2}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Prune(400, ""); err != nil { // the enqueueings, and some of the claims
		t.Fatal(err)
	}
	v := newVerifier(h.Store, Options{})
	if err := v.verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !v.report.Clean() || v.report.Through < 300 || v.report.Entities < 300 || len(v.held) > 3 || len(v.without) != 0 {
		t.Errorf("after %d entities through %d %d are held and %d are headless: %v",
			v.report.Entities, v.report.Through, len(v.held), len(v.without), v.report.Violations)
	}
}

// A lock for every customer, each free again: none of them is held.
func TestVerifierForgetsFreeLocks(t *testing.T) {
	h := history.New(func(int) int { return 0 })
	worker := h.ID()
	for n := range 300 {
		use(t, h, worker, fmt.Sprintf("customer-%d", n))
	}
	v := newVerifier(h.Store, Options{})
	if err := v.verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !v.report.Clean() || v.report.Entities != 300 || len(v.held)+len(v.permits)+len(v.broken) != 0 {
		t.Errorf("after %d entities %d are held and %d permits are out: %v", v.report.Entities, len(v.held), len(v.permits), v.report.Violations)
	}
}

// use takes a lock and gives it back.
func use(t *testing.T, h *history.History, worker events.ID, lock string) {
	t.Helper()
	permit, err := h.Acquire(worker, lock, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Unlock(worker, permit.PermitKey); err != nil {
		t.Fatal(err)
	}
}

// More free locks than there is room for: where the log has to tell, it tells the same, and a lock that is not what it was is found.
func TestVerifierReadsAFreeLockThatItForgot(t *testing.T) {
	h := history.New(func(int) int { return 0 })
	worker := h.ID()
	for range 3 {
		for n := range 3 * restWays {
			use(t, h, worker, fmt.Sprintf("customer-%d", n))
		}
	}
	verified := func(s store.Store) []Violation {
		v := newVerifier(s, Options{})
		v.resting = newResting(1)
		if err := v.verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		return v.report.Violations
	}
	if got := verified(h.Store); len(got) > 0 {
		t.Errorf("violations %v", got)
	}
	// Its second use is gone, both commits of it.
	lost := events.LockEntity("customer-5")
	got := verified(without{h.Store, func(r events.Recorded) bool { return r.Entity == lost && (r.Version == 3 || r.Version == 4) }})
	if len(got) != 1 || got[0].Entity != lost || got[0].Version != 5 {
		t.Errorf("violations %v, want one of %s version 5", got, lost)
	}
}

// without is a store that has lost events.
type without struct {
	store.Store
	lost func(events.Recorded) bool
}

// Read implements store.Store.
func (w without) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for r, err := range w.Store.Read(ctx, after, f) {
			if (err != nil || !w.lost(r)) && !yield(r, err) {
				return
			}
		}
	}
}

// A lock in frequent use keeps its place, however many others are used in between one by one.
func TestRestingKeepsWhoIsUsed(t *testing.T) {
	r := newResting(1)
	hot := events.LockEntity("hot")
	for n := range 100 {
		r.put(hot, rest{version: n + 1, token: events.Token(n)})
		for i := range restWays - 1 {
			r.put(events.LockEntity(fmt.Sprintf("cold-%d-%d", n, i)), rest{version: 1, token: 1})
		}
		if got, ok := r.get(hot); !ok || got.version != n+1 || got.token != events.Token(n) {
			t.Fatalf("after %d uses the place is %+v, %t", n+1, got, ok)
		}
	}
	r.put(events.LockEntity("one too many"), rest{version: 1, token: 1})
	if got, ok := r.get(hot); ok {
		t.Errorf("it is still known: %+v", got)
	}
}

// The filter never forgets, and is wrong seldom enough.
func TestEndedNeverForgets(t *testing.T) {
	e := newEnded()
	entity := func(n int) events.Entity {
		return events.MessageEntity(events.ID{13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)})
	}
	const n = 100_000
	for i := range n {
		e.add(entity(i))
	}
	wrong := 0
	for i := range n {
		if !e.maybe(entity(i)) {
			t.Fatalf("%s is forgotten", entity(i))
		}
		if e.maybe(entity(n + i)) {
			wrong++
		}
	}
	if wrong > n/1000 {
		t.Errorf("%d of %d are taken for others", wrong, n)
	}
}
