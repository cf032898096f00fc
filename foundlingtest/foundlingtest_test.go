package foundlingtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/foundlingtest"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	_ foundlingtest.TB = (*testing.T)(nil)
	_ foundlingtest.TB = (*rapid.T)(nil)
)

type receipt struct{ User, Order string }

var (
	receipts = foundling.NewTopic[receipt]("receipts", foundling.TopicOptions{})
	mails    = foundling.NewTopic[string]("mails", foundling.TopicOptions{})
)

// everywhere runs a test outside of a bubble and in one.
func everywhere(t *testing.T, test func(*testing.T)) {
	t.Run("by hand", test)
	t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, test) })
}

func enqueue[T any](t *testing.T, c *foundlingtest.Client, topic foundling.Topic[T], payload T, o foundling.EnqueueOptions) foundling.ID {
	t.Helper()
	id, err := topic.Enqueue(t.Context(), c.Client, payload, o)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// handled is the payloads that came to a handler, in order.
type handled struct {
	mu   sync.Mutex
	list []string
}

func (h *handled) add(s string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, s)
}

func (h *handled) want(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if diff := cmp.Diff(want, h.list); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
}

// mailing handles mails and keeps what came.
func mailing(h *handled) func(*foundling.Worker) {
	return func(w *foundling.Worker) {
		mails.Handle(w, func(_ context.Context, m foundling.Message[string]) error {
			h.add(m.Payload)
			return nil
		})
	}
}

func TestRunUntilIdleHandlesWhatIsDue(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		c := foundlingtest.New(t)
		var h handled
		enqueue(t, c, mails, "now", foundling.EnqueueOptions{})
		later := enqueue(t, c, mails, "in an hour", foundling.EnqueueOptions{Delay: time.Hour})
		enqueue(t, c, receipts, receipt{}, foundling.EnqueueOptions{}) // nobody handles them
		c.RunUntilIdle(t, mailing(&h))
		h.want(t, "now")
		foundlingtest.RequireState(t, c, later, foundling.Queued)

		c.Advance(59 * time.Minute)
		c.RunUntilIdle(t, mailing(&h))
		h.want(t, "now")

		c.Advance(time.Minute)
		c.RunUntilIdle(t, mailing(&h))
		h.want(t, "now", "in an hour")
		foundlingtest.RequireState(t, c, later, foundling.Completed)
	})
}

func TestRunUntilIdleWaitsForWhatAHandlerEnqueues(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		c := foundlingtest.New(t)
		var h handled
		enqueue(t, c, receipts, receipt{"4411", "A-17"}, foundling.EnqueueOptions{})
		c.RunUntilIdle(t, func(w *foundling.Worker) {
			mailing(&h)(w)
			receipts.Handle(w, func(ctx context.Context, m foundling.Message[receipt]) error {
				for i := range 50 {
					if _, err := mails.Enqueue(ctx, c.Client, fmt.Sprint(m.Payload.Order, " ", i), foundling.EnqueueOptions{}); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if n := len(h.list); n != 50 {
			t.Errorf("%d mails were handled, want 50", n)
		}
	})
}

func TestRunUntilIdleLeavesWhatCannotBe(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		c := foundlingtest.New(t)
		var h handled
		paused := enqueue(t, c, mails, "of a paused topic", foundling.EnqueueOptions{})
		if err := c.PauseTopic(t.Context(), "mails", "test"); err != nil {
			t.Fatal(err)
		}
		c.RunUntilIdle(t, mailing(&h))
		h.want(t)
		foundlingtest.RequireState(t, c, paused, foundling.Queued)
		if err := c.ResumeTopic(t.Context(), "mails", "test"); err != nil {
			t.Fatal(err)
		}
		c.RunUntilEnded(t, mailing(&h))
		h.want(t, "of a paused topic")
		foundlingtest.RequireEvents(t, c, "topic.paused", "topic.resumed", "message.completed")
	})
}

func TestOneLockIsTakenInTurns(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		c := foundlingtest.NewWith(t, foundlingtest.Options{Worker: foundling.WorkerOptions{Concurrency: 4}})
		for i := range 20 {
			enqueue(t, c, mails, fmt.Sprint(i), foundling.EnqueueOptions{Lock: "one"})
		}
		var holds sync.Mutex
		c.RunUntilIdle(t, func(w *foundling.Worker) {
			mails.Handle(w, func(context.Context, foundling.Message[string]) error {
				if !holds.TryLock() {
					return foundling.DeadLetter(errors.New("two at once"))
				}
				defer holds.Unlock()
				return nil
			})
		})
		for _, m := range foundlingtest.Enqueued(t, c, mails) {
			foundlingtest.RequireState(t, c, m.Info.ID, foundling.Completed)
		}
	})
}

