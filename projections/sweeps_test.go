package projections_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
)

func (l *log) sweep(n byte, event events.Event) {
	to := events.Finished
	if event.Type() == events.TypeSweepRefused {
		to = events.Refused
	}
	l.add(events.SweepEntity(id(n)), event, events.Absent, to)
}

// Refusals are counted in a row until a sweep finishes.
func TestSweepsAreRefusedInARow(t *testing.T) {
	var l log
	var sweeps projections.Sweeps
	same(t, sweeps.Refusing(), projections.Refusing{})
	thresholds := events.Thresholds{After: 2 * time.Minute, Grace: time.Minute, Limit: 5}
	live := events.Liveness{Live: 1, Silent: 1, IDs: []events.ID{id(9)}, Ages: []int{40}}
	l.sweep(1, &events.SweepRefused{Reason: events.ReasonCallerMissing})
	finished := &events.SweepFinished{
		Decider: id(9), Term: 4, Thresholds: thresholds, Liveness: live,
		Dead: []events.ID{id(8)}, Pages: 2, Requeued: 3, DeadLettered: 1, LocksReleased: 2, Spared: 5, Skipped: 6,
	}
	l.sweep(2, finished)
	l.apply(&sweeps)
	done := projections.Sweep{
		Mark: mark(2), ID: id(2), Outcome: events.Finished, Decider: id(9), Term: 4, Thresholds: thresholds, Liveness: live,
		Dead: []events.ID{id(8)}, Pages: 2, Requeued: 3, DeadLettered: 1, LocksReleased: 2, Spared: 5, Skipped: 6,
	}
	same(t, sweeps.Refusing(), projections.Refusing{})
	same(t, sweeps.Recent()[1], done)

	l.sweep(3, &events.SweepRefused{Reason: events.ReasonLivenessUnproven, Detail: "a gap", Decider: id(9), Term: 5})
	l.sweep(4, &events.SweepRefused{Reason: events.ReasonClockStepped, Decider: id(9), Term: 5, Thresholds: thresholds, Liveness: live})
	l.apply(&sweeps)
	first := projections.Sweep{
		Mark: mark(3), ID: id(3), Outcome: events.Refused, Reason: events.ReasonLivenessUnproven, Detail: "a gap", Decider: id(9), Term: 5,
	}
	last := projections.Sweep{
		Mark: mark(4), ID: id(4), Outcome: events.Refused, Reason: events.ReasonClockStepped, Decider: id(9), Term: 5,
		Thresholds: thresholds, Liveness: live,
	}
	same(t, sweeps.Refusing(), projections.Refusing{Count: 2, First: first, Last: last})
	same(t, sweeps.Totals(), projections.SweepTotals{
		Finished: 1, Requeued: 3, DeadLettered: 1, LocksReleased: 2, Spared: 5, Skipped: 6,
		Refused: map[events.Reason]int{events.ReasonCallerMissing: 1, events.ReasonLivenessUnproven: 1, events.ReasonClockStepped: 1},
	})
	for n := range byte(100) {
		l.sweep(n, &events.SweepRefused{Reason: events.ReasonClockStepped})
	}
	l.apply(&sweeps)
	recent, refusing := sweeps.Recent(), sweeps.Refusing()
	same(t, []any{len(recent), recent[31].Position, refusing.Count, refusing.First.Position}, []any{32, int64(104), 102, int64(3)})
	same(t, sweeps.AsOf(), mark(104))
}

func TestLeadersKnowWhoLeads(t *testing.T) {
	var l log
	var leaders projections.Leaders
	beat := events.LeaderEntity("beat")
	a, b := id(101), id(102)
	l.add(beat, &events.LeaderElected{Worker: a, Term: 1}, events.Absent, events.Led)
	l.add(beat, &events.LeaderLost{Worker: a, Term: 1}, events.Led, events.Vacant)
	l.add(beat, &events.LeaderElected{Worker: b, Term: 2}, events.Vacant, events.Led)
	l.apply(&leaders)
	want := projections.Leader{Name: "beat", State: events.Led, Worker: b, Term: 2, Since: mark(3), Elected: 2, Lost: 1, LostAt: mark(2)}
	same(t, leaders.All(), []projections.Leader{want})

	l.add(beat, &events.LeaderResigned{Worker: b, Term: 2}, events.Led, events.Vacant)
	l.apply(&leaders)
	want.State, want.Since, want.Resigned = events.Vacant, mark(4), 1
	one, known := leaders.Leader("beat")
	same(t, one, want)
	same(t, known, true)
	_, known = leaders.Leader("other")
	same(t, known, false)
	same(t, leaders.AsOf(), mark(4))
}

func TestClockKeepsItsLastSteps(t *testing.T) {
	var l log
	var clock projections.Clock
	for n := range 20 {
		to := epoch.Add(time.Duration(n-10) * time.Minute)
		l.add(events.ClockEntity(), &events.ClockStepped{FromAt: epoch, ToAt: to, Worker: id(9)}, events.Active, events.Active)
	}
	l.apply(&clock)
	steps := clock.Steps()
	same(t, []any{clock.Total(), len(steps), clock.AsOf()}, []any{20, 16, mark(20)})
	same(t, steps[0], projections.Step{Mark: mark(5), FromAt: epoch, ToAt: epoch.Add(-6 * time.Minute), Worker: id(9)})
	same(t, []time.Duration{steps[0].By(), steps[15].By()}, []time.Duration{-6 * time.Minute, 9 * time.Minute})
}
