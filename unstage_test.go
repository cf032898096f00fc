package foundling_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// desk lets messages be staged beside a store that knows nothing of it: for tests of who moves them, in a bubble.
type desk struct {
	store.Store
	mu    sync.Mutex
	list  []store.Staged
	looks []time.Time
	hints chan struct{}
}

func newDesk(s store.Store) *desk { return &desk{Store: s, hints: make(chan struct{}, 1)} }

func (d *desk) Unwrap() store.Store { return d.Store }

func (d *desk) put(_ context.Context, _ store.Store, list []store.Staged) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range list {
		one.Place, one.At = int64(len(d.list)+1), time.Now()
		d.list = append(d.list, one)
	}
	return nil
}

// left is what is staged.
func (d *desk) left() []store.Staged {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.list), func(one store.Staged) bool { return one.Place == 0 })
}

// Staged implements store.Stager.
func (d *desk) Staged(_ context.Context, f store.StagedFilter) iter.Seq2[store.Staged, error] {
	d.mu.Lock()
	d.looks = append(d.looks, time.Now())
	d.mu.Unlock()
	return func(yield func(store.Staged, error) bool) {
		for _, one := range d.left() {
			passes := one.Place > f.After && (len(f.Messages) == 0 || slices.Contains(f.Messages, one.Message))
			if passes && !yield(one, nil) {
				return
			}
		}
	}
}

// WatchStaged implements store.Stager.
func (d *desk) WatchStaged() (<-chan struct{}, func()) { return d.hints, func() {} }

// Near implements store.Stager.
func (d *desk) Near() time.Time { return time.Time{} }

// Decide implements store.Store. Nobody else decides on a desk of a test.
func (d *desk) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	var gone []int64
	list = slices.Clone(list)
	for i, call := range list {
		list[i].Fn = func(view store.View) (store.Changes, error) {
			view.Staged = map[int64]bool{}
			for _, one := range d.left() {
				view.Staged[one.Place] = slices.Contains(call.Need.Staged, one.Place)
			}
			changes, err := call.Fn(view)
			gone, changes.Unstage = append(gone, changes.Unstage...), nil
			return changes, err
		}
	}
	receipts, err := d.Store.Decide(ctx, list...)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, place := range gone {
		d.list[place-1].Place = 0
	}
	return receipts, err
}

// lookedSince is how often it was looked at since a time.
func (d *desk) lookedSince(t time.Time) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.looks {
		if at.After(t) {
			n++
		}
	}
	return n
}

// However many workers a process has, it looks once a second while there is nothing; and when the one who looks stops, another goes on.
func TestOneOfAProcessLooksForWhatIsStaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(memory.New(memory.Options{}))
		c, err := foundling.NewClient(d, foundling.ClientOptions{Actor: "test", Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		var stops []context.CancelFunc
		var runs sync.WaitGroup
		for range 3 {
			w := newWorker(t, c, foundling.WorkerOptions{})
			topic.Handle(w, func(context.Context, foundling.Message[int]) error { return nil })
			ctx, stop := context.WithCancel(t.Context())
			stops = append(stops, stop)
			runs.Go(func() {
				if err := w.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		handled := func(within time.Duration) {
			t.Helper()
			ids, err := c.Stage(t.Context(), []foundling.Draft{topic.Draft(1, foundling.EnqueueOptions{}), topic.Draft(2, foundling.EnqueueOptions{})}, d.put)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(within)
			synctest.Wait()
			for _, id := range ids {
				if info, err := c.Get(t.Context(), id); err != nil || info.State != foundling.Completed {
					t.Errorf("after %s: %+v, error %v", within, info, err)
				}
			}
		}
		for _, stop := range stops {
			time.Sleep(time.Minute)
			since := time.Now()
			time.Sleep(time.Minute)
			if n := d.lookedSince(since); n < 55 || n > 65 {
				t.Errorf("%d looks in a minute in which nothing is staged", n)
			}
			d.hints <- struct{}{}
			handled(2 * time.Second)
			handled(500 * time.Millisecond) // when something has come more is likely to
			stop()
		}
		runs.Wait()
		if len(d.left()) > 0 {
			t.Error("something is left")
		}
	})
}

// What one process has staged and another moves is asked for by the first.
func TestWhoStagedIsWhoAsks(t *testing.T) {
	d := newDesk(memory.New(memory.Options{}))
	topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{Limit: 7})
	var movers []*foundling.Client
	var ids []foundling.ID
	for _, actor := range []string{"a", "b", "b", "a", "mover"} {
		c, err := foundling.NewClient(d, foundling.ClientOptions{Actor: actor, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		movers = append(movers, c)
		if actor == "mover" {
			break
		}
		made, err := c.Stage(t.Context(), []foundling.Draft{topic.Draft(1, foundling.EnqueueOptions{})}, d.put)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made...)
	}
	if err := movers[4].Cancel(t.Context(), "tests", ids...); err != nil {
		t.Fatal(err)
	}
	var got []string
	commits := map[events.ID]bool{}
	for r, err := range d.Read(t.Context(), "", store.Filter{Types: []events.Type{events.TypeMessageEnqueued, events.TypeTopicConfigured}}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Commit.Command.Actor+" "+r.Commit.Command.Name+" "+r.Event.Type().String())
		commits[r.Commit.ID] = true
	}
	want := []string{"a unstage topic.configured", "a unstage message.enqueued", "b unstage message.enqueued", "b unstage message.enqueued",
		"a unstage message.enqueued"}
	if !slices.Equal(got, want) || len(commits) != 3 {
		t.Errorf("in %d commits: %q, want %q in 3", len(commits), got, want)
	}
}
