package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store"
)

// tally counts a batch's lines by state, from the log. Its memory does not grow with the batch: it keeps a count per state, and more
// only of what runs. It is for one goroutine.
type tally struct {
	batch   *batch
	cursor  store.Cursor
	known   map[events.Entity]bool       // messages that were met, where the beginning of the log was let go; nil where all of it is there
	others  map[events.Entity]bool       // messages of the batch that are no lines: itself, its inputs
	running map[events.Entity]openClaim  // the open claims of lines
	workers map[foundling.ID]knownWorker // those that have not said that they ended

	added  map[string]int // lines put into the batch, by who did
	counts map[events.State]int
	again  int          // completed at a later attempt since this process began
	taken  map[loss]int // lines that were given back since it was last asked
}

// loss is whose lines were given back, by which evidence.
type loss struct {
	pid      int
	evidence string
}

// openClaim is one line in a worker's hands.
type openClaim struct {
	worker  foundling.ID
	attempt int
}

// knownWorker is what a tally knows of a worker.
type knownWorker struct {
	pid int
	own bool // it is this process's
}

func newTally(b *batch) *tally {
	return &tally{
		batch: b, others: map[events.Entity]bool{}, running: map[events.Entity]openClaim{}, workers: map[foundling.ID]knownWorker{},
		added: map[string]int{}, counts: map[events.State]int{}, taken: map[loss]int{},
	}
}

// counted is a tally at one moment.
type counted struct {
	done, running, waiting, dead, cancelled int
	again                                   int
}

func (c counted) all() int   { return c.ended() + c.open() }
func (c counted) open() int  { return c.running + c.waiting }
func (c counted) ended() int { return c.done + c.dead + c.cancelled }

func (t *tally) now() counted {
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
	if t.cursor == "" {
		if t.cursor, err = store.Oldest(ctx, t.batch.store); err != nil {
			return err
		}
		if t.cursor != "" {
			t.known = map[events.Entity]bool{}
		}
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
	fresh := !r.At().Before(t.batch.began) // of this process's time
	switch e := r.Event.(type) {
	case *events.WorkerStarted:
		t.workers[r.Entity.ID] = knownWorker{e.PID, fresh && process{e.Host, e.PID} == thisProcess()}
	case *events.WorkerStopped:
		delete(t.workers, r.Entity.ID)
	case *events.MessageEnqueued:
		if e.Topic == topicLines {
			t.added[r.Commit.Command.Actor]++
		} else {
			t.others[r.Entity] = true
		}
	}
	if r.Entity.Kind != events.KindMessage || r.Version == 0 || t.headless(r) || t.others[r.Entity] {
		return
	}
	if r.From != events.Absent {
		t.counts[r.From]--
	}
	t.counts[r.To]++
	if r.To == events.Completed && t.running[r.Entity].attempt > 1 && fresh {
		t.again++
	}
	if r.To != events.Running {
		delete(t.running, r.Entity)
	}
	switch e := r.Event.(type) {
	case *events.MessageClaimed:
		t.running[r.Entity] = openClaim{e.Worker, e.Attempt}
	case *events.MessageOrphaned:
		if fresh {
			t.taken[loss{t.workers[e.Evidence.Claimer].pid, lossEvidence(e.Evidence)}]++
		}
	}
}

// headless reports whether the log does not say how a message came to the state that this event finds it in, because its beginning was let go.
// What is open is told once more, and counted with that.
func (t *tally) headless(r events.Recorded) bool {
	if t.known == nil || t.known[r.Entity] {
		return false
	}
	switch e := r.Event.(type) {
	case *events.MessageEnqueued:
		t.known[r.Entity] = true
		return false
	case *events.MessageSnapshotted:
		t.known[r.Entity] = true
		if t.others[r.Entity] = toldTopic(e) != topicLines; !t.others[r.Entity] {
			t.counts[r.To]++
		}
	}
	return true
}

// lossEvidence is why a process was held to be gone, in a word or two.
func lossEvidence(e events.Evidence) string {
	switch e.Reason {
	case events.ReasonProcessGone:
		return "gone"
	case events.ReasonSilent:
		return fmt.Sprintf("silent for %s", findings.Span(e.Age.Truncate(time.Second)))
	}
	return "without a heartbeat"
}

// takenBack says which lines of dead processes were given back since it was last asked; nothing where there were none.
func (t *tally) takenBack() []string {
	lines, pids := map[string]int{}, map[string][]int{}
	for l, n := range t.taken {
		lines[l.evidence] += n
		pids[l.evidence] = append(pids[l.evidence], l.pid)
	}
	clear(t.taken)
	var said []string
	for _, evidence := range slices.Sorted(maps.Keys(lines)) {
		word := "process"
		if len(pids[evidence]) > 1 {
			word = "processes"
		}
		slices.Sort(pids[evidence])
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(pids[evidence]), " ", ", "), "[]")
		said = append(said, fmt.Sprintf("%d were running in %s %s, %s: taken back", lines[evidence], word, list, evidence))
	}
	return said
}

// holders is how many lines each worker of another process runs, and whether this process runs any.
func (t *tally) holders() (others map[foundling.ID]int, own bool) {
	others = map[foundling.ID]int{}
	for _, c := range t.running {
		if t.workers[c.worker].own {
			own = true
			continue
		}
		others[c.worker]++
	}
	return others, own
}
