package projections_test

import (
	"context"
	"slices"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/store"
	"pgregory.net/rapid"
)

// A random history, folded, is what the rows of the store say, counted one by one.
func TestProjectionsEqualTheRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history.New(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
		if err := h.Busy(rapid.IntRange(1, 80).Draw(t, "steps")); err != nil {
			t.Fatal(err)
		}
		var topics projections.Topics
		var workers projections.Workers
		var locks projections.Locks
		var leaders projections.Leaders
		var clock projections.Clock
		log := h.Store.Read(context.Background(), "", store.Filter{})
		if err := projections.Follow(log, &topics, &workers, &locks, &leaders, &clock); err != nil {
			t.Fatal(err)
		}
		n, err := naive(h)
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range topics.All() {
			if got, want := simplify(topic), n.topics[topic.Name]; got != want {
				t.Errorf("topic %s\n got %+v\nwant %+v", topic.Name, got, want)
			}
			ended := topic.Completed + topic.Cancelled + topic.Discarded
			if sum := topic.Queued + topic.Blocked + topic.Running + topic.DeadLettered + ended; sum != topic.Totals.Enqueued {
				t.Errorf("topic %s: %d enqueued, the states add up to %d", topic.Name, topic.Totals.Enqueued, sum)
			}
			if got := len(topics.Claims(topic.Name)); got != topic.Running {
				t.Errorf("topic %s: %d claims, %d running", topic.Name, got, topic.Running)
			}
			delete(n.topics, topic.Name)
		}
		if len(n.topics) > 0 {
			t.Errorf("topics that the projection does not know: %v", n.topics)
		}
		checkWorkers(t, workers.All(), n)
		checkLocks(t, &locks, n)
		if leader, known := leaders.Leader(fsm.Beat); known != (n.leader != nil) || known && leaderOf(leader) != *n.leader {
			t.Errorf("leader %+v, want %+v", leader, n.leader)
		}
		if steps := clock.Steps(); len(steps) > 0 != (n.clock != nil) || n.clock != nil && !steps[len(steps)-1].ToAt.Equal(n.clock.ToAt) {
			t.Errorf("the clock's steps are %v, its row has %+v", steps, n.clock)
		}
	})
}

func leaderOf(l projections.Leader) fsm.Leader {
	return fsm.Leader{Name: l.Name, State: l.State, Worker: l.Worker, Term: l.Term}
}

func checkWorkers(t *rapid.T, list []projections.Worker, n *sums) {
	for _, w := range list {
		var claims []events.ID
		for _, c := range w.Claims {
			claims = append(claims, c.Message)
		}
		slices.SortFunc(claims, byID)
		if want := n.claims[w.ID]; !slices.Equal(claims, want) {
			t.Errorf("worker %s holds %v, want %v", w.ID, claims, want)
		}
		if got, want := len(w.Permits), n.permits[w.ID]; got != want {
			t.Errorf("worker %s holds %d permits, want %d", w.ID, got, want)
		}
		if want, ok := n.workers[w.ID]; ok && w.State != want {
			t.Errorf("worker %s is %s, want %s", w.ID, w.State, want)
		}
		delete(n.claims, w.ID)
		delete(n.workers, w.ID)
		delete(n.permits, w.ID)
	}
	if len(n.claims)+len(n.workers)+len(n.permits) > 0 {
		t.Errorf("what the projection does not know: %v %v %v", n.claims, n.workers, n.permits)
	}
}

func checkLocks(t *rapid.T, locks *projections.Locks, n *sums) {
	for _, lock := range locks.All() {
		got := lockSum{Permits: lock.Permits}
		for _, w := range lock.Waiters {
			got.Blocked += w.Blocked
			got.Trying += w.Trying
		}
		for _, p := range lock.Out {
			got.Out++
			if p.Ended != (projections.ClaimEnd{}) {
				got.Ended++
			}
		}
		if want := n.locks[lock.Name]; want == nil || got != *want {
			t.Errorf("lock %s\n got %+v\nwant %+v", lock.Name, got, want)
		}
		delete(n.locks, lock.Name)
	}
	if len(n.locks) > 0 {
		t.Errorf("locks that the projection does not know: %v", n.locks)
	}
}
