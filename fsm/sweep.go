package fsm

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// sweepLife is the table of a sweep: what it did, what it was refused, and no event where it found nothing and refused nothing.
var sweepLife = newLifecycle(events.KindSweep,
	edge(events.TypeSweepFinished, events.Finished, events.Absent),
	edge(events.TypeSweepRefused, events.Refused, events.Absent, events.Finished), // it acted on proof, and not on silence
)

// Sweep is one run of the reaper as the log has it.
type Sweep struct {
	ID      events.ID
	Version int
	State   events.State
}

// VisitFields names the fields as a store would keep them. The id and the version have columns of their own.
func (s *Sweep) VisitFields(f *events.Fields) { f.State("state", &s.State) }

// Evolve is the sweep after a recorded event. An event of another lifecycle leaves it as it is.
func (s Sweep) Evolve(event events.Event, _ time.Time) Sweep {
	to, ok := sweepLife.Next(s.State, event.Type())
	if !ok {
		return s
	}
	s.State = to
	s.Version++
	return s
}

// RecordSweep keeps what came of a sweep: a *events.SweepFinished or a *events.SweepRefused.
type RecordSweep struct {
	Sweep events.ID
	Event events.Event
}

// Name is "record-sweep".
func (RecordSweep) Name() string { return "record-sweep" }

// Decide gives what the store must keep. A sweep that is known is not recorded again.
func (c RecordSweep) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	s, ok := held.Sweeps[c.Sweep]
	if !ok {
		s = Sweep{ID: c.Sweep}
	}
	to, ok := sweepLife.Next(s.State, c.Event.Type())
	if !ok {
		return Outcome{}, nil
	}
	after := s.Evolve(c.Event, held.Now)
	l.change(&after, s.Version, []events.Transition{{Event: c.Event, Version: after.Version, From: s.State, To: to}})
	return l.outcome, nil
}

// Entity is the sweep's entity.
func (s *Sweep) Entity() events.Entity { return events.SweepEntity(s.ID) }

// At is the sweep's version and state.
func (s *Sweep) At() (int, events.State) { return s.Version, s.State }

// Kept reports that no row of a sweep is kept: its one event says all of it.
func (s *Sweep) Kept() bool { return false }

func (s *Sweep) evolved(r events.Recorded) Value { next := s.Evolve(r.Event, r.At()); return &next }

func (s *Sweep) versioned(e events.Entity, version int) Value {
	s.ID, s.Version = e.ID, version
	return s
}
