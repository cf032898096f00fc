package foundling

import (
	"context"
	"errors"
	"time"

	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store"
)

// countEvery is how often the leader of the beat looks for events that are to be counted.
const countEvery = time.Second

// newTotals runs the durable projections that Foundling itself reads. Without a place to keep them it is runner.ErrNoShelf.
func newTotals(s store.Store) (*runner.Runner, error) {
	return runner.New(s, runner.Options{}, func() projections.Durable { return new(projections.Totals) })
}

// totalsLoop keeps them while the incarnation leads the beat, until ctx ends. Where two believe that they lead, each event is counted once all the
// same.
func (inc *incarnation) totalsLoop(ctx context.Context) {
	if inc.opts.Sweeps == SweepsOff {
		return
	}
	r, err := newTotals(inc.client.store)
	if err != nil {
		inc.counted.Store(true)
		if !errors.Is(err, runner.ErrNoShelf) { // an engine without one counts nothing
			inc.log.ErrorContext(ctx, "nothing is counted", keyError, err)
		}
		return
	}
	t := totals{runner: r, told: map[told]bool{}}
	ticker := time.NewTicker(countEvery)
	defer ticker.Stop()
	pace := retryPace()
	for ctx.Err() == nil {
		if inc.leads.Load() {
			more, err := t.step(ctx, inc)
			if err != nil && ctx.Err() == nil {
				inc.log.ErrorContext(ctx, "events could not be counted yet", keyError, err)
				sleep(ctx, pace.NextBackOff())
				continue
			}
			pace.Reset()
			if more {
				continue
			}
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// totals is the durable projections, as one incarnation runs them.
type totals struct {
	runner *runner.Runner
	told   map[told]bool // what was said
}

// trouble is what may be wrong with a projection.
type trouble uint8

const (
	halted trouble = iota
	passed
	spoilt
)

// told is what was said of a projection.
type told struct {
	trouble
	projection string
}

// step counts a page of events, and says what is wrong.
func (t *totals) step(ctx context.Context, inc *incarnation) (more bool, err error) {
	bounded, cancel := inc.client.within(ctx)
	defer cancel()
	more, err = t.runner.Step(bounded)
	for _, s := range t.runner.Status() {
		if s.Saved.Position > 0 || s.Passed.Events > 0 || s.Phase == runner.Halted {
			inc.counted.Store(true)
		}
		log := inc.log.With(keyProjection, s.Name, keyVersion, s.Version)
		if s.Phase == runner.Halted && t.first(halted, s.Name) {
			why := s.Err // what was wrong with its checkpoint
			if s.Halt.Halted() {
				why = errors.New(s.Halt.String())
			}
			log.ErrorContext(ctx, "a projection has stopped; retention lets nothing go that it has not taken", keyError, why)
		}
		if s.Passed.Events > 0 && t.first(passed, s.Name) {
			log.ErrorContext(ctx, "a projection has passed over events that cannot be read", keyEvents, s.Passed.Events, keySince, s.Passed.First)
		}
		if s.Spoilt > 0 && t.first(spoilt, s.Name) {
			log.WarnContext(ctx, "the newest checkpoints of a projection are not what was saved; it went on from an older one",
				keyCheckpoints, s.Spoilt)
		}
	}
	return more, err
}

// first reports whether a trouble is to be said: once by each process.
func (t *totals) first(what trouble, projection string) bool {
	key := told{what, projection}
	before := t.told[key]
	t.told[key] = true
	return !before
}
