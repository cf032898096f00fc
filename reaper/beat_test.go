package reaper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/reaper"
	"github.com/foundling-go/foundling/store"
)

// unproven is a store whose engine cannot prove that a process has ended.
type unproven struct {
	store.Store
	heart  store.Heart
	leaser store.Leaser
}

func (u unproven) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	return u.heart.Beat(ctx, b)
}
func (u unproven) Beats(ctx context.Context) ([]store.Beat, error) { return u.heart.Beats(ctx) }
func (u unproven) Still(ctx context.Context, worker events.ID) error {
	return u.heart.Still(ctx, worker)
}

func (u unproven) Lease(ctx context.Context, name string, turn func(store.Lease, time.Time) store.Lease) (store.Lease, error) {
	return u.leaser.Lease(ctx, name, turn)
}

// beatBy is the beat of an incarnation, on the stage's store without proof of death.
func (s *stage) beatBy(caller events.ID) *reaper.Beat {
	return &reaper.Beat{
		Store: unproven{s.heart, s.heart, s.heart}, Decide: s.decide, Mint: func(context.Context) (events.ID, error) { return newID(s.t), nil },
		Caller: caller, Thresholds: events.Thresholds{After: 2 * time.Minute, Grace: time.Minute, Limit: 5},
		Interval: 5 * time.Minute, Life: 45 * time.Second, WorkerTTL: 24 * time.Hour,
	}
}

