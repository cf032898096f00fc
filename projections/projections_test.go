package projections_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/google/go-cmp/cmp"
)

var epoch = time.Date(2026, 11, 18, 3, 0, 0, 0, time.UTC)

// log is a hand-made log: one event a second, each a commit of its own, at the next position.
type log []events.Recorded

// add appends an event that leads its entity from one state to another.
func (l *log) add(entity events.Entity, event events.Event, from, to events.State) {
	position := int64(len(*l)) + 1
	at := epoch.Add(time.Duration(position) * time.Second)
	*l = append(*l, events.Recorded{
		Transition: events.Transition{Event: event, Version: 1, From: from, To: to},
		Position:   position, Entity: entity, Commit: &events.Commit{At: at, Count: 1},
	})
}

func (l *log) message(id events.ID, event events.Event, states ...events.State) {
	l.add(events.MessageEntity(id), event, states[0], states[1])
}

func (l *log) enqueue(id events.ID, topic string) {
	l.message(id, &events.MessageEnqueued{Topic: topic}, events.Absent, events.Queued)
}

func (l *log) claim(id, worker events.ID, e events.MessageClaimed) {
	e.Worker = worker
	l.message(id, &e, events.Queued, events.Running)
}

func (l *log) complete(id events.ID) {
	l.message(id, &events.MessageCompleted{}, events.Running, events.Completed)
}

func (l log) apply(to ...projections.Projection) {
	for _, r := range l {
		for _, p := range to {
			p.Apply(r)
		}
	}
}

// mark is the place of the event at a position of a log.
func mark(position int64) projections.Mark {
	return projections.Mark{Position: position, At: epoch.Add(time.Duration(position) * time.Second)}
}

func id(n byte) events.ID { return events.ID{15: n} }

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func TestTopicsCountsEveryState(t *testing.T) {
	var l log
	var topics projections.Topics
	worker := id(9)
	l.add(events.TopicEntity("mail"), &events.TopicConfigured{Limit: 2, By: "ann"}, events.Absent, events.Active) // 1
	for n := range byte(7) {
		l.enqueue(id(n+1), "mail") // 2 to 8
	}
	l.claim(id(1), worker, events.MessageClaimed{Token: 2, Attempt: 1, Running: 1, Limit: 2}) // 9
	l.claim(id(2), worker, events.MessageClaimed{Token: 2, Attempt: 1, Running: 2, Limit: 2}) // 10
	l.complete(id(1))                                                                         // 11
	l.claim(id(3), worker, events.MessageClaimed{Token: 2, Attempt: 1, Running: 2, Limit: 2}) // 12
	l.message(id(3), &events.MessageRequeued{Reason: events.ReasonRetry}, events.Running, events.Queued)
	l.claim(id(4), worker, events.MessageClaimed{Token: 2, Attempt: 1, Running: 2, Limit: 2}) // 14
	l.message(id(4), &events.MessageOrphaned{}, events.Running, events.Orphaned)
	l.message(id(4), &events.MessageRequeued{Reason: events.ReasonOrphan}, events.Orphaned, events.Queued)
	l.claim(id(5), worker, events.MessageClaimed{Token: 2, Attempt: 7, Running: 2, Limit: 2}) // 17
	dead := &events.MessageDeadLettered{Reason: events.ReasonExhausted, Error: strings.Repeat("é", 1000)}
	l.message(id(5), dead, events.Running, events.DeadLettered) // 18
	l.message(id(6), &events.MessageCancelled{}, events.Queued, events.Cancelled)
	l.claim(id(7), worker, events.MessageClaimed{Token: 2, Attempt: 1, Running: 2, Limit: 2}) // 20
	l.add(events.TopicEntity("mail"), &events.TopicPaused{By: "ann", Detail: "INC-142"}, events.Active, events.Paused)
	l.apply(&topics)

	want := projections.Topic{
		Name: "mail", Limit: 2, Set: projections.Notice{Mark: mark(1), By: "ann"},
		Paused: true, Pause: projections.Notice{Mark: mark(21), By: "ann", Detail: "INC-142"},
		Queued: 2, Running: 2, DeadLettered: 1, Completed: 1, Cancelled: 1,
		Counted: 2, FullSince: mark(20), Ended: mark(18),
		Oldest: projections.Claim{Mark: mark(10), Message: id(2), Worker: worker, Token: 2, Attempt: 1, Counted: true},
		Totals: projections.TopicTotals{
			Enqueued: 7, Claimed: 6, Failures: 2, Orphaned: 1, DeadLettered: 1,
			Requeued: map[events.Reason]int{events.ReasonRetry: 1, events.ReasonOrphan: 1},
		},
	}
	same(t, topics.All(), []projections.Topic{want})
	one, known := topics.Topic("mail")
	same(t, one, want)
	same(t, known, true)
	same(t, topics.AsOf(), mark(21))
	same(t, topics.DeadLetters(), []projections.DeadLetter{{
		Mark: mark(18), Message: id(5), Topic: "mail", Attempts: 7, Worker: worker, Reason: events.ReasonExhausted, Error: strings.Repeat("é", 256),
	}})

	l.apply(&topics) // again
	same(t, topics.All(), []projections.Topic{want})
	_, known = topics.Topic("scan")
	same(t, known, false)
}

