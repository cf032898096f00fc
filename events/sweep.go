package events

import "time"

// Members are how many members of a live set an event lists at most: those that were silent for longest. A larger set is kept by its
// size and its hash.
const Members = 100

// Liveness is who lived, by what the one who swept had read.
type Liveness struct {
	Live   int      // members of the live set
	Silent int      // others that have a heartbeat, too old
	Hash   [32]byte // SHA-256 over each of them and the time of its heartbeat, so that two sweeps that saw the same can be told
	IDs    []ID     // of the live set, the longest silent first, at most Members
	Ages   []int    // of their heartbeats, in milliseconds
}

func (l *Liveness) visit(f *Fields) {
	f.Int("live", &l.Live)
	f.Int("silent", &l.Silent)
	f.Hash("live_hash", &l.Hash)
	f.IDs("members", &l.IDs)
	f.Ints("ages_ms", &l.Ages)
}

// Thresholds are the settings by which a sweep judges, as OPERATIONS knows them: orphan_reclaim_after, orphan_claim_grace,
// orphan_max_attempts and orphan_count.
type Thresholds struct {
	After time.Duration
	Grace time.Duration
	Limit int
	Count OrphanCount
}

func (t *Thresholds) visit(f *Fields) {
	f.Duration("after", &t.After)
	f.Duration("grace", &t.Grace)
	f.Int("orphan_max_attempts", &t.Limit)
	t.Count.visit(f)
}

// SweepFinished : a sweep found something and gave it back, or spared it.
type SweepFinished struct {
	Decider       ID
	Term          int // of the leader; 0 where somebody asked for the sweep
	Thresholds    Thresholds
	Liveness      Liveness
	Dead          []ID // whose estate was given back
	Pages         int  // commits
	Requeued      int
	DeadLettered  int
	LocksReleased int
	Spared        int // claims and permits of dead workers that are younger than the grace
	Skipped       int // rows that could not be read, or were held by somebody
}

// Type is sweep.finished.
func (*SweepFinished) Type() Type { return TypeSweepFinished }

// VisitFields names the event's fields.
func (e *SweepFinished) VisitFields(f *Fields) {
	f.ID("decider", &e.Decider)
	f.Int("term", &e.Term)
	e.Thresholds.visit(f)
	e.Liveness.visit(f)
	f.IDs("dead", &e.Dead)
	f.Int("pages", &e.Pages)
	f.Int("requeued", &e.Requeued)
	f.Int("dead_lettered", &e.DeadLettered)
	f.Int("locks_released", &e.LocksReleased)
	f.Int("spared", &e.Spared)
	f.Int("skipped", &e.Skipped)
}

// SweepRefused : a sweep did not trust what it knew of who lives, and changed nothing.
type SweepRefused struct {
	Reason     Reason // the guard: liveness_unreadable, liveness_empty, caller_missing, liveness_unproven or clock_stepped
	Detail     string // what it saw, in words
	Decider    ID
	Term       int
	Thresholds Thresholds
	Liveness   Liveness
}

// Type is sweep.refused.
func (*SweepRefused) Type() Type { return TypeSweepRefused }

// VisitFields names the event's fields.
func (e *SweepRefused) VisitFields(f *Fields) {
	f.Reason("reason", &e.Reason)
	f.Text("detail", &e.Detail)
	f.ID("decider", &e.Decider)
	f.Int("term", &e.Term)
	e.Thresholds.visit(f)
	e.Liveness.visit(f)
}

// LeaderElected : an incarnation lets time pass for all from here on, until its lease ends.
type LeaderElected struct {
	Worker ID
	Term   int
}

// Type is leader.elected.
func (*LeaderElected) Type() Type { return TypeLeaderElected }

// VisitFields names the event's fields.
func (e *LeaderElected) VisitFields(f *Fields) {
	f.ID("worker", &e.Worker)
	f.Int("term", &e.Term)
}

// LeaderResigned : it gave its lease back.
type LeaderResigned struct {
	Worker ID
	Term   int
}

// Type is leader.resigned.
func (*LeaderResigned) Type() Type { return TypeLeaderResigned }

// VisitFields names the event's fields.
func (e *LeaderResigned) VisitFields(f *Fields) {
	f.ID("worker", &e.Worker)
	f.Int("term", &e.Term)
}

// LeaderLost : its lease ended without its being renewed. The one who is elected next says so.
type LeaderLost struct {
	Worker ID
	Term   int
}

// Type is leader.lost.
func (*LeaderLost) Type() Type { return TypeLeaderLost }

// VisitFields names the event's fields.
func (e *LeaderLost) VisitFields(f *Fields) {
	f.ID("worker", &e.Worker)
	f.Int("term", &e.Term)
}

// ClockStepped : the store's clock moved against the time that passed in a process that beats.
type ClockStepped struct {
	FromAt time.Time // what it would have said had it gone on
	ToAt   time.Time // what it said
	Worker ID        // who saw it
}

// Type is clock.stepped.
func (*ClockStepped) Type() Type { return TypeClockStepped }

// VisitFields names the event's fields.
func (e *ClockStepped) VisitFields(f *Fields) {
	f.Time("from", &e.FromAt)
	f.Time("to", &e.ToAt)
	f.ID("worker", &e.Worker)
}
