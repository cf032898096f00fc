package postgres

import (
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
)

// seen is what a call that needs something is given.
func (b *beds) seen(need store.Need) (view store.View) {
	b.t.Helper()
	b.commit(store.Call{ID: b.id(), Command: events.Command{Name: "test"}, Need: need, Fn: func(v store.View) (store.Changes, error) {
		view = v
		return store.Changes{}, nil
	}})
	return view
}

func TestWhoWaitsBehindOneThatCannotBeReadIsTold(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	b, h := &beds{t, s}, newHand(t, s)
	call, _ := calls.Acquire(b.origin(), fsm.Acquire{Lock: "l", Worker: b.id()})
	b.commit(call)
	var waiting []events.Entity
	for _, row := range b.enqueue("mail", "l", 3).Rows {
		waiting = append(waiting, row.Entity)
	}
	if n := len(b.claim(b.id(), "mail", 9)); n != 0 {
		t.Fatalf("%d claims, want 0", n)
	}
	first := b.seen(store.Need{Locks: []string{"l"}}).Waiting["l"]
	if len(first) != 1 {
		t.Fatalf("%d wait first, want 1", len(first))
	}
	h.do("UPDATE @messages SET version = 0 WHERE id = $1", first[0].Entity.ID)
	list := b.seen(store.Need{Locks: []string{"l"}}).Waiting["l"]
	if len(list) != 1 || list[0].Entity == first[0].Entity {
		t.Errorf("%d wait behind %s of %v, want 1", len(list), first[0].Entity, waiting)
	}
}

func TestMessagesBehindOneWhoseLockCannotBeReadAreClaimed(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	b, h := &beds{t, s}, newHand(t, s)
	call, _ := calls.Acquire(b.origin(), fsm.Acquire{Lock: "l", Worker: b.id()})
	b.commit(call)
	b.enqueue("mail", "l", 3)
	b.enqueue("mail", "", 2)
	h.do("UPDATE @locks SET version = 0")
	for range 2 {
		if n := len(b.claim(b.id(), "mail", 1)); n != 1 {
			t.Errorf("%d claims, want 1", n)
		}
	}
}

func TestClaimsBehindManyThatCannotBeReadAreTold(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	b, h := &beds{t, s}, newHand(t, s)
	b.enqueue("mail", "", 21)
	worker := b.id()
	rows := b.claim(worker, "mail", 21)
	h.do("UPDATE @messages SET version = 0 WHERE id IN (SELECT id FROM @messages ORDER BY claimed_at, id LIMIT 20)")
	if list := b.seen(store.Need{Claims: []store.Holder{{Worker: worker, N: 1}}}).Claims[worker]; len(list) != 1 {
		t.Errorf("%d of %d claims are told, want 1", len(list), len(rows))
	}
}