// A message that fails 24 times is due nine days later in the end.
func TestRunUntilEndedGoesThroughAllRetries(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		c := foundlingtest.New(t)
		began := time.Now()
		id := enqueue(t, c, mails, "x", foundling.EnqueueOptions{})
		other := enqueue(t, c, mails, "y", foundling.EnqueueOptions{Delay: 30 * 24 * time.Hour})
		c.RunUntilEnded(t, func(w *foundling.Worker) {
			mails.Handle(w, func(_ context.Context, m foundling.Message[string]) error {
				if m.Payload == "x" {
					return errors.New("no")
				}
				return nil
			})
		})
		if m := foundlingtest.RequireState(t, c, id, foundling.DeadLettered); m.Attempts != 25 || m.Error != "no" {
			t.Errorf("%d attempts, error %q; want 25 and no", m.Attempts, m.Error)
		}
		m := foundlingtest.RequireState(t, c, other, foundling.Completed)
		if got, want := m.EndedAt.Sub(m.EnqueuedAt), 30*24*time.Hour; got != want {
			t.Errorf("the delayed one ended %s after it was enqueued, want %s", got, want)
		}
		if !strings.HasSuffix(t.Name(), "bubble") && time.Since(began) > time.Minute {
			t.Errorf("it took %s of real time", time.Since(began))
		}
		report, err := replay.Verify(t.Context(), c.Store, replay.Options{Payloads: true})
		if err != nil || !report.Clean() {
			t.Errorf("verify: %v %v", report.Violations, err)
		}
	})
}

func TestStartRunsBesideTheTest(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		c := foundlingtest.New(t)
		var h handled
		stop := c.Start(t, mailing(&h))
		id := enqueue(t, c, mails, "a", foundling.EnqueueOptions{})
		if _, err := c.Wait(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		later := enqueue(t, c, mails, "b", foundling.EnqueueOptions{Delay: time.Minute})
		c.Advance(time.Minute)
		if _, err := c.Wait(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		stop()
		stop()
		h.want(t, "a", "b")
	})
}

// In a bubble handlers and the store have one time.
func TestABubbleIsOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := foundlingtest.New(t)
		id := enqueue(t, c, mails, "slow", foundling.EnqueueOptions{Timeout: time.Minute, MaxAttempts: foundling.NoRetry})
		c.RunUntilEnded(t, func(w *foundling.Worker) {
			mails.Handle(w, func(ctx context.Context, _ foundling.Message[string]) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})
		})
		m := foundlingtest.RequireState(t, c, id, foundling.DeadLettered)
		if got := m.EndedAt.Sub(m.EnqueuedAt); got != time.Minute {
			t.Errorf("it ended after %s, want its timeout of 1m", got)
		}
		if got := c.Now(); !got.Equal(time.Now()) {
			t.Errorf("the store's time is %s, the bubble's %s", got, time.Now())
		}
	})
}

