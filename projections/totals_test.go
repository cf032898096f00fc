package projections_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/internal/history"
	"pgregory.net/rapid"
)

func TestTotalsCountWhatHappened(t *testing.T) {
	var l log
	var totals projections.Totals
	a, b, worker := id(1), id(2), id(9)
	l.enqueue(a, "mail")
	l.locked(b, "scan", "press")
	l.claim(a, worker, events.MessageClaimed{Token: 2, Attempt: 1})
	l.block(b, "press")
	l.message(a, &events.MessageRequeued{Reason: events.ReasonRetry}, events.Running, events.Queued)
	l.unblock(b, events.MessageUnblocked{Lock: "press", Repair: true})
	l.claim(a, worker, events.MessageClaimed{Token: 4, Attempt: 2})
	l.message(a, &events.MessageOrphaned{}, events.Running, events.Orphaned)
	l.message(a, &events.MessageRequeued{Reason: events.ReasonOrphan}, events.Orphaned, events.Queued)
	l.claim(a, worker, events.MessageClaimed{Token: 7, Attempt: 3})
	l.message(a, &events.MessageOrphaned{}, events.Running, events.Orphaned)
	l.message(a, &events.MessageDeadLettered{Reason: events.ReasonOrphanLimit}, events.Orphaned, events.DeadLettered)
	l.message(a, &events.MessageRefused{Command: "complete", Reason: events.ReasonStaleToken, Unrecorded: 3}, events.DeadLettered, events.DeadLettered)
	l.message(a, &events.MessageRedriven{}, events.DeadLettered, events.Queued)
	l.message(b, &events.MessageDiscarded{Lock: "press"}, events.Queued, events.Discarded)
	l.message(a, &events.MessageCancelled{}, events.Queued, events.Cancelled)
	l.message(a, &events.MessageErased{By: "ann"}, events.Cancelled, events.Cancelled)
	l.lock("press", &events.LockRefused{Command: "unlock", Reason: events.ReasonNotHeld}, events.Free, events.Free)
	l.add(events.SweepEntity(id(20)), &events.SweepFinished{Requeued: 1, DeadLettered: 1, LocksReleased: 2, Spared: 3, Skipped: 4}, events.Absent, events.Finished)
	l.add(events.SweepEntity(id(21)), &events.SweepFinished{Spared: 1}, events.Absent, events.Finished)
	l.add(events.SweepEntity(id(22)), &events.SweepRefused{Reason: events.ReasonLivenessEmpty}, events.Absent, events.Refused)
	l.add(events.LogEntity(), &events.LogPruned{Events: 40, Total: 90}, events.Active, events.Active)
	l.message(id(7), &events.Unknown{Code: 250, Schema: 1}, events.Queued, events.Queued)
	l.message(id(7), &events.MessageCompleted{}, events.Running, events.Completed) // its beginning was never seen
	for range 2 {
		for _, r := range l {
			if totals.Lacks(r) {
				same(t, r.Entity.ID, id(7))
				totals.Learn(r.Entity.ID, "")
			}
			totals.Apply(r)
		}
	}
	c := totals.Counts()
	same(t, c.Topics, map[string]projections.TopicCounts{
		"mail": {
			Enqueued: 1, Claimed: 3, Cancelled: 1, Redriven: 1,
			Requeued: map[string]int{"retry": 1, "orphan": 1}, DeadLettered: map[string]int{"orphan_limit": 1},
		},
		"scan":                   {Enqueued: 1, Blocked: 1, Discarded: 1},
		projections.UnknownTopic: {Completed: 1},
	})
	mail := c.Topics["mail"]
	same(t, []int{mail.Retries(), mail.OrphansReclaimed(), mail.OrphansDeadLettered()}, []int{1, 1, 1})
	same(t, c.Refusals, map[string]map[string]map[string]int{
		"message.refused": {"complete": {"stale_token": 1}}, "lock.refused": {"unlock": {"not_held": 1}},
	})
	same(t, c.Sweeps, projections.SweepCounts{
		Acted: 1, Nothing: 1, Refused: 1, Skipped: map[string]int{"claim_grace": 4, "liveness_empty": 1},
		Requeued: 1, DeadLettered: 1, LocksReleased: 2, Unread: 4,
	})
	same(t, []int{c.Unknown, c.Overflow, c.Unrecorded, c.Repairs, c.Pruned}, []int{1, 0, 3, 1, 40})
	same(t, c.Transitions["message.requeued"], map[string]int{"queued": 2})
	same(t, c.Transitions["message.erased"], map[string]int{"cancelled": 1})
	same(t, totals.AsOf(), mark(int64(len(l))))

	c.Topics["mail"].Requeued["retry"] = 77 // a copy is the caller's
	c.Transitions["message.requeued"]["queued"] = 77
	c.Refusals["lock.refused"]["unlock"]["not_held"] = 77
	c.Sweeps.Skipped["claim_grace"] = 77
	again := totals.Counts()
	same(t, []int{
		again.Topics["mail"].Requeued["retry"], again.Transitions["message.requeued"]["queued"],
		again.Refusals["lock.refused"]["unlock"]["not_held"], again.Sweeps.Skipped["claim_grace"],
	}, []int{1, 2, 1, 4})
}

