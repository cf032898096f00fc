package reaper_test

import (
	"context"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/reaper"
	"github.com/foundling-go/foundling/store"
)

// This file is what must not go although it is old, and what must go although it does not look so.

// counting is a process that counts the stage's totals, and has saved all that there is.
func (s *stage) counting() *runner.Runner {
	s.t.Helper()
	r, err := runner.New(s.store, runner.Options{}, func() projections.Durable { return new(projections.Totals) })
	if err == nil {
		err = r.CatchUp(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// counted is the totals by topic that are saved.
func (s *stage) counted() map[string]projections.TopicCounts {
	s.t.Helper()
	v, _, err := runner.Current(s.t.Context(), s.store, "totals")
	var totals projections.Totals
	if err == nil {
		err = totals.Restore(v.Version, v.Bytes)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return totals.Counts().Topics
}

// A message older than the retention ends behind the checkpoint of the totals. Its beginning alone tells its topic to a process that goes on from
// there, and so it stays until they have counted its end.
func TestTotalsKnowTheTopicAfterAKillAmidRetention(t *testing.T) {
	s := newStage(t, 3, 4)
	s.counting()
	s.now = s.now.Add(91 * day)
	s.complete(s.held[0])
	plan, err := s.prune().Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report := pruned(s, s.prune())
	if plan.Events != report.Events || plan.Held != report.Held || report.Held.Name != "totals" || !report.Done {
		t.Errorf("planned %+v, done %+v, want the totals to hold the beginning of the message", plan, report)
	}
	s.counting() // another process, which knows what was saved
	if got := s.counted(); len(got) != 1 || got["mail"].Completed != 1 {
		t.Errorf("counted is %+v, want one completed of the topic mail alone", got)
	}
	if report := pruned(s, s.prune()); report.Events == 0 || report.Held.Name != "" {
		t.Errorf("once it is counted: %+v", report)
	}
}

// stepped makes the store's clock step, and says so.
func (s *stage) stepped(by time.Duration) {
	from := s.now
	s.now = s.now.Add(by)
	s.do(func(o calls.Origin) store.Call {
		return calls.OperateClock(o, fsm.OperateClock{StepClock: fsm.StepClock{FromAt: from, ToAt: s.now, Worker: s.sweeper, Tolerance: time.Second}})
	})
}

// What was decided while the clock was ten years ahead, for a minute, is as old as the step back says: it stops no pruning for ten years. Nor is any
// id that is given later refused as too old.
func TestAClockThatWasAheadForAMinuteStopsNoPruning(t *testing.T) {
	for name, prune := range map[string]func(*stage, *reaper.Beat) reaper.Pruned{
		"the beat": func(s *stage, leader *reaper.Beat) reaper.Pruned { return step(s, leader).Pruned },
		"by hand":  func(s *stage, _ *reaper.Beat) reaper.Pruned { return pruned(s, s.prune()) },
	} {
		s := newStage(t, 3, 4)
		leader := s.keeping(s.sweeper, 90*day)
		s.stepped(3650 * day)
		s.complete(s.held[0])
		s.stepped(time.Minute - 3650*day)
		old := s.events()
		alive := func(after time.Duration) {
			s.now, s.own = s.now.Add(after), nil
			s.beat(s.sweeper, s.holder)
			s.pass(time.Minute, s.sweeper, s.holder)
		}
		alive(80 * day)
		if got := prune(s, leader); got.Events > 0 || got.Held.Name != "" {
			t.Errorf("%s: %+v, 80 days after it was set back", name, got)
		}
		alive(12 * day)
		got := prune(s, leader)
		if got.Events < old || got.UntilAt.After(s.now) {
			t.Errorf("%s: %+v, want the %d events of before to go when they are 92 days old, and no later time to be told", name, got, old)
		}
		s.do(func(o calls.Origin) store.Call {
			return store.Call{ID: o.ID, Command: events.Command{Name: "look"}, Fn: func(view store.View) (store.Changes, error) {
				if view.PrunedAt.After(s.now) || s.now.Sub(view.PrunedAt) > 92*day {
					t.Errorf("%s: what was pruned is said to be of %s, it is %s", name, view.PrunedAt, s.now)
				}
				return store.Changes{}, nil
			}}
		})
	}
}

// Permits of a lock are taken between any two looks of a prune, up to all that it has.
func TestALockWhosePermitsRiseIsTold(t *testing.T) {
	s := newStage(t, 1, 1)
	s.do(func(o calls.Origin) store.Call {
		return calls.OperateLock(o, fsm.OperateLock{Lock: "l", ConfigureLock: fsm.ConfigureLock{Permits: 1000}})
	})
	out := 0
	take := func() {
		s.do(func(o calls.Origin) store.Call {
			call, _ := calls.Acquire(o, fsm.Acquire{Lock: "l", Worker: s.holder})
			return call
		})
		out++
	}
	take()
	s.now = s.now.Add(91 * day)
	p := s.prune()
	decide := p.Decide
	p.Decide = func(ctx context.Context, prepare func(calls.Origin) store.Call) (store.Receipt, error) {
		take()
		return decide(ctx, prepare)
	}
	if report := pruned(s, p); report.Events == 0 {
		t.Fatalf("%+v, with %d permits out", report, out)
	}
	for _, r := range s.kept() {
		if e, ok := r.Event.(*events.LockSnapshotted); ok && len(e.Out) < 2 {
			t.Errorf("%d permits are told", len(e.Out))
		}
	}
}
