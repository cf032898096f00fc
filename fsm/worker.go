package fsm

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// workerLife is the table of a worker incarnation's life. An incarnation that stopped never comes back: the process starts a new one.
var workerLife = newLifecycle(events.KindWorker,
	edge(events.TypeWorkerStarted, events.Live, events.Absent),
	edge(events.TypeWorkerGap, events.Live, events.Live),
	edge(events.TypeWorkerLost, events.Lost, events.Live),
	edge(events.TypeWorkerReturned, events.Live, events.Lost),
	edge(events.TypeWorkerStopped, events.Stopped, events.Live, events.Lost),
	edge(events.TypeWorkerPurged, events.Purged, events.Lost),
	edge(events.TypeWorkerSnapshotted, events.Live, events.Live),
	edge(events.TypeWorkerSnapshotted, events.Lost, events.Lost),
)

// Worker is one incarnation of a working process as its events have left it. Its heartbeats are no events; see package store.
type Worker struct {
	ID                events.ID
	Version           int
	State             events.State
	StartedAt         time.Time
	LostAt            time.Time
	Host              string
	PID               int
	Program           string // its version, as it says
	Topics            []string
	Concurrency       int
	HeartbeatInterval time.Duration
	Proof             bool // its end can be proven by the kernel
	FenceAfter        time.Duration
	Limits            []int         // what its code declares as its topics' limits, in their order; 0 declares none
	Retention         time.Duration // how old events must be before it lets them go; below zero it keeps all, 0 does not say
}

// VisitFields names the fields as a store keeps them. The id and the version have columns of their own.
func (w *Worker) VisitFields(f *events.Fields) {
	f.State("state", &w.State)
	f.Time("started", &w.StartedAt)
	f.Time("lost", &w.LostAt)
	f.Text("host", &w.Host)
	f.Int("pid", &w.PID)
	f.Text("program", &w.Program)
	f.Texts("topics", &w.Topics)
	f.Int("concurrency", &w.Concurrency)
	f.Duration("heartbeat_interval", &w.HeartbeatInterval)
	f.Flag("proof", &w.Proof)
	f.Duration("fence_after", &w.FenceAfter)
	f.Ints("limits", &w.Limits)
	f.Duration("retention", &w.Retention)
}

// StartWorker makes an incarnation known.
type StartWorker struct{ Started events.WorkerStarted }

// StopWorker says that the incarnation ended as it should. What it still holds is given back in the same commit, see [OperateWorker]:
// nothing is ever held by a worker that has stopped. Released counts what it had given back at its end before.
type StopWorker struct{ Released int }

// StopPage is how many claims one commit of a stop gives back at most.
const StopPage = 100

// LoseWorker says that somebody found it gone.
type LoseWorker struct{ Evidence events.Evidence }

// ReturnWorker says that one held to be lost was heard of again.
type ReturnWorker struct{}

// GapWorker records that its heartbeats had a gap, once it has ended.
type GapWorker struct{ FromAt, ToAt time.Time }

// PurgeWorker forgets one that was lost longer ago than its TTL and holds nothing, see [OperateWorker].
type PurgeWorker struct{ TTL time.Duration }

// WorkerCommand is a command to one worker incarnation.
type WorkerCommand interface {
	// Name is an imperative, as it is recorded with commits.
	Name() string
	event(Worker) events.Event
}

// Decide gives the event that follows from a command, or a *Refusal.
func (w Worker) Decide(c WorkerCommand, _ time.Time) ([]events.Event, error) {
	event := c.event(w)
	if _, ok := workerLife.Next(w.State, event.Type()); !ok {
		reason := events.ReasonWrongState
		if w.State == events.Absent {
			reason = events.ReasonNotFound
		}
		return nil, &Refusal{Command: c.Name(), Entity: events.WorkerEntity(w.ID), State: w.State, Reason: reason}
	}
	return []events.Event{event}, nil
}

// Evolve is the worker after an event that was recorded at the given time. An event of another lifecycle leaves it as it is.
func (w Worker) Evolve(event events.Event, at time.Time) Worker {
	to, ok := workerLife.Next(w.State, event.Type())
	if !ok {
		return w
	}
	w.State = to
	w.Version++
	switch e := event.(type) {
	case *events.WorkerStarted:
		w.StartedAt, w.Host, w.PID, w.Program = at, e.Host, e.PID, e.Version
		w.Topics, w.Concurrency, w.HeartbeatInterval, w.Proof = e.Topics, e.Concurrency, e.HeartbeatInterval, e.Proof
		w.FenceAfter, w.Limits, w.Retention = e.FenceAfter, e.Limits, e.Retention
	case *events.WorkerLost:
		w.LostAt = at
	case *events.WorkerReturned:
		w.LostAt = time.Time{}
	}
	return w
}

// Name is "start-worker".
func (StartWorker) Name() string { return "start-worker" }

func (c StartWorker) event(Worker) events.Event { return &c.Started }

// Name is "stop-worker".
func (StopWorker) Name() string { return "stop-worker" }

func (c StopWorker) event(Worker) events.Event { return &events.WorkerStopped{Released: c.Released} }

// Name is "lose-worker".
func (LoseWorker) Name() string { return "lose-worker" }

func (c LoseWorker) event(Worker) events.Event { return &events.WorkerLost{Evidence: c.Evidence} }

// Name is "return-worker".
func (ReturnWorker) Name() string { return "return-worker" }

func (c ReturnWorker) event(w Worker) events.Event { return &events.WorkerReturned{LostAt: w.LostAt} }

// Name is "gap-worker".
func (GapWorker) Name() string { return "gap-worker" }

func (c GapWorker) event(Worker) events.Event {
	return &events.WorkerGap{FromAt: c.FromAt, ToAt: c.ToAt}
}

// Name is "purge-worker".
func (PurgeWorker) Name() string { return "purge-worker" }

func (c PurgeWorker) event(w Worker) events.Event { return &events.WorkerPurged{LostAt: w.LostAt} }