// Of a busy store the totals are what one counts event by event; and saved and restored at any place they are what they would have been.
// Who begins behind the first event of a message is told its topic by the next claim, and has nothing to look up.
func TestTotalsLearnTopicsFromClaims(t *testing.T) {
	var l log
	l.enqueue(id(1), "mail")
	behind := len(l)
	l.claim(id(1), id(9), events.MessageClaimed{Topic: "mail", Token: 2, Attempt: 1})
	l.message(id(1), &events.MessageCompleted{Token: 2}, events.Running, events.Completed)
	var totals projections.Totals
	for _, r := range l[behind:] {
		if totals.Lacks(r) {
			t.Errorf("it lacks the topic of %s", r.Event.Type())
		}
		totals.Apply(r)
	}
	same(t, totals.Counts().Topics, map[string]projections.TopicCounts{"mail": {Claimed: 1, Completed: 1}})
}

func TestTotalsOfABusyStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history.New(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
		if err := h.Busy(rapid.IntRange(1, 80).Draw(t, "steps")); err != nil {
			t.Fatal(err)
		}
		list, err := h.Log(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		topics := map[events.ID]string{}
		want := map[string]int{}
		whole, cut := &projections.Totals{}, &projections.Totals{}
		for _, r := range list {
			if e, ok := r.Event.(*events.MessageEnqueued); ok {
				topics[r.Entity.ID] = e.Topic
			}
			want[r.Event.Type().String()+" "+r.To.String()]++
			if topic, ok := topics[r.Entity.ID]; ok && r.Event.Type().Moves() {
				want[topic+" "+r.Event.Type().String()]++
			}
			whole.Apply(r)
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				cut = restored(t, cut)
			}
			if cut.Lacks(r) {
				cut.Learn(r.Entity.ID, topics[r.Entity.ID])
			}
			cut.Apply(r)
		}
		if got, want := viewOf(t, cut), viewOf(t, whole); got != want {
			t.Errorf("restored again and again:\n%s\nat one go:\n%s", got, want)
		}
		c := whole.Counts()
		for typ, states := range c.Transitions {
			for state, n := range states {
				if want[typ+" "+state] != n {
					t.Errorf("%d %s to %s, want %d", n, typ, state, want[typ+" "+state])
				}
				delete(want, typ+" "+state)
			}
		}
		for name, topic := range c.Topics {
			for typ, n := range map[events.Type]int{
				events.TypeMessageEnqueued: topic.Enqueued, events.TypeMessageClaimed: topic.Claimed, events.TypeMessageBlocked: topic.Blocked,
				events.TypeMessageCompleted: topic.Completed, events.TypeMessageCancelled: topic.Cancelled, events.TypeMessageDiscarded: topic.Discarded,
				events.TypeMessageRedriven: topic.Redriven, events.TypeMessageRequeued: sum(topic.Requeued), events.TypeMessageDeadLettered: sum(topic.DeadLettered),
			} {
				if want[name+" "+typ.String()] != n {
					t.Errorf("%s: %d %s, want %d", name, n, typ, want[name+" "+typ.String()])
				}
				delete(want, name+" "+typ.String())
			}
		}
		for what := range want {
			counted := strings.HasSuffix(what, ".orphaned") || strings.HasSuffix(what, ".counted") || strings.HasSuffix(what, ".unblocked")
			if !counted { // those are not told apart by topic
				t.Errorf("%s was not counted", what)
			}
		}
	})
}

