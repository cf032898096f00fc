package reaper

import (
	"context"
	"errors"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// Plan is what Run would do now, decided by the same rules over what is read; it writes nothing. Report.Doubt says what a sweep of the same
// caller would be refused for. A caller who is nobody (zero) is not looked for: what is planned is the sweep of somebody who had beaten for long
// enough, and Doubt says what else is wrong.
func (s Sweep) Plan(ctx context.Context) (Report, error) {
	v, err := s.survey(ctx)
	if err != nil {
		return Report{ID: s.ID}, fmt.Errorf("plan of a sweep: %w", err)
	}
	report := s.report(v)
	if s.Caller == (events.ID{}) {
		report.Doubt = v.stranger(s.Thresholds)
	}
	skipped := v.skipped
	for _, m := range s.dead(v, &report) {
		if err := s.rehearse(ctx, v, m, &report); err != nil {
			skipped = errors.Join(skipped, fmt.Errorf("worker %s: %w", m.Worker, err))
			report.Skipped++
		}
	}
	if skipped != nil {
		return report, fmt.Errorf("plan of a sweep: %w", skipped)
	}
	return report, nil
}

// stranger is the doubt about a census whose caller has no heartbeats of his own. He will have some when he sweeps, and so be in the live set,
// also where nobody else is.
func (v *survey) stranger(t events.Thresholds) *fsm.Doubt {
	doubt := v.census.GuardProof(t)
	if doubt != nil && (doubt.Reason == events.ReasonCallerMissing || doubt.Reason == events.ReasonLivenessEmpty) {
		return nil
	}
	return doubt
}

// rehearse decides over what a dead worker holds, without keeping anything.
func (s Sweep) rehearse(ctx context.Context, v *survey, m fsm.Member, report *Report) error {
	command := fsm.Reclaim{Evidence: s.evidence(m), BeganAt: v.began}
	held := fsm.Held{
		Now: v.census.Now, Clock: v.census.Clock, Beats: map[events.ID]fsm.Member{m.Worker: m}, Workers: map[events.ID]fsm.Worker{},
	}
	if m.LastBeatAt.IsZero() {
		delete(held.Beats, m.Worker)
	}
	if w, known := v.workers[m.Worker]; known {
		held.Workers[w.ID] = w
	}
	e := s.estate(ctx, m.Worker)
	if err := ctx.Err(); err != nil {
		return err
	}
	held.Claims, held.Locks = map[events.ID][]fsm.Message{m.Worker: e.claims}, e.locks // what cannot be read is left out, as a commit does
	for _, p := range e.permits {
		if _, legible := e.locks[p.Lock]; legible {
			held.Permits = append(held.Permits, p)
		}
	}
	outcome, seen, err := command.Decide(held)
	if err != nil {
		return err
	}
	report.Spared += seen.Spared
	if len(outcome.Changes) == 0 {
		return nil
	}
	var list []events.Recorded
	for _, c := range outcome.Changes {
		for _, t := range c.Transitions {
			list = append(list, events.Recorded{Transition: t, Entity: c.Value.Entity()})
		}
	}
	report.count(list)
	report.Dead = append(report.Dead, v.death(m, list))
	return nil
}

// estate is what a worker holds, as far as it can be read.
type estate struct {
	claims  []fsm.Message
	permits []fsm.Permit
	locks   map[string]fsm.Lock // of the permits
	unread  error               // names what cannot be read: no commit gives that back
}

// estate reads what a worker holds.
func (s Sweep) estate(ctx context.Context, worker events.ID) estate {
	e := estate{locks: map[string]fsm.Lock{}}
	for row, err := range s.Store.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Worker: worker}) {
		var m fsm.Message
		if err == nil {
			m, err = calls.Message(row)
		}
		if err == nil {
			e.claims = append(e.claims, m)
		}
		e.unread = errors.Join(e.unread, err)
	}
	var locks []events.Entity
	for p, err := range s.Store.Permits(ctx, store.PermitFilter{Worker: worker}) {
		if err == nil {
			e.permits = append(e.permits, calls.Permit(p))
			locks = append(locks, events.LockEntity(p.Lock))
		}
		e.unread = errors.Join(e.unread, err)
	}
	if len(locks) == 0 {
		return e
	}
	for row, err := range s.Store.Rows(ctx, store.RowFilter{Entities: locks}) {
		var v fsm.Value
		if err == nil {
			v, err = calls.Value(row)
		}
		if lock, ok := v.(*fsm.Lock); ok && err == nil {
			e.locks[lock.Name] = *lock
		}
		e.unread = errors.Join(e.unread, err)
	}
	return e
}
