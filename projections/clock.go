package projections

import (
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// Step is a step of the store's clock.
type Step struct {
	Mark
	FromAt time.Time // what it would have said had it gone on
	ToAt   time.Time // what it said
	Worker events.ID // who saw it
}

// By is how far the clock was set: forward, or back where it is below zero.
func (s Step) By() time.Duration { return s.ToAt.Sub(s.FromAt) }

// recentSteps is how many are kept.
const recentSteps = 16

// Clock adds up the steps of the store's clock. Its zero is the beginning of the log.
type Clock struct {
	asOf  Mark
	total int
	steps []Step
}

// Apply takes the next event.
func (c *Clock) Apply(r events.Recorded) {
	if !c.asOf.pass(r) {
		return
	}
	if e, ok := r.Event.(*events.ClockStepped); ok {
		c.total++
		c.steps = latest(c.steps, Step{markOf(r), e.FromAt, e.ToAt, e.Worker}, recentSteps)
	}
}

// AsOf is the last event that was applied.
func (c *Clock) AsOf() Mark { return c.asOf }

// Total is how often the clock stepped.
func (c *Clock) Total() int { return c.total }

// Steps is its last steps, the oldest first.
func (c *Clock) Steps() []Step { return slices.Clone(c.steps) }
