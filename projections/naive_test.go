package projections_test

import (
	"bytes"
	"context"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/store"
)

// sums is what the rows and permits of a store tell, counted one by one.
type sums struct {
	topics  map[string]depth
	claims  map[events.ID][]events.ID
	workers map[events.ID]events.State
	permits map[events.ID]int // by worker
	locks   map[string]*lockSum
	taken   map[events.ID]events.Token // of the permit of an open claim, by message
	leader  *fsm.Leader
	clock   *fsm.Clock
}

// depth is what rows tell of a topic.
type depth struct {
	Limit                                  int
	Paused, Counting                       bool
	Queued, Blocked, Running, DeadLettered int
	Trying                                 int
	Counted                                int
	Oldest                                 int64 // when the claim was made, in microseconds
}

// lockSum is what rows and permits tell of a lock.
type lockSum struct {
	Permits, Out, Ended, Blocked, Trying int
}

func simplify(t projections.Topic) depth {
	d := depth{t.Limit, t.Paused, t.Counting, t.Queued, t.Blocked, t.Running, t.DeadLettered, t.Trying, t.Counted, 0}
	if t.Running > 0 {
		d.Oldest = t.Oldest.At.UnixMicro()
	}
	return d
}

func naive(h *history.History) (*sums, error) {
	n := &sums{
		topics: map[string]depth{}, claims: map[events.ID][]events.ID{}, workers: map[events.ID]events.State{},
		permits: map[events.ID]int{}, locks: map[string]*lockSum{}, taken: map[events.ID]events.Token{},
	}
	for row, err := range h.Store.Rows(context.Background(), store.RowFilter{}) {
		if err != nil {
			return nil, err
		}
		if err := n.add(row); err != nil {
			return nil, err
		}
	}
	for p, err := range h.Store.Permits(context.Background(), store.PermitFilter{}) {
		if err != nil {
			return nil, err
		}
		lock := n.lock(p.Lock)
		lock.Out++
		n.permits[p.Worker]++
		if p.Message != (events.ID{}) && n.taken[p.Message] != p.Token {
			lock.Ended++
		}
	}
	for _, list := range n.claims {
		slices.SortFunc(list, byID)
	}
	return n, nil
}

func (n *sums) lock(name string) *lockSum {
	if n.locks[name] == nil {
		n.locks[name] = &lockSum{Permits: 1}
	}
	return n.locks[name]
}

func (n *sums) add(row store.Row) error {
	v, err := calls.Value(row)
	if err != nil {
		return err
	}
	switch v := v.(type) {
	case *fsm.Worker:
		n.workers[v.ID] = v.State
	case *fsm.Topic:
		d := n.topics[v.Name]
		d.Limit, d.Counting, d.Paused, d.Counted = v.Limit, v.Counting, v.State == events.Paused, v.Running
		n.topics[v.Name] = d
	case *fsm.Message:
		n.message(v)
	case *fsm.Lock:
		n.lock(v.Name).Permits = max(v.Permits, 1)
	case *fsm.Leader:
		n.leader = &fsm.Leader{Name: v.Name, State: v.State, Worker: v.Worker, Term: v.Term}
	case *fsm.Clock:
		n.clock = v
	}
	return nil
}

func (n *sums) message(m *fsm.Message) {
	d := n.topics[m.Topic]
	switch m.State {
	case events.Queued:
		if d.Queued++; m.Trying {
			d.Trying++
			n.lock(m.Lock).Trying++
		}
	case events.Blocked:
		d.Blocked++
		n.lock(m.Lock).Blocked++
	case events.DeadLettered:
		d.DeadLettered++
	case events.Running:
		if at := m.ClaimedAt.UnixMicro(); d.Running == 0 || at < d.Oldest {
			d.Oldest = at
		}
		d.Running++
		n.claims[m.Worker] = append(n.claims[m.Worker], m.ID)
		n.taken[m.ID] = m.LockToken
	}
	n.topics[m.Topic] = d
}

func byID(a, b events.ID) int { return bytes.Compare(a[:], b[:]) }
