package fsm

import (
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// clockLife is the table of the store's clock: it is known once it has stepped.
var clockLife = newLifecycle(events.KindClock,
	edge(events.TypeClockStepped, events.Active, events.Absent, events.Active),
	edge(events.TypeClockSnapshotted, events.Active, events.Active),
)

// Clock is what the log knows of the store's clock: its last step, and those before it as far as ages go by them. Its zero value is a clock that
// never stepped.
type Clock struct {
	Version int
	State   events.State
	StepAt  time.Time // when the step was recorded
	FromAt  time.Time // what it would have said had it gone on
	ToAt    time.Time // what it said
	Earlier EarlierSteps
}

// VisitFields names the fields as a store keeps them. The version has a column of its own.
func (c *Clock) VisitFields(f *events.Fields) {
	f.State("state", &c.State)
	f.Time("step", &c.StepAt)
	f.Time("from", &c.FromAt)
	f.Time("to", &c.ToAt)
	c.Earlier.visit(f)
}

// Age is how long ago something was stored. What lies in the future was stored before the clock was set back: it ages from the last step
// that is known, so that nothing looks fresh for years.
func (c Clock) Age(now, then time.Time) time.Duration {
	if then.After(now) {
		if c.StepAt.IsZero() {
			return 0
		}
		then = c.StepAt
	}
	return max(0, now.Sub(then))
}

// OlderThan is the time before which everything that was stored is truly older than an age. What was stored before the clock was set ahead
// looks older than it is, by as much as the clock was set: it is so until the clock has gone on for that age since. A step back takes from what
// earlier steps have added.
func (c Clock) OlderThan(now time.Time, age time.Duration) time.Time {
	var ahead, since time.Duration // most, and all, by which the clock was set ahead since a step, of those from the newest on
	for _, step := range slices.Backward(c.steps()) {
		if now.Sub(step.At)-max(since, 0) >= age {
			break
		}
		since += step.By
		ahead = max(ahead, since)
	}
	return now.Add(-ahead).Add(-age)
}

// steps is the steps that are known, oldest first.
func (c Clock) steps() []ClockStep {
	if c.State == events.Absent {
		return nil
	}
	return append(c.Earlier.list(), ClockStep{At: c.StepAt, By: c.ToAt.Sub(c.FromAt)})
}

// StepClock records that the clock was seen to step. Several see the same step: within the tolerance it is one.
type StepClock struct {
	FromAt    time.Time
	ToAt      time.Time
	Worker    events.ID
	Tolerance time.Duration
}

// Name is "step-clock".
func (StepClock) Name() string { return "step-clock" }

// ClockCommand is a command to the store's clock.
type ClockCommand interface {
	// Name is an imperative, as it is recorded with commits.
	Name() string
	decideClock(Clock) []events.Event
}

// Decide gives the event that follows from a command, or none where it would change nothing.
func (c Clock) Decide(command ClockCommand, _ time.Time) []events.Event {
	return command.decideClock(c)
}

func (s StepClock) decideClock(c Clock) []events.Event {
	if c.State != events.Absent && near(c.FromAt, s.FromAt, s.Tolerance) && near(c.ToAt, s.ToAt, s.Tolerance) {
		return nil
	}
	return []events.Event{&events.ClockStepped{FromAt: kept(s.FromAt), ToAt: kept(s.ToAt), Worker: s.Worker}}
}

func near(a, b time.Time, tolerance time.Duration) bool { return a.Sub(b).Abs() <= tolerance }

// Evolve is the clock after a recorded event. An event of another lifecycle leaves it as it is.
func (c Clock) Evolve(event events.Event, at time.Time) Clock {
	if _, ok := clockLife.Next(c.State, event.Type()); !ok {
		return c
	}
	c.Version++
	if e, ok := event.(*events.ClockStepped); ok {
		c.Earlier = earlier(c.steps())
		c.State, c.StepAt, c.FromAt, c.ToAt = events.Active, at, e.FromAt, e.ToAt
	}
	return c
}

// OperateClock records a step of the store's clock.
type OperateClock struct{ StepClock }

// Decide gives what the store must keep.
func (c OperateClock) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	l.clock(held.Clock, c.StepClock)
	return l.outcome, nil
}

// Entity is the clock's entity.
func (c *Clock) Entity() events.Entity { return events.ClockEntity() }

// At is the clock's version and state.
func (c *Clock) At() (int, events.State) { return c.Version, c.State }

// Kept reports that a clock that stepped is kept for ever.
func (c *Clock) Kept() bool { return c.State != events.Absent }

func (c *Clock) evolved(r events.Recorded) Value { next := c.Evolve(r.Event, r.At()); return &next }

func (c *Clock) versioned(_ events.Entity, version int) Value {
	c.Version = version
	return c
}
