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
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/uuid"
)

func TestEraseLetsPayloadAndResultGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		stop := handling(t, c, "mail", func(_ context.Context, m foundling.Message[string]) error {
			return m.SetResult("done with " + m.Payload)
		})
		id, other := enqueue(t, c, "mail", "secret", foundling.EnqueueOptions{}), enqueue(t, c, "mail", "kept", foundling.EnqueueOptions{})
		waitForAll(t, c, []foundling.ID{id, other})()
		stop()
		for range 2 { // the second time nothing happens
			if err := c.Erase(t.Context(), "GDPR 4711", id, id); err != nil {
				t.Fatal(err)
			}
		}
		m := get(t, c, id)
		if !m.Payload.Erased || !m.Result.Erased || m.Payload.Bytes != nil || m.Result.Bytes != nil || m.State != foundling.Completed || m.Topic != "mail" {
			t.Errorf("%+v", m)
		}
		if m = get(t, c, other); m.Payload.Erased || m.Result.Erased || string(m.Result.Bytes) != `"done with kept"` {
			t.Errorf("the other: %+v", m)
		}
		erased := toHead(t, c, "", foundling.EventFilter{Types: []events.Type{events.TypeMessageErased}})
		if len(erased) != 1 {
			t.Fatalf("%d events say so", len(erased))
		}
		if e, ok := erased[0].Event.(*events.MessageErased); !ok || e.By != "test" || e.Detail != "GDPR 4711" || erased[0].Entity.ID != id {
			t.Errorf("%+v", erased[0])
		}
		clean(t, s)
	})
}

func TestEraseRefusesWhatIsStillNeeded(t *testing.T) {
	s := newShelf(t)
	ids := []foundling.ID{s.ids["done"], s.ids["waits"], s.ids["dead"], s.ids["runs"], s.ids["blocked"], uuid.Must(uuid.NewV7()), s.ids["skipped"]}
	err := s.c.Erase(t.Context(), "asked for", ids...)
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatal(err)
	}
	reasons := map[events.Reason]int{}
	for _, err := range joined.Unwrap() {
		var r *foundling.Refusal
		if errors.As(err, &r) {
			reasons[r.Reason]++
		}
		if r.Reason == events.ReasonWrongState && !strings.Contains(r.Error(), "cancel it first") {
			t.Errorf("it does not say what to do: %v", r)
		}
	}
	if reasons[events.ReasonWrongState] != 4 || reasons[events.ReasonNotFound] != 1 {
		t.Errorf("%v", reasons)
	}
	for name, id := range s.ids {
		want := name == "done" || name == "skipped"
		if got := get(t, s.c, id).Payload.Erased; got != want {
			t.Errorf("%s: erased %t", name, got)
		}
	}
}

// Cancelling a dead letter is how it can be erased.
func TestADeadLetterIsCancelledAndThenErased(t *testing.T) {
	s := newShelf(t)
	dead := s.ids["dead"]
	if err := errors.Join(s.c.Cancel(t.Context(), "nobody wants it", dead), s.c.Erase(t.Context(), "asked for", dead)); err != nil {
		t.Fatal(err)
	}
	if m := get(t, s.c, dead); m.State != foundling.Cancelled || !m.Payload.Erased {
		t.Errorf("%+v", m)
	}
	if err := s.c.Redrive(t.Context(), "too late", dead); !errors.Is(err, &fsm.Refusal{Reason: events.ReasonWrongState}) {
		t.Errorf("redrive of it: %v", err)
	}
}

func TestPauseAndResumeATopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		handled := make(chan string, 10)
		stop := handling(t, c, "mail", func(_ context.Context, m foundling.Message[string]) error {
			time.Sleep(time.Second)
			handled <- m.Payload
			return nil
		})
		enqueue(t, c, "mail", "runs on", foundling.EnqueueOptions{})
		time.Sleep(time.Millisecond)
		if err := c.PauseTopic(t.Context(), "mail", "the relay is down"); err != nil {
			t.Fatal(err)
		}
		enqueue(t, c, "mail", "waits", foundling.EnqueueOptions{})
		time.Sleep(time.Hour)
		if len(handled) != 1 {
			t.Errorf("%d handled while it is paused", len(handled))
		}
		for _, twice := range []error{c.PauseTopic(t.Context(), "mail", "again"), c.ResumeTopic(t.Context(), "post", "never seen"), c.PauseTopic(t.Context(), "post", "never seen")} {
			if !errors.As(twice, new(*foundling.Refusal)) {
				t.Errorf("not refused: %v", twice)
			}
		}
		if err := c.ResumeTopic(t.Context(), "mail", "it is back"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		stop()
		if len(handled) != 2 {
			t.Errorf("%d handled after it was resumed", len(handled))
		}
		for _, name := range []string{"", "a\nb", strings.Repeat("x", 201)} {
			if err := c.PauseTopic(t.Context(), name, ""); err == nil || errors.As(err, new(*foundling.Refusal)) {
				t.Errorf("%q: %v", name, err)
			}
		}
		var whys []string
		for _, r := range toHead(t, c, "", foundling.EventFilter{Types: []events.Type{events.TypeTopicPaused, events.TypeTopicResumed}}) {
			switch e := r.Event.(type) {
			case *events.TopicPaused:
				whys = append(whys, e.By, e.Detail)
			case *events.TopicResumed:
				whys = append(whys, e.By, e.Detail)
			}
		}
		if got := strings.Join(whys, "; "); got != "test; the relay is down; test; it is back" {
			t.Errorf("the log says %s", got)
		}
		clean(t, s)
	})
}
