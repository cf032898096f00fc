package foundling_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store/memory"
)

// spans is a trace context as a library of traces would have it: the traceparent stands in the context.
type spans struct{}

type spanKey struct{}

func (spans) Inject(ctx context.Context) string {
	parent, _ := ctx.Value(spanKey{}).(string)
	return parent
}

func (spans) Extract(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, spanKey{}, traceparent)
}

func traceparent(n int) string { return fmt.Sprintf("00-%032x-%016x-01", n, n) }

func TestATraceGoesFromWhoEnqueuesToTheHandlerAndOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: quiet, Trace: spans{}})
		if err != nil {
			t.Fatal(err)
		}
		mail, log := foundling.NewTopic[string]("mail", foundling.TopicOptions{}), foundling.NewTopic[string]("log", foundling.TopicOptions{})
		seen := make(chan string, 3)
		w := newWorker(t, c, foundling.WorkerOptions{OnError: func(ctx context.Context, _ foundling.HandlerError) { seen <- "hook " + spans{}.Inject(ctx) }})
		mail.Handle(w, func(ctx context.Context, _ foundling.Message[string]) error {
			seen <- "mail " + spans{}.Inject(ctx)
			_, err := log.Enqueue(ctx, c, "y", foundling.EnqueueOptions{})
			return errors.Join(err, foundling.DeadLetter(errors.New("boom")))
		})
		log.Handle(w, func(ctx context.Context, _ foundling.Message[string]) error {
			seen <- "log " + spans{}.Inject(ctx)
			return nil
		})
		id, err := mail.Enqueue(spans{}.Extract(t.Context(), traceparent(7)), c, "x", foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, w)
		got := map[string]bool{<-seen: true, <-seen: true, <-seen: true}
		for _, who := range []string{"mail", "log", "hook"} {
			if !got[who+" "+traceparent(7)] {
				t.Errorf("%s: %v", who, got)
			}
		}
		stop()
		if m := get(t, c, id); m.Trace != traceparent(7) {
			t.Errorf("%+v", m)
		}
		commits := map[string]string{}
		for _, r := range logOf(t, s) {
			if r.Event.Type() == events.TypeMessageEnqueued || r.Event.Type() == events.TypeMessageClaimed {
				commits[r.Event.Type().String()] += r.Commit.Command.Trace
			}
		}
		if commits["message.enqueued"] != traceparent(7)+traceparent(7) || commits["message.claimed"] != "" {
			t.Errorf("commits: %v", commits)
		}
	})
}

func TestWhatIsNoTraceparentIsNotKept(t *testing.T) {
	s := memory.New(memory.Options{})
	c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: quiet, Trace: spans{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "secret", traceparent(1) + "x", "01" + traceparent(1)[2:], traceparent(0)} {
		id, err := foundling.NewTopic[string]("mail", foundling.TopicOptions{}).Enqueue(spans{}.Extract(t.Context(), text), c, "x", foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if m := get(t, c, id); m.Trace != "" {
			t.Errorf("%q: kept as %q", text, m.Trace)
		}
	}
	for _, r := range logOf(t, s) {
		if r.Commit.Command.Trace != "" {
			t.Errorf("position %d: its commit has %q", r.Position, r.Commit.Command.Trace)
		}
	}
}
