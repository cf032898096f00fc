package foundling_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/faulty"
	"github.com/foundling-go/foundling/store/memory"
)

// machine is the kernel of a test: it knows which process an incarnation belongs to, and whether that has ended.
type machine struct {
	mu   sync.Mutex
	home map[events.ID]string
	dead map[string]bool
}

func newMachine() *machine { return &machine{home: map[events.ID]string{}, dead: map[string]bool{}} }

// process is a store as one process of a machine sees it.
type process struct {
	store.Store
	machine *machine
	name    string
}

func (p process) Unwrap() store.Store { return p.Store }

// Attest implements store.ProcessWatcher.
func (p process) Attest(_ context.Context, worker events.ID) (func() error, error) {
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	p.machine.home[worker] = p.name
	return func() error { return nil }, nil
}

// Gone implements store.ProcessWatcher.
func (p process) Gone(_ context.Context, workers ...events.ID) ([]events.ID, error) {
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(workers), func(id events.ID) bool { return !p.machine.dead[p.machine.home[id]] }), nil
}

func (m *machine) kill(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead[name] = true
}

// life is one process: it enqueues what it is given and works until it is told to stop, or loses its store.
type life struct {
	mu    sync.Mutex
	acked []foundling.ID
	runs  map[foundling.ID]int
}

func (l *life) live(t *testing.T, s store.Store, enqueue int, until time.Duration) {
	t.Helper()
	c, err := foundling.NewClient(s, foundling.ClientOptions{Actor: "test", Logger: quiet, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{Limit: 3})
	w := newWorker(t, c, foundling.WorkerOptions{Concurrency: 4, HeartbeatInterval: time.Second, SettleTimeout: time.Second})
	topic.Handle(w, func(_ context.Context, m foundling.Message[int]) error {
		time.Sleep(100 * time.Millisecond)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.runs[m.ID]++
		if m.Payload%5 == 0 && m.Attempt == 1 {
			return errors.New("not at once")
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), until)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	for i := range enqueue {
		if id, err := topic.Enqueue(ctx, c, i, foundling.EnqueueOptions{}); err == nil {
			l.mu.Lock()
			l.acked = append(l.acked, id)
			l.mu.Unlock()
		}
		time.Sleep(20 * time.Millisecond)
	}
	<-done // an error says that the store is gone, which is what the test did to it
}

// TestKilledAtEachStoreCall kills a process at each of its first 200 calls to the store in turn, before or after the call has done its
// work, and lets another process finish. Nothing acknowledged is lost, nothing is completed twice, log and state are equal.
func TestKilledAtEachStoreCall(t *testing.T) {
	for n := 1; n <= 200; n++ {
		for _, fault := range []faulty.Fault{faulty.StopBefore, faulty.StopAfter} {
			synctest.Test(t, func(t *testing.T) {
				if err := killedAt(t, n, fault); err != nil {
					t.Fatalf("killed at call %d (%d): %v", n, fault, err)
				}
			})
		}
	}
}

// TestAGracefulStopAfterAFault lets one call to the store go wrong without killing anything, and stops the worker in order before it had
// time to notice. What it held without knowing it must not stay with a worker that has stopped.
func TestAGracefulStopAfterAFault(t *testing.T) {
	for _, fault := range []faulty.Fault{faulty.Fail, faulty.LostBefore, faulty.LostAfter} {
		for n := 1; n <= 60; n++ {
			for _, lasting := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					plan := faulty.At(n, fault)
					if lasting { // for as long as a client settles, and then the store is back
						plan = func(c faulty.Call) faulty.Fault {
							if c.N >= n && c.N < n+40 {
								return fault
							}
							return faulty.None
						}
					}
					inner := memory.New(memory.Options{})
					host := newMachine()
					l := &life{runs: map[foundling.ID]int{}}
					l.live(t, faulty.New(process{inner, host, "first"}, plan), 6, 500*time.Millisecond)
					host.kill("first")
					l.live(t, process{inner, host, "second"}, 0, time.Minute)
					if err := l.check(t, inner); err != nil {
						t.Fatalf("fault %d at call %d (lasting %t): %v", fault, n, lasting, err)
					}
				})
			}
		}
	}
}

func killedAt(t *testing.T, n int, fault faulty.Fault) error {
	inner := memory.New(memory.Options{})
	host := newMachine()
	first := faulty.New(process{inner, host, "first"}, faulty.At(n, fault))
	l := &life{runs: map[foundling.ID]int{}}
	l.live(t, first, 16, 6*time.Second)
	if !first.Stopped() {
		return fmt.Errorf("the process made %d calls only: nothing was killed", first.Calls())
	}
	host.kill("first")
	l.live(t, process{inner, host, "second"}, 0, time.Minute)
	return l.check(t, inner)
}

// check reports what was lost, done twice, or kept otherwise than the log says.
func (l *life) check(t *testing.T, inner store.Store) error {
	completed := map[foundling.ID]int{}
	enqueued := map[foundling.ID]bool{}
	for r, err := range inner.Read(t.Context(), "", store.Filter{}) {
		if err != nil {
			return err
		}
		switch r.Event.(type) {
		case *events.MessageEnqueued:
			enqueued[r.Entity.ID] = true
		case *events.MessageCompleted:
			completed[r.Entity.ID]++
		}
	}
	for _, id := range l.acked {
		if !enqueued[id] {
			return fmt.Errorf("message %s was acknowledged and is lost", id)
		}
	}
	for id := range enqueued {
		if completed[id] != 1 || l.runs[id] < 1 {
			return fmt.Errorf("message %s was completed %d times in %d runs", id, completed[id], l.runs[id])
		}
	}
	report, err := replay.Verify(t.Context(), inner, replay.Options{})
	if err != nil {
		return err
	}
	if len(report.Violations) > 0 {
		return fmt.Errorf("verify: %v", report.Violations)
	}
	return nil
}
