package reaper_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
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
	s := &stage{t: t, store: &kernel{Store: memory.New(memory.Options{})}, holder: newID(t), sweeper: newID(t)}
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
	receipts, err := s.store.Decide(ctx, prepare(calls.Origin{ID: newID(s.t)}))
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
	return reaper.Sweep{Store: s.store, Decide: s.decide, Caller: s.sweeper, Limit: 5}.Run(s.t.Context())
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
	if report, err := s.sweep(); err != nil || len(report.Workers) != 0 {
		t.Fatalf("sweep while the holder lives: %+v, %v", report, err)
	}
	s.store.dead = []events.ID{s.holder}
	report, err := s.sweep()
	if err != nil || report.Requeued != limit || report.DeadLettered != 0 || len(report.Workers) != 1 || report.Workers[0].PID != 4711 {
		t.Fatalf("sweep: %+v, %v", report, err)
	}
	before := s.events()
	if again, err := s.sweep(); err != nil || len(again.Workers) != 0 || s.events() != before {
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
	s.sweeper = newID(t)
	before := s.events()
	if _, err := s.sweep(); !errors.Is(err, reaper.ErrCallerMissing) || s.events() != before {
		t.Errorf("sweep by a stranger: %v, %d events", err, s.events()-before)
	}
}

func TestWithoutProofNothingIsDone(t *testing.T) {
	s := newStage(t, 2, 2)
	_, err := reaper.Sweep{Store: s.store.Store, Decide: s.decide, Caller: s.sweeper, Limit: 5}.Run(t.Context())
	if !errors.Is(err, store.ErrNoProof) {
		t.Errorf("sweep of a store without proof: %v", err)
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
