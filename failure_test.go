package foundling_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// told is what a hook was told.
type told struct {
	mu   sync.Mutex
	list []foundling.HandlerError
}

func (h *told) hook(_ context.Context, e foundling.HandlerError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, e)
}

func (h *told) outcomes() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var words []string
	for _, e := range h.list {
		words = append(words, e.Outcome.String())
	}
	return strings.Join(words, " ")
}

func TestOnErrorIsToldOfEachAttemptThatFailed(t *testing.T) {
	boom := errors.New("boom")
	var panicked *foundling.PanicError
	for _, test := range []struct {
		name   string
		handle func(context.Context, foundling.Message[string]) error
		opts   foundling.EnqueueOptions
		want   string
		is     func(error) bool
	}{
		{"nothing failed", func(context.Context, foundling.Message[string]) error { return nil }, foundling.EnqueueOptions{}, "", nil},
		{"two errors", func(_ context.Context, m foundling.Message[string]) error { return boom },
			foundling.EnqueueOptions{MaxAttempts: 2}, "retry dead_lettered", func(err error) bool { return errors.Is(err, boom) }},
		{"a panic", func(context.Context, foundling.Message[string]) error { panic("ouch") }, foundling.EnqueueOptions{MaxAttempts: 1}, "dead_lettered",
			func(err error) bool {
				return errors.As(err, &panicked) && panicked.Value == "ouch" && bytes.Contains(panicked.Stack, []byte("failure_test.go"))
			}},
		{"a goroutine that ends itself", func(context.Context, foundling.Message[string]) error { runtime.Goexit(); return nil },
			foundling.EnqueueOptions{MaxAttempts: 1}, "dead_lettered", func(err error) bool { return err != nil }},
		{"its wish", func(context.Context, foundling.Message[string]) error { return foundling.DeadLetter(boom) }, foundling.EnqueueOptions{}, "dead_lettered",
			func(err error) bool { return err == boom }},
		{"a time-out", func(ctx context.Context, _ foundling.Message[string]) error { <-ctx.Done(); return ctx.Err() },
			foundling.EnqueueOptions{Timeout: time.Second, MaxAttempts: 1}, "dead_lettered",
			func(err error) bool {
				return errors.Is(err, foundling.ErrTimeout) && errors.Is(err, context.DeadlineExceeded)
			}},
		{"a snooze is no failure", func(_ context.Context, m foundling.Message[string]) error {
			if m.Attempt == 1 {
				return foundling.Snooze(time.Second)
			}
			return foundling.Cancel("no")
		}, foundling.EnqueueOptions{}, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := newClient(t)
				var hook told
				w := newWorker(t, c, foundling.WorkerOptions{OnError: hook.hook})
				foundling.NewTopic[string]("mail", foundling.TopicOptions{}).Handle(w, test.handle)
				stop := running(t, w)
				id := enqueue(t, c, "mail", "x", test.opts)
				m, err := c.Wait(t.Context(), id)
				stop()
				if got := hook.outcomes(); got != test.want || err != nil {
					t.Errorf("told %q, want %q, %v", got, test.want, err)
				}
				for i, e := range hook.list {
					if e.ID != id || e.Topic != "mail" || e.Attempt != i+1 || e.Token == 0 || !test.is(e.Err) {
						t.Errorf("told of %+v", e)
					}
					if retried := e.Outcome == foundling.OutcomeRetry; retried == e.DueAt.IsZero() {
						t.Errorf("outcome %s, due at %s", e.Outcome, e.DueAt)
					}
				}
				if n := len(hook.list); n > 0 && m.Error == "" {
					t.Errorf("told of %d failures, the log of none: %+v", n, m)
				}
			})
		})
	}
}

// What it is told is in the store by then.
func TestOnErrorComesAfterTheResultIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		states := make(chan foundling.MessageInfo, 1)
		w := newWorker(t, c, foundling.WorkerOptions{OnError: func(ctx context.Context, e foundling.HandlerError) {
			m := get(t, c, e.ID)
			if !m.DueAt.Equal(e.DueAt) {
				t.Errorf("told that it is due at %s, and it is at %s", e.DueAt, m.DueAt)
			}
			states <- m
		}})
		foundling.NewTopic[string]("mail", foundling.TopicOptions{BackoffBase: time.Hour}).Handle(w,
			func(context.Context, foundling.Message[string]) error { return errors.New("boom") })
		stop := running(t, w)
		enqueue(t, c, "mail", "x", foundling.EnqueueOptions{})
		if m := <-states; m.State != foundling.Queued || m.Reason != "retry" || m.Error != "boom" {
			t.Errorf("%+v", m)
		}
		stop()
	})
}

func TestOnErrorIsToldThatAFailureCameTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		var hook told
		w := newWorker(t, c, foundling.WorkerOptions{OnError: hook.hook})
		foundling.NewTopic[string]("mail", foundling.TopicOptions{}).Handle(w, func(ctx context.Context, m foundling.Message[string]) error {
			if err := c.Cancel(ctx, "meanwhile", m.ID); err != nil {
				t.Error(err)
			}
			return errors.New("boom")
		})
		stop := running(t, w)
		enqueue(t, c, "mail", "x", foundling.EnqueueOptions{})
		time.Sleep(time.Minute)
		stop()
		if got := hook.outcomes(); got != "refused" {
			t.Errorf("told %q", got)
		}
	})
}

// full is a store that takes nothing any more once it is full.
type full struct {
	store.Store
	full atomic.Bool
}

func (s *full) Unwrap() store.Store { return s.Store }

func (s *full) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	if s.full.Load() {
		return nil, store.ErrFull
	}
	return s.Store.Decide(ctx, calls...)
}

func TestOnErrorIsToldWhatTheStoreDidNotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &full{Store: memory.New(memory.Options{})}
		c := clientOf(t, s)
		var hook told
		w := newWorker(t, c, foundling.WorkerOptions{OnError: hook.hook, SettleTimeout: time.Second})
		foundling.NewTopic[string]("mail", foundling.TopicOptions{}).Handle(w, func(context.Context, foundling.Message[string]) error {
			s.full.Store(true)
			return errors.New("boom")
		})
		enqueue(t, c, "mail", "x", foundling.EnqueueOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.Run(ctx); err == nil {
			t.Error("nobody said that the store did not take it")
		}
		if got := hook.outcomes(); got != "unknown" {
			t.Errorf("told %q", got)
		}
	})
}

// A hook that panics, or ends its goroutine, costs nothing but its own word.
func TestAHookThatPanicsHarmsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		s := memory.New(memory.Options{})
		c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: slog.New(slog.NewJSONHandler(&text, nil))})
		if err != nil {
			t.Fatal(err)
		}
		var calls told
		w := newWorker(t, c, foundling.WorkerOptions{Concurrency: 2, OnError: func(ctx context.Context, e foundling.HandlerError) {
			calls.hook(ctx, e)
			if e.Attempt == 2 {
				runtime.Goexit()
			}
			panic("the hook is broken")
		}})
		foundling.NewTopic[string]("mail", foundling.TopicOptions{}).Handle(w, func(_ context.Context, m foundling.Message[string]) error {
			return errors.New("boom")
		})
		stop := running(t, w)
		var ids []foundling.ID
		for range 10 {
			ids = append(ids, enqueue(t, c, "mail", "x", foundling.EnqueueOptions{MaxAttempts: 3}))
		}
		states := waitForAll(t, c, ids)()
		stop()
		if states[foundling.DeadLettered] != 10 || len(calls.list) != 30 {
			t.Errorf("%v, %d calls, want 10 dead letters and 30 calls", states, len(calls.list))
		}
		if n := strings.Count(text.String(), "the hook is broken"); n != 20 {
			t.Errorf("logged %d times, want 20", n)
		}
		clean(t, s)
	})
}

// Slow hooks take slots: no more of them run than handlers may.
func TestSlowHooksHoldTheWorkerBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		var mu sync.Mutex
		var now, most, calls int
		w := newWorker(t, c, foundling.WorkerOptions{Concurrency: 3, OnError: func(context.Context, foundling.HandlerError) {
			mu.Lock()
			calls++
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Minute)
			mu.Lock()
			now--
			mu.Unlock()
		}})
		foundling.NewTopic[string]("mail", foundling.TopicOptions{}).Handle(w, func(context.Context, foundling.Message[string]) error {
			return foundling.DeadLetter(nil)
		})
		stop := running(t, w)
		for range 9 {
			enqueue(t, c, "mail", "x", foundling.EnqueueOptions{})
		}
		time.Sleep(2*time.Minute + time.Second)
		stop() // which waits for those under way
		if most != 3 || calls != 9 || now != 0 {
			t.Errorf("%d calls, %d at once, %d go on; want 9, 3 and none", calls, most, now)
		}
	})
}
