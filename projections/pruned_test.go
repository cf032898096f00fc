package projections_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/store"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// folds is every projection that holds what is open.
type folds struct {
	topics  projections.Topics
	workers projections.Workers
	locks   projections.Locks
	leaders projections.Leaders
	clock   projections.Clock
	lives   map[events.ID]*projections.Life
}

func (f *folds) Apply(r events.Recorded) {
	for _, p := range []projections.Projection{&f.topics, &f.workers, &f.locks, &f.leaders, &f.clock} {
		p.Apply(r)
	}
	if r.Entity.Kind != events.KindMessage {
		return
	}
	if f.lives == nil {
		f.lives = map[events.ID]*projections.Life{}
	}
	if f.lives[r.Entity.ID] == nil {
		f.lives[r.Entity.ID] = projections.NewLife(r.Entity.ID)
	}
	f.lives[r.Entity.ID].Apply(r)
}

// standing is what is open, without what only history tells: places in the log, who set what, counts of what is over.
type standing struct {
	Topics  map[string]depth
	Claims  map[events.ID]projections.Claim
	Dead    map[events.ID]int // attempts
	Workers map[events.ID]projections.Worker
	Locks   map[string]projections.Lock
	Leaders []projections.Leader
	Steps   []time.Time
	Lives   map[events.ID]projections.Summary
}

func (f *folds) standing() standing {
	s := standing{
		Topics: map[string]depth{}, Claims: map[events.ID]projections.Claim{}, Dead: map[events.ID]int{},
		Workers: map[events.ID]projections.Worker{}, Locks: map[string]projections.Lock{}, Lives: map[events.ID]projections.Summary{},
	}
	for _, topic := range f.topics.All() {
		if d := simplify(topic); d != (depth{}) {
			s.Topics[topic.Name] = d
		}
		for _, claim := range f.topics.Claims(topic.Name) {
			s.Claims[claim.Message] = nowhere(claim)
		}
	}
	for _, d := range f.topics.DeadLetters() {
		s.Dead[d.Message] = d.Attempts
	}
	for _, w := range f.workers.All() {
		s.Workers[w.ID] = bare(w)
	}
	for _, lock := range f.locks.All() {
		lock.Set, lock.Out = projections.Notice{}, permitsOf(lock.Out)
		for i := range lock.Waiters {
			w := &lock.Waiters[i]
			w.Longest, w.Since = events.ID{}, projections.Mark{}
		}
		s.Locks[lock.Name] = lock
	}
	for _, l := range f.leaders.All() {
		s.Leaders = append(s.Leaders, projections.Leader{Name: l.Name, State: l.State, Worker: l.Worker, Term: l.Term})
	}
	if steps := f.clock.Steps(); len(steps) > 0 {
		last := steps[len(steps)-1]
		s.Steps = []time.Time{last.At, last.FromAt, last.ToAt}
	}
	for id, life := range f.lives {
		sum := life.Summary()
		if sum.State == events.Completed || sum.State == events.Cancelled || sum.State == events.Discarded {
			continue
		}
		s.Lives[id] = projections.Summary{
			ID: id, Topic: sum.Topic, State: sum.State, EnqueuedAt: sum.EnqueuedAt, Lock: sum.Lock, Trying: sum.Trying,
			Claim: nowhere(sum.Claim), Attempts: sum.Attempts,
		}
	}
	return s
}

func nowhere(c projections.Claim) projections.Claim {
	c.Position = 0
	return c
}

// permitsOf is permits by their tokens, each saying of its claim's end whether it has ended.
func permitsOf(list []projections.Permit) []projections.Permit {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b projections.Permit) int { return int(a.Token) - int(b.Token) })
	for i := range list {
		p := &list[i]
		p.Position = 0
		ended := p.Ended.Position > 0
		if p.Ended = (projections.ClaimEnd{}); ended {
			p.Ended.Position = 1
		}
	}
	return list
}

// bare is a worker as it stands.
func bare(w projections.Worker) projections.Worker {
	c := projections.Worker{
		ID: w.ID, State: w.State, Host: w.Host, PID: w.PID, Program: w.Program, Topics: w.Topics, Concurrency: w.Concurrency,
		HeartbeatInterval: w.HeartbeatInterval, Proof: w.Proof, FenceAfter: w.FenceAfter, Limits: w.Limits,
	}
	c.Started.At, c.Lost.At = w.Started.At, w.Lost.At
	for _, claim := range w.Claims {
		c.Claims = append(c.Claims, nowhere(claim))
	}
	slices.SortFunc(c.Claims, func(a, b projections.Claim) int { return byID(a.Message, b.Message) })
	c.Permits = permitsOf(w.Permits)
	slices.SortStableFunc(c.Permits, func(a, b projections.Permit) int { return strings.Compare(a.Lock, b.Lock) })
	return c
}

// Whatever of the beginning of a log was let go, and however often, what is kept of it leads to what is open as all of it did.
func TestFoldOfAPrunedLogEqualsThatOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history.New(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
		var whole folds
		seen := store.Cursor("")
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			if err := h.Busy(rapid.IntRange(1, 40).Draw(t, "steps")); err != nil {
				t.Fatal(err)
			}
			seen = follow(t, h, seen, &whole)
			n := rapid.IntRange(1, 200).Draw(t, "events")
			for range rapid.IntRange(0, 3).Draw(t, "told") {
				if err := h.Tell(n); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.Prune(n, ""); err != nil {
				t.Fatal(err)
			}
			seen = follow(t, h, seen, &whole)
		}
		list, err := h.Log(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var kept folds
		for _, r := range list {
			kept.Apply(r)
		}
		got, want := kept.standing(), whole.standing()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the kept log (from position %d on) leads to something else (-whole +kept):\n%s", list[0].Position, diff)
		}
		n, err := naive(h)
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range kept.topics.All() {
			if got, want := simplify(topic), n.topics[topic.Name]; got != want {
				t.Errorf("topic %s\n got %+v\nwant %+v", topic.Name, got, want)
			}
		}
		checkWorkers(t, kept.workers.All(), n)
		checkLocks(t, &kept.locks, n)
	})
}

func follow(t *rapid.T, h *history.History, after store.Cursor, to projections.Projection) store.Cursor {
	for r, err := range h.Store.Read(context.Background(), after, store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		to.Apply(r)
		after = h.Store.After(r)
	}
	return after
}
