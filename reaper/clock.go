package reaper

import (
	"context"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// look reads who lives. Where the store's clock was set back and nobody who lived through that has said so, it does: a heartbeat ahead of the
// store's time was confirmed before. Without a record of the step it would look young until the clock has caught up, and what its worker
// held would wait for that.
func (s Sweep) look(ctx context.Context) (*survey, error) {
	v, err := s.survey(ctx)
	if err != nil {
		return nil, err
	}
	step, stepped := v.step(s.Caller)
	if !stepped {
		return v, nil
	}
	_, err = s.Decide(ctx, func(o calls.Origin) store.Call {
		return calls.OperateClock(o, fsm.OperateClock{StepClock: step})
	})
	if err != nil {
		return nil, fmt.Errorf("step of the clock: %w", err)
	}
	return s.survey(ctx)
}

// step is the step of the clock that the heartbeats tell of and the log does not.
func (v *survey) step(caller events.ID) (fsm.StepClock, bool) {
	now, clock := v.census.Now, v.census.Clock
	var ahead fsm.Member
	for _, m := range v.census.Members {
		if m.LastBeatAt.Sub(now) > m.Interval && m.LastBeatAt.After(ahead.LastBeatAt) {
			ahead = m
		}
	}
	if ahead.LastBeatAt.IsZero() || !clock.StepAt.IsZero() && !clock.StepAt.After(now) { // what is ahead ages from a known step
		return fsm.StepClock{}, false
	}
	return fsm.StepClock{FromAt: ahead.LastBeatAt, ToAt: now, Worker: caller, Tolerance: max(ahead.Interval, time.Second)}, true
}
