package foundling_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/google/uuid"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// newClient is a client over an empty store in memory.
func newClient(t *testing.T) (*foundling.Client, store.Store) {
	t.Helper()
	s := memory.New(memory.Options{})
	c, err := foundling.NewClient(s, foundling.ClientOptions{Actor: "test", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// running runs a worker until the returned stop is called, which waits for it.
func running(t *testing.T, w *foundling.Worker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
}

func newWorker(t *testing.T, c *foundling.Client, o foundling.WorkerOptions) *foundling.Worker {
	t.Helper()
	w, err := foundling.NewWorker(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// history is the types of a message's events, refusals included, with the reason where there is one.
func history(t *testing.T, s store.Store, id foundling.ID) string {
	t.Helper()
	var words []string
	for r, err := range s.Read(t.Context(), "", store.Filter{Entity: events.MessageEntity(id)}) {
		if err != nil {
			t.Fatal(err)
		}
		word := strings.TrimPrefix(r.Event.Type().String(), "message.")
		switch e := r.Event.(type) {
		case *events.MessageRequeued:
			word += ":" + string(e.Reason)
		case *events.MessageDeadLettered:
			word += ":" + string(e.Reason)
		case *events.MessageRefused:
			word += ":" + string(e.Reason)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestWhatAHandlerReturns(t *testing.T) {
	boom := errors.New("boom")
	for _, test := range []struct {
		name   string
		handle func(attempt int) error
		opts   foundling.EnqueueOptions
		want   string
	}{
		{"nil completes", func(int) error { return nil }, foundling.EnqueueOptions{}, "enqueued claimed completed"},
		{"an error tries again", func(n int) error {
			if n == 1 {
				return boom
			}
			return nil
		}, foundling.EnqueueOptions{}, "enqueued claimed requeued:retry claimed completed"},
		{"attempts run out", func(int) error { return boom }, foundling.EnqueueOptions{MaxAttempts: 2},
			"enqueued claimed requeued:retry claimed dead_lettered:exhausted"},
		{"a panic is a failure", func(int) error { panic("ouch") }, foundling.EnqueueOptions{MaxAttempts: foundling.NoRetry},
			"enqueued claimed dead_lettered:exhausted"},
		{"snooze spends nothing", func(n int) error {
			if n < 3 {
				return foundling.Snooze(time.Minute)
			}
			return boom
		}, foundling.EnqueueOptions{MaxAttempts: 1},
			"enqueued claimed requeued:snoozed claimed requeued:snoozed claimed dead_lettered:exhausted"},
		{"cancel ends it", func(int) error { return foundling.Cancel("not wanted") }, foundling.EnqueueOptions{}, "enqueued claimed cancelled"},
		{"dead-letter ends it", func(int) error { return foundling.DeadLetter(boom) }, foundling.EnqueueOptions{},
			"enqueued claimed dead_lettered:handler"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := newClient(t)
				topic := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
				w := newWorker(t, c, foundling.WorkerOptions{})
				topic.Handle(w, func(_ context.Context, m foundling.Message[string]) error { return test.handle(m.Attempt) })
				id, err := topic.Enqueue(t.Context(), c, "hello", test.opts)
				if err != nil {
					t.Fatal(err)
				}
				stop := running(t, w)
				time.Sleep(time.Hour)
				synctest.Wait()
				stop()
				if got := history(t, s, id); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
			})
		})
	}
}

func TestAPanicKeepsItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		topic := foundling.NewTopic[string]("mail", foundling.TopicOptions{MaxAttempts: 1})
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic.Handle(w, func(context.Context, foundling.Message[string]) error { panic("ouch") })
		id, err := topic.Enqueue(t.Context(), c, "hello", foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, w)
		time.Sleep(time.Second)
		stop()
		for r, err := range s.Read(t.Context(), "", store.Filter{Entity: events.MessageEntity(id)}) {
			if err != nil {
				t.Fatal(err)
			}
			if dead, ok := r.Event.(*events.MessageDeadLettered); ok {
				if !strings.Contains(dead.Error, "panic: ouch") || !strings.Contains(dead.Error, "worker_test.go") {
					t.Errorf("error text: %s", dead.Error)
				}
				return
			}
		}
		t.Error("not dead-lettered")
	})
}

func TestATopicsLimitHoldsOverAllWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{Limit: 3})
		var mu sync.Mutex
		now, most, total := 0, 0, 0
		handle := func(context.Context, foundling.Message[int]) error {
			mu.Lock()
			now++
			most, total = max(most, now), total+1
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		}
		for i := range 30 {
			if _, err := topic.Enqueue(t.Context(), c, i, foundling.EnqueueOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		var stops []func()
		for range 3 {
			w := newWorker(t, c, foundling.WorkerOptions{})
			topic.Handle(w, handle)
			stops = append(stops, running(t, w))
		}
		time.Sleep(time.Minute)
		for _, stop := range stops {
			stop()
		}
		if most != 3 || total != 30 {
			t.Errorf("%d at once of %d, want 3 of 30", most, total)
		}
	})
}

