package reaper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// Page is how many claims and how many permits a reclaim commit takes back at most.
const Page = 100

// Decide commits one call and settles its outcome, as a client does.
type Decide func(ctx context.Context, prepare func(calls.Origin) store.Call) (store.Receipt, error)

// Sweep is one run over all who hold something.
type Sweep struct {
	Store      store.Store
	Decide     Decide
	ID         events.ID // the sweep's own, minted by the caller
	Caller     events.ID // the incarnation that sweeps
	Term       int       // under which it leads; 0 where somebody asked for the sweep
	Thresholds events.Thresholds
	// Own is the caller's confirmed heartbeats by the store's time, oldest first: those of the last Thresholds.After, and one before.
	Own []time.Time
	// ProvenOnly judges nobody by his silence, only those who are proven to have ended: what needs no rhythm.
	ProvenOnly bool
}

// Death is a worker that a sweep held to be dead.
type Death struct {
	Worker   fsm.Worker // its row; only its id where it has none
	Evidence events.Reason
}

// Report is what came of a sweep.
type Report struct {
	ID            events.ID
	Census        fsm.Census
	Doubt         *fsm.Doubt // why silence was not taken for death, or why nothing was done at all; nil where there was none
	Dead          []Death    // whose estate was given back, or would be
	Suspects      int        // workers that hold something or live by their row, and whom only their silence could tell from the living
	Pages         int        // commits
	Requeued      int
	DeadLettered  int
	LocksReleased int
	Spared        int // claims and permits of dead workers that are younger than the grace
	Skipped       int // what could not be read
}

// Acted reports whether the sweep changed something, or found what it must not change yet.
func (r Report) Acted() bool { return len(r.Dead) > 0 || r.Spared > 0 }

// Blind reports whether the doubt is of the kind that lets nothing be done, not even on proof.
func (r Report) Blind() bool {
	return r.Doubt != nil && r.Doubt.Reason != events.ReasonLivenessUnproven && r.Doubt.Reason != events.ReasonClockStepped
}

