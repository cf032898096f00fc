package findings

import (
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections"
)

// beat is what is wrong with letting time pass: the sweep, its leader and the clock.
func (l *look) beat() []Finding {
	return slices.Concat(l.refusing(), l.stepped(), l.leaderless())
}

// refusing is the finding about sweeps that are refused. It is over when one has finished, or found nothing to do, which leaves no event but
// moves the lease's time of the last sweep. Where that is not known, it is told for as long as the last refusal is recent.
func (l *look) refusing() []Finding {
	r := l.Sweeps.Refusing()
	if r.Count == 0 || l.age(r.Last.At) > Recent || l.Leases && l.Lease.SweptAt.After(r.Last.At) {
		return nil
	}
	found := Finding{
		Code: SweepRefused, Severity: Warning, Subject: events.SweepEntity(r.Last.ID), Since: r.First.At, Positions: []int64{r.First.Position},
		Text: fmt.Sprintf("the last sweep was refused, %s: %s", l.ago(r.First.At), r.Last.Reason),
		Evidence: []string{
			l.refusal("the last one", r.Last),
			fmt.Sprintf("swept by %s, who sees %d alive and %d silent, by a bound of %s",
				l.worker(r.Last.Decider), r.Last.Liveness.Live, r.Last.Liveness.Silent, Span(r.Last.Thresholds.After)),
		},
		Next: []string{l.command("sweep --dry-run"), l.command("workers")},
	}
	if r.Count > 1 {
		found.Text = fmt.Sprintf("the last %s were refused, since %s: %s", count(r.Count, "sweep"), l.ago(r.First.At), r.Last.Reason)
		found.Positions = append(found.Positions, r.Last.Position)
		found.Evidence = append(found.Evidence, l.refusal("the first one", r.First))
	}
	waits := 0
	for _, w := range l.fleet {
		if len(w.Claims)+len(w.Permits) > 0 && l.judge(w.ID).life == gone {
			waits++
			found.Evidence = append(found.Evidence, fmt.Sprintf("%s is gone and holds %s", l.worker(w.ID), holds(w)))
		}
	}
	if waits > 0 {
		found.Severity = Critical
	}
	if len(found.Evidence) > 2*shown {
		found.Evidence = append(found.Evidence[:2*shown], "and more")
	}
	return []Finding{found}
}

func (l *look) refusal(which string, s projections.Sweep) string {
	text := fmt.Sprintf("%s %s (%s)", which, l.ago(s.At), s.Reason)
	if s.Detail != "" {
		text += ": " + events.Printable(s.Detail, longest)
	}
	return text + at(s.Mark)
}

// swept is a line of what became of the last sweep, for whoever asks why it did not help; none where there was none.
func (l *look) swept() []string {
	recent := l.Sweeps.Recent()
	if len(recent) == 0 {
		return nil
	}
	last := recent[len(recent)-1]
	switch n := l.Sweeps.Refusing().Count; {
	case n > 1:
		return []string{l.refusal(fmt.Sprintf("the last %s were refused, the newest", count(n, "sweep")), last)}
	case n > 0:
		return []string{l.refusal("the last sweep was refused", last)}
	case last.Spared > 0:
		return []string{fmt.Sprintf("the last sweep that did something spared %d younger than %s, %s%s",
			last.Spared, Span(last.Thresholds.Grace), l.ago(last.At), at(last.Mark))}
	}
	return []string{fmt.Sprintf("the last sweep that did something was %s%s", l.ago(last.At), at(last.Mark))}
}

// stepped is the finding about steps of the store's clock a short while ago.
func (l *look) stepped() []Finding {
	steps := slices.DeleteFunc(l.Clock.Steps(), func(s projections.Step) bool { return l.age(s.At) > Recent })
	if len(steps) == 0 {
		return nil
	}
	last := steps[len(steps)-1]
	found := Finding{
		Code: ClockStepped, Severity: Warning, Subject: events.ClockEntity(), Since: steps[0].At,
		Text: fmt.Sprintf("the store's clock was set %s, %s", moved(last.By()), l.ago(last.At)),
		Next: []string{l.command("sweep --dry-run")},
	}
	for _, s := range steps[max(0, len(steps)-shown):] {
		found.Positions = append(found.Positions, s.Position)
		seen := ""
		if s.Worker != (events.ID{}) {
			seen = ", seen by " + l.worker(s.Worker)
		}
		found.Evidence = append(found.Evidence, fmt.Sprintf("from %s to %s%s%s", l.Names.Time(s.FromAt), l.Names.Time(s.ToAt), seen, at(s.Mark)))
	}
	found.Evidence = append(found.Evidence, "while a step is younger than orphan_reclaim_after, silence is not taken for death")
	return []Finding{found}
}

func moved(by time.Duration) string {
	if by < 0 {
		return "back by " + Span(-by)
	}
	return "forward by " + Span(by)
}

// leaderless is the finding about workers that live while nobody leads. Where the store keeps leases the lease says who leads, else the log.
func (l *look) leaderless() []Finding {
	oldest, n := time.Time{}, 0 // of the workers that live
	for _, w := range l.fleet {
		if w.State == events.Live && l.judge(w.ID).life == alive {
			if n++; oldest.IsZero() || w.Started.At.Before(oldest) {
				oldest = w.Started.At
			}
		}
	}
	leader, known := l.Leaders.Leader(fsm.Beat)
	since, why := l.vacant(leader, known)
	if since.Before(oldest) {
		since = oldest
	}
	if n == 0 || why == "" || l.age(since) <= LeaderlessFor {
		return nil
	}
	found := Finding{
		Code: LeaderMissing, Severity: Warning, Subject: events.LeaderEntity(fsm.Beat), Since: since,
		Text:     fmt.Sprintf("nobody has led for %s, while %s live: nothing that the dead hold is given back", Span(l.age(since)), count(n, "worker")),
		Evidence: []string{why},
		Next:     []string{l.command("workers"), l.command("sweep --dry-run")},
	}
	if known {
		found.Positions = []int64{leader.Since.Position}
	} else { // it may be wanted so
		found.Severity = Info
		found.Evidence = append(found.Evidence, "where the sweeps of all workers are switched off, that is as it should be")
	}
	return []Finding{found}
}

// vacant says since when nobody leads, and by which evidence; empty where somebody does, or where nobody can know.
func (l *look) vacant(leader projections.Leader, known bool) (since time.Time, why string) {
	switch {
	case l.Leases && l.Lease.Holder == (events.ID{}) && !known:
		return time.Time{}, "nobody ever led"
	case l.Leases && l.Lease.Holder == (events.ID{}):
		return leader.Since.At, "the lease was given back" + at(leader.Since)
	case l.Leases && !l.Now.Before(l.Lease.UntilAt):
		return l.Lease.UntilAt, fmt.Sprintf("the lease of %s ended %s and was not renewed", l.worker(l.Lease.Holder), l.ago(l.Lease.UntilAt))
	case l.Leases || !known:
		return time.Time{}, ""
	case leader.State == events.Vacant:
		return leader.Since.At, "the leader resigned or was lost, and nobody was elected since" + at(leader.Since)
	}
	if v := l.judge(leader.Worker); v.life != alive {
		return v.since, fmt.Sprintf("the leader, %s, does not live: %s", l.worker(leader.Worker), v.why)
	}
	return time.Time{}, ""
}