func TestAGracefulStopFinishesWhatRunsAndBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		w := newWorker(t, c, foundling.WorkerOptions{Concurrency: 1, DrainTimeout: time.Minute})
		topic.Handle(w, func(ctx context.Context, _ foundling.Message[int]) error {
			time.Sleep(30 * time.Second)
			return ctx.Err()
		})
		var ids []foundling.ID
		for i := range 2 {
			id, err := topic.Enqueue(t.Context(), c, i, foundling.EnqueueOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		stop := running(t, w)
		time.Sleep(time.Second)
		stop()
		if got, want := history(t, s, ids[0]), "enqueued claimed completed"; got != want {
			t.Errorf("what ran: %s, want %s", got, want)
		}
		if got, want := history(t, s, ids[1]), "enqueued"; got != want {
			t.Errorf("what waited: %s, want %s", got, want)
		}
	})
}

func TestAStopGivesBackWhatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		w := newWorker(t, c, foundling.WorkerOptions{DrainTimeout: time.Second})
		var cause error
		topic.Handle(w, func(ctx context.Context, _ foundling.Message[int]) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		id, err := topic.Enqueue(t.Context(), c, 1, foundling.EnqueueOptions{MaxAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, w)
		time.Sleep(time.Second)
		stop()
		if got, want := history(t, s, id), "enqueued claimed requeued:released"; got != want || !errors.Is(cause, foundling.ErrStopping) {
			t.Errorf("%s, cause %v; want %s, cause %v", got, cause, want, foundling.ErrStopping)
		}
	})
}

func TestCancellingARunningMessageEndsItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		w := newWorker(t, c, foundling.WorkerOptions{HeartbeatInterval: time.Second})
		var cause error
		topic.Handle(w, func(ctx context.Context, _ foundling.Message[int]) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		})
		id, err := topic.Enqueue(t.Context(), c, 1, foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, w)
		time.Sleep(time.Second)
		if err := c.Cancel(t.Context(), "no longer wanted", id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		stop()
		if got, want := history(t, s, id), "enqueued claimed cancelled refused:wrong_state"; got != want || !errors.Is(cause, foundling.ErrClaimLost) {
			t.Errorf("%s, cause %v; want %s, cause %v", got, cause, want, foundling.ErrClaimLost)
		}
	})
}

