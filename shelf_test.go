package foundling_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/foundling-go/foundling/store/sqlite"
)

// stopped is a clock that moves when it is told to.
type stopped struct{ passed atomic.Int64 }

func (c *stopped) now() time.Time {
	return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC).Add(time.Duration(c.passed.Load()))
}

// shelf is a store with a message in every state, made one second after the other, while a worker runs.
type shelf struct {
	c     *foundling.Client
	store store.Store
	ids   map[string]foundling.ID // by their payloads
	clock *stopped
	begun time.Time
}

// newShelf is one in memory.
func newShelf(t *testing.T) *shelf {
	t.Helper()
	clock := &stopped{}
	return shelfOn(t, memory.New(memory.Options{Clock: clock.now}), clock)
}

// onBothEngines runs a test on a shelf of each engine.
func onBothEngines(t *testing.T, test func(*testing.T, *shelf)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, newShelf(t)) })
	t.Run("sqlite", func(t *testing.T) {
		clock := &stopped{}
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), sqlite.Options{Clock: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, shelfOn(t, s, clock))
	})
}

func shelfOn(t *testing.T, engine store.Store, clock *stopped) *shelf {
	t.Helper()
	s := &shelf{c: clientOf(t, engine), store: engine, ids: map[string]foundling.ID{}, clock: clock, begun: clock.now()}
	end := make(chan struct{})
	stop := handling(t, s.c, "work", func(_ context.Context, m foundling.Message[string]) error {
		switch m.Payload {
		case "dead":
			return foundling.DeadLetter(errors.New("boom"))
		case "unwanted":
			return foundling.Cancel("no")
		case "runs":
			<-end
		}
		return m.SetResult("done with " + m.Payload)
	})
	s.add(t, "done", foundling.Completed, foundling.EnqueueOptions{Key: "k1", Lock: "l1"})
	s.add(t, "dead", foundling.DeadLettered, foundling.EnqueueOptions{Key: "k2"})
	s.add(t, "unwanted", foundling.Cancelled, foundling.EnqueueOptions{})
	s.add(t, "runs", foundling.Running, foundling.EnqueueOptions{Lock: "l1"})
	s.add(t, "blocked", foundling.Blocked, foundling.EnqueueOptions{Lock: "l1", Key: "k3"})
	s.add(t, "skipped", foundling.Discarded, foundling.EnqueueOptions{Lock: "l1", OnLocked: foundling.SkipIfLocked})
	s.ids["waits"] = enqueue(t, s.c, "later", "waits", foundling.EnqueueOptions{Key: "k1", Delay: 24 * time.Hour})
	t.Cleanup(func() {
		close(end)
		stop()
	})
	return s
}

// add enqueues a message and waits until it has come to a state.
func (s *shelf) add(t *testing.T, payload string, want foundling.State, o foundling.EnqueueOptions) {
	t.Helper()
	id := enqueue(t, s.c, "work", payload, o)
	s.ids[payload] = id
	for r, err := range s.c.Events(t.Context(), "", foundling.EventFilter{Entity: events.MessageEntity(id)}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.To == want {
			break
		}
	}
	s.pass(time.Second)
}

// pass lets time pass in the store.
func (s *shelf) pass(d time.Duration) { s.clock.passed.Add(int64(d)) }

// names is the payloads of ids, in their order.
func (s *shelf) names(ids []foundling.ID) string {
	var names []string
	for _, id := range ids {
		name := id.String()
		for payload, known := range s.ids {
			if known == id {
				name = payload
			}
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}
