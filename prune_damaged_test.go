package foundling_test

import (
	"context"
	"database/sql"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/foundling-go/foundling/store/sqlite"
)

// One damaged place of a store kept its log from ever being pruned again, whoever asked.
func TestDamageDoesNotEndPruning(t *testing.T) {
	for name, damage := range map[string]string{
		"the oldest event":      "UPDATE events SET checksum = ~checksum WHERE position = (SELECT min(position) FROM events)",
		"an old event":          "UPDATE events SET checksum = ~checksum WHERE position = 7",
		"the newest event":      "UPDATE events SET checksum = ~checksum WHERE position = (SELECT max(position) FROM events)",
		"the newest checkpoint": "UPDATE checkpoints SET view = zeroblob(length(view)) WHERE sequence = 2",
		"every checkpoint":      "UPDATE checkpoints SET view = zeroblob(length(view))",
	} {
		t.Run(name, func(t *testing.T) {
			clock := &stopped{}
			path := filepath.Join(t.TempDir(), "store.db")
			engine, err := sqlite.Open(t.Context(), path, sqlite.Options{Clock: clock.now})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { engine.Close() })
			s := shelfOn(t, engine, clock)
			count := func() {
				r, err := runner.New(engine, runner.Options{Events: 10, Page: 5}, func() projections.Durable { return new(projections.Totals) })
				if err == nil {
					err = r.CatchUp(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			count()
			s.add(t, "more", foundling.Completed, foundling.EnqueueOptions{})
			count()
			s.pass(time.Hour)
			db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(20000)")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(damage); err != nil {
				t.Fatal(err)
			}
			o := foundling.PruneOptions{OlderThan: 30 * time.Minute}
			if plan, err := s.c.PlanPrune(t.Context(), o); err != nil {
				t.Errorf("plan %+v, %v", plan, err)
			}
			if report, err := s.c.Prune(t.Context(), o); err != nil || report.Events == 0 || report.HeldBackBy != "" {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}

// illegible is a store of whose log one event cannot be read.
type illegible struct {
	store.Store
	position int64
}

func (s *illegible) Unwrap() store.Store { return s.Store }

func (s *illegible) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for r, err := range s.Store.Read(ctx, after, f) {
			if err == nil && r.Position == s.position {
				err = &events.Corrupt{Entity: r.Entity, Version: r.Version, Position: r.Position, Detail: "a flipped bit"}
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// diary is the records of a logger.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (h *diary) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, string(line))
	return len(line), nil
}

// of is the records that hold a text.
func (h *diary) of(text string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for _, line := range h.lines {
		if strings.Contains(line, text) {
			list = append(list, line)
		}
	}
	return list
}

// What a worker cannot count is said once, and retention goes on; a projection that holds it back is named.
func TestWhatKeepsRetentionBackIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		log := new(diary)
		c, err := foundling.NewClient(&illegible{inner, 2}, foundling.ClientOptions{Logger: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		topic := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
		for range 3 {
			if _, err := topic.Enqueue(t.Context(), c, "hello", foundling.EnqueueOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		first, err := inner.First(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mine := store.Checkpoint{CheckpointKey: store.CheckpointKey{Name: "mine", Version: 3, Sequence: 1}, Cursor: first}
		if _, err := inner.Save(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		w, err := foundling.NewWorker(c, foundling.WorkerOptions{Retention: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		topic.Handle(w, func(context.Context, foundling.Message[string]) error { return nil })
		stop := running(t, w)
		time.Sleep(3 * time.Hour)
		if list := log.of("cannot be read"); len(list) != 1 || !strings.Contains(list[0], "level=ERROR") || !strings.Contains(list[0], "projection=totals") {
			t.Errorf("said of what was passed over: %q", list)
		}
		if list := log.of("projections drop"); len(list) != 1 || !strings.Contains(list[0], "level=WARN") || !strings.Contains(list[0], "projection=mine version=3") {
			t.Errorf("said of what holds back: %q", list)
		}
		if _, err := runner.Forget(t.Context(), inner, "mine"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		stop()
		if now, err := inner.First(t.Context()); err != nil || now == first {
			t.Errorf("the log begins behind %q, %v", now, err)
		}
	})
}