func TestBadArgumentsNameTheirValueAndBound(t *testing.T) {
	c, _ := newClient(t)
	long := strings.Repeat("x", 201)
	for _, test := range []struct {
		name  string
		topic string
		opts  foundling.EnqueueOptions
		body  string
		want  []string
	}{
		{"empty topic", "", foundling.EnqueueOptions{}, "", []string{"topic", "1 to 200 bytes"}},
		{"long topic", long, foundling.EnqueueOptions{}, "", []string{"201 bytes", "at most 200"}},
		{"unprintable topic", "a\x1bb", foundling.EnqueueOptions{}, "", []string{`\x1b`, "cannot be printed"}},
		{"no UTF-8 in a topic", "a\xffb", foundling.EnqueueOptions{}, "", []string{"not UTF-8"}},
		{"long key", "t", foundling.EnqueueOptions{Key: long}, "", []string{"key", "201 bytes", "at most 200"}},
		{"an instant that no log can keep", "t", foundling.EnqueueOptions{At: time.Date(1116918, 1, 1, 0, 0, 0, 0, time.UTC)}, "", []string{"1116918", "at most 9999"}},
		{"one that is in the next year elsewhere", "t", foundling.EnqueueOptions{At: time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -12*3600))}, "",
			[]string{"year 10000", "at most 9999"}},
		{"large payload", "t", foundling.EnqueueOptions{}, strings.Repeat("x", 1<<20), []string{"1048578 bytes", "at most 1048576"}},
		{"both times", "t", foundling.EnqueueOptions{At: time.Now(), Delay: 1}, "", []string{"At", "Delay"}},
		{"an id of another version", "t", foundling.EnqueueOptions{ID: foundling.ID{1}}, "", []string{"version 7"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := foundling.NewTopic[string](test.topic, foundling.TopicOptions{}).Enqueue(t.Context(), c, test.body, test.opts)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

func TestAnEmptyPayloadIsRefused(t *testing.T) {
	c, _ := newClient(t)
	_, err := foundling.NewTopic[[]byte]("t", foundling.TopicOptions{}).Enqueue(t.Context(), c, nil, foundling.EnqueueOptions{})
	if !errors.Is(err, foundling.ErrInvalid) || !strings.Contains(err.Error(), "0 bytes, want 1 to 1048576") {
		t.Errorf("an empty payload: %v", err)
	}
}

func TestAKeyIsOneMessageWhileItIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		topic := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
		enqueue := func() foundling.Enqueued {
			list, err := c.EnqueueMany(t.Context(), topic.Draft("hello", foundling.EnqueueOptions{Key: "order:A-17", Lock: "user:4411"}))
			if err != nil {
				t.Fatal(err)
			}
			return list[0]
		}
		first, second := enqueue(), enqueue()
		if second.ID != first.ID || !second.Known {
			t.Errorf("the key was taken by %s, answered %+v", first.ID, second)
		}
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic.Handle(w, func(context.Context, foundling.Message[string]) error { return nil })
		stop := running(t, w)
		time.Sleep(time.Second)
		if third := enqueue(); third.ID == first.ID || third.Known {
			t.Errorf("the key was free, answered %+v", third)
		}
		stop()
	})
}

func TestAHandlerThatEndsItsGoroutineHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{MaxAttempts: 1, Limit: 1})
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic.Handle(w, func(context.Context, foundling.Message[int]) error { runtime.Goexit(); return nil })
		id, err := topic.Enqueue(t.Context(), c, 1, foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, w)
		time.Sleep(time.Second)
		stop()
		if got, want := history(t, s, id), "enqueued claimed dead_lettered:exhausted"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestOneIDTwiceInOneCallIsOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		topic := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
		id, err := uuid.NewV7()
		if err != nil {
			t.Fatal(err)
		}
		opts := foundling.EnqueueOptions{ID: id}
		list, err := c.EnqueueMany(t.Context(), topic.Draft("hello", opts), topic.Draft("hello", opts))
		if err != nil || list[0].Known || !list[1].Known || list[1].ID != id {
			t.Fatalf("%+v, %v", list, err)
		}
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic.Handle(w, func(context.Context, foundling.Message[string]) error { return nil })
		stop := running(t, w)
		time.Sleep(time.Second)
		stop()
		if got, want := history(t, s, id), "enqueued claimed completed"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestTimesWithNanosecondsAreKeptAsTheLogKeepsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{BackoffBase: 1234567891, MaxAttempts: 3})
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic.Handle(w, func(_ context.Context, m foundling.Message[int]) error {
			if m.Attempt == 1 {
				return foundling.Snooze(time.Minute + 1)
			}
			return errors.New("no")
		})
		opts := foundling.EnqueueOptions{At: time.Now().Add(time.Second + 1), UniqueFor: time.Hour + 1, Key: "k"}
		if _, err := topic.Enqueue(t.Context(), c, 1, opts); err != nil {
			t.Fatal(err)
		}
		if _, err := topic.Enqueue(t.Context(), c, 2, foundling.EnqueueOptions{Delay: time.Hour + 1}); err != nil {
			t.Fatal(err)
		}
		stop := running(t, w)
		for range 5 {
			time.Sleep(20 * time.Second)
			if report, err := replay.Verify(t.Context(), s, replay.Options{}); err != nil || !report.Clean() {
				t.Fatalf("verify: %v %v", err, report.Violations)
			}
		}
		stop()
	})
}

