package foundling_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// hintless is a store of which nobody hears anything: it counts the claims.
type hintless struct {
	store.Store
	claims atomic.Int64
}

func (h *hintless) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	for _, call := range calls {
		if call.Command.Name == "claim" {
			h.claims.Add(1)
		}
	}
	return h.Store.Decide(ctx, calls...)
}

// hintlessWorkers runs workers of one client, each with two slots, on a store without hints. Handlers note when they began, and wait for the end.
func hintlessWorkers(t *testing.T, n int) (s *hintless, c *foundling.Client, mail foundling.Topic[string], begun func() []time.Time) {
	t.Helper()
	s = &hintless{Store: memory.New(memory.Options{})}
	c, err := foundling.NewClient(s, foundling.ClientOptions{Actor: "test", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var times []time.Time
	end := make(chan struct{})
	mail = foundling.NewTopic[string]("mail", foundling.TopicOptions{})
	for range n {
		w := newWorker(t, c, foundling.WorkerOptions{Concurrency: 2, Sweeps: foundling.SweepsOff})
		mail.Handle(w, func(context.Context, foundling.Message[string]) error {
			mu.Lock()
			times = append(times, time.Now())
			mu.Unlock()
			<-end
			return nil
		})
		t.Cleanup(running(t, w))
	}
	t.Cleanup(func() { close(end) })
	return s, c, mail, func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return times
	}
}

func TestAHundredIdleWorkersLookAsOftenAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, mail, begun := hintlessWorkers(t, 100)
		time.Sleep(time.Second) // of the bubble
		before := s.claims.Load()
		time.Sleep(time.Minute)
		if looks := s.claims.Load() - before; looks < 115 || looks > 125 {
			t.Errorf("%d looks in a minute, want one each 500 ms", looks)
		}
		sent := time.Now()
		if _, err := mail.Enqueue(t.Context(), c, "hello", foundling.EnqueueOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if got := begun(); len(got) != 1 || got[0].Sub(sent) > 500*time.Millisecond {
			t.Errorf("began at %v, want once within 500 ms of %v", got, sent)
		}
	})
}

func TestWhatOneLookLeavesTheOtherWorkersTakeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, mail, begun := hintlessWorkers(t, 100)
		time.Sleep(time.Second) // of the bubble
		due := time.Now().Add(10 * time.Second)
		for range 51 {
			if _, err := mail.Enqueue(t.Context(), c, "hello", foundling.EnqueueOptions{At: due}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		before := s.claims.Load()
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		got := begun()
		if len(got) != 51 {
			t.Fatalf("%d began within one interval, want 51", len(got))
		}
		if first, last := got[0], got[50]; !first.Equal(last) {
			t.Errorf("the last began %s after the first", last.Sub(first))
		}
		if looks := s.claims.Load() - before; looks > 30 {
			t.Errorf("%d looks for what 26 workers have slots for", looks)
		}
	})
}
