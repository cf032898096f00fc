package foundlingtest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/foundlingtest"
	"github.com/google/go-cmp/cmp"
)

// failing is a test that is there to fail.
type failing struct {
	text     string
	cleanups []func()
}

func (*failing) Helper()             {}
func (f *failing) Cleanup(c func())  { f.cleanups = append(f.cleanups, c) }
func (*failing) Logf(string, ...any) {}
func (f *failing) Fatalf(s string, a ...any) {
	if f.text == "" {
		f.text = fmt.Sprintf(s, a...)
	}
	panic(f)
}

// failure is the text with which a test fails; empty where it does not.
func failure(test func(foundlingtest.TB)) string {
	f := new(failing)
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(f) {
				panic(p)
			}
		}()
		test(f)
	}()
	for _, cleanup := range f.cleanups {
		cleanup()
	}
	return f.text
}

func TestFailuresSayWhatThereIs(t *testing.T) {
	c := foundlingtest.New(t)
	enqueue(t, c, receipts, receipt{"4411", "A-17"}, foundling.EnqueueOptions{Key: "order:A-17", Lock: "user:4411"})
	enqueue(t, c, receipts, receipt{"4412", "A-18"}, foundling.EnqueueOptions{Delay: time.Hour})
	c.Advance(time.Minute)
	sent := enqueue(t, c, mails, "hello", foundling.EnqueueOptions{Timeout: time.Minute})
	c.RunUntilIdle(t, func(w *foundling.Worker) {
		mails.Handle(w, func(context.Context, foundling.Message[string]) error { return errors.New("connection refused") })
	})
	enqueue(t, c, mails, "hello", foundling.EnqueueOptions{Delay: time.Hour})

	for _, test := range []struct {
		name, want string
		fails      func(foundlingtest.TB)
	}{
		{
			"no such payload", `topic receipts: want a message like this, there is none
  {"User":"4411","Order":"A-18"}
what was enqueued (≠ what differs):
  receipts 1  {"User":"4411","Order":"A-17"}  queued, due +0s  Key=order:A-17  Lock=user:4411  ≠ payload
  receipts 2  {"User":"4412","Order":"A-18"}  queued, due +1h0m0s  ≠ payload`,
			func(t foundlingtest.TB) {
				foundlingtest.RequireEnqueued(t, c, receipts, receipt{"4411", "A-18"}, foundling.EnqueueOptions{})
			},
		},
		{
			"other options", `topic receipts: want a message like this, there is none
  {"User":"4412","Order":"A-18"}  Key=order:A-18  Lock=user:4412  Priority=high  Delay=2h0m0s  MaxAttempts=3  Timeout=1s
what was enqueued (≠ what differs):
  receipts 1  {"User":"4411","Order":"A-17"}  queued, due +0s  Key=order:A-17  Lock=user:4411  ≠ payload, Key, Lock, Priority, Delay, MaxAttempts, Timeout
  receipts 2  {"User":"4412","Order":"A-18"}  queued, due +1h0m0s  ≠ Key, Lock, Priority, Delay, MaxAttempts, Timeout`,
			func(t foundlingtest.TB) {
				foundlingtest.RequireEnqueued(t, c, receipts, receipt{"4412", "A-18"}, foundling.EnqueueOptions{
					Key: "order:A-18", Lock: "user:4412", Priority: foundling.High, Delay: 2 * time.Hour, MaxAttempts: 3, Timeout: time.Second,
				})
			},
		},
		{
			"nothing at all", `topic none: want a message like this, there is none
  1
what was enqueued (≠ what differs):
  (nothing)`,
			func(t foundlingtest.TB) {
				foundlingtest.RequireEnqueued(t, c, foundling.NewTopic[int]("none", foundling.TopicOptions{}), 1, foundling.EnqueueOptions{})
			},
		},
		{
			"two of them", `topic mails: want one message like this, there are 2
  "hello"
it was enqueued:
  mails 1  "hello"  queued, 1 of 25 attempts spent, due …, retry  Timeout=1m0s
  mails 2  "hello"  queued, due +1h1m0s`,
			func(t foundlingtest.TB) {
				foundlingtest.RequireEnqueued(t, c, mails, "hello", foundling.EnqueueOptions{})
			},
		},
		{
			"some", `topic receipts: want no message, 2 were enqueued:
  receipts 1  {"User":"4411","Order":"A-17"}  queued, due +0s  Key=order:A-17  Lock=user:4411
  receipts 2  {"User":"4412","Order":"A-18"}  queued, due +1h0m0s`,
			func(t foundlingtest.TB) { foundlingtest.RequireNoneEnqueued(t, c, receipts) },
		},
		{
			"another state", `message mails 1: want completed, it is queued, 1 of 25 attempts spent, due …, retry
  its handler's newest error: connection refused
  its history:
  +1m0s    message.enqueued       mails 1  none → queued
  +1m0s    message.claimed        mails 1  queued → running
  +1m0s    message.requeued       mails 1  running → queued`,
			func(t foundlingtest.TB) { foundlingtest.RequireState(t, c, sent, foundling.Completed) },
		},
		{
			"another history", `message mails 1 has another history (- wanted, + there is):
    +1m0s    message.enqueued       mails 1  none → queued
    +1m0s    message.claimed        mails 1  queued → running
  - message.completed
  + +1m0s    message.requeued       mails 1  running → queued
  - message.erased`,
			func(t foundlingtest.TB) {
				foundlingtest.RequireHistory(t, c, sent, "message.enqueued", "message.claimed", "message.completed", "message.erased")
			},
		},
		{
			"a longer history", `message mails 1 has another history (- wanted, + there is):
    +1m0s    message.enqueued       mails 1  none → queued
  + +1m0s    message.claimed        mails 1  queued → running
  + +1m0s    message.requeued       mails 1  running → queued`,
			func(t foundlingtest.TB) { foundlingtest.RequireHistory(t, c, sent, "message.enqueued") },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, withoutJitter(failure(test.fails))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// jittered is when a retry is due, which is drawn at random.
var jittered = regexp.MustCompile(`due \+1m[0-9.]+s`)

func withoutJitter(text string) string { return jittered.ReplaceAllString(text, "due …") }

func TestRequireEventsSaysWhereItStopped(t *testing.T) {
	c := foundlingtest.New(t)
	enqueue(t, c, mails, "x", foundling.EnqueueOptions{})
	if err := c.PauseTopic(t.Context(), "mails", "test"); err != nil {
		t.Fatal(err)
	}
	foundlingtest.RequireEvents(t, c, "topic.configured", "topic.paused")
	for _, test := range []struct {
		types []string
		want  string
	}{
		{[]string{"topic.resumed"}, "the log has no topic.resumed"},
		{[]string{"topic.paused", "message.enqueued"}, "the log has no message.enqueued behind its topic.paused"},
		{[]string{"topic.paused", "topic.paused"}, "the log has no topic.paused behind its topic.paused"},
	} {
		const has = `; it has
  +0s      topic.configured       topic mails  none → active
  +0s      message.enqueued       mails 1  none → queued
  +0s      topic.paused           topic mails  active → paused`
		got := failure(func(t foundlingtest.TB) { foundlingtest.RequireEvents(t, c, test.types...) })
		if diff := cmp.Diff(test.want+has, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.types, diff)
		}
	}
}

func TestAHandlerThatSnoozesForEverIsFound(t *testing.T) {
	c := foundlingtest.NewWith(t, foundlingtest.Options{Steps: 100})
	enqueue(t, c, mails, "x", foundling.EnqueueOptions{})
	got := failure(func(t foundlingtest.TB) {
		c.RunUntilEnded(t, func(w *foundling.Worker) {
			mails.Handle(w, func(context.Context, foundling.Message[string]) error { return foundling.Snooze(time.Minute) })
		})
	})
	const want = `foundlingtest: after 100 steps of time, by +1h40m0s, there are still messages that wait for more:
  mails 1  queued, 0 of 25 attempts spent, due +1h41m0s`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeUsedIsSaid(t *testing.T) {
	unknown := foundling.ID{6: 0x70, 8: 0x80}
	for _, test := range []struct {
		want  string
		fails func(foundlingtest.TB)
	}{
		{
			"foundlingtest: run worker: no handlers; register one with Topic.Handle: invalid",
			func(t foundlingtest.TB) { foundlingtest.New(t).RunUntilIdle(t, func(*foundling.Worker) {}) },
		},
		{
			"foundlingtest: client options: MaxPayload -1, want 1 to 16777216: invalid",
			func(t foundlingtest.TB) {
				foundlingtest.NewWith(t, foundlingtest.Options{Client: foundling.ClientOptions{MaxPayload: -1}})
			},
		},
		{
			"foundlingtest: options: Steps -1, want 0 or more",
			func(t foundlingtest.TB) { foundlingtest.NewWith(t, foundlingtest.Options{Steps: -1}) },
		},
		{
			"foundlingtest: RequireEnqueued cannot compare UniqueFor and OnLocked: leave them zero",
			func(t foundlingtest.TB) {
				foundlingtest.RequireEnqueued(t, foundlingtest.New(t), mails, "x", foundling.EnqueueOptions{UniqueFor: time.Hour})
			},
		},
		{
			"foundlingtest: want a message that is queued: get message 00000000-0000-7000-8000-000000000000: not found",
			func(t foundlingtest.TB) {
				foundlingtest.RequireState(t, foundlingtest.New(t), unknown, foundling.Queued)
			},
		},
	} {
		if diff := cmp.Diff(test.want, failure(test.fails)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		got := failure(func(t foundlingtest.TB) {
			foundlingtest.NewWith(t, foundlingtest.Options{Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
		})
		const want = "foundlingtest: options: Start 2026-01-01T00:00:00Z in a bubble, whose time it is: leave it zero"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