func TestAWorkersTopicStartsWithWhatItsCodeSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		var said strings.Builder
		other, err := foundling.NewClient(memory.New(memory.Options{}), foundling.ClientOptions{Logger: slog.New(slog.NewTextHandler(&said, nil))})
		if err != nil {
			t.Fatal(err)
		}
		limited := foundling.NewTopic[int]("mail", foundling.TopicOptions{Limit: 1})
		for _, client := range []*foundling.Client{c, other} {
			if client == other { // somebody else saw the topic first, without a limit
				if _, err := foundling.NewTopic[int]("mail", foundling.TopicOptions{}).Enqueue(t.Context(), client, 1, foundling.EnqueueOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			now, most := 0, 0
			var mu sync.Mutex
			w := newWorker(t, client, foundling.WorkerOptions{})
			limited.Handle(w, func(context.Context, foundling.Message[int]) error {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				now--
				mu.Unlock()
				return nil
			})
			stop := running(t, w)
			time.Sleep(time.Second)
			for range 3 {
				// From elsewhere, by who knows nothing of a limit.
				if _, err := foundling.NewTopic[int]("mail", foundling.TopicOptions{}).Enqueue(t.Context(), client, 1, foundling.EnqueueOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			stop()
			if client == c && most != 1 {
				t.Errorf("%d handled at once, the worker's code says 1", most)
			}
		}
		if !strings.Contains(said.String(), "another limit") || !strings.Contains(said.String(), "declared=1") {
			t.Errorf("a topic with another limit was not told of: %s", said.String())
		}
	})
}

// heartless is a store that forgets a heartbeat row when it is told to.
type heartless struct {
	*memory.Store
	forget atomic.Bool
}

// Beat implements store.Heart.
func (h *heartless) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	if !b.First && h.forget.Swap(false) {
		return time.Time{}, store.ErrNotBeating
	}
	return h.Store.Beat(ctx, b)
}

func TestAnIncarnationThatIsOverBringsItsResultsAndStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &heartless{Store: memory.New(memory.Options{})}
		c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		w := newWorker(t, c, foundling.WorkerOptions{HeartbeatInterval: time.Second})
		topic.Handle(w, func(ctx context.Context, m foundling.Message[int]) error {
			if m.Payload == 1 && m.Attempt == 1 {
				<-ctx.Done()
				return nil // it had done its work all the same
			}
			return nil
		})
		first, err := topic.Enqueue(t.Context(), c, 1, foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, w)
		time.Sleep(1500 * time.Millisecond)
		s.forget.Store(true)
		time.Sleep(3 * time.Second)
		second, err := topic.Enqueue(t.Context(), c, 2, foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		stop()
		for _, id := range []foundling.ID{first, second} {
			if got, want := history(t, s, id), "enqueued claimed completed"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		started := 0
		for r, err := range s.Read(t.Context(), "", store.Filter{Types: []events.Type{events.TypeWorkerStarted}}) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Entity.Kind == events.KindWorker {
				started++
			}
		}
		if started != 2 {
			t.Errorf("%d incarnations, want 2", started)
		}
	})
}
