package projections_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
)

// A message is tried, snoozed, orphaned, given up and tried again by an operator: every step has its time, its claim and its reason.
func TestLifeTellsEveryStep(t *testing.T) {
	var l log
	a, b := id(101), id(102)
	l.enqueue(id(2), "mail") // 1, another message
	l.message(id(1), &events.MessageEnqueued{Topic: "mail", DueAt: mark(3).At}, events.Absent, events.Queued)
	l.enqueue(id(3), "mail")                                       // 3
	l.claim(id(1), a, events.MessageClaimed{Token: 2, Attempt: 1}) // 4
	l.message(id(1), &events.MessageRequeued{Reason: events.ReasonRetry, Error: "exit status 1", DueAt: mark(7).At}, events.Running, events.Queued)
	l.enqueue(id(4), "mail")                                                 // 6
	l.enqueue(id(5), "mail")                                                 // 7
	l.enqueue(id(6), "mail")                                                 // 8
	l.claim(id(1), b, events.MessageClaimed{Token: 4, Attempt: 2, Limit: 2}) // 9
	l.message(id(1), &events.MessageRefused{Reason: events.ReasonStaleToken, Sender: a}, events.Running, events.Running)
	l.message(id(1), &events.MessageOrphaned{Evidence: events.Evidence{Reason: events.ReasonProcessGone}}, events.Running, events.Orphaned)
	l.message(id(1), &events.MessageDeadLettered{Reason: events.ReasonOrphanLimit}, events.Orphaned, events.DeadLettered)
	l.message(id(1), &events.MessageRedriven{By: "ann", Detail: "fixed"}, events.DeadLettered, events.Queued) // 13
	l.claim(id(1), b, events.MessageClaimed{Token: 8, Attempt: 3})                                            // 14
	l.message(id(1), &events.MessageCounted{}, events.Running, events.Running)                                // 15

	life := projections.NewLife(id(1))
	same(t, life.Summary(), projections.Summary{ID: id(1)})
	l[:13].apply(life)
	same(t, life.Summary().ReadyAt, mark(13).At)
	l.apply(life)
	const s = time.Second
	at := func(position int64) events.Recorded { return l[position-1] }
	same(t, life.Entries(), []projections.Entry{
		{Recorded: at(2), DueAt: mark(3).At},
		{Recorded: at(4), Attempt: 1, Worker: a, Waited: 1 * s},
		{Recorded: at(5), Attempt: 1, Worker: a, Ran: 1 * s, DueAt: mark(7).At, Reason: events.ReasonRetry, Error: "exit status 1"},
		{Recorded: at(9), Attempt: 2, Worker: b, Waited: 2 * s},
		{Recorded: at(10), Worker: a, Reason: events.ReasonStaleToken},
		{Recorded: at(11), Attempt: 2, Worker: b, Reason: events.ReasonProcessGone},
		{Recorded: at(12), Attempt: 2, Worker: b, Ran: 3 * s, Reason: events.ReasonOrphanLimit},
		{Recorded: at(13), By: "ann", Detail: "fixed"},
		{Recorded: at(14), Attempt: 3, Worker: b, Waited: 1 * s},
		{Recorded: at(15), Attempt: 3, Worker: b},
	})
	want := projections.Summary{
		ID: id(1), Topic: "mail", State: events.Running, EnqueuedAt: mark(2).At, ChangedAt: mark(14).At,
		Claim:    projections.Claim{Mark: mark(14), Message: id(1), Worker: b, Token: 8, Attempt: 3, Counted: true},
		Attempts: 3, Waited: 4 * s, Ran: 4 * s,
	}
	same(t, life.Summary(), want)

	l.message(id(1), &events.MessageCancelled{Reason: events.ReasonOperator, By: "ann"}, events.Running, events.Cancelled) // 16
	l.apply(life)
	want.State, want.Reason, want.ChangedAt = events.Cancelled, events.ReasonOperator, mark(16).At
	want.Claim, want.Ran = projections.Claim{}, 6*s
	same(t, life.Summary(), want)
}

// A message given back without a due time keeps its old place, and has not waited while it ran.
func TestReleasedMessageWaitsFromItsRelease(t *testing.T) {
	var l log
	l.enqueue(id(1), "mail")
	l.claim(id(1), id(9), events.MessageClaimed{Token: 2, Attempt: 1})
	l.enqueue(id(2), "mail")
	l.message(id(1), &events.MessageRequeued{Reason: events.ReasonReleased}, events.Running, events.Queued)
	l.claim(id(1), id(9), events.MessageClaimed{Token: 4, Attempt: 2})
	life := projections.NewLife(id(1))
	l.apply(life)
	same(t, life.Entries()[3].Waited, time.Second)
	same(t, life.Summary().Ran, 2*time.Second)
}

// The time in which a message waited for its lock is neither waiting for a worker nor running.
func TestLifeTellsWhatTheLockCost(t *testing.T) {
	var l log
	l.locked(id(1), "mail", "press") // 1
	l.enqueue(id(2), "mail")         // 2
	l.block(id(1), "press")          // 3: it could have been claimed for 2 s
	l.enqueue(id(3), "mail")         // 4
	l.unblock(id(1), events.MessageUnblocked{Lock: "press", Repair: true})
	life := projections.NewLife(id(1))
	l.apply(life)
	same(t, life.Summary(), projections.Summary{
		ID: id(1), Topic: "mail", Lock: "press", Trying: true, State: events.Queued, EnqueuedAt: mark(1).At, ChangedAt: mark(5).At, ReadyAt: mark(5).At,
		Waited: 2 * time.Second, Blocked: 2 * time.Second,
	})
	l.block(id(1), "press") // 6: somebody else was faster
	l.message(id(1), &events.MessageCancelled{Reason: events.ReasonOperator, By: "ann"}, events.Blocked, events.Cancelled)
	l.apply(life)
	got := life.Entries()
	for i := range got {
		got[i].Recorded = events.Recorded{}
	}
	const s = time.Second
	same(t, got, []projections.Entry{
		{},
		{Waited: 2 * s, Lock: "press"},
		{Blocked: 2 * s, Lock: "press", Repair: true},
		{Waited: s, Lock: "press"},
		{Blocked: s, Reason: events.ReasonOperator, By: "ann"},
	})
	sum := life.Summary()
	same(t, []any{sum.State, sum.Waited, sum.Blocked, sum.Trying, sum.Reason}, []any{events.Cancelled, 3 * s, 3 * s, false, events.ReasonOperator})
}

// A message that does not wait says which lock was taken.
func TestLifeTellsWhyAMessageWasDiscarded(t *testing.T) {
	var l log
	l.locked(id(1), "mail", "press")
	discarded := &events.MessageDiscarded{Reason: events.ReasonLockTaken, Lock: "press"}
	l.message(id(1), discarded, events.Queued, events.Discarded)
	life := projections.NewLife(id(1))
	l.apply(life)
	entry := life.Entries()[1]
	same(t, []any{entry.Waited, entry.Reason, entry.Lock}, []any{time.Second, events.ReasonLockTaken, "press"})
	same(t, life.Summary().State, events.Discarded)
}