func TestTopicsFollowALimitThatComesLate(t *testing.T) {
	var l log
	var topics projections.Topics
	l.enqueue(id(1), "mail")
	l.claim(id(1), id(9), events.MessageClaimed{Token: 2, Attempt: 1})
	topic := events.TopicEntity("mail")
	l.add(topic, &events.TopicConfigured{Limit: 1, Counting: true}, events.Active, events.Active)
	l.apply(&topics)
	got, _ := topics.Topic("mail")
	same(t, []any{got.Counting, got.Counted, got.Full()}, []any{true, 0, false})

	l.message(id(1), &events.MessageCounted{}, events.Running, events.Running)
	l.add(topic, &events.TopicCounted{}, events.Active, events.Active)
	l.apply(&topics)
	got, _ = topics.Topic("mail")
	same(t, []any{got.Counting, got.Counted, got.Full(), got.FullSince}, []any{false, 1, true, mark(4)})

	l.add(topic, &events.TopicConfigured{}, events.Active, events.Active)
	l.apply(&topics)
	got, _ = topics.Topic("mail")
	same(t, []any{got.Counted, got.Full(), got.FullSince}, []any{1, false, projections.Mark{}})
}

func TestRedrivenMessageIsNoDeadLetter(t *testing.T) {
	var l log
	var topics projections.Topics
	l.enqueue(id(1), "mail")
	l.claim(id(1), id(9), events.MessageClaimed{Token: 2, Attempt: 1})
	l.message(id(1), &events.MessageDeadLettered{Reason: events.ReasonOrphanLimit}, events.Orphaned, events.DeadLettered)
	l.message(id(1), &events.MessageRedriven{}, events.DeadLettered, events.Queued)
	l.apply(&topics)
	got, _ := topics.Topic("mail")
	same(t, []int{got.Queued, got.DeadLettered, got.Totals.Redriven, got.Totals.DeadLettered, got.Totals.Failures}, []int{1, 0, 1, 1, 0})
	same(t, len(topics.DeadLetters()), 0)
}

func TestWorkersKnowWhatTheyHold(t *testing.T) {
	var l log
	var workers projections.Workers
	a, b, stranger := id(101), id(102), id(103)
	started := &events.WorkerStarted{
		Host: "host-a", PID: 4711, Version: "1", Topics: []string{"mail"}, HeartbeatInterval: time.Second, Proof: true,
		FenceAfter: time.Minute, Limits: []int{2},
	}
	l.add(events.WorkerEntity(a), started, events.Absent, events.Live)                        // 1
	l.add(events.WorkerEntity(b), &events.WorkerStarted{}, events.Absent, events.Live)        // 2
	l.enqueue(id(1), "mail")                                                                  // 3
	l.enqueue(id(2), "mail")                                                                  // 4
	l.claim(id(1), a, events.MessageClaimed{Token: 2, Attempt: 1})                            // 5
	l.claim(id(2), a, events.MessageClaimed{Token: 2, Attempt: 1})                            // 6
	l.message(id(2), &events.MessageCounted{}, events.Running, events.Running)                // 7
	l.complete(id(1))                                                                         // 8
	l.add(events.WorkerEntity(a), &events.WorkerGap{FromAt: epoch}, events.Live, events.Live) // 9
	evidence := events.Evidence{Reason: events.ReasonProcessGone, Claimer: a}
	l.add(events.WorkerEntity(a), &events.WorkerLost{Evidence: evidence}, events.Live, events.Lost) // 10
	l.enqueue(id(3), "mail")                                                                        // 11
	l.claim(id(3), stranger, events.MessageClaimed{Token: 2, Attempt: 1})                           // 12
	l.add(events.WorkerEntity(b), &events.WorkerStopped{}, events.Live, events.Stopped)             // 13
	l.apply(&workers)

	lost := projections.Worker{
		ID: a, State: events.Lost, Host: "host-a", PID: 4711, Program: "1", Topics: []string{"mail"}, HeartbeatInterval: time.Second,
		Proof: true, FenceAfter: time.Minute, Limits: []int{2},
		Started: mark(1), Lost: mark(10), Evidence: evidence, Gaps: 1, Gap: projections.Gap{Mark: mark(9), FromAt: epoch},
		Claimed: 2, Completed: 1,
		Claims: []projections.Claim{{Mark: mark(6), Message: id(2), Worker: a, Token: 2, Attempt: 1, Counted: true}},
	}
	unknown := projections.Worker{
		ID: stranger, Claimed: 1, Claims: []projections.Claim{{Mark: mark(12), Message: id(3), Worker: stranger, Token: 2, Attempt: 1}},
	}
	same(t, workers.All(), []projections.Worker{unknown, lost})
	_, known := workers.Worker(b)
	same(t, known, false)

	l.complete(id(3))
	l.message(id(2), &events.MessageOrphaned{}, events.Running, events.Orphaned)
	l.apply(&workers)
	one, _ := workers.Worker(a)
	same(t, []any{len(one.Claims), one.Taken}, []any{1, projections.Estate{Claims: 1}})
	l.message(id(2), &events.MessageRequeued{Reason: events.ReasonOrphan}, events.Orphaned, events.Queued) // 16
	l.add(events.WorkerEntity(a), &events.WorkerReturned{LostAt: mark(10).At}, events.Lost, events.Live)   // 17
	l.apply(&workers)
	same(t, workers.FalseAlarms(), []projections.FalseAlarm{{
		Mark: mark(17), Worker: a, Lost: mark(10), LostAt: mark(10).At, Evidence: evidence, Taken: projections.Estate{Claims: 1},
	}})
	same(t, workers.Totals(), projections.WorkerTotals{Started: 2, Stopped: 1, Lost: 1, Returned: 1, Gaps: 1})
	lost.State, lost.Lost, lost.Evidence, lost.Returned, lost.Claims = events.Live, projections.Mark{}, events.Evidence{}, 1, nil
	same(t, workers.All(), []projections.Worker{lost})
}

