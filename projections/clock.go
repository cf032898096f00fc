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
	Worker events.ID // who saw it; zero where the log has let go of that
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
	switch e := r.Event.(type) {
	case *events.ClockStepped:
		c.step(Step{markOf(r), e.FromAt, e.ToAt, e.Worker})
	case *events.ClockSnapshotted:
		if fields, ok := told[clockFields](e.Snapshot); ok && c.total == 0 {
			c.step(Step{Mark: Mark{r.Position, fields.Step.time()}, FromAt: fields.From.time(), ToAt: fields.To.time()})
		}
	}
}

func (c *Clock) step(s Step) {
	c.total++
	c.steps = latest(c.steps, s, recentSteps)
}

// AsOf is the last event that was applied.
func (c *Clock) AsOf() Mark { return c.asOf }

// Total is how often the clock stepped, as far as the log still says so.
func (c *Clock) Total() int { return c.total }

// Steps is its last steps, the oldest first.
func (c *Clock) Steps() []Step { return slices.Clone(c.steps) }