func sum(m map[string]int) int {
	n := 0
	for _, count := range m {
		n += count
	}
	return n
}

type fataler interface{ Fatal(...any) }

func viewOf(t fataler, totals *projections.Totals) string {
	view, err := totals.View()
	if err != nil {
		t.Fatal(err)
	}
	return string(view)
}

func restored(t fataler, totals *projections.Totals) *projections.Totals {
	var again projections.Totals
	view := viewOf(t, totals)
	if err := again.Restore(totals.Version(), []byte(view)); err != nil {
		t.Fatal(err)
	}
	if got := viewOf(t, &again); got != view {
		t.Fatal("restored:", got, "was", view)
	}
	return &again
}

func TestTotalsTellTopicsApartUpToABound(t *testing.T) {
	var l log
	var totals projections.Totals
	for n := range projections.MaxTopics + 20 {
		l.enqueue(number(n), fmt.Sprintf("topic-%d", n))
	}
	for n := range projections.MaxTopics + 20 {
		l.complete(number(n))
	}
	for n := range 150 {
		refused := &events.MessageRefused{Command: fmt.Sprintf("command-%d", n), Reason: events.ReasonStaleToken}
		l.message(id(1), refused, events.Completed, events.Completed)
	}
	l.apply(&totals)
	c := totals.Counts()
	same(t, len(c.Topics), projections.MaxTopics+1)
	same(t, c.Topics[projections.OtherTopics], projections.TopicCounts{Enqueued: 20, Completed: 20})
	same(t, c.Overflow, 20)
	same(t, len(c.Refusals["message.refused"]), 101)
	same(t, c.Refusals["message.refused"][projections.OtherCommand], map[string]int{"stale_token": 50})

	// Whatever comes later, a topic stays where it is counted.
	again := restored(t, &totals)
	var late log
	late = append(late, l...)
	late.enqueue(number(9000), "topic-7")
	late.enqueue(number(9001), "topic-510")
	late.apply(again)
	c = again.Counts()
	same(t, []int{c.Topics["topic-7"].Enqueued, c.Topics[projections.OtherTopics].Enqueued}, []int{2, 21})
}

// number is the id of one of many messages.
func number(n int) (id events.ID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n)+1)
	return id
}

// More messages wait than are remembered: the topics of those that were forgotten are asked for again, and nothing is counted otherwise for that.
func TestTotalsForgetAndLearnAgain(t *testing.T) {
	var totals projections.Totals
	const many = 1<<18 + 1000
	commit := &events.Commit{At: epoch, Count: 1}
	position := int64(0)
	record := func(n int, event events.Event, to events.State) events.Recorded {
		position++
		return events.Recorded{
			Transition: events.Transition{Event: event, Version: 1, To: to}, Position: position, Entity: events.MessageEntity(number(n)), Commit: commit,
		}
	}
	for n := range many {
		totals.Apply(record(n, &events.MessageEnqueued{Topic: "mail"}, events.Queued))
	}
	asked := 0
	for n := range many {
		r := record(n, &events.MessageCompleted{}, events.Completed)
		if totals.Lacks(r) {
			asked++
			totals.Learn(r.Entity.ID, "mail")
		}
		totals.Apply(r)
	}
	same(t, asked, 1<<18)
	same(t, totals.Counts().Topics, map[string]projections.TopicCounts{"mail": {Enqueued: many, Completed: many}})
}

func TestTotalsRefuseWhatIsNoViewOfTheirs(t *testing.T) {
	for view, version := range map[string]int{
		"": 1, "{": 1, `{"position":1,"at":1,"sweeps":{},"more":1}`: 1, `{"position":"1"}`: 1, `{"position":1,"at":1,"sweeps":{}}`: 2,
	} {
		var totals projections.Totals
		if err := totals.Restore(version, []byte(view)); err == nil {
			t.Errorf("%q of version %d was restored", view, version)
		}
	}
}