// A worker stays while it holds a permit, whatever became of it, and its false alarm is told when it is long gone.
func TestWorkersKnowTheirPermits(t *testing.T) {
	var l log
	var workers projections.Workers
	a := id(101)
	lock := func(event events.Event, from, to events.State) { l.add(events.LockEntity("press"), event, from, to) }
	life := func(event events.Event, from, to events.State) { l.add(events.WorkerEntity(a), event, from, to) }
	life(&events.WorkerStarted{}, events.Absent, events.Live)                          // 1
	lock(&events.LockAcquired{Token: 2, Worker: a, Held: 1}, events.Free, events.Held) // 2
	lock(&events.LockAcquired{Token: 3, Worker: a, Held: 2}, events.Held, events.Held) // 3
	lock(&events.LockAcquired{Token: 4, Worker: a, Held: 3}, events.Held, events.Held) // 4
	life(&events.WorkerLost{}, events.Live, events.Lost)                               // 5
	lock(&events.LockOrphaned{Token: 2}, events.Held, events.Held)                     // 6
	lock(&events.LockReclaimed{Token: 2, Held: 2}, events.Held, events.Held)           // 7
	lock(&events.LockForceReleased{Token: 3, Held: 1}, events.Held, events.Held)       // 8
	life(&events.WorkerReturned{}, events.Lost, events.Live)                           // 9
	life(&events.WorkerStopped{}, events.Live, events.Stopped)                         // 10
	l.apply(&workers)
	permit := projections.Permit{Mark: mark(4), Lock: "press", Token: 4, Worker: a}
	same(t, workers.All(), []projections.Worker{
		{ID: a, State: events.Stopped, Started: mark(1), Returned: 1, Permits: []projections.Permit{permit}},
	})
	lock(&events.LockExpired{Token: 4}, events.Held, events.Free) // 11
	l.apply(&workers)
	same(t, len(workers.All()), 0)
	same(t, workers.FalseAlarms(), []projections.FalseAlarm{
		{Mark: mark(9), Worker: a, Lost: mark(5), Taken: projections.Estate{Permits: 1}},
	})

	lock(&events.LockAcquired{Token: 12, Worker: id(102), Held: 1}, events.Free, events.Held) // 12, by one that nobody made known
	l.add(events.WorkerEntity(id(103)), &events.WorkerLost{}, events.Live, events.Lost)
	l.add(events.WorkerEntity(id(103)), &events.WorkerPurged{}, events.Lost, events.Purged)
	l.apply(&workers)
	permit = projections.Permit{Mark: mark(12), Lock: "press", Token: 12, Worker: id(102)}
	same(t, workers.All(), []projections.Worker{{ID: id(102), Permits: []projections.Permit{permit}}})
	same(t, workers.Totals(), projections.WorkerTotals{Started: 1, Stopped: 1, Lost: 2, Returned: 1, Purged: 1})
}

