package foundling_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

func TestPruneOptions(t *testing.T) {
	c, _ := newClient(t)
	for name, o := range map[string]foundling.PruneOptions{
		"too short": {OlderThan: time.Millisecond},
		"forever":   {OlderThan: foundling.Forever},
		"both":      {OlderThan: time.Hour, Before: time.Now()},
	} {
		_, err := c.Prune(t.Context(), o)
		_, planned := c.PlanPrune(t.Context(), o)
		if !errors.Is(err, foundling.ErrInvalid) || !errors.Is(planned, foundling.ErrInvalid) {
			t.Errorf("%s: %v, %v", name, err, planned)
		}
	}
	if r, err := c.Prune(t.Context(), foundling.PruneOptions{}); err != nil || r != (foundling.PruneReport{}) {
		t.Errorf("of an empty log: %+v, %v", r, err)
	}
	if _, err := foundling.NewWorker(c, foundling.WorkerOptions{Retention: time.Millisecond}); !errors.Is(err, foundling.ErrInvalid) || !strings.Contains(err.Error(), "Retention 1ms") {
		t.Errorf("retention of a worker: %v", err)
	}
}

func TestPrune(t *testing.T) {
	s := newShelf(t)
	s.pass(time.Hour)
	before := map[string]foundling.MessageInfo{}
	for name, id := range s.ids {
		before[name] = get(t, s.c, id)
	}
	o := foundling.PruneOptions{OlderThan: 30 * time.Minute, Reason: "INC-7"}
	r, err := runner.New(s.store, runner.Options{}, func() projections.Durable { return new(projections.Totals) })
	if err := errors.Join(err, r.CatchUp(t.Context())); err != nil {
		t.Fatal(err)
	}
	plan, err := s.c.PlanPrune(t.Context(), o)
	if err != nil || plan.Events == 0 || plan.Through == 0 || plan.Commits != 0 {
		t.Fatalf("plan %+v, %v", plan, err)
	}
	report, err := s.c.Prune(t.Context(), o)
	if err != nil || report.Commits == 0 || report.Through != plan.Through || report.Events != plan.Events || report.Snapshots != plan.Snapshots {
		t.Fatalf("%+v of a plan %+v, %v", report, plan, err)
	}
	for name, id := range s.ids {
		m, err := s.c.Get(t.Context(), id)
		if before[name].Ended() {
			if !errors.Is(err, foundling.ErrNotFound) || !errors.Is(err, store.ErrPruned) || !strings.Contains(err.Error(), "may have been let go") {
				t.Errorf("%s: %+v, %v", name, m, err)
			}
			if _, err := s.c.Wait(t.Context(), id); name != "waits" && !errors.Is(err, foundling.ErrNotFound) {
				t.Errorf("wait for %s: %v", name, err)
			}
			continue
		}
		if err != nil || m.State != before[name].State || m.Topic != before[name].Topic || !m.EnqueuedAt.Equal(before[name].EnqueuedAt) || !m.BeginningPruned {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if string(m.Payload.Bytes) != fmt.Sprintf("%q", name) {
			t.Errorf("%s: payload %+v", name, m.Payload)
		}
	}
	if got := s.names(listed(t, s.c, foundling.ListOptions{States: foundling.States()})); got != "waits blocked runs dead" {
		t.Errorf("listed: %s", got)
	}
	pruned := toHead(t, s.c, oldest(t, s.c), foundling.EventFilter{Types: []events.Type{events.TypeLogPruned}})
	if len(pruned) != 1 {
		t.Fatalf("%d events say that it went", len(pruned))
	}
	if e, ok := pruned[0].Event.(*events.LogPruned); !ok || e.By != "test" || e.Detail != "INC-7" || e.Events != report.Events || e.Through != report.Through {
		t.Errorf("%+v", pruned[0].Event)
	}
	if again, err := s.c.Prune(t.Context(), o); err != nil || again.Events != 0 {
		t.Errorf("once more: %+v, %v", again, err)
	}
}

// Nothing goes that a durable projection has not counted, and who asks is told which one that is.
// A message may end long after it was enqueued, and retention take its beginning alone. What is kept of it is found by its topic, and can be erased.
func TestAMessageWhoseBeginningWasPrunedIsStillFoundByItsTopic(t *testing.T) {
	s := newShelf(t)
	mail := foundling.NewTopic[string]("letters", foundling.TopicOptions{})
	id, err := mail.Enqueue(t.Context(), s.c, "dear ann", foundling.EnqueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.pass(time.Hour)
	if err := s.c.Cancel(t.Context(), "unwanted", id); err != nil {
		t.Fatal(err)
	}
	if report, err := s.c.Prune(t.Context(), foundling.PruneOptions{OlderThan: 30 * time.Minute, Reason: "INC-7"}); err != nil || report.Events == 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	m := get(t, s.c, id)
	if !m.BeginningPruned || m.Topic != "letters" || m.State != foundling.Cancelled || m.Payload.Size != 10 || string(m.Payload.Bytes) != `"dear ann"` {
		t.Errorf("got %+v", m)
	}
	page, err := s.c.List(t.Context(), foundling.ListOptions{Topic: "letters", States: foundling.States()})
	if err != nil || len(page.Messages) != 1 || page.Messages[0].ID != id {
		t.Errorf("listed by its topic: %+v, %v", page.Messages, err)
	}
	first, err := store.Oldest(t.Context(), s.store)
	if err != nil {
		t.Fatal(err)
	}
	var ends int
	for r, err := range s.c.Events(t.Context(), first, foundling.EventFilter{Topic: "letters", Stop: foundling.StopAtHead}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Entity.ID == id {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("of its topic's events %d are of it, want its end", ends)
	}
	if err := s.c.Erase(t.Context(), "asked", id); err != nil {
		t.Fatal(err)
	}
	if m := get(t, s.c, id); m.Payload.Bytes != nil || m.Topic != "letters" {
		t.Errorf("erased: %+v", m)
	}
}

func TestAPruneIsHeldBack(t *testing.T) {
	s := newShelf(t)
	whole := toHead(t, s.c, "", foundling.EventFilter{})
	shelf, _ := store.As[store.Shelf](s.store)
	mine := store.CheckpointKey{Name: "mine", Version: 1, Sequence: 1}
	if _, err := shelf.Save(t.Context(), store.Checkpoint{CheckpointKey: mine, Cursor: s.c.After(whole[5]), View: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	s.pass(time.Hour)
	o := foundling.PruneOptions{OlderThan: time.Minute}
	for name, prune := range map[string]func(context.Context, foundling.PruneOptions) (foundling.PruneReport, error){"plan": s.c.PlanPrune, "prune": s.c.Prune} {
		if r, err := prune(t.Context(), o); err != nil || r.HeldBackBy != "mine version 1" || r.Through > whole[5].Position {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if err := shelf.Drop(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if r, err := s.c.Prune(t.Context(), o); err != nil || r.HeldBackBy != "" || r.Through <= whole[5].Position {
		t.Errorf("without it: %+v, %v", r, err)
	}
}

// Who follows from the beginning is told that it is gone, and where to begin.
func TestAFollowerIsToldWhatRetentionTook(t *testing.T) {
	s := newShelf(t)
	whole := toHead(t, s.c, "", foundling.EventFilter{})
	s.pass(time.Hour)
	if _, err := s.c.Prune(t.Context(), foundling.PruneOptions{OlderThan: time.Minute}); err != nil {
		t.Fatal(err)
	}
	for name, after := range map[string]foundling.Cursor{"the beginning": "", "an old event": s.c.After(whole[2])} {
		for _, f := range []foundling.EventFilter{{}, {Topic: "work"}, {Entity: events.TopicEntity("work")}} {
			n := 0
			for _, err := range s.c.Events(t.Context(), after, f) {
				var pruned *store.PrunedError
				if n++; !errors.Is(err, store.ErrPruned) || !errors.As(err, &pruned) || pruned.First == "" {
					t.Errorf("behind %s by %+v: %v", name, f, err)
				}
			}
			if n != 1 {
				t.Errorf("behind %s by %+v: %d yields", name, f, n)
			}
		}
	}
	first := oldest(t, s.c)
	left := toHead(t, s.c, first, foundling.EventFilter{})
	if len(left) == 0 || left[len(left)-1].Event.Type() != events.TypeLogPruned {
		t.Errorf("left: %v", positions(left))
	}
	if topic := toHead(t, s.c, first, foundling.EventFilter{Topic: "work"}); len(topic) == 0 {
		t.Error("nothing is left of a topic that has open messages")
	}
}

// A worker's retention prunes by itself, lets go of nothing that was not counted, and harms nobody who works.
func TestRetentionPrunesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		w := newWorker(t, c, foundling.WorkerOptions{Retention: 30 * time.Minute})
		topic := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
		topic.Handle(w, func(_ context.Context, m foundling.Message[string]) error {
			if m.Payload == "dead" {
				return foundling.DeadLetter(errors.New("boom"))
			}
			return m.SetResult(m.Payload)
		})
		stop := running(t, w)
		dead := enqueue(t, c, "mail", "dead", foundling.EnqueueOptions{})
		later := enqueue(t, c, "mail", "later", foundling.EnqueueOptions{Delay: 2*time.Hour + 5*time.Minute})
		const n = 120
		var ids []foundling.ID
		for range n {
			ids = append(ids, enqueue(t, c, "mail", "x", foundling.EnqueueOptions{}))
			time.Sleep(time.Minute)
		}
		kept := len(toHead(t, c, oldest(t, c), foundling.EventFilter{}))
		if kept > 5*35 { // of each minute three of a message, one of the prune, and one that tells a state once more
			t.Errorf("%d events are kept of 2 h, want those of half of one and a few minutes", kept)
		}
		for i, id := range ids {
			_, err := c.Get(t.Context(), id)
			if gone := errors.Is(err, store.ErrPruned); gone != (i < n-31) && (i < n-33 || i > n-28) {
				t.Errorf("message %d of %d: %v", i, n, err)
			}
		}
		for id, state := range map[foundling.ID]foundling.State{dead: foundling.DeadLettered, later: foundling.Queued} {
			if m := get(t, c, id); m.State != state || !m.BeginningPruned || m.Payload.Bytes == nil {
				t.Errorf("%+v", m)
			}
		}
		if m, err := c.Wait(t.Context(), later); err != nil || m.State != foundling.Completed || string(m.Result.Bytes) != `"later"` {
			t.Errorf("%+v, %v", m, err)
		}
		time.Sleep(time.Minute)
		stop()
		counted, err := runner.Read(t.Context(), s, func() projections.Durable { return new(projections.Totals) }, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		if got := counted.What.(*projections.Totals).Counts().Topics["mail"]; got.Enqueued != n+2 || got.Completed != n+1 {
			t.Errorf("%d enqueued and %d completed were counted, want %d and %d", got.Enqueued, got.Completed, n+2, n+1)
		}
		clean(t, s)
	})
}

// What is 100 days old goes where nothing is said, and stays for ever where that is.
func TestTheDefaultRetentionAndForever(t *testing.T) {
	for name, test := range map[string]struct {
		retention time.Duration
		stays     bool
	}{"the default": {0, false}, "forever": {foundling.Forever, true}, "longer": {101 * 24 * time.Hour, true}, "shorter": {99 * 24 * time.Hour, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var passed atomic.Int64 // between two runs of a worker
				s := memory.New(memory.Options{Clock: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }})
				c := clientOf(t, s)
				id := enqueue(t, c, "mail", "x", foundling.EnqueueOptions{})
				for range 2 {
					w := newWorker(t, c, foundling.WorkerOptions{Retention: test.retention})
					foundling.NewTopic[string]("mail", foundling.TopicOptions{}).Handle(w, func(context.Context, foundling.Message[string]) error { return nil })
					stop := running(t, w)
					time.Sleep(5 * time.Minute)
					stop()
					passed.Store(int64(100 * 24 * time.Hour))
				}
				if _, err := c.Get(t.Context(), id); errors.Is(err, store.ErrPruned) == test.stays || err != nil && test.stays {
					t.Errorf("it is to stay: %t; %v", test.stays, err)
				}
			})
		})
	}
}

func oldest(t *testing.T, c *foundling.Client) foundling.Cursor {
	t.Helper()
	cursor, err := c.Oldest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return cursor
}

// shut is a store whose shelf takes nothing while it is shut.
type shut struct {
	store.Store
	store.Shelf
	shut atomic.Bool
}

func (s *shut) Unwrap() store.Store { return s.Store }

func (s *shut) Save(ctx context.Context, c store.Checkpoint) (store.Checkpoint, error) {
	if s.shut.Load() {
		return store.Checkpoint{}, errDown
	}
	return s.Shelf.Save(ctx, c)
}

// A store of before anything was counted, with old events: retention waits until these are counted.
func TestNothingGoesBeforeTheFirstCountIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &stopped{}
		inner := memory.New(memory.Options{Clock: func() time.Time { return time.Now().Add(time.Duration(clock.passed.Load())) }})
		c := clientOf(t, inner)
		for range 10 {
			if err := c.Cancel(t.Context(), "old", enqueue(t, c, "mail", "x", foundling.EnqueueOptions{})); err != nil {
				t.Fatal(err)
			}
		}
		clock.passed.Store(int64(100 * 24 * time.Hour))
		s := &shut{Store: inner, Shelf: inner}
		s.shut.Store(true)
		w := newWorker(t, clientOf(t, s), foundling.WorkerOptions{})
		foundling.NewTopic[string]("mail", foundling.TopicOptions{}).Handle(w, func(context.Context, foundling.Message[string]) error { return nil })
		stop := running(t, w)
		time.Sleep(5 * time.Minute)
		if first := oldest(t, c); first != "" {
			t.Errorf("what nobody has counted went, up to %s", first)
		}
		s.shut.Store(false)
		time.Sleep(5 * time.Minute)
		stop()
		if first := oldest(t, c); first == "" {
			t.Error("nothing went once it was counted")
		}
		read, err := runner.Read(t.Context(), inner, func() projections.Durable { return new(projections.Totals) }, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if n := read.What.(*projections.Totals).Counts().Topics["mail"].Cancelled; n != 10 {
			t.Errorf("%d were counted, want 10", n)
		}
	})
}
