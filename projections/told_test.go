package projections_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections"
)

// snapshot is what package fsm tells of a value.
func snapshot(v fsm.Value) events.Snapshot {
	return events.Snapshot{State: events.AppendFields(nil, v)}
}

// What a snapshot tells comes out field by field, as the machines name them.
func TestSnapshotsAreReadAsTheMachinesWriteThem(t *testing.T) {
	var l log
	at := func(n int) time.Time { return epoch.Add(time.Duration(n) * time.Millisecond) }
	worker := fsm.Worker{
		ID: id(101), State: events.Lost, StartedAt: at(1), LostAt: at(2), Host: "host-a", PID: 4711, Program: "v1.2", Topics: []string{"mail", "scan"},
		Concurrency: 8, HeartbeatInterval: time.Second, Proof: true, FenceAfter: time.Minute, Limits: []int{2, 0},
	}
	running := fsm.Message{
		ID: id(1), State: events.Running, Topic: "mail", Priority: events.High, Key: "k", EnqueuedAt: at(3), DueAt: at(4), Lock: "press", Attempts: 3,
		Worker: id(101), Token: 9, ClaimedAt: at(5), Counted: true, LockToken: 6,
	}
	dead := fsm.Message{ID: id(2), State: events.DeadLettered, Topic: "scan", EnqueuedAt: at(6), Attempts: 25}
	trying := fsm.Message{ID: id(3), State: events.Queued, Topic: "mail", EnqueuedAt: at(7), DueAt: at(8), Lock: "press", Trying: true}
	blocked := fsm.Message{ID: id(4), State: events.Blocked, Topic: "mail", EnqueuedAt: at(9), Lock: "press"}
	for _, m := range []fsm.Message{running, dead, trying, blocked} {
		l.message(m.ID, &events.MessageSnapshotted{Snapshot: snapshot(&m)}, m.State, m.State) // 1 to 4
	}
	l.add(events.WorkerEntity(worker.ID), &events.WorkerSnapshotted{Snapshot: snapshot(&worker)}, worker.State, worker.State) // 5
	topic := fsm.Topic{Name: "mail", State: events.Paused, Limit: 1, Counting: true}
	l.add(events.TopicEntity("mail"), &events.TopicSnapshotted{Snapshot: snapshot(&topic)}, topic.State, topic.State) // 6
	lock := fsm.Lock{Name: "press", State: events.Held, Permits: 3, Held: 2}
	l.lock("press", &events.LockSnapshotted{Snapshot: snapshot(&lock), Out: []events.PermitOut{
		{Token: 5, Worker: id(102), AcquiredAt: at(10), ExpiresAt: at(9000)}, {Token: 6, Worker: id(101), Message: id(1), AcquiredAt: at(5)},
	}}, events.Held, events.Held) // 7
	leader := fsm.Leader{Name: "beat", State: events.Led, Worker: id(101), Term: 4}
	l.add(events.LeaderEntity("beat"), &events.LeaderSnapshotted{Snapshot: snapshot(&leader)}, leader.State, leader.State) // 8
	clock := fsm.Clock{State: events.Active, StepAt: at(11), FromAt: at(12), ToAt: at(13)}
	l.add(events.ClockEntity(), &events.ClockSnapshotted{Snapshot: snapshot(&clock)}, clock.State, clock.State) // 9

	var topics projections.Topics
	var workers projections.Workers
	var locks projections.Locks
	var leaders projections.Leaders
	var steps projections.Clock
	life := projections.NewLife(running.ID)
	l.apply(&topics, &workers, &locks, &leaders, &steps, life)

	claim := projections.Claim{
		Mark: projections.Mark{Position: 1, At: at(5)}, Message: id(1), Worker: id(101), Token: 9, Attempt: 3, Counted: true, LockToken: 6,
	}
	mail, _ := topics.Topic("mail")
	same(t, mail, projections.Topic{
		Name: "mail", Limit: 1, Counting: true, Set: projections.Notice{Mark: mark(6)}, Paused: true, Pause: projections.Notice{Mark: mark(6)},
		Queued: 1, Blocked: 1, Running: 1, Trying: 1, Counted: 1, Oldest: claim, FullSince: mark(6),
		Totals: projections.TopicTotals{Requeued: map[events.Reason]int{}},
	})
	same(t, topics.DeadLetters(), []projections.DeadLetter{{Mark: mark(2), Message: id(2), Topic: "scan", Attempts: 25}})
	press := projections.Permit{Mark: projections.Mark{Position: 7, At: at(5)}, Lock: "press", Token: 6, Worker: id(101), Message: id(1)}
	other := projections.Permit{Mark: projections.Mark{Position: 7, At: at(10)}, Lock: "press", Token: 5, Worker: id(102), ExpiresAt: at(9000)}
	w, _ := workers.Worker(worker.ID)
	same(t, w, projections.Worker{
		ID: id(101), State: events.Lost, Host: "host-a", PID: 4711, Program: "v1.2", Topics: []string{"mail", "scan"}, Concurrency: 8,
		HeartbeatInterval: time.Second, Proof: true, FenceAfter: time.Minute, Limits: []int{2, 0},
		Started: projections.Mark{Position: 5, At: at(1)}, Lost: projections.Mark{Position: 5, At: at(2)},
		Claims: []projections.Claim{claim}, Permits: []projections.Permit{press},
	})
	same(t, locks.All(), []projections.Lock{{
		Name: "press", Permits: 3, Set: projections.Notice{Mark: mark(7)}, Out: []projections.Permit{press, other},
		Waiters: []projections.Waiters{{Topic: "mail", Blocked: 1, Trying: 1, Longest: id(3), Since: mark(3)}},
	}})
	same(t, leaders.All(), []projections.Leader{{Name: "beat", State: events.Led, Worker: id(101), Term: 4, Since: mark(8)}})
	same(t, steps.Steps(), []projections.Step{{Mark: projections.Mark{Position: 9, At: at(11)}, FromAt: at(12), ToAt: at(13)}})
	same(t, life.Summary(), projections.Summary{
		ID: id(1), Topic: "mail", State: events.Running, EnqueuedAt: at(3), Lock: "press", Claim: claim, Attempts: 3,
	})
	same(t, life.Headless(), true)
	topicOf, says := projections.TopicOf(l[0])
	same(t, []any{topicOf, says}, []any{"mail", true})

	// Told once more, of what is known, it changes nothing.
	var again log
	again = append(again, l...)
	for _, r := range l {
		again.add(r.Entity, r.Event, r.From, r.To)
	}
	before := []any{topics.All(), workers.All(), locks.All(), leaders.All(), steps.Steps(), life.Summary()}
	again.apply(&topics, &workers, &locks, &leaders, &steps, life)
	same(t, []any{topics.All(), workers.All(), locks.All(), leaders.All(), steps.Steps(), life.Summary()}, before)
}

