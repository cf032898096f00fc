package foundling_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// enqueue makes a message of a topic of strings.
func enqueue(t *testing.T, c *foundling.Client, topic, payload string, o foundling.EnqueueOptions) foundling.ID {
	t.Helper()
	id, err := foundling.NewTopic[string](topic, foundling.TopicOptions{}).Enqueue(t.Context(), c, payload, o)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// handling runs a worker with one handler of a topic of strings.
func handling(t *testing.T, c *foundling.Client, topic string, handle func(context.Context, foundling.Message[string]) error) (stop func()) {
	t.Helper()
	w := newWorker(t, c, foundling.WorkerOptions{})
	foundling.NewTopic[string](topic, foundling.TopicOptions{}).Handle(w, handle)
	return running(t, w)
}

func get(t rapid.TB, c *foundling.Client, id foundling.ID) foundling.MessageInfo {
	t.Helper()
	m, err := c.Get(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestGetAlongALife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		at := time.Now()
		id := enqueue(t, c, "mail", "hello", foundling.EnqueueOptions{
			Key: "order:1", Lock: "user:1", Delay: time.Minute, Priority: foundling.High, MaxAttempts: 2, Timeout: time.Hour,
		})
		m := get(t, c, id)
		if m.ID != id || m.Topic != "mail" || m.State != foundling.Queued || m.Key != "order:1" || m.Lock != "user:1" ||
			m.Priority != foundling.High || m.MaxAttempts != 2 || m.Timeout != time.Hour || m.Attempts != 0 {
			t.Errorf("queued: %+v", m)
		}
		if !m.EnqueuedAt.Equal(at) || !m.DueAt.Equal(at.Add(time.Minute)) || !m.EndedAt.IsZero() || m.Ended() || m.BeginningPruned {
			t.Errorf("queued: %+v", m)
		}
		var payload string
		if err := m.Payload.Decode(&payload); err != nil || payload != "hello" || m.Payload.Codec != "json" || m.Payload.Size != len(`"hello"`) {
			t.Errorf("payload %q of %+v: %v", payload, m.Payload, err)
		}
		stop := handling(t, c, "mail", func(context.Context, foundling.Message[string]) error {
			time.Sleep(10 * time.Second)
			return errors.New("boom")
		})
		time.Sleep(time.Minute + 5*time.Second)
		if m = get(t, c, id); m.State != foundling.Running || m.Attempts != 1 || m.Worker == (foundling.ID{}) || m.Token == 0 || m.ClaimedAt.IsZero() || m.Reason != "" {
			t.Errorf("running: %+v", m)
		}
		time.Sleep(6 * time.Second)
		if m = get(t, c, id); m.State != foundling.Queued || m.Reason != "retry" || m.Error != "boom" || m.Spent != 1 || m.Worker != (foundling.ID{}) {
			t.Errorf("tried once: %+v", m)
		}
		time.Sleep(time.Minute)
		if m = get(t, c, id); m.State != foundling.DeadLettered || m.Reason != "exhausted" || m.Error != "boom" || m.EndedAt.IsZero() || m.Ended() {
			t.Errorf("dead letter: %+v", m)
		}
		stop()
		if err := c.Cancel(t.Context(), "nobody wants it", id); err != nil {
			t.Fatal(err)
		}
		if m = get(t, c, id); m.State != foundling.Cancelled || m.Reason != "operator" || m.Detail != "nobody wants it" || m.Error != "boom" || !m.Ended() {
			t.Errorf("cancelled: %+v", m)
		}
		if payload, err := foundling.NewTopic[string]("mail", foundling.TopicOptions{}).Payload(m); err != nil || payload != "hello" {
			t.Errorf("payload of what has ended: %q, %v", payload, err)
		}
		if _, err := foundling.NewTopic[string]("post", foundling.TopicOptions{}).Payload(m); !errors.Is(err, foundling.ErrInvalid) {
			t.Errorf("payload by another topic: %v", err)
		}
	})
}

// What was refused or erased behind the end does not move the end.
func TestGetTellsWhenAMessageEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		id := enqueue(t, c, "mail", "hello", foundling.EnqueueOptions{})
		stop := handling(t, c, "mail", func(ctx context.Context, m foundling.Message[string]) error {
			if err := c.Cancel(ctx, "now", m.ID); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			return nil // refused
		})
		time.Sleep(time.Minute)
		stop()
		ended := get(t, c, id).EndedAt
		if err := c.Erase(t.Context(), "asked for", id); err != nil {
			t.Fatal(err)
		}
		m := get(t, c, id)
		if !m.EndedAt.Equal(ended) || m.EndedAt.Sub(m.ClaimedAt) == 0 || m.EndedAt.After(m.EnqueuedAt.Add(time.Second)) {
			t.Errorf("ended at %s before and at %s after it was erased, enqueued at %s", ended, m.EndedAt, m.EnqueuedAt)
		}
		if !m.Payload.Erased || m.Payload.Bytes != nil || m.Payload.Size != len(`"hello"`) {
			t.Errorf("payload: %+v", m.Payload)
		}
		if err := m.Payload.Decode(new(string)); !errors.Is(err, foundling.ErrErased) {
			t.Errorf("decode: %v", err)
		}
	})
}

