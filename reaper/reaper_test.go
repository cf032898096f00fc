package reaper_test

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/internal/mint"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/reaper"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/google/uuid"
)

// kernel is a store that proves the end of the incarnations it is told of.
type kernel struct {
	store.Store
	dead []events.ID
}

func (k *kernel) Unwrap() store.Store { return k.Store }

// Attest implements store.ProcessWatcher.
func (k *kernel) Attest(context.Context, events.ID) (func() error, error) {
	return func() error { return nil }, nil
}

// Gone implements store.ProcessWatcher.
func (k *kernel) Gone(_ context.Context, workers ...events.ID) ([]events.ID, error) {
	return slices.DeleteFunc(slices.Clone(workers), func(id events.ID) bool { return !slices.Contains(k.dead, id) }), nil
}

// stage is a store with a topic of limit n whose slots are held by a worker, and a second worker that sweeps.
type stage struct {
	t       *testing.T
	store   *kernel
	holder  events.ID
	sweeper events.ID
	held    []events.ID
	heart   *memory.Store
	now     time.Time
	own     []time.Time // the sweeper's heartbeats
}

func newID(t *testing.T) events.ID {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func newStage(t *testing.T, limit, messages int) *stage {
	t.Helper()
	s := &stage{t: t, holder: newID(t), sweeper: newID(t), now: time.Now()}
	s.heart = memory.New(memory.Options{Clock: func() time.Time { return s.now }})
	s.store = &kernel{Store: s.heart}
	s.beat(s.holder, s.sweeper)
	for _, worker := range []events.ID{s.holder, s.sweeper} {
		s.do(func(o calls.Origin) store.Call {
			start := fsm.StartWorker{Started: events.WorkerStarted{PID: 4711, Proof: true}}
			return calls.OperateWorker(o, fsm.OperateWorker{Worker: worker, Command: start})
		})
	}
	enqueue := fsm.Enqueue{Topics: map[string]fsm.TopicStart{"mail": {Limit: limit}}}
	for range messages {
		enqueue.Drafts = append(enqueue.Drafts, fsm.Draft{ID: newID(t), EnqueueMessage: fsm.EnqueueMessage{Topic: "mail"}})
	}
	s.do(func(o calls.Origin) store.Call {
		call, _ := calls.Enqueue(o, enqueue, make([]store.Payload, messages))
		return call
	})
	s.held = s.claim(s.holder, limit)
	return s
}

func (s *stage) do(prepare func(calls.Origin) store.Call) store.Receipt {
	s.t.Helper()
	receipt, err := s.decide(s.t.Context(), prepare)
	if err != nil {
		s.t.Fatal(err)
	}
	return receipt
}

func (s *stage) decide(ctx context.Context, prepare func(calls.Origin) store.Call) (store.Receipt, error) {
	id, err := mint.New(rand.Reader).ID(s.now) // as old as the store thinks
	if err != nil {
		return store.Receipt{}, err
	}
	receipts, err := s.store.Decide(ctx, prepare(calls.Origin{ID: id}))
	if err != nil {
		return store.Receipt{}, err
	}
	return receipts[0], receipts[0].Err
}

func (s *stage) claim(worker events.ID, n int) []events.ID {
	s.t.Helper()
	receipt := s.do(func(o calls.Origin) store.Call {
		return calls.Claim(o, fsm.Claim{Worker: worker, Asks: []fsm.Ask{{Topic: "mail", N: n}}})
	})
	var ids []events.ID
	for _, row := range receipt.Rows {
		if row.Entity.Kind == events.KindMessage {
			ids = append(ids, row.Entity.ID)
		}
	}
	return ids
}

func (s *stage) sweep() (reaper.Report, error) {
	return s.sweepBy(s.sweeper).Run(s.t.Context())
}

func (s *stage) sweepBy(caller events.ID) reaper.Sweep {
	return reaper.Sweep{
		Store: s.store, Decide: s.decide, ID: newID(s.t), Caller: caller, Own: s.own,
		Thresholds: events.Thresholds{After: 2 * time.Minute, Grace: time.Minute, Limit: 5},
	}
}

// beat sends heartbeats for the workers, and counts the sweeper's.
func (s *stage) beat(workers ...events.ID) {
	s.t.Helper()
	for _, w := range workers {
		at, err := s.heart.Beat(s.t.Context(), store.Beat{Worker: w, First: true, Interval: 15 * time.Second, FenceAfter: 90 * time.Second})
		if err != nil {
			s.t.Fatal(err)
		}
		if w == s.sweeper {
			s.own = append(s.own, at)
		}
	}
}

// pass lets time go by in which these workers beat.
func (s *stage) pass(d time.Duration, beating ...events.ID) {
	s.t.Helper()
	for step := 15 * time.Second; d > 0; d -= step {
		s.now = s.now.Add(min(step, d))
		s.beat(beating...)
	}
}

func (s *stage) events() int {
	n := 0
	for _, err := range s.store.Read(s.t.Context(), "", store.Filter{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		n++
	}
	return n
}

func TestSlotsComeBackFromAProcessThatIsGone(t *testing.T) {
	const limit = 2*reaper.Page + 7 // three pages
	s := newStage(t, limit, limit+10)
	if len(s.held) != limit || len(s.claim(s.sweeper, 1)) != 0 {
		t.Fatalf("%d claims are open, want the limit and no more", len(s.held))
	}
	if report, err := s.sweep(); err != nil || report.Acted() {
		t.Fatalf("sweep while the holder lives: %+v, %v", report, err)
	}
	s.store.dead = []events.ID{s.holder}
	report, err := s.sweep()
	if err != nil || report.Requeued != limit || report.DeadLettered != 0 || len(report.Dead) != 1 ||
		report.Dead[0].Worker.PID != 4711 || report.Dead[0].Evidence != events.ReasonProcessGone {
		t.Fatalf("sweep: %+v, %v", report, err)
	}
	before := s.events()
	if again, err := s.sweep(); err != nil || again.Acted() || s.events() != before {
		t.Fatalf("sweep again: %+v, %v, %d events more", again, err, s.events()-before)
	}
	if got := s.claim(s.sweeper, limit); len(got) != limit {
		t.Errorf("%d slots came back, want %d", len(got), limit)
	}
	result, err := replay.Verify(t.Context(), s.store, replay.Options{})
	if err != nil || !result.Clean() {
		t.Errorf("verify: %v %v", err, result.Violations)
	}
}

func TestWhoIsUnknownToTheStoreDoesNotSweep(t *testing.T) {
	s := newStage(t, 2, 2)
	s.store.dead = []events.ID{s.holder}
	stranger := s.sweepBy(newID(t))
	before := s.events()
	report, err := stranger.Run(t.Context())
	if err != nil || report.Doubt == nil || report.Doubt.Reason != events.ReasonCallerMissing || s.events() != before {
		t.Fatalf("sweep by a stranger: %v, %+v, %d events", err, report.Doubt, s.events()-before)
	}
	if err := stranger.Refuse(t.Context(), report); err != nil || s.events() != before+1 {
		t.Errorf("its refusal: %v, %d events, want one", err, s.events()-before)
	}
}

func TestASweepThatActedOnProofMayBeRefusedOnSilence(t *testing.T) {
	s := newStage(t, 2, 2)
	silent := newID(t)
	s.do(func(o calls.Origin) store.Call {
		return calls.OperateWorker(o, fsm.OperateWorker{Worker: silent, Command: fsm.StartWorker{}})
	})
	s.beat(silent)
	s.pass(3 * time.Minute)
	s.own = nil
	s.beat(s.sweeper)
	s.store.dead = []events.ID{s.holder}
	sweep := s.sweepBy(s.sweeper)
	report, err := sweep.Run(t.Context())
	if err != nil || report.Requeued != 2 || report.Suspects != 1 || report.Doubt == nil {
		t.Fatalf("sweep: %v, %+v", err, report)
	}
	if err := sweep.Refuse(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	if finished, refused := s.count(events.TypeSweepFinished), s.count(events.TypeSweepRefused); finished != 1 || refused != 1 {
		t.Errorf("%d sweeps finished and %d were refused, want one event of each", finished, refused)
	}
}

func TestSilenceIsJudgedOnlyByWhoHasBeatenAllTheWhile(t *testing.T) {
	s := newStage(t, 2, 2)
	s.pass(121 * time.Second) // nobody beats: an outage
	s.own = nil
	s.beat(s.sweeper)
	report, err := s.sweep()
	if err != nil || report.Doubt == nil || report.Doubt.Reason != events.ReasonLivenessUnproven || report.Acted() || report.Suspects != 1 {
		t.Fatalf("sweep after an outage: %v, %+v", err, report)
	}
	s.pass(2*time.Minute, s.sweeper)
	report, err = s.sweep()
	if err != nil || report.Doubt != nil || report.Requeued != 2 || report.Dead[0].Evidence != events.ReasonSilent {
		t.Fatalf("sweep once it is proven: %v, %+v", err, report)
	}
}

func TestTheYoungClaimsOfTheDeadAreCountedHoweverMany(t *testing.T) {
	const limit = reaper.Page + 20
	s := newStage(t, limit, limit+5)
	s.pass(100*time.Second, s.sweeper)
	// It claims its last five when it has been silent for long: its process lives, its heart does not.
	s.held = nil
	s.do(func(o calls.Origin) store.Call {
		return calls.OperateTopic(o, fsm.OperateTopic{Topic: "mail", Command: fsm.ConfigureTopic{Limit: limit + 5}})
	})
	if got := s.claim(s.holder, 5); len(got) != 5 {
		t.Fatalf("claimed %d", len(got))
	}
	s.pass(30*time.Second, s.sweeper)
	report, err := s.sweep()
	if err != nil || report.Requeued != limit || report.Spared != 5 {
		t.Fatalf("sweep: %v, requeued %d of %d, spared %d of 5", err, report.Requeued, limit, report.Spared)
	}
	if report, err = s.sweep(); err != nil || report.Requeued != 0 || report.Spared != 5 {
		t.Fatalf("sweep again: %v, %+v", err, report)
	}
}

func TestAPlanWritesNothingAndSaysWhatASweepDoes(t *testing.T) {
	s := newStage(t, 3, 3)
	s.pass(130*time.Second, s.sweeper)
	before := s.events()
	plan := s.sweepBy(events.ID{})
	planned, err := plan.Plan(t.Context())
	if err != nil || planned.Doubt != nil || planned.Requeued != 3 || len(planned.Dead) != 1 || s.events() != before {
		t.Fatalf("plan: %v, %+v, %d events", err, planned, s.events()-before)
	}
	if done, err := s.sweep(); err != nil || done.Requeued != planned.Requeued {
		t.Errorf("sweep: %v, %d requeued, %d planned", err, done.Requeued, planned.Requeued)
	}
}

func TestTwoSweepsAtOnceHaveTheEffectOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 10
		s := newStage(t, limit, limit)
		s.store.dead = []events.ID{s.holder}
		total := make(chan int, 2)
		for range 2 {
			go func() {
				report, err := s.sweep()
				if err != nil {
					t.Errorf("sweep: %v", err)
				}
				total <- report.Requeued
			}()
		}
		if n := <-total + <-total; n != limit {
			t.Errorf("%d messages were given back, want %d", n, limit)
		}
	})
}

func TestAMessageThatKillsItsWorkersIsDeadLetteredAtTheFifth(t *testing.T) {
	s := newStage(t, 1, 1)
	for n := 1; ; n++ {
		s.store.dead = append(s.store.dead, s.holder)
		report, err := s.sweep()
		if err != nil {
			t.Fatal(err)
		}
		if report.DeadLettered == 1 {
			if n != 5 {
				t.Errorf("dead-lettered after %d deaths, want 5", n)
			}
			return
		}
		s.holder = newID(t)
		s.do(func(o calls.Origin) store.Call {
			start := fsm.StartWorker{Started: events.WorkerStarted{Proof: true}}
			return calls.OperateWorker(o, fsm.OperateWorker{Worker: s.holder, Command: start})
		})
		if len(s.claim(s.holder, 1)) != 1 {
			t.Fatalf("not claimable after %d deaths", n)
		}
	}
}
