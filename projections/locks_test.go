package projections_test

import (
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
)

func (l *log) lock(name string, event events.Event, states ...events.State) {
	l.add(events.LockEntity(name), event, states[0], states[1])
}

func (l *log) acquire(name string, e events.LockAcquired) {
	l.lock(name, &e, events.Free, events.Held)
}

// locked enqueues a message with a lock.
func (l *log) locked(id events.ID, topic, lock string) {
	l.message(id, &events.MessageEnqueued{Topic: topic, Lock: lock}, events.Absent, events.Queued)
}

func (l *log) block(id events.ID, lock string) {
	l.message(id, &events.MessageBlocked{Lock: lock}, events.Queued, events.Blocked)
}

func (l *log) unblock(id events.ID, e events.MessageUnblocked) {
	l.message(id, &e, events.Blocked, events.Queued)
}

// A claim takes the lock, others wait for it, the claim is ended from outside, and its permit comes back later.
func TestLocksKnowWhoHoldsAndWhoWaits(t *testing.T) {
	var l log
	var locks projections.Locks
	a := id(101)
	l.locked(id(1), "mail", "press")                                                                 // 1
	l.locked(id(2), "mail", "press")                                                                 // 2
	l.locked(id(3), "mail", "press")                                                                 // 3
	l.locked(id(4), "scan", "press")                                                                 // 4
	l.enqueue(id(5), "scan")                                                                         // 5, without a lock
	l.acquire("press", events.LockAcquired{Token: 6, Worker: a, Message: id(1), Held: 1})            // 6
	l.claim(id(1), a, events.MessageClaimed{Token: 2, Attempt: 1, LockToken: 6})                     // 7
	l.block(id(3), "press")                                                                          // 8
	l.block(id(2), "press")                                                                          // 9
	l.block(id(4), "press")                                                                          // 10
	cancelled := &events.MessageCancelled{Reason: events.ReasonOperator, By: "ann", Detail: "wrong"} //
	l.message(id(1), cancelled, events.Running, events.Cancelled)                                    // 11
	l.apply(&locks)

	held := projections.Permit{
		Mark: mark(6), Lock: "press", Token: 6, Worker: a, Message: id(1),
		Ended: projections.ClaimEnd{Mark: mark(11), Type: events.TypeMessageCancelled, Reason: events.ReasonOperator, By: "ann", Detail: "wrong"},
	}
	want := projections.Lock{Name: "press", Permits: 1, Out: []projections.Permit{held}, Waiters: []projections.Waiters{
		{Topic: "mail", Blocked: 2, Longest: id(3), Since: mark(8)},
		{Topic: "scan", Blocked: 1, Longest: id(4), Since: mark(10)},
	}}
	same(t, locks.All(), []projections.Lock{want})
	same(t, want.Free(), 0)
	same(t, locks.AsOf(), mark(11))
	for message, name := range map[events.ID]string{id(1): "", id(2): "press", id(5): ""} {
		got, has := locks.Of(message)
		same(t, []any{got, has}, []any{name, name != ""})
	}

	l.lock("press", &events.LockReleased{Token: 6}, events.Held, events.Free) // 12
	l.unblock(id(3), events.MessageUnblocked{Lock: "press"})                  // 13
	l.unblock(id(4), events.MessageUnblocked{Lock: "press", Repair: true})    // 14
	l.apply(&locks)
	want.Out = nil
	want.Waiters = []projections.Waiters{
		{Topic: "mail", Blocked: 1, Trying: 1, Longest: id(3), Since: mark(8)}, // it has waited all the while
		{Topic: "scan", Trying: 1, Longest: id(4), Since: mark(10)},
	}
	same(t, locks.All(), []projections.Lock{want})
	one, known := locks.Lock("press")
	same(t, one, want)
	same(t, known, true)
	same(t, locks.Repairs(), []projections.Repair{{Mark: mark(14), Lock: "press", Topic: "scan", Message: id(4)}})

	l.acquire("press", events.LockAcquired{Token: 15, Worker: a, Message: id(4), Held: 1})      // 15
	l.claim(id(4), a, events.MessageClaimed{Token: 4, Attempt: 1, LockToken: 15})               // 16
	l.block(id(3), "press")                                                                     // 17
	l.complete(id(4))                                                                           // 18
	l.lock("press", &events.LockReleased{Token: 15}, events.Held, events.Free)                  // 19
	l.message(id(2), &events.MessageCancelled{}, events.Blocked, events.Cancelled)              // 20
	l.unblock(id(3), events.MessageUnblocked{Lock: "press"})                                    // 21
	l.message(id(3), &events.MessageDiscarded{Lock: "press"}, events.Queued, events.Discarded)  // 22
	l.acquire("press", events.LockAcquired{Token: 23, Worker: a, ExpiresAt: mark(30).At})       // 23
	l.lock("press", &events.LockRefused{Command: "unlock", Sent: 15}, events.Held, events.Held) // 24
	l.apply(&locks)
	same(t, locks.All(), []projections.Lock{{Name: "press", Permits: 1, Out: []projections.Permit{
		{Mark: mark(23), Lock: "press", Token: 23, Worker: a, ExpiresAt: mark(30).At},
	}}})
	same(t, locks.Totals(), projections.LockTotals{Acquired: 3, Released: 2, Refused: 1, Blocked: 4, Discarded: 1, Repaired: 1})
}

