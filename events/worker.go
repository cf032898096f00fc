package events

import "time"

// WorkerStarted : a process took up work under a new random incarnation id.
type WorkerStarted struct {
	Host              string
	PID               int
	Version           string // of the program, as it says
	Topics            []string
	Concurrency       int           // handlers at once
	HeartbeatInterval time.Duration // what it intends
	Proof             bool          // it holds an OS lock while it lives, so that its end can be proven
	FenceAfter        time.Duration // how long after its last confirmed heartbeat it ends its handlers' contexts by itself
	Limits            []int         // what its code declares as its topics' limits, in their order; 0 declares none
	Retention         time.Duration // how old events must be before it lets them go; below zero it keeps all, 0 does not say
}

// Type is worker.started.
func (*WorkerStarted) Type() Type { return TypeWorkerStarted }

// VisitFields names the event's fields.
func (e *WorkerStarted) VisitFields(f *Fields) {
	f.Text("host", &e.Host)
	f.Int("pid", &e.PID)
	f.Text("version", &e.Version)
	f.Texts("topics", &e.Topics)
	f.Int("concurrency", &e.Concurrency)
	f.Duration("heartbeat_interval", &e.HeartbeatInterval)
	f.Flag("proof", &e.Proof)
	f.Duration("fence_after", &e.FenceAfter)
	f.Ints("limits", &e.Limits)
	f.Duration("retention", &e.Retention)
}

// WorkerStopped : it ended as it should, holding nothing.
type WorkerStopped struct {
	Released int // claims it gave back at its end
}

// Type is worker.stopped.
func (*WorkerStopped) Type() Type { return TypeWorkerStopped }

// VisitFields names the event's fields.
func (e *WorkerStopped) VisitFields(f *Fields) { f.Int("released", &e.Released) }

// WorkerLost : somebody found that it is gone; what it held is given back.
type WorkerLost struct {
	Evidence Evidence
}

// Type is worker.lost.
func (*WorkerLost) Type() Type { return TypeWorkerLost }

// VisitFields names the event's fields.
func (e *WorkerLost) VisitFields(f *Fields) { e.Evidence.visit(f) }

// WorkerReturned : a worker held to be lost was heard of again. It is evidence of a false alarm.
type WorkerReturned struct {
	LostAt time.Time // when it was held to be lost
}

// Type is worker.returned.
func (*WorkerReturned) Type() Type { return TypeWorkerReturned }

// VisitFields names the event's fields.
func (e *WorkerReturned) VisitFields(f *Fields) { f.Time("lost_at", &e.LostAt) }

// WorkerGap : between two of its confirmed heartbeats lay more than two intervals. It is recorded when the gap ends.
type WorkerGap struct {
	FromAt time.Time
	ToAt   time.Time
}

// Type is worker.gap.
func (*WorkerGap) Type() Type { return TypeWorkerGap }

// VisitFields names the event's fields.
func (e *WorkerGap) VisitFields(f *Fields) {
	f.Time("from", &e.FromAt)
	f.Time("to", &e.ToAt)
}

// WorkerPurged : one that was lost long ago and holds nothing is forgotten. Should it ever beat again, it starts under a new id.
type WorkerPurged struct {
	LostAt time.Time
}

// Type is worker.purged.
func (*WorkerPurged) Type() Type { return TypeWorkerPurged }

// VisitFields names the event's fields.
func (e *WorkerPurged) VisitFields(f *Fields) { f.Time("lost_at", &e.LostAt) }