// A permit of a claim that has ended is told as such, though the log has let go of how it ended.
func TestTheEndOfAClaimThatWasLetGo(t *testing.T) {
	var l log
	var locks projections.Locks
	lock := fsm.Lock{Name: "press", State: events.Held, Held: 1}
	l.lock("press", &events.LockSnapshotted{Snapshot: snapshot(&lock), Out: []events.PermitOut{
		{Token: 6, Worker: id(101), Message: id(1), AcquiredAt: epoch},
	}}, events.Held, events.Held)
	l.apply(&locks)
	press, _ := locks.Lock("press")
	place := projections.Mark{Position: 1, At: epoch}
	same(t, press.Out, []projections.Permit{{
		Mark: place, Lock: "press", Token: 6, Worker: id(101), Message: id(1), Ended: projections.ClaimEnd{Mark: place},
	}})
	l.lock("press", &events.LockReleased{Token: 6}, events.Held, events.Free)
	l.apply(&locks)
	same(t, len(locks.All()), 0)
}

// A snapshot that this version cannot read begins nothing, and a life that ended in what was let go says what it met.
func TestSnapshotsThatCannotBeRead(t *testing.T) {
	var l log
	bad := events.Snapshot{State: []byte(`{"topic":7,"host":7,"limit":"x","permits":"x","worker":7,"step":"x"}`)}
	l.message(id(1), &events.MessageSnapshotted{Snapshot: bad}, events.Running, events.Running)
	l.add(events.WorkerEntity(id(2)), &events.WorkerSnapshotted{Snapshot: bad}, events.Stopped, events.Stopped)
	l.add(events.ClockEntity(), &events.ClockSnapshotted{Snapshot: bad}, events.Active, events.Active)
	l.lock("press", &events.LockSnapshotted{Snapshot: bad}, events.Free, events.Free)
	var topics projections.Topics
	var workers projections.Workers
	var locks projections.Locks
	var clock projections.Clock
	var totals projections.Totals
	l.apply(&topics, &workers, &locks, &clock, &totals)
	same(t, []int{len(topics.All()), len(workers.All()), len(locks.All()), clock.Total(), len(totals.Counts().Topics)}, []int{0, 0, 0, 0, 0})

	var late log
	late.message(id(5), &events.MessageRefused{Command: "complete", Reason: events.ReasonWrongState}, events.Completed, events.Completed)
	life := projections.NewLife(id(5))
	late.apply(life)
	same(t, []any{life.Summary().State, life.Headless(), len(life.Entries())}, []any{events.Completed, true, 1})
}

// What was let go is told by the log itself.
func TestRetentionKeepsTheLast(t *testing.T) {
	var l log
	var retention projections.Retention
	l.enqueue(id(1), "mail")
	l.apply(&retention)
	same(t, retention.Last(), projections.Pruning{})
	for n := range 20 {
		l.add(events.LogEntity(), &events.LogPruned{
			Through: int64(n + 1), UntilAt: epoch, Events: 1, Total: n + 1, Retention: time.Hour, Decider: id(9), By: "ann", Detail: "disk",
		}, events.Active, events.Active)
	}
	l.apply(&retention)
	same(t, retention.Last(), projections.Pruning{
		Mark: mark(21), Through: 20, UntilAt: epoch, Events: 1, Total: 20, Retention: time.Hour, Decider: id(9), By: "ann", Detail: "disk",
	})
	recent := retention.Recent()
	same(t, []any{len(recent), recent[0].Total, retention.AsOf()}, []any{16, 5, mark(21)})
}
