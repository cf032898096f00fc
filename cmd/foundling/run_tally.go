package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// tally counts a batch's lines by state, from the log. Its memory does not grow with the batch: it keeps a count per state, and more
// only of what runs.
type tally struct {
	batch   *batch
	cursor  store.Cursor
	others  map[events.Entity]bool // messages of the batch that are no lines: itself, its inputs
	running map[events.Entity]int  // the attempt of each open claim
	started map[foundling.ID]int   // the process of each worker

	mu     sync.Mutex
	counts map[events.State]int
	again  int // completed at a later attempt since this process began
	fresh  bool
	taken  []string // what sweeps gave back, in words
	news   chan struct{}
}

func newTally(b *batch) *tally {
	return &tally{
		batch: b, others: map[events.Entity]bool{}, running: map[events.Entity]int{}, started: map[foundling.ID]int{},
		counts: map[events.State]int{}, news: make(chan struct{}, 1),
	}
}

// counted is a tally at one moment.
type counted struct {
	done, running, waiting, dead, cancelled int
	again                                   int
}

func (c counted) all() int  { return c.done + c.running + c.waiting + c.dead + c.cancelled }
func (c counted) open() int { return c.running + c.waiting }

func (t *tally) now() counted {
	t.mu.Lock()
	defer t.mu.Unlock()
	return counted{
		done: t.counts[events.Completed], running: t.counts[events.Running], waiting: t.counts[events.Queued],
		dead: t.counts[events.DeadLettered], cancelled: t.counts[events.Cancelled], again: t.again,
	}
}

// catchUp counts what the log has that was not counted yet.
func (t *tally) catchUp(ctx context.Context) error {
	head, err := t.batch.store.Head(ctx)
	if err != nil || head == t.cursor {
		return err
	}
	for r, err := range t.batch.store.Read(ctx, t.cursor, store.Filter{}) {
		if err != nil {
			return err
		}
		t.count(r)
		t.cursor = t.batch.store.After(r)
	}
	return nil
}

func (t *tally) count(r events.Recorded) {
	switch e := r.Event.(type) {
	case *events.WorkerStarted:
		t.started[r.Entity.ID] = e.PID
	case *events.MessageEnqueued:
		if e.Topic != topicLines {
			t.others[r.Entity] = true
		}
	case *events.MessageClaimed:
		t.running[r.Entity] = e.Attempt
	}
	if r.Entity.Kind != events.KindMessage || r.Version == 0 || t.others[r.Entity] {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.From != events.Absent {
		t.counts[r.From]--
	}
	t.counts[r.To]++
	if r.To == events.Completed && t.running[r.Entity] > 1 && t.fresh {
		t.again++
	}
	if r.To != events.Running {
		delete(t.running, r.Entity)
	}
}

// begin marks the end of what happened before this process.
func (t *tally) begin() {
	t.mu.Lock()
	t.fresh = true
	t.mu.Unlock()
}

// swept is told what a sweep gave back.
func (t *tally) swept(s foundling.Swept) {
	pids := make([]string, len(s.Workers))
	for i, w := range s.Workers {
		pids[i] = fmt.Sprint(w.PID)
	}
	word := "process"
	if len(pids) > 1 {
		word = "processes"
	}
	t.mu.Lock()
	t.taken = append(t.taken, fmt.Sprintf("%d were running in %s %s, gone: taken back", s.Requeued+s.DeadLettered, word, strings.Join(pids, ", ")))
	t.mu.Unlock()
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// takenBack is what sweeps gave back since it was last asked.
func (t *tally) takenBack() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.taken
	t.taken = nil
	return list
}

// awaitSweep waits a little for the first sweep where there is something for it to find, so that the first line can tell of it.
func (t *tally) awaitSweep(ctx context.Context, bound time.Duration) {
	if t.now().running == 0 {
		return
	}
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-t.news:
	case <-timer.C:
	}
}
