package fsm

import (
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// ClockStep is a step of the store's clock.
type ClockStep struct {
	At time.Time     // when it was recorded
	By time.Duration // by how much the clock was set ahead; below zero back
}

// EarlierSteps is the steps of a clock before its last one, oldest first. Where there were more, neighbours are told as one, those first that lie
// close together for how long ago they are. So recent steps are told singly, and a clock that steps daily keeps no list of years.
type EarlierSteps [7]ClockStep

// list is the steps that are there.
func (e EarlierSteps) list() []ClockStep {
	return slices.DeleteFunc(slices.Clone(e[:]), func(s ClockStep) bool { return s.At.IsZero() })
}

// earlier keeps steps, the newest of which is the last.
func earlier(steps []ClockStep) (e EarlierSteps) {
	for len(steps) > len(e) {
		at := closest(steps)
		// What was stored between the two must not look older than it is, either.
		steps[at+1].By = max(steps[at+1].By, steps[at].By+steps[at+1].By)
		steps = slices.Delete(steps, at, at+1)
	}
	copy(e[:], steps)
	return e
}

// closest is the first of two neighbours that are told as one: together they would stand for the smallest part of the time since the step before
// them. The oldest stays by itself, as the beginning of all.
func closest(steps []ClockStep) int {
	newest := steps[len(steps)-1].At
	part := func(i int) float64 {
		before := steps[i-1].At
		return float64(steps[i+1].At.Sub(before)) / float64(max(newest.Sub(before), 1))
	}
	at := 1
	for i := 2; i < len(steps)-1; i++ {
		if part(i) < part(at) {
			at = i
		}
	}
	return at
}

// visit is the field of the steps: for each when it was recorded and by how much the clock was set, in microseconds.
func (e *EarlierSteps) visit(f *events.Fields) {
	var flat []int
	for _, step := range e.list() {
		flat = append(flat, int(step.At.UnixMicro()), int(step.By.Microseconds()))
	}
	f.Ints("earlier", &flat)
	*e = EarlierSteps{}
	for i := 0; i+1 < len(flat) && i/2 < len(e); i += 2 {
		e[i/2] = ClockStep{At: time.UnixMicro(int64(flat[i])).UTC(), By: time.Duration(flat[i+1]) * time.Microsecond}
	}
}