// Who waits for a lock is neither queued nor running, and one that was sent to try is queued again.
func TestTopicsCountBlockedMessages(t *testing.T) {
	var l log
	var topics projections.Topics
	for n := range byte(4) {
		l.locked(id(n+1), "mail", "press")
		l.block(id(n+1), "press")
	}
	l.apply(&topics)
	counts := func() []int {
		got, _ := topics.Topic("mail")
		return []int{got.Queued, got.Blocked, got.Trying, got.Running, got.Discarded}
	}
	same(t, counts(), []int{0, 4, 0, 0, 0})
	for n := range byte(3) {
		l.unblock(id(n+1), events.MessageUnblocked{Lock: "press"})
	}
	l.apply(&topics)
	same(t, counts(), []int{3, 1, 3, 0, 0})
	l.claim(id(1), id(9), events.MessageClaimed{Token: 4, Attempt: 1})
	l.block(id(2), "press")
	l.message(id(3), &events.MessageDiscarded{Lock: "press"}, events.Queued, events.Discarded)
	l.apply(&topics)
	same(t, counts(), []int{0, 2, 0, 1, 1})
}

func TestRefusalsKeepTheLast(t *testing.T) {
	var l log
	var refusals projections.Refusals
	for n := range 100 {
		refused := &events.MessageRefused{Command: "complete", Reason: events.ReasonStaleToken, Sender: id(9), Sent: events.Token(n), Unrecorded: 1}
		l.message(id(1), refused, events.Queued, events.Queued)
	}
	l.apply(&refusals)
	recorded, unrecorded := refusals.Total()
	recent := refusals.Recent()
	same(t, []int{recorded, unrecorded, len(recent)}, []int{100, 100, 64})
	same(t, recent[63], projections.Refusal{
		Mark: mark(100), Message: id(1), Command: "complete", Reason: events.ReasonStaleToken, Sender: id(9), Sent: 99, State: events.Queued,
	})
	same(t, recent[0].Position, int64(37))
	same(t, refusals.AsOf(), mark(100))
}

func TestUnknownEventsArePassedOver(t *testing.T) {
	var l log
	life := projections.NewLife(id(1))
	topics, workers, refusals := projections.Topics{}, projections.Workers{}, projections.Refusals{}
	locks, sweeps, leaders, clock := projections.Locks{}, projections.Sweeps{}, projections.Leaders{}, projections.Clock{}
	l.enqueue(id(1), "mail")
	l.message(id(1), &events.Unknown{Code: events.TypeMessageCompleted, Schema: 9}, events.Queued, events.Completed)
	l.add(events.TopicEntity("later"), &events.Unknown{Code: 99, Schema: 1}, events.Absent, events.Active)
	l.add(events.WorkerEntity(id(2)), &events.Unknown{Code: 98, Schema: 1}, events.Absent, events.Live)
	l.add(events.Entity{Kind: 77, Name: "x"}, &events.Unknown{Code: 97, Schema: 1}, events.Absent, 99)
	l.complete(id(8)) // its beginning was never seen
	l.block(id(8), "press")
	l.lock("press", &events.LockReleased{Token: 3}, events.Held, events.Free)
	l.add(events.LeaderEntity("beat"), &events.Unknown{Code: 97, Schema: 1}, events.Absent, events.Led)
	l.apply(life, &topics, &workers, &refusals, &locks, &sweeps, &leaders, &clock)
	all := topics.All()
	same(t, []int{len(all), all[0].Queued, len(workers.All()), len(life.Entries())}, []int{1, 1, 0, 1})
	same(t, []int{len(locks.All()), len(leaders.All())}, []int{0, 0})
	for _, asOf := range []projections.Mark{
		life.AsOf(), topics.AsOf(), workers.AsOf(), refusals.AsOf(), locks.AsOf(), sweeps.AsOf(), leaders.AsOf(), clock.AsOf(),
	} {
		same(t, asOf, mark(9))
	}
}

func TestFollowEndsAtTheFirstError(t *testing.T) {
	var l log
	l.enqueue(id(1), "mail")
	l.enqueue(id(2), "mail")
	gone := errors.New("gone")
	var topics projections.Topics
	err := projections.Follow(func(yield func(events.Recorded, error) bool) {
		_ = yield(l[0], nil) && yield(events.Recorded{}, gone) && yield(l[1], nil)
	}, &topics)
	if !errors.Is(err, gone) {
		t.Errorf("Follow gives %v, want %v", err, gone)
	}
	same(t, topics.All()[0].Queued, 1)
}
