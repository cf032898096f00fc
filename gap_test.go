package foundling_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// slowAfterAGap is a store on which the third heartbeat is late, and every commit after it takes its time.
type slowAfterAGap struct {
	store.Store
	store.Heart
	mu    sync.Mutex
	beats []time.Time
}

// beaten counts the heartbeats, with one more where there is a time of it.
func (s *slowAfterAGap) beaten(more ...time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats = append(s.beats, more...)
	return len(s.beats)
}

func (s *slowAfterAGap) Unwrap() store.Store { return s.Store }

// Beat implements store.Heart.
func (s *slowAfterAGap) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	if s.beaten() == 2 {
		time.Sleep(3 * time.Second)
	}
	s.beaten(time.Now())
	return s.Heart.Beat(ctx, b)
}

// Decide implements store.Store.
func (s *slowAfterAGap) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	if s.beaten() > 2 {
		time.Sleep(5 * time.Second)
	}
	return s.Store.Decide(ctx, calls...)
}

// TestAGapDoesNotDelayTheNextHeartbeat has a store take 5 s to record that a heartbeat was late.
func TestAGapDoesNotDelayTheNextHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		s := &slowAfterAGap{Store: inner, Heart: inner}
		c, err := foundling.NewClient(s, foundling.ClientOptions{Actor: "test", Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorker(t, c, foundling.WorkerOptions{HeartbeatInterval: time.Second})
		foundling.NewTopic[int]("mail", foundling.TopicOptions{}).Handle(w, func(context.Context, foundling.Message[int]) error { return nil })
		stop := running(t, w)
		time.Sleep(30 * time.Second)
		stop()
		gaps := 0
		for i := 1; i < len(s.beats); i++ {
			if s.beats[i].Sub(s.beats[i-1]) > 2*time.Second {
				gaps++
			}
		}
		recorded := 0
		for _, err := range inner.Read(t.Context(), "", store.Filter{Types: []events.Type{events.TypeWorkerGap}}) {
			if err != nil {
				t.Fatal(err)
			}
			recorded++
		}
		if gaps != 1 || recorded != 1 {
			t.Errorf("%d gaps between heartbeats, %d recorded, want 1 of each: %v", gaps, recorded, s.beats)
		}
	})
}