// A permit that its holder does not give back is told with how it ended. A lock that is free is forgotten unless somebody configured it.
func TestLocksTellHowPermitsEnded(t *testing.T) {
	var l log
	var locks projections.Locks
	a, b := id(101), id(102)
	l.lock("press", &events.LockConfigured{Permits: 3, By: "ann", Detail: "INC-142"}, events.Absent, events.Free) // 1
	l.acquire("press", events.LockAcquired{Token: 2, Worker: a, Held: 1})                                         // 2
	l.acquire("press", events.LockAcquired{Token: 3, Worker: a, Held: 2})                                         // 3
	l.acquire("press", events.LockAcquired{Token: 4, Worker: b, Held: 3})                                         // 4
	evidence := events.Evidence{Reason: events.ReasonSilent, Claimer: a, Decider: b, Sweep: id(7)}
	l.lock("press", &events.LockOrphaned{Token: 2, Evidence: evidence}, events.Held, events.Held) // 5
	l.lock("press", &events.LockReclaimed{Token: 2, Held: 2}, events.Held, events.Held)           // 6
	forced := &events.LockForceReleased{Token: 3, Held: 1, By: "ann", Detail: "stuck"}
	l.lock("press", forced, events.Held, events.Held)                                 // 7
	l.lock("press", &events.LockExpired{Token: 4}, events.Held, events.Free)          // 8
	l.lock("gate", &events.LockExpired{Token: 99, Held: 0}, events.Held, events.Free) // 9, its beginning was never seen
	l.acquire("gate", events.LockAcquired{Token: 10, Worker: a, Held: 1})             // 10
	l.lock("gate", &events.LockReleased{Token: 10}, events.Held, events.Free)         // 11
	l.apply(&locks)

	set := projections.Notice{Mark: mark(1), By: "ann", Detail: "INC-142"}
	same(t, locks.All(), []projections.Lock{{Name: "press", Permits: 3, Set: set}})
	_, known := locks.Lock("gate")
	same(t, known, false)
	permit := func(at int64, worker events.ID) projections.Permit {
		return projections.Permit{Mark: mark(at), Lock: "press", Token: events.Token(at), Worker: worker}
	}
	same(t, locks.Endings(), []projections.Ending{
		{Permit: permit(2, a), EndedAt: mark(5), Type: events.TypeLockOrphaned, Evidence: evidence},
		{Permit: permit(3, a), EndedAt: mark(7), Type: events.TypeLockForceReleased, By: "ann", Detail: "stuck"},
		{Permit: permit(4, b), EndedAt: mark(8), Type: events.TypeLockExpired},
		{Permit: projections.Permit{Lock: "gate", Token: 99}, EndedAt: mark(9), Type: events.TypeLockExpired},
	})
	same(t, locks.Totals(), projections.LockTotals{Acquired: 4, Released: 1, Reclaimed: 1, ForceReleased: 1, Expired: 2})

	l.lock("press", &events.LockConfigured{}, events.Free, events.Free) // as it was before anybody set it
	for n := range 100 {
		l.lock("gate", &events.LockForceReleased{Token: events.Token(n), Detail: strings.Repeat("x", 1000)}, events.Held, events.Free)
	}
	l.apply(&locks)
	same(t, len(locks.All()), 0)
	last := locks.Endings()
	same(t, []any{len(last), last[63].Token, len(last[63].Detail)}, []any{64, events.Token(99), 512})
}

// A refused release is told among the refusals.
func TestRefusalsTellOfLocks(t *testing.T) {
	var l log
	var refusals projections.Refusals
	refused := &events.LockRefused{Command: "unlock", Reason: events.ReasonNotHeld, Sender: id(9), Sent: 4}
	l.lock("press", refused, events.Free, events.Free)
	l.apply(&refusals)
	same(t, refusals.Recent(), []projections.Refusal{
		{Mark: mark(1), Lock: "press", Command: "unlock", Reason: events.ReasonNotHeld, Sender: id(9), Sent: 4, State: events.Free},
	})
}