func step(s *stage, b *reaper.Beat) reaper.Step {
	s.t.Helper()
	got, err := b.Step(s.t.Context(), s.own)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

func TestD01TheBeatSweepsAtItsIntervalAndNotBefore(t *testing.T) {
	s := newStage(t, 2, 2)
	s.pass(2*time.Minute, s.sweeper, s.holder)
	b := s.beatBy(s.sweeper)
	if got := step(s, b); !got.Leads || !got.Elected || got.Term != 1 || got.Sweep == nil {
		t.Fatalf("first step: %+v", got)
	}
	since := s.now
	for s.now.Sub(since) < 299*time.Second {
		s.pass(min(15*time.Second, 299*time.Second-s.now.Sub(since)), s.sweeper)
		if got := step(s, b); !got.Leads || got.Elected || got.Sweep != nil {
			t.Fatalf("%s after the last sweep: %+v", s.now.Sub(since), got)
		}
	}
	s.pass(time.Second, s.sweeper)
	if got := step(s, b); got.Sweep == nil || got.Sweep.Requeued != 2 {
		t.Fatalf("at 300 s: %+v, want the holder's two claims", got)
	}
}

func TestD02OnlyTheLeaderSweepsAndTheNextOneKeepsItsRhythm(t *testing.T) {
	s := newStage(t, 2, 2)
	s.pass(2*time.Minute, s.sweeper, s.holder)
	first, second := s.beatBy(s.sweeper), s.beatBy(s.holder)
	step(s, first)
	swept := s.now
	if got := step(s, second); got.Leads || got.Sweep != nil {
		t.Fatalf("who does not lead: %+v", got)
	}
	s.pass(40*time.Second, s.sweeper, s.holder)
	if got := step(s, second); got.Leads {
		t.Fatalf("the lease lives for 45 s, it was taken after 40: %+v", got)
	}
	s.pass(5*time.Second, s.sweeper, s.holder)
	if got := step(s, second); !got.Leads || got.Term != 2 || got.Sweep != nil {
		t.Fatalf("after the lease's end: %+v, want a leader who does not sweep yet", got)
	}
	if got := step(s, first); got.Leads {
		t.Fatalf("the one before still leads: %+v", got)
	}
	for s.now.Sub(swept) < 5*time.Minute {
		s.pass(15*time.Second, s.sweeper, s.holder)
		got := step(s, second)
		if due := s.now.Sub(swept) >= 5*time.Minute; due != (got.Sweep != nil) {
			t.Fatalf("%s after the last sweep: %+v", s.now.Sub(swept), got)
		}
	}
	if err := second.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := step(s, first); !got.Elected || got.Term != 3 {
		t.Errorf("after a resignation: %+v", got)
	}
	if n := s.count(events.TypeLeaderLost); n != 1 {
		t.Errorf("%d leaders were lost, want the one who did not resign", n)
	}
}

func (s *stage) count(t events.Type) int {
	n := 0
	for _, err := range s.store.Read(s.t.Context(), "", store.Filter{Types: []events.Type{t}}) {
		if err != nil {
			s.t.Fatal(err)
		}
		n++
	}
	return n
}

func TestTheBeatWaitsForProofBeforeItRefuses(t *testing.T) {
	s := newStage(t, 2, 2)
	b := s.beatBy(s.sweeper)
	s.own = nil
	s.beat(s.sweeper)
	began := s.now                          // when everybody was last heard
	for s.now.Sub(began) <= 7*time.Minute { // After + Interval
		got := step(s, b)
		if got.Refused || !got.Waits {
			t.Fatalf("%s after everybody was heard: %+v, want it to wait", s.now.Sub(began), got)
		}
		if got.Sweep.Suspects == 0 {
			began = s.now
		}
		s.pass(15*time.Second, s.sweeper)
		s.own = s.own[len(s.own)-1:] // as if it had begun just now: it is never proven
	}
	if got := step(s, b); !got.Refused || s.count(events.TypeSweepRefused) != 1 {
		t.Fatalf("after %s: %+v, want one refusal", s.now.Sub(began), got)
	}
}

// A process that was suspended while nobody else was there doubts its own evidence for a while. That is nothing to tell anybody of.
func TestTheBeatWaitsForAsLongAsEverybodyIsHeard(t *testing.T) {
	s := newStage(t, 2, 2)
	b := s.beatBy(s.sweeper)
	for range 100 {
		s.beat(s.sweeper, s.holder)
		s.own = s.own[len(s.own)-1:]
		if got := step(s, b); got.Refused || !got.Waits || got.Sweep.Doubt == nil {
			t.Fatalf("at %s: %+v, want it to wait", s.now, got)
		}
		s.now = s.now.Add(15 * time.Second)
	}
}

func TestALeaderWhoCannotReachTheLeaseDoesNotLead(t *testing.T) {
	s := newStage(t, 2, 2)
	b := s.beatBy(s.sweeper)
	step(s, b)
	broken := *b
	broken.Store = unproven{s.heart, s.heart, outage{}}
	if got, err := broken.Step(t.Context(), s.own); err == nil || got.Leads {
		t.Errorf("without an answer: %+v, %v", got, err)
	}
}

var errOutage = errors.New("out of reach")

type outage struct{}

func (outage) Lease(context.Context, string, func(store.Lease, time.Time) store.Lease) (store.Lease, error) {
	return store.Lease{}, errOutage
}

func TestC11PermitsExpireByTheBeatWhenTheirHolderCrashed(t *testing.T) {
	s := newStage(t, 2, 2)
	s.do(func(o calls.Origin) store.Call {
		call, _ := calls.Acquire(o, fsm.Acquire{Lock: "report", Worker: s.holder, TTL: 20 * time.Second})
		return call
	})
	b := s.beatBy(s.sweeper)
	s.pass(19*time.Second, s.sweeper)
	if got := step(s, b); got.Expired != 0 {
		t.Fatalf("a second too early: %+v", got)
	}
	s.pass(time.Second, s.sweeper)
	if got := step(s, b); got.Expired != 1 {
		t.Fatalf("at its end: %+v", got)
	}
	if got := step(s, b); got.Expired != 0 || s.count(events.TypeLockExpired) != 1 {
		t.Errorf("again: %+v", got)
	}
}

func TestALostWorkerIsForgottenAfterADayIfItHoldsNothingAndIsSilent(t *testing.T) {
	s := newStage(t, 2, 2)
	s.pass(2*time.Minute+time.Second, s.sweeper)
	b := s.beatBy(s.sweeper)
	if got := step(s, b); got.Sweep == nil || len(got.Sweep.Dead) != 1 {
		t.Fatalf("sweep: %+v", got)
	}
	s.now = s.now.Add(24*time.Hour - time.Second)
	s.beat(s.sweeper)
	if got := step(s, b); got.Purged != 0 {
		t.Fatalf("a second too early: %+v", got)
	}
	s.now = s.now.Add(time.Second)
	s.beat(s.sweeper)
	if got := step(s, b); got.Purged != 1 {
		t.Fatalf("after a day: %+v", got)
	}
	if _, err := s.heart.Beat(t.Context(), store.Beat{Worker: s.holder}); !errors.Is(err, store.ErrNotBeating) {
		t.Errorf("a heartbeat of one that is forgotten: %v", err)
	}
}