// A message with all its retries takes days of a bubble's time. Whoever waits for it meanwhile must not look at the log at each tick of them, which
// took most of a minute.
func TestWhoWaitsInABubbleLetsItsDaysGoByAtOnce(t *testing.T) {
	begun := time.Now()
	synctest.Test(t, func(t *testing.T) {
		c := foundlingtest.New(t)
		id := enqueue(t, c, mails, "x", foundling.EnqueueOptions{})
		ended := make(chan foundling.MessageInfo, 1)
		go func() {
			m, err := c.Wait(t.Context(), id)
			if err != nil {
				t.Error(err)
			}
			ended <- m
		}()
		c.RunUntilEnded(t, func(w *foundling.Worker) {
			mails.Handle(w, func(context.Context, foundling.Message[string]) error { return errors.New("busy") })
		})
		if m := <-ended; m.State != foundling.DeadLettered || m.Attempts != 25 || m.EndedAt.Sub(m.EnqueuedAt) < 24*time.Hour {
			t.Errorf("it is %s after %d attempts and %s", m.State, m.Attempts, m.EndedAt.Sub(m.EnqueuedAt))
		}
	})
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestTimeByHandStandsStill(t *testing.T) {
	start := time.Date(2026, 11, 29, 6, 26, 31, 0, time.UTC)
	c := foundlingtest.NewWith(t, foundlingtest.Options{Start: start})
	id := enqueue(t, c, mails, "x", foundling.EnqueueOptions{})
	c.RunUntilIdle(t, mailing(new(handled)))
	if m := foundlingtest.RequireState(t, c, id, foundling.Completed); !m.EndedAt.Equal(start) {
		t.Errorf("it ended at %s, want %s", m.EndedAt, start)
	}
}

// A payload is compared as it comes back: a time without its monotonic clock, nothing of what is not exported.
func TestRequireEnqueuedComparesWhatASoreGives(t *testing.T) {
	type visit struct {
		At     time.Time
		Pages  []string
		secret int
	}
	visits := foundling.NewTopic[visit]("visits", foundling.TopicOptions{})
	c := foundlingtest.New(t)
	v := visit{At: time.Now(), secret: 1}
	enqueue(t, c, visits, v, foundling.EnqueueOptions{})
	v.secret = 2
	foundlingtest.RequireEnqueued(t, c, visits, v, foundling.EnqueueOptions{})

	raw := foundling.NewTopic[[]byte]("raw", foundling.TopicOptions{})
	enqueue(t, c, raw, []byte{1, 2}, foundling.EnqueueOptions{})
	foundlingtest.RequireEnqueued(t, c, raw, []byte{1, 2}, foundling.EnqueueOptions{})
}

func TestRequireEnqueuedComparesEachOption(t *testing.T) {
	at := time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC)
	has := foundling.EnqueueOptions{
		Key: "k", Lock: "l", Priority: foundling.High, Delay: 24 * time.Hour, MaxAttempts: 3, Timeout: time.Second,
	}
	c := foundlingtest.New(t)
	has.ID = enqueue(t, c, mails, "x", has)
	foundlingtest.RequireEnqueued(t, c, mails, "x", foundling.EnqueueOptions{})
	foundlingtest.RequireEnqueued(t, c, mails, "x", has)
	foundlingtest.RequireEnqueued(t, c, mails, "x", foundling.EnqueueOptions{At: at})
	for _, other := range []foundling.EnqueueOptions{
		{ID: foundling.ID{1}}, {Key: "j"}, {Lock: "m"}, {Priority: foundling.Low}, {Delay: time.Hour}, {At: at.Add(time.Second)},
		{MaxAttempts: 4}, {Timeout: 2 * time.Second}, {Timeout: foundling.None}, {UniqueFor: time.Hour}, {OnLocked: foundling.SkipIfLocked, Lock: "l"},
	} {
		if text := failure(func(t foundlingtest.TB) { foundlingtest.RequireEnqueued(t, c, mails, "x", other) }); text == "" {
			t.Errorf("a message with %+v was found; there is one with %+v", other, has)
		}
	}
}