func TestGetOfWhatIsNotThere(t *testing.T) {
	c, _ := newClient(t)
	for _, id := range []foundling.ID{{}, uuid.Must(uuid.NewV7()), uuid.New()} {
		if _, err := c.Get(t.Context(), id); !errors.Is(err, foundling.ErrNotFound) || errors.Is(err, store.ErrPruned) || !strings.Contains(err.Error(), id.String()) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestAResultIsKeptWithTheMessageThatCompletes(t *testing.T) {
	for _, test := range []struct {
		name   string
		handle func(foundling.Message[string]) error
		state  foundling.State
		want   string // the bytes; empty is none
		codec  string
	}{
		{"none", func(foundling.Message[string]) error { return nil }, foundling.Completed, "", ""},
		{"a struct", func(m foundling.Message[string]) error {
			return m.SetResult(struct{ Pages int }{3})
		}, foundling.Completed, `{"Pages":3}`, "json"},
		{"bytes", func(m foundling.Message[string]) error { return m.SetResult([]byte{1, 2}) }, foundling.Completed, "\x01\x02", ""},
		{"the second of two", func(m foundling.Message[string]) error {
			return errors.Join(m.SetResult(1), m.SetResult(2))
		}, foundling.Completed, "2", "json"},
		{"the largest", func(m foundling.Message[string]) error { return m.SetResult(make([]byte, foundling.MaxResult)) }, foundling.Completed,
			string(make([]byte, foundling.MaxResult)), ""},
		{"not of a failure", func(m foundling.Message[string]) error {
			return foundling.DeadLetter(errors.Join(errors.New("boom"), m.SetResult(1)))
		}, foundling.DeadLettered, "", ""},
		{"not of what was cancelled", func(m foundling.Message[string]) error {
			_ = m.SetResult(1)
			return foundling.Cancel("no")
		}, foundling.Cancelled, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := newClient(t)
				id := enqueue(t, c, "mail", "x", foundling.EnqueueOptions{})
				stop := handling(t, c, "mail", func(_ context.Context, m foundling.Message[string]) error { return test.handle(m) })
				m, err := c.Wait(t.Context(), id)
				stop()
				if err != nil || m.State != test.state || string(m.Result.Bytes) != test.want || m.Result.Codec != test.codec || m.Result.Size != len(test.want) {
					t.Errorf("%s %+v, %v", m.State, m.Result, err)
				}
				if test.want == "" {
					if err := m.Result.Decode(new(any)); !errors.Is(err, foundling.ErrNotFound) {
						t.Errorf("decode of none: %v", err)
					}
				}
				clean(t, s)
			})
		})
	}
}

func TestAResultThatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		id := enqueue(t, c, "mail", "x", foundling.EnqueueOptions{})
		var late foundling.Message[string]
		stop := handling(t, c, "mail", func(_ context.Context, m foundling.Message[string]) error {
			late = m
			if err := m.SetResult(make([]byte, foundling.MaxResult+1)); !errors.Is(err, foundling.ErrTooLarge) ||
				!strings.Contains(err.Error(), "65537 bytes, at most 65536") {
				t.Errorf("too large: %v", err)
			}
			if err := m.SetResult([]byte{}); !errors.Is(err, foundling.ErrInvalid) {
				t.Errorf("empty: %v", err)
			}
			if err := m.SetResult(func() {}); err == nil {
				t.Error("a func was encoded")
			}
			return nil
		})
		m, err := c.Wait(t.Context(), id)
		stop()
		if err != nil || m.State != foundling.Completed || m.Result.Size != 0 {
			t.Errorf("%s %+v, %v", m.State, m.Result, err)
		}
		if err := late.SetResult(1); !errors.Is(err, foundling.ErrInvalid) {
			t.Errorf("after the handler has returned: %v", err)
		}
		byHand := foundling.Message[string]{Payload: "in a test of the handler alone"}
		if err := byHand.SetResult(1); err != nil {
			t.Errorf("of a message made by hand: %v", err)
		}
	})
}

// A middleware sets results, too: it shares the message with the handler.
func TestAMiddlewareSetsTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		id := enqueue(t, c, "mail", "x", foundling.EnqueueOptions{})
		w := newWorker(t, c, foundling.WorkerOptions{})
		foundling.NewTopic[string]("mail", foundling.TopicOptions{}).Handle(w,
			func(context.Context, foundling.Message[string]) error { return nil },
			func(ctx context.Context, m foundling.Message[[]byte], next func(context.Context) error) error {
				return errors.Join(next(ctx), m.SetResult("by the middleware"))
			})
		stop := running(t, w)
		m, err := c.Wait(t.Context(), id)
		stop()
		var got string
		if err := errors.Join(err, m.Result.Decode(&got)); err != nil || got != "by the middleware" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// swapped is a store whose contents are another message's.
type swapped struct {
	store.Store
	with foundling.ID
}

func (s *swapped) Unwrap() store.Store { return s.Store }

func (s *swapped) Contents(ctx context.Context, _ events.ID) (store.Contents, error) {
	return s.Store.Contents(ctx, s.with)
}

func TestGetRefusesAPayloadThatIsNotTheOneThatWasEnqueued(t *testing.T) {
	s := &swapped{Store: memory.New(memory.Options{})}
	c := clientOf(t, s)
	id := enqueue(t, c, "mail", "mine", foundling.EnqueueOptions{})
	s.with = enqueue(t, c, "mail", "theirs", foundling.EnqueueOptions{})
	var corrupt *events.Corrupt
	if m, err := c.Get(t.Context(), id); !errors.As(err, &corrupt) || corrupt.Entity.ID != id {
		t.Errorf("%+v, %v", m, err)
	}
}
