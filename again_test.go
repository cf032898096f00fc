package foundling_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// A message that was taken back came again to the worker whose first handler of it still ran. The second claim took the place of the first, so
// that nobody told the first handler to stop any more; and when the second had ended, the permit of the first was given back as a stray, and
// another message was handled beside it under the same lock.
func TestAMessageThatComesAgainToItsWorkerDoesNotHideItsFirstHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 15 * time.Second
		c, s := newClient(t)
		if err := c.ConfigureLock(t.Context(), "boat", foundling.LockSettings{Permits: 2}); err != nil {
			t.Fatal(err)
		}
		topic := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
		w := newWorker(t, c, foundling.WorkerOptions{HeartbeatInterval: interval})
		cause, end := make(chan error, 1), make(chan struct{})
		topic.Handle(w, func(ctx context.Context, m foundling.Message[string]) error {
			if m.Attempt > 1 {
				return nil
			}
			select {
			case <-ctx.Done():
				cause <- context.Cause(ctx)
				<-end // it hears that it is to stop, and takes its time
			case <-end:
			}
			return nil
		})
		stop := running(t, w)
		id, err := topic.Enqueue(t.Context(), c, "hello", foundling.EnqueueOptions{Lock: "boat"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := c.Requeue(t.Context(), foundling.RequeueOptions{Force: foundling.Forced}, id); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, want := history(t, s, id), "enqueued claimed requeued:taken_back claimed completed"; got != want {
			t.Fatalf("history %q, want %q", got, want)
		}
		time.Sleep(5 * interval)
		synctest.Wait()
		select {
		case err := <-cause:
			if !errors.Is(err, foundling.ErrClaimLost) {
				t.Errorf("the first handler's context ended by %v, want %v", err, foundling.ErrClaimLost)
			}
		default:
			t.Error("nobody told the first handler that its claim was lost")
		}
		if n := permits(t, s); n != 1 {
			t.Errorf("%d permits are out while the first handler runs, want 1", n)
		}
		close(end)
		synctest.Wait()
		if n := permits(t, s); n != 0 {
			t.Errorf("%d permits are out after it has ended, want 0", n)
		}
		stop()
	})
}

// permits is how many permits are out.
func permits(t *testing.T, s store.Store) int {
	t.Helper()
	n := 0
	for _, err := range s.Permits(t.Context(), store.PermitFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// late is a store whose heartbeats take a moment to be confirmed.
type late struct{ store.Store }

func (l late) Unwrap() store.Store { return l.Store }

func (l late) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	time.Sleep(10 * time.Millisecond)
	return l.Store.(store.Heart).Beat(ctx, b)
}

func (l late) Beats(ctx context.Context) ([]store.Beat, error) {
	return l.Store.(store.Heart).Beats(ctx)
}

func (l late) Still(ctx context.Context, worker events.ID) error {
	return l.Store.(store.Heart).Still(ctx, worker)
}

// With ReclaimAfter at three heartbeats, which is allowed, ReclaimAfter less two heartbeats was one: the worker ended its handlers at each
// heartbeat, a moment before that came through, and nothing that took longer was ever completed.
func TestAWorkerAtTheShortestBoundDoesNotFenceItselfAtEachHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		c := clientOf(t, late{s})
		w := newWorker(t, c, foundling.WorkerOptions{HeartbeatInterval: 5 * time.Second, ReclaimAfter: 15 * time.Second})
		topic := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
		topic.Handle(w, func(ctx context.Context, m foundling.Message[string]) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Minute):
				return nil
			}
		})
		stop := running(t, w)
		id, err := topic.Enqueue(t.Context(), c, "hello", foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		stop()
		if got, want := history(t, s, id), "enqueued claimed completed"; got != want {
			t.Errorf("history %q, want %q", got, want)
		}
	})
}

// slow is a store on which the answer of the first claim that grants something takes its time.
type slow struct {
	store.Store
	by   time.Duration
	once atomic.Bool
}

func (s *slow) Unwrap() store.Store { return s.Store }

func (s *slow) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	receipts, err := s.Store.Decide(ctx, calls...)
	for i, r := range receipts {
		if calls[i].Command.Name == "claim" && len(r.Events) > 0 && s.once.CompareAndSwap(false, true) {
			time.Sleep(s.by)
		}
	}
	return receipts, err
}

// A claim whose answer took longer than two readings of the worker's claims, as after a stop of the process, was given back as one that nobody knew
// of; then its answer came, and the handler began with a token that was no longer current, beside whoever had got the message and its lock.
func TestAClaimWhoseAnswerIsSlowIsNotGivenBackBeneathItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Store: memory.New(memory.Options{}), by: 50 * time.Second}
		c, err := foundling.NewClient(s, foundling.ClientOptions{Actor: "test", Logger: quiet, Timeout: foundling.None})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
		topic.Handle(w, func(context.Context, foundling.Message[string]) error { return nil })
		id, err := topic.Enqueue(t.Context(), c, "hello", foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, w)
		time.Sleep(2 * time.Minute)
		stop()
		if got, want := history(t, s, id), "enqueued claimed completed"; got != want {
			t.Errorf("history %q, want %q", got, want)
		}
	})
}
