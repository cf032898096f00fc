package foundling_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// slowly is a store that takes some time for every reading of its log.
type slowly struct {
	store.Store
	takes time.Duration
	reads atomic.Int32
}

func (s *slowly) Unwrap() store.Store { return s.Store }

func (s *slowly) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	s.reads.Add(1)
	time.Sleep(s.takes)
	return s.Store.Read(ctx, after, f)
}

// Whoever follows a log that grows all the time reads what came meanwhile in one go, and what comes after a pause at once.
func TestAFollowerOfABusyLogReadsManyCommitsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowly{Store: memory.New(memory.Options{}), takes: 4 * time.Millisecond}
		c := clientOf(t, s)
		mail := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		ctx, stop := context.WithCancel(t.Context())
		var seen atomic.Int32
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, err := range c.Events(ctx, "", foundling.EventFilter{}) {
				if err == nil {
					seen.Add(1)
				}
			}
		}()
		enqueue := func() {
			if _, err := mail.Enqueue(ctx, c, 1, foundling.EnqueueOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		s.reads.Store(0)
		for range 1000 {
			enqueue()
			time.Sleep(time.Millisecond)
		}
		if n := s.reads.Load(); n > 80 {
			t.Errorf("the log was read %d times in a second, want once in 16 ms at most", n)
		}
		time.Sleep(time.Second)
		enqueue()
		time.Sleep(2 * s.takes)
		if n, want := int(seen.Load()), len(logOf(t, s.Store)); n != want {
			t.Errorf("%d events were seen, want %d", n, want)
		}
		stop()
		<-done
	})
}
