package foundling_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/google/uuid"
)

func TestWait(t *testing.T) {
	for _, test := range []struct {
		name   string
		opts   foundling.EnqueueOptions
		handle func() error
		state  foundling.State
	}{
		{"completes", foundling.EnqueueOptions{}, func() error { return nil }, foundling.Completed},
		{"is cancelled", foundling.EnqueueOptions{}, func() error { return foundling.Cancel("no") }, foundling.Cancelled},
		{"is a dead letter", foundling.EnqueueOptions{}, func() error { return foundling.DeadLetter(nil) }, foundling.DeadLettered},
		{"takes a few attempts", foundling.EnqueueOptions{MaxAttempts: 3}, func() error { return errors.New("boom") }, foundling.DeadLettered},
		{"is due later", foundling.EnqueueOptions{Delay: 5 * time.Minute}, func() error { return nil }, foundling.Completed},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := newClient(t)
				id := enqueue(t, c, "mail", "x", test.opts)
				stop := handling(t, c, "mail", func(context.Context, foundling.Message[string]) error { return test.handle() })
				for range 2 { // the second time it has ended already
					m, err := c.Wait(t.Context(), id)
					if err != nil || m.State != test.state || m.ID != id {
						t.Errorf("%+v, %v, want %s", m, err, test.state)
					}
				}
				stop()
			})
		})
	}
}

// A redriven dead letter is waited for once more.
func TestWaitGoesOnWithARedrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		id := enqueue(t, c, "mail", "x", foundling.EnqueueOptions{MaxAttempts: 1})
		var fails atomic.Bool
		fails.Store(true)
		stop := handling(t, c, "mail", func(context.Context, foundling.Message[string]) error {
			if fails.Load() {
				return errors.New("boom")
			}
			return nil
		})
		if m, err := c.Wait(t.Context(), id); err != nil || m.State != foundling.DeadLettered {
			t.Errorf("%+v, %v", m, err)
		}
		fails.Store(false)
		if err := c.Redrive(t.Context(), "mended", id); err != nil {
			t.Fatal(err)
		}
		if m, err := c.Wait(t.Context(), id); err != nil || m.State != foundling.Completed {
			t.Errorf("%+v, %v", m, err)
		}
		stop()
	})
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		if _, err := c.Wait(t.Context(), uuid.Must(uuid.NewV7())); !errors.Is(err, foundling.ErrNotFound) {
			t.Errorf("for what is not there: %v", err)
		}
		id := enqueue(t, c, "mail", "x", foundling.EnqueueOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if m, err := c.Wait(ctx, id); !errors.Is(err, context.DeadlineExceeded) || m.ID != (foundling.ID{}) {
			t.Errorf("with a context that ends: %+v, %v", m, err)
		}
		time.AfterFunc(time.Minute, func() { _ = s.Close() })
		if _, err := c.Wait(t.Context(), id); !errors.Is(err, store.ErrClosed) {
			t.Errorf("on a store that is closed: %v", err)
		}
	})
}

// counted is a store that counts its reads, and whose Read, Head and Contents fail while it is down.
type counted struct {
	store.Store
	heads, reads atomic.Int64
	down         atomic.Bool
}

func (s *counted) Unwrap() store.Store { return s.Store }

var errDown = errors.New("nobody is there")

func (s *counted) Head(ctx context.Context) (store.Cursor, error) {
	s.heads.Add(1)
	if s.down.Load() {
		return "", errDown
	}
	return s.Store.Head(ctx)
}

func (s *counted) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	if f.Entity == (events.Entity{}) {
		s.reads.Add(1)
	}
	if s.down.Load() {
		return func(yield func(events.Recorded, error) bool) { yield(events.Recorded{}, errDown) }
	}
	return s.Store.Read(ctx, after, f)
}

// waitForAll waits for messages with a goroutine each, whose states go into the returned map once wait returns.
func waitForAll(t *testing.T, c *foundling.Client, ids []foundling.ID) (wait func() map[foundling.State]int) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	states := map[foundling.State]int{}
	for _, id := range ids {
		all.Go(func() {
			m, err := c.Wait(t.Context(), id)
			if err != nil || m.ID != id {
				t.Errorf("%s: %+v, %v", id, m, err)
			}
			mu.Lock()
			defer mu.Unlock()
			states[m.State]++
		})
	}
	return func() map[foundling.State]int {
		all.Wait()
		return states
	}
}

// A thousand waiters look at the log as often as one does. Another process handles the messages.
func TestAThousandWaitersFollowTheLogAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		s := &counted{Store: inner}
		c, other := clientOf(t, s), clientOf(t, inner)
		var ids []foundling.ID
		for i := range 1000 {
			ids = append(ids, enqueue(t, c, "mail", fmt.Sprint(i), foundling.EnqueueOptions{}))
		}
		wait := waitForAll(t, c, ids)
		time.Sleep(10 * time.Second)
		if heads, reads := s.heads.Load(), s.reads.Load(); heads > 1000 || reads > 20 {
			t.Errorf("while nothing happens for 10 s they look %d times at the head and %d times at the log", heads, reads)
		}
		began := s.reads.Load()
		stop := handling(t, other, "mail", func(context.Context, foundling.Message[string]) error {
			time.Sleep(time.Second)
			return nil
		})
		if states := wait(); states[foundling.Completed] != 1000 {
			t.Errorf("%v", states)
		}
		stop()
		if reads := s.reads.Load() - began; reads > 4*200 { // 100 commits of ten, each of which takes two looks, and the claims
			t.Errorf("they look %d times at the log", reads)
		}
	})
}

func TestWaitingOutlivesAStoreThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		s := &counted{Store: inner}
		c, other := clientOf(t, s), clientOf(t, inner)
		ids := []foundling.ID{
			enqueue(t, c, "mail", "ends while it is down", foundling.EnqueueOptions{}),
			enqueue(t, c, "mail", "ends afterwards", foundling.EnqueueOptions{Delay: 5 * time.Minute}),
		}
		wait := waitForAll(t, c, ids)
		time.Sleep(time.Second)
		s.down.Store(true)
		time.Sleep(time.Second)
		stop := handling(t, other, "mail", func(context.Context, foundling.Message[string]) error { return nil })
		waitBegunWhileDown := waitForAll(t, c, ids)
		time.Sleep(time.Minute)
		s.down.Store(false)
		for _, states := range []map[foundling.State]int{wait(), waitBegunWhileDown()} {
			if states[foundling.Completed] != 2 {
				t.Errorf("%v", states)
			}
		}
		stop()
	})
}

// Whoever reads the log for the others may leave at any time: its turn goes on.
func TestWaitersWhoLeaveTakeNobodyWithThem(t *testing.T) {
	c, _ := newClient(t)
	stop := handling(t, c, "mail", func(context.Context, foundling.Message[string]) error { return nil })
	defer stop()
	var all sync.WaitGroup
	for w := range 20 {
		all.Go(func() {
			for i := range 50 {
				id, err := foundling.NewTopic[string]("mail", foundling.TopicOptions{}).Enqueue(t.Context(), c, "x", foundling.EnqueueOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				if (w+i)%3 == 0 { // somebody else waits for it, not for long
					ctx, cancel := context.WithCancel(t.Context())
					all.Go(func() {
						_, _ = c.Wait(ctx, id)
					})
					cancel()
				}
				if m, err := c.Wait(t.Context(), id); err != nil || m.State != foundling.Completed {
					t.Errorf("%s: %+v, %v", id, m, err)
				}
			}
		})
	}
	all.Wait()
}
