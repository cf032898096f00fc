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
	State             events.State // live, lost, stopped or purged; absent where it holds something and was never made known
	Host              string
	PID               int
	Program           string // its version, as it says
	Topics            []string
	Concurrency       int
	HeartbeatInterval time.Duration // what it intends
	Proof             bool          // its end can be proven by the kernel
	FenceAfter        time.Duration // how long after its last confirmed heartbeat it ends its handlers' contexts by itself
	Limits            []int         // what its code declares as its topics' limits, in their order; 0 declares none

	Started   Mark
	Lost      Mark            // when it was found gone; zero unless it is lost
	Evidence  events.Evidence // why; zero unless it is lost
	Taken     Estate          // what has been taken from it since then
	Returned  int             // how often it was heard of after having been held to be lost; see [Workers.FalseAlarms]
	Gaps      int             // how often its heartbeats had a gap
	Gap       Gap             // the last one
	Claimed   int             // claims it made
	Completed int             // of these, how many ended well
	Claims    []Claim         // open ones, the oldest first
	Permits   []Permit        // that it holds, the oldest first; how their claims ended only [Locks] knows
}

// Estate is what was taken from a worker that was held to be lost.
type Estate struct {
	Claims  int
	Permits int
}

// FalseAlarm is a worker that was held to be lost and was heard of again. Its mark is that of the return.
type FalseAlarm struct {
	Mark
	Worker   events.ID
	Lost     Mark            // when it was held to be lost; zero where that was never seen
	LostAt   time.Time       // the same, as the return says it
	Evidence events.Evidence // why, and by whose sweep
	Taken    Estate
}

// WorkerTotals counts what became of workers since the log's beginning. None of them falls.
type WorkerTotals struct {
	Started  int
	Stopped  int
	Lost     int
	Returned int
	Purged   int
	Gaps     int
}

// recentAlarms is how many false alarms are kept, also of workers that are no more.
const recentAlarms = 32

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
	permits map[permitKey]*worker
	totals  WorkerTotals
	alarms  []FalseAlarm
}

type worker struct {
	Worker
	open map[events.ID]Claim // by message
	out  map[permitKey]Permit
}

type permitKey struct {
	lock  string
	token events.Token
}

// Apply takes the next event.
func (w *Workers) Apply(r events.Recorded) {
	if !w.asOf.pass(r) {
		return
	}
	if w.workers == nil {
		w.workers, w.holders = map[events.ID]*worker{}, map[events.ID]*worker{}
		w.permits = map[permitKey]*worker{}
	}
	switch r.Entity.Kind {
	case events.KindWorker:
		w.applyWorker(w.worker(r.Entity.ID), r)
	case events.KindMessage:
		w.applyMessage(r)
	case events.KindLock:
		w.applyLock(r)
	}
}

func (w *Workers) worker(id events.ID) *worker {
	known := w.workers[id]
	if known == nil {
		known = &worker{Worker: Worker{ID: id}, open: map[events.ID]Claim{}, out: map[permitKey]Permit{}}
		w.workers[id] = known
	}
	return known
}

func (w *Workers) applyWorker(k *worker, r events.Recorded) {
	if r.Event.Type().Moves() {
		k.State = r.To
	}
	switch e := r.Event.(type) {
	case *events.WorkerSnapshotted:
		k.told(r, e)
	case *events.WorkerStarted:
		k.Host, k.PID, k.Program, k.Topics = e.Host, e.PID, e.Version, e.Topics
		k.Concurrency, k.HeartbeatInterval, k.Proof = e.Concurrency, e.HeartbeatInterval, e.Proof
		k.FenceAfter, k.Limits = e.FenceAfter, e.Limits
		k.Started = markOf(r)
		w.totals.Started++
	case *events.WorkerStopped:
		w.totals.Stopped++
	case *events.WorkerLost:
		k.Lost, k.Evidence, k.Taken = markOf(r), e.Evidence, Estate{}
		w.totals.Lost++
	case *events.WorkerReturned:
		w.alarms = latest(w.alarms, FalseAlarm{markOf(r), k.ID, k.Lost, e.LostAt, k.Evidence, k.Taken}, recentAlarms)
		k.Lost, k.Evidence, k.Taken = Mark{}, events.Evidence{}, Estate{}
		k.Returned++
		w.totals.Returned++
	case *events.WorkerPurged:
		w.totals.Purged++
	case *events.WorkerGap:
		k.Gaps++
		w.totals.Gaps++
		k.Gap = Gap{markOf(r), e.FromAt, e.ToAt}
	}
	w.forget(k)
}