// Run gives back the estate of every incarnation that is dead: its messages, their slots and its permits, page by page, each page one commit.
// Running it twice, or from two processes at once, has the effect of once. What it did is recorded as sweep.finished; one that found nothing
// leaves no event.
//
// Where the guards doubt, it does less or nothing, and Report.Doubt says why; nothing is recorded of that, see Refuse. What cannot be read is
// skipped, the others are served, and the error names it; so is an end of ctx.
func (s Sweep) Run(ctx context.Context) (Report, error) {
	v, err := s.look(ctx)
	if err != nil {
		return Report{ID: s.ID}, fmt.Errorf("sweep: %w", err)
	}
	report := s.report(v)
	skipped := v.skipped
	for _, m := range s.dead(v, &report) {
		if err := s.reclaim(ctx, v, m, &report); err != nil {
			skipped = errors.Join(skipped, fmt.Errorf("worker %s: %w", m.Worker, err))
			report.Skipped++
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := s.finish(ctx, report); err != nil {
		skipped = errors.Join(skipped, err)
	}
	if err := errors.Join(skipped, ctx.Err()); err != nil {
		return report, fmt.Errorf("sweep: %w", err)
	}
	return report, nil
}

// report begins what is told of a sweep: whether its view is trusted.
func (s Sweep) report(v *survey) Report {
	return Report{ID: s.ID, Census: v.census, Doubt: v.census.Guard(s.Thresholds), Skipped: v.misses}
}

// dead is whom the sweep may hold to be dead by what it has read. Those who are known to be lost and hold nothing are left out: there is
// nothing to do for them.
func (s Sweep) dead(v *survey, report *Report) []fsm.Member {
	var list []fsm.Member
	for _, m := range v.census.Members {
		_, known := v.workers[m.Worker]
		if m.Worker == s.Caller || !known && !v.holders[m.Worker] || s.ProvenOnly && !m.Gone {
			continue
		}
		reason := fsm.Judge(m, s.Thresholds, v.census.Clock, v.census.Now)
		if !m.Gone && (reason != "" || v.census.Now.Before(m.LastBeatAt)) {
			report.Suspects++
		}
		if reason == "" || report.Blind() || report.Doubt != nil && !m.Gone {
			continue
		}
		list = append(list, m)
	}
	return list
}

// reclaim goes on page by page until a commit finds nothing left to change.
func (s Sweep) reclaim(ctx context.Context, v *survey, m fsm.Member, report *Report) error {
	if w, known := v.workers[m.Worker]; known && w.State == events.Lost {
		holds, err := s.holds(ctx, m.Worker)
		if err != nil || !holds {
			return err
		}
	}
	command := fsm.Reclaim{Evidence: s.evidence(m), BeganAt: v.began, Page: Page}
	changed := false
	for {
		var seen *fsm.Reclaimed
		receipt, err := s.Decide(ctx, func(o calls.Origin) (call store.Call) {
			call, seen = calls.Reclaim(o, command)
			return call
		})
		if err != nil {
			return err
		}
		if len(receipt.Events) > 0 {
			report.Pages++
			report.count(receipt.Events)
			if !changed {
				report.Dead = append(report.Dead, v.death(m, receipt.Events))
			}
			changed = true
		}
		if seen.Stale {
			return fmt.Errorf("the sweep is older than half of %s: the next one goes on", s.Thresholds.After)
		}
		if len(receipt.Events) > 0 {
			continue
		}
		if seen.Alive {
			return nil
		}
		left, err := s.left(ctx, m.Worker)
		if seen.Spared > 0 { // all that is left of the estate is as young, also what is behind the page
			report.Spared += left
		}
		return err
	}
}

// left counts what a dead worker still holds: each claim with its permit, and the permits beside. Its error names what cannot be read, which
// nothing else would ever tell of.
func (s Sweep) left(ctx context.Context, worker events.ID) (int, error) {
	e := s.estate(ctx, worker)
	claims := map[fsm.PermitKey]bool{}
	for _, m := range e.claims {
		claims[m.Permit()] = true
	}
	n := len(e.claims)
	for _, p := range e.permits {
		if !claims[p.PermitKey] {
			n++
		}
	}
	return n, errors.Join(e.unread, ctx.Err())
}

// evidence is what the sweep brings to each commit, which judges anew.
func (s Sweep) evidence(m fsm.Member) events.Evidence {
	e := events.Evidence{
		Claimer: m.Worker, Decider: s.Caller, Sweep: s.ID, Term: s.Term,
		After: s.Thresholds.After, Grace: s.Thresholds.Grace, Limit: s.Thresholds.Limit, Count: s.Thresholds.Count,
	}
	if m.Gone {
		e.Reason = events.ReasonProcessGone
	}
	return e
}

// death is who died, by the evidence of the commit that says so.
func (v *survey) death(m fsm.Member, list []events.Recorded) Death {
	w, known := v.workers[m.Worker]
	if !known {
		w = fsm.Worker{ID: m.Worker}
	}
	d := Death{Worker: w}
	for _, r := range list {
		if e, tells := events.EvidenceOf(r.Event); tells {
			d.Evidence = e.Reason
		}
	}
	return d
}

func (r *Report) count(list []events.Recorded) {
	for _, e := range list {
		switch e.Event.Type() {
		case events.TypeMessageRequeued:
			r.Requeued++
		case events.TypeMessageDeadLettered:
			r.DeadLettered++
		case events.TypeLockReclaimed:
			r.LocksReleased++
		}
	}
}

// holds reports whether a worker has an open claim or a permit. One that cannot be read is held too: the commit passes over it.
func (s Sweep) holds(ctx context.Context, worker events.ID) (bool, error) {
	for range s.Store.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Worker: worker}) {
		return true, ctx.Err()
	}
	for range s.Store.Permits(ctx, store.PermitFilter{Worker: worker}) {
		return true, ctx.Err()
	}
	return false, ctx.Err()
}

// finish records what the sweep did.
func (s Sweep) finish(ctx context.Context, r Report) error {
	if !r.Acted() {
		return nil
	}
	e := &events.SweepFinished{
		Decider: s.Caller, Term: s.Term, Thresholds: s.Thresholds, Liveness: r.Census.Liveness(s.Thresholds), Pages: r.Pages,
		Requeued: r.Requeued, DeadLettered: r.DeadLettered, LocksReleased: r.LocksReleased, Spared: r.Spared, Skipped: r.Skipped,
	}
	for _, d := range r.Dead {
		e.Dead = append(e.Dead, d.Worker.ID)
	}
	// Its pages are committed, whatever became of the context since.
	return s.record(context.WithoutCancel(ctx), e)
}

// Refuse records that the sweep was refused, with what it saw.
func (s Sweep) Refuse(ctx context.Context, r Report) error {
	if r.Doubt == nil {
		return nil
	}
	err := s.record(ctx, &events.SweepRefused{
		Reason: r.Doubt.Reason, Detail: r.Doubt.Detail, Decider: s.Caller, Term: s.Term,
		Thresholds: s.Thresholds, Liveness: r.Census.Liveness(s.Thresholds),
	})
	if err != nil {
		return fmt.Errorf("sweep: refusal %s was not recorded: %w", r.Doubt.Reason, err)
	}
	return nil
}

func (s Sweep) record(ctx context.Context, e events.Event) error {
	_, err := s.Decide(ctx, func(o calls.Origin) store.Call {
		return calls.RecordSweep(o, fsm.RecordSweep{Sweep: s.ID, Event: e})
	})
	return err
}
