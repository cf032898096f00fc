package projections_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
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
		if err := projections.Follow(h.Store.Read(context.Background(), "", store.Filter{}), &topics, &workers); err != nil {
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
			ended := topic.Completed + topic.Cancelled
			if sum := topic.Queued + topic.Running + topic.DeadLettered + ended; sum != topic.Totals.Enqueued {
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
	})
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
		if want, ok := n.workers[w.ID]; ok && w.State != want {
			t.Errorf("worker %s is %s, want %s", w.ID, w.State, want)
		}
		delete(n.claims, w.ID)
		delete(n.workers, w.ID)
	}
	if len(n.claims)+len(n.workers) > 0 {
		t.Errorf("what the projection does not know: %v %v", n.claims, n.workers)
	}
}

// depth is what rows tell of a topic.
type depth struct {
	Limit                         int
	Paused, Counting              bool
	Queued, Running, DeadLettered int
	Counted                       int
	Oldest                        int64 // when the claim was made, in microseconds
}

func simplify(t projections.Topic) depth {
	d := depth{t.Limit, t.Paused, t.Counting, t.Queued, t.Running, t.DeadLettered, t.Counted, 0}
	if t.Running > 0 {
		d.Oldest = t.Oldest.At.UnixMicro()
	}
	return d
}

type sums struct {
	topics  map[string]depth
	claims  map[events.ID][]events.ID
	workers map[events.ID]events.State
}

func naive(h *history.History) (*sums, error) {
	n := &sums{map[string]depth{}, map[events.ID][]events.ID{}, map[events.ID]events.State{}}
	for row, err := range h.Store.Rows(context.Background(), store.RowFilter{}) {
		if err != nil {
			return nil, err
		}
		if err := n.add(row); err != nil {
			return nil, err
		}
	}
	for _, list := range n.claims {
		slices.SortFunc(list, byID)
	}
	return n, nil
}

func (n *sums) add(row store.Row) error {
	name := row.Topic
	if row.Entity.Kind == events.KindTopic {
		name = row.Entity.Name
	}
	d := n.topics[name]
	switch row.Entity.Kind {
	case events.KindWorker:
		n.workers[row.Entity.ID] = row.State
		return nil
	case events.KindTopic:
		v, err := calls.Value(row)
		if err != nil {
			return err
		}
		topic := v.(*fsm.Topic)
		d.Limit, d.Counting, d.Paused, d.Counted = topic.Limit, topic.Counting, topic.State == events.Paused, topic.Running
	case events.KindMessage:
		m, err := calls.Message(row)
		if err != nil {
			return err
		}
		switch m.State {
		case events.Queued:
			d.Queued++
		case events.DeadLettered:
			d.DeadLettered++
		case events.Running:
			if at := m.ClaimedAt.UnixMicro(); d.Running == 0 || at < d.Oldest {
				d.Oldest = at
			}
			d.Running++
			n.claims[m.Worker] = append(n.claims[m.Worker], m.ID)
		}
	}
	n.topics[name] = d
	return nil
}

func byID(a, b events.ID) int { return bytes.Compare(a[:], b[:]) }
