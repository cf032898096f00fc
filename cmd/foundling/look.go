package main

import (
	"context"
	"errors"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store"
)

// look is what a store holds at one moment: what its log adds up to, and what the log does not hold.
type look struct {
	*vitals
	state findings.State
	facts findings.Facts
	cut   bool // somebody interrupted the reading of the log
	full  bool // ids and times are shown in full
}

// look takes a look at a store. An interrupt ends the reading, and the look is as of there.
func (a *app) look(ctx context.Context, s store.Store, after time.Duration) (*look, error) {
	ctx, release := interruptible(ctx)
	defer release()
	l, err := takeLook(ctx, s, after)
	if err != nil {
		return nil, err
	}
	if l.full = a.wide(); l.full || !a.forPeople() {
		l.facts.Names.Short = nil
	}
	return l, nil
}

// wholeLook takes a look that somebody is going to act on: one that was cut short is no ground for that.
func (a *app) wholeLook(ctx context.Context, s store.Store, after time.Duration) (*look, error) {
	l, err := a.look(ctx, s, after)
	if err == nil && l.cut {
		return nil, &exitError{exitInterrupted, errors.New("interrupted: nothing was done")}
	}
	return l, err
}

// manyLooks is how often a look begins again because the beginning of the log was let go meanwhile.
const manyLooks = 3

// takeLook folds the log and asks for the facts that are not in it. What came while it asked is folded too: a worker that stopped in
// between is not taken for one that vanished. after is the bound by which workers are judged.
func takeLook(ctx context.Context, s store.Store, after time.Duration) (l *look, err error) {
	for range manyLooks {
		if l, err = takeLookOnce(ctx, s, after); !errors.Is(err, store.ErrPruned) {
			return l, err
		}
	}
	return l, err
}

func takeLookOnce(ctx context.Context, s store.Store, after time.Duration) (*look, error) {
	l := &look{state: findings.NewState()}
	head, err := s.Head(ctx)
	if err != nil {
		return nil, err
	}
	if err := projections.Follow(logOf(ctx, s, store.Filter{}), l.state); isInterrupt(ctx, err) {
		l.cut, ctx = true, context.WithoutCancel(ctx)
	} else if err != nil {
		return nil, err
	}
	if l.vitals, err = readVitals(ctx, s, after, l.workerIDs()); err != nil {
		return nil, err
	}
	if !l.cut {
		if err := projections.Follow(s.Read(ctx, head, store.Filter{}), l.state); err != nil {
			return nil, err
		}
	}
	l.facts = l.vitals.facts(s)
	l.askLease(ctx, s)
	l.askStaged(ctx, s)
	l.facts.Names = namesFor(l.shortIDs())
	return l, nil
}

// facts are the vitals as the findings want them.
func (v *vitals) facts(s store.Store) findings.Facts {
	f := findings.Facts{Now: v.now}
	_, f.Heart = store.As[store.Heart](s)
	for _, b := range v.beats {
		f.Beats = append(f.Beats, findings.Beat{Worker: b.Worker, Interval: b.Interval, At: b.At})
	}
	for id := range v.gone {
		f.Gone = append(f.Gone, id)
	}
	return f
}

// askStaged finds out what is staged for the longest. Where that cannot be read, that is only a pity.
func (l *look) askStaged(ctx context.Context, s store.Store) {
	stager, ok := store.As[store.Stager](s)
	if !ok {
		return
	}
	for kept, err := range stager.Staged(ctx, store.StagedFilter{Limit: 1}) {
		if err != nil {
			l.doubt = errors.Join(l.doubt, err)
			return
		}
		l.facts.Staged = findings.Staged{Message: kept.Message, Since: kept.At}
	}
}

// askLease finds out who leads. Where the lease cannot be read, that is only a pity.
func (l *look) askLease(ctx context.Context, s store.Store) {
	leaser, ok := store.As[store.Leaser](s)
	if !ok {
		return
	}
	lease, err := leaser.Lease(ctx, fsm.Beat, func(l store.Lease, _ time.Time) store.Lease { return l })
	if err != nil {
		l.doubt = errors.Join(l.doubt, err)
		return
	}
	l.facts.Leases, l.facts.Lease = true, findings.Lease{Holder: lease.Holder, UntilAt: lease.UntilAt, SweptAt: lease.SweptAt}
}

func (l *look) workerIDs() []events.ID {
	var ids []events.ID
	for _, w := range l.state.Workers.All() {
		ids = append(ids, w.ID)
	}
	return ids
}

// shortIDs tells apart everything that can be shown.
func (l *look) shortIDs() *shortIDs {
	var messages int64
	shown := l.workerIDs()
	for _, t := range l.state.Topics.All() {
		messages += int64(t.Totals.Enqueued)
		for _, c := range l.state.Topics.Claims(t.Name) {
			shown = append(shown, c.Message, c.Worker)
		}
	}
	for _, lock := range l.state.Locks.All() {
		for _, p := range lock.Out {
			shown = append(shown, p.Message, p.Worker)
		}
	}
	for _, d := range l.state.Topics.DeadLetters() {
		shown = append(shown, d.Message)
	}
	for _, r := range l.state.Refusals.Recent() {
		shown = append(shown, r.Message, r.Sender)
	}
	return shorten(messages, shown...)
}

// mark is how far the log was read.
func (l *look) mark() projections.Mark { return l.state.Topics.AsOf() }

// span is how long ago something was, for a cell.
func (l *look) span(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return findings.Span(l.age(t))
}

// cell is how long ago something was, and when, where there is room for it.
func (l *look) cell(t time.Time) string {
	if !l.full || t.IsZero() {
		return l.span(t)
	}
	return l.span(t) + " · " + absolute(t)
}

// ageOrNull is how long ago something was as JSON has it; null where it never was.
func (l *look) ageOrNull(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	return seconds(l.age(t))
}

// worker is what the log knows of a worker; only its id where it knows nothing.
func (l *look) worker(id events.ID) projections.Worker {
	if w, ok := l.state.Workers.Worker(id); ok {
		return w
	}
	return projections.Worker{ID: id}
}

// holder names who holds something, with the process it is.
func (l *look) holder(id events.ID) string {
	text := l.facts.Names.ID(id)
	if w := l.worker(id); w.PID != 0 {
		text += " (" + process{w.Host, w.PID}.text() + ")"
	}
	return text
}

// jsonHolder is who holds something as JSON has it.
type jsonHolder struct {
	ID   string  `json:"id"`
	Host *string `json:"host"`
	PID  *int    `json:"pid"`
	jsonVital
}

func (l *look) jsonHolder(id events.ID) jsonHolder {
	w := l.worker(id)
	return jsonHolder{ID: id.String(), Host: orNull(w.Host), PID: pidOrNull(w.PID), jsonVital: l.of(id).json()}
}

func pidOrNull(pid int) *int {
	if pid == 0 {
		return nil
	}
	return &pid
}
