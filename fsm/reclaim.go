package fsm

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// Reclaim gives back what a dead worker holds, a page at a time: its messages, their slots and its permits in one commit. The first page also
// says that the worker is lost; one that finds nothing left changes nothing.
//
// Whether the worker is dead is judged again in each of its commits, at that commit's time: who has beaten since is left alone.
type Reclaim struct {
	Evidence events.Evidence // the decider's settings, and process_gone where that is proven
	BeganAt  time.Time       // when the sweep looked who lives
	Page     int             // how many claims and how many permits were asked for
}

// Reclaimed is what a Reclaim saw beside what it changed.
type Reclaimed struct {
	Alive  bool // the worker is not dead, or not any more
	Stale  bool // the sweep is older than half of its bound, or the clock stepped since it began: what it knows of who lives is out of date
	Spared int  // claims and permits that are younger than the grace
}

// Name is "reclaim".
func (Reclaim) Name() string { return "reclaim" }

// VisitFields names the parameters that the events do not carry.
func (c *Reclaim) VisitFields(f *events.Fields) {
	f.Time("began", &c.BeganAt)
	f.Int("page", &c.Page)
}

// Decide orphans every held claim of the dead worker, requeues or dead-letters each in the same commit, and takes its permits back.
func (c Reclaim) Decide(held Held) (Outcome, Reclaimed, error) {
	var seen Reclaimed
	evidence := c.judge(held)
	seen.Alive = evidence.Reason == ""
	seen.Stale = evidence.Reason != events.ReasonProcessGone && c.stale(held)
	if seen.Alive || seen.Stale {
		return Outcome{}, seen, nil
	}
	l := newLedger(held)
	if w, known := held.Workers[evidence.Claimer]; known && w.State == events.Live {
		if err := l.worker(w, LoseWorker{evidence}); err != nil {
			return Outcome{}, seen, err
		}
	}
	open := map[PermitKey]bool{} // permits of claims, which go as their claims do
	for _, m := range held.Claims[evidence.Claimer] {
		open[m.Permit()] = true
		if c.spares(evidence, held, m.ClaimedAt) {
			seen.Spared++
			continue
		}
		if _, err := l.move(m, OrphanMessage{evidence}); err != nil {
			return Outcome{}, seen, err
		}
		if err := l.reclaim(m.Permit(), evidence); err != nil {
			return Outcome{}, seen, err
		}
	}
	for _, p := range held.Permits {
		if p.Worker != evidence.Claimer || open[p.PermitKey] {
			continue
		}
		if c.spares(evidence, held, p.AcquiredAt) {
			seen.Spared++
			continue
		}
		if err := l.reclaim(p.PermitKey, evidence); err != nil {
			return Outcome{}, seen, err
		}
	}
	outcome, err := l.close()
	return outcome, seen, err
}

// stale reports whether the sweep's view of who lives is out of date. A step of the clock since it began makes it so, as ages mean nothing
// across it; one that lies ahead was recorded before somebody set the clock back.
func (c Reclaim) stale(held Held) bool {
	step := held.Clock.StepAt
	return held.Now.Sub(c.BeganAt) > c.Evidence.After/2 || step.After(c.BeganAt) && !step.After(held.Now)
}

// judge is the evidence as of this commit; its reason is empty where the worker lives.
func (c Reclaim) judge(held Held) events.Evidence {
	e := c.Evidence
	m := held.Beats[e.Claimer]
	m.Gone = e.Reason == events.ReasonProcessGone
	e.LastBeatAt, e.Interval, e.FenceAfter = m.LastBeatAt, m.Interval, m.FenceAfter
	e.Reason = Judge(m, events.Thresholds{After: e.After}, held.Clock, held.Now)
	if e.Reason == events.ReasonSilent {
		e.Age = m.Silence(held.Clock, held.Now)
	}
	return e
}

// spares reports whether something is younger than the grace. A proof needs none.
func (c Reclaim) spares(e events.Evidence, held Held, since time.Time) bool {
	return e.Reason != events.ReasonProcessGone && held.Clock.Age(held.Now, since) < e.Grace
}

// reclaim takes a permit back where it is out.
func (l *ledger) reclaim(key PermitKey, evidence events.Evidence) error {
	p, out := l.permit(key)
	if !out {
		return nil
	}
	return l.giveBack(p, ReclaimLock{Token: p.Token, Evidence: evidence})
}
