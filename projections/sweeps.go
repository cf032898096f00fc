package projections

import (
	"maps"
	"slices"

	"github.com/foundling-go/foundling/events"
)

// Sweep is one run of the reaper that found something, or was refused. One that found nothing leaves no event.
type Sweep struct {
	Mark
	ID         events.ID
	Outcome    events.State // finished or refused
	Decider    events.ID    // the incarnation that swept
	Term       int          // of the leader; 0 where somebody asked for it
	Thresholds events.Thresholds
	Liveness   events.Liveness // who lived, by what it had read

	// Of one that was refused.
	Reason events.Reason // the guard
	Detail string        // what it saw, in words

	// Of one that finished.
	Dead          []events.ID // whose estate it gave back
	Pages         int         // commits
	Requeued      int
	DeadLettered  int
	LocksReleased int
	Spared        int // claims and permits that were younger than the grace
	Skipped       int // rows that could not be read, or were held by somebody
}

// SweepTotals counts what came of sweeps since the log's beginning. None of them falls.
type SweepTotals struct {
	Finished      int
	Refused       map[events.Reason]int
	Requeued      int
	DeadLettered  int
	LocksReleased int
	Spared        int
	Skipped       int
}

// Refusing is how the sweeps have been refused since the last one that finished.
type Refusing struct {
	Count int // in a row; 0 where the last one finished, or there was none
	First Sweep
	Last  Sweep
}

// recentSweeps is how many are kept whole.
const recentSweeps = 32

// Sweeps adds up the runs of the reaper. Its zero is the beginning of the log.
type Sweeps struct {
	asOf     Mark
	totals   SweepTotals
	refusing Refusing
	recent   []Sweep
}

// Apply takes the next event.
func (s *Sweeps) Apply(r events.Recorded) {
	if !s.asOf.pass(r) {
		return
	}
	switch e := r.Event.(type) {
	case *events.SweepFinished:
		s.finish(r, e)
	case *events.SweepRefused:
		s.refuse(r, e)
	}
}

func (s *Sweeps) finish(r events.Recorded, e *events.SweepFinished) {
	t := &s.totals
	t.Finished++
	t.Requeued += e.Requeued
	t.DeadLettered += e.DeadLettered
	t.LocksReleased += e.LocksReleased
	t.Spared += e.Spared
	t.Skipped += e.Skipped
	s.refusing = Refusing{}
	s.recent = latest(s.recent, Sweep{
		Mark: markOf(r), ID: r.Entity.ID, Outcome: events.Finished,
		Decider: e.Decider, Term: e.Term, Thresholds: e.Thresholds, Liveness: e.Liveness,
		Dead: e.Dead, Pages: e.Pages, Requeued: e.Requeued, DeadLettered: e.DeadLettered, LocksReleased: e.LocksReleased,
		Spared: e.Spared, Skipped: e.Skipped,
	}, recentSweeps)
}

func (s *Sweeps) refuse(r events.Recorded, e *events.SweepRefused) {
	if s.totals.Refused == nil {
		s.totals.Refused = map[events.Reason]int{}
	}
	s.totals.Refused[e.Reason]++
	sweep := Sweep{
		Mark: markOf(r), ID: r.Entity.ID, Outcome: events.Refused, Reason: e.Reason, Detail: e.Detail,
		Decider: e.Decider, Term: e.Term, Thresholds: e.Thresholds, Liveness: e.Liveness,
	}
	if s.refusing.Count++; s.refusing.Count == 1 {
		s.refusing.First = sweep
	}
	s.refusing.Last = sweep
	s.recent = latest(s.recent, sweep, recentSweeps)
}

// AsOf is the last event that was applied.
func (s *Sweeps) AsOf() Mark { return s.asOf }

// Totals counts what came of all of them.
func (s *Sweeps) Totals() SweepTotals {
	t := s.totals
	t.Refused = maps.Clone(t.Refused)
	return t
}

// Refusing is how they have been refused since the last one that finished.
func (s *Sweeps) Refusing() Refusing { return s.refusing }

// Recent is the last of them, the oldest first. What they list is shared with them and is not to be changed.
func (s *Sweeps) Recent() []Sweep { return slices.Clone(s.recent) }