// told begins with a worker whose beginning was let go.
func (k *worker) told(r events.Recorded, e *events.WorkerSnapshotted) {
	fields, ok := told[workerFields](e.Snapshot)
	if !ok || k.Started.Position > 0 {
		return
	}
	k.Host, k.PID, k.Program, k.Topics = fields.Host, fields.PID, fields.Program, fields.Topics
	k.Concurrency, k.HeartbeatInterval, k.Proof = fields.Concurrency, fields.HeartbeatInterval.duration(), fields.Proof != 0
	k.FenceAfter, k.Limits = fields.FenceAfter.duration(), fields.limits()
	k.Started = Mark{r.Position, fields.Started.time()}
	if r.To == events.Lost && k.Lost.Position == 0 {
		k.Lost = Mark{r.Position, fields.Lost.time()}
	}
}

func (w *Workers) applyMessage(r events.Recorded) {
	id := r.Entity.ID
	switch e := r.Event.(type) {
	case *events.MessageSnapshotted:
		fields, ok := toldMessage(e)
		if ok && claimed(r.To) && w.holders[id] == nil {
			k := w.worker(fields.Worker)
			k.open[id] = fields.claim(r)
			w.holders[id] = k
		}
		return
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
	case *events.MessageOrphaned:
		if k := w.holders[id]; k != nil && k.State == events.Lost {
			k.Taken.Claims++
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

func (w *Workers) applyLock(r events.Recorded) {
	switch e := r.Event.(type) {
	case *events.LockSnapshotted:
		for _, p := range e.Out {
			key := permitKey{r.Entity.Name, p.Token}
			if w.permits[key] == nil {
				k := w.worker(p.Worker)
				k.out[key] = toldPermit(r, p)
				w.permits[key] = k
			}
		}
	case *events.LockAcquired:
		k, key := w.worker(e.Worker), permitKey{r.Entity.Name, e.Token}
		k.out[key] = permitOf(r, e)
		w.permits[key] = k
	case *events.LockOrphaned:
		if k := w.permits[permitKey{r.Entity.Name, e.Token}]; k != nil && k.State == events.Lost {
			k.Taken.Permits++
		}
	}
	end, ends := events.EndOf(r.Event)
	if !ends {
		return
	}
	key := permitKey{r.Entity.Name, end.Token}
	if k := w.permits[key]; k != nil {
		delete(k.out, key)
		delete(w.permits, key)
		w.forget(k)
	}
}

// forget lets a worker go that is no more and holds nothing.
func (w *Workers) forget(k *worker) {
	if len(k.open) == 0 && len(k.out) == 0 && k.State != events.Live && k.State != events.Lost {
		delete(w.workers, k.ID)
	}
}

// Totals counts what became of all workers.
func (w *Workers) Totals() WorkerTotals { return w.totals }

// FalseAlarms is the last workers that were held to be lost and heard of again, the oldest return first.
func (w *Workers) FalseAlarms() []FalseAlarm { return slices.Clone(w.alarms) }

// AsOf is the last event that was applied.
func (w *Workers) AsOf() Mark { return w.asOf }

// All is every worker that has not stopped, and every other that still holds something, in the order in which they started.
func (w *Workers) All() []Worker {
	list := make([]Worker, 0, len(w.workers))
	for _, k := range w.workers {
		list = append(list, k.copy())
	}
	slices.SortFunc(list, func(a, b Worker) int {
		return cmp.Or(a.Started.sooner(b.Started), bytes.Compare(a.ID[:], b.ID[:]))
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
	c.Topics, c.Limits = slices.Clone(k.Topics), slices.Clone(k.Limits)
	c.Claims = slices.SortedFunc(maps.Values(k.open), older)
	c.Permits = slices.SortedFunc(maps.Values(k.out), olderPermit)
	return c
}
