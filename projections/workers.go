package projections

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// Worker is one incarnation of a working process as it stands.
type Worker struct {
	ID                events.ID
	State             events.State // live, lost or stopped; absent where it made claims and was never made known
	Host              string
	PID               int
	Program           string // its version, as it says
	Topics            []string
	Concurrency       int
	HeartbeatInterval time.Duration // what it intends
	Proof             bool          // its end can be proven by the kernel

	Started   Mark
	Lost      Mark            // when it was found gone; zero unless it is lost
	Evidence  events.Evidence // why; zero unless it is lost
	Returned  int             // how often it was heard of after having been held to be lost
	Gaps      int             // how often its heartbeats had a gap
	Gap       Gap             // the last one
	Claimed   int             // claims it made
	Completed int             // of these, how many ended well
	Claims    []Claim         // open ones, the oldest first
}

// Gap is a time in which a worker's heartbeats did not come. Its mark is that of the event that recorded it.
type Gap struct {
	Mark
	FromAt time.Time
	ToAt   time.Time
}

// Workers adds up the worker incarnations: which there are and what they hold. Its zero is the beginning of the log.
type Workers struct {
	asOf    Mark
	workers map[events.ID]*worker
	holders map[events.ID]*worker // by message
}

type worker struct {
	Worker
	open map[events.ID]Claim // by message
}

// Apply takes the next event.
func (w *Workers) Apply(r events.Recorded) {
	if !w.asOf.pass(r) {
		return
	}
	if w.workers == nil {
		w.workers, w.holders = map[events.ID]*worker{}, map[events.ID]*worker{}
	}
	switch r.Entity.Kind {
	case events.KindWorker:
		w.applyWorker(w.worker(r.Entity.ID), r)
	case events.KindMessage:
		w.applyMessage(r)
	}
}

func (w *Workers) worker(id events.ID) *worker {
	known := w.workers[id]
	if known == nil {
		known = &worker{Worker: Worker{ID: id}, open: map[events.ID]Claim{}}
		w.workers[id] = known
	}
	return known
}

func (w *Workers) applyWorker(k *worker, r events.Recorded) {
	if r.Event.Type().Moves() {
		k.State = r.To
	}
	switch e := r.Event.(type) {
	case *events.WorkerStarted:
		k.Host, k.PID, k.Program, k.Topics = e.Host, e.PID, e.Version, e.Topics
		k.Concurrency, k.HeartbeatInterval, k.Proof = e.Concurrency, e.HeartbeatInterval, e.Proof
		k.Started = markOf(r)
	case *events.WorkerLost:
		k.Lost, k.Evidence = markOf(r), e.Evidence
	case *events.WorkerReturned:
		k.Lost, k.Evidence = Mark{}, events.Evidence{}
		k.Returned++
	case *events.WorkerGap:
		k.Gaps++
		k.Gap = Gap{markOf(r), e.FromAt, e.ToAt}
	}
	w.forget(k)
}

func (w *Workers) applyMessage(r events.Recorded) {
	id := r.Entity.ID
	switch e := r.Event.(type) {
	case *events.MessageClaimed:
		k := w.worker(e.Worker)
		k.Claimed++
		k.open[id] = claimOf(r, e)
		w.holders[id] = k
		return
	case *events.MessageCounted:
		if k := w.holders[id]; k != nil {
			claim := k.open[id]
			claim.Counted = true
			k.open[id] = claim
		}
	}
	k := w.holders[id]
	if k == nil || claimed(r.To) {
		return
	}
	if r.To == events.Completed {
		k.Completed++
	}
	delete(k.open, id)
	delete(w.holders, id)
	w.forget(k)
}

// forget lets a worker go that is no more and holds nothing.
func (w *Workers) forget(k *worker) {
	if len(k.open) == 0 && (k.State == events.Stopped || k.State == events.Absent) {
		delete(w.workers, k.ID)
	}
}

// AsOf is the last event that was applied.
func (w *Workers) AsOf() Mark { return w.asOf }

// All is every worker that has not stopped, and every other that still holds something, in the order in which they started.
func (w *Workers) All() []Worker {
	list := make([]Worker, 0, len(w.workers))
	for _, k := range w.workers {
		list = append(list, k.copy())
	}
	slices.SortFunc(list, func(a, b Worker) int {
		return cmp.Or(cmp.Compare(a.Started.Position, b.Started.Position), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return list
}

// Worker is one worker of All.
func (w *Workers) Worker(id events.ID) (Worker, bool) {
	k, ok := w.workers[id]
	if !ok {
		return Worker{}, false
	}
	return k.copy(), true
}

func (k *worker) copy() Worker {
	c := k.Worker
	c.Topics = slices.Clone(k.Topics)
	c.Claims = slices.SortedFunc(maps.Values(k.open), older)
	return c
}
