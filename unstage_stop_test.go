package foundling_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// busyDesk is a desk at which others stage as fast as it is moved.
type busyDesk struct {
	*desk
	more  func()
	first chan struct{} // full once something was moved
}

func (d *busyDesk) Unwrap() store.Store { return d.desk }

func (d *busyDesk) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	receipts, err := d.desk.Decide(ctx, list...)
	if len(list) > 0 && len(list[0].Need.Staged) > 0 {
		d.more()
		select {
		case d.first <- struct{}{}:
		default:
		}
	}
	return receipts, err
}

// Others stage without a pause. A worker that is told to stop leaves the rest to others.
func TestAWorkerStopsWhileOthersStageWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &busyDesk{desk: newDesk(memory.New(memory.Options{})), first: make(chan struct{}, 1)}
		c := clientOn(t, d)
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		drafts := make([]foundling.Draft, 600) // more than a page
		for i := range drafts {
			drafts[i] = topic.Draft(i, foundling.EnqueueOptions{Delay: time.Hour})
		}
		stage := func() {
			if _, err := c.Stage(context.Background(), drafts, d.put); err != nil {
				t.Error(err)
			}
		}
		rounds := 0
		d.more = func() {
			if rounds++; rounds < 40 { // whoever does not stop ends some time
				stage()
			}
		}
		stage()
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic.Handle(w, func(context.Context, foundling.Message[int]) error { return nil })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		<-d.first
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if rounds > 10 {
			t.Errorf("it moved %d pages more after it was told to stop", rounds-1)
		}
	})
}

// Two stage without a pause, and a transaction commits whose message has an early place: it is moved though what follows never ends.
func TestAnEarlyPlaceIsMovedWhileOthersStageWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &busyDesk{desk: newDesk(memory.New(memory.Options{})), first: make(chan struct{}, 1)}
		c := clientOn(t, d)
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		late, err := c.Stage(t.Context(), []foundling.Draft{topic.Draft(0, foundling.EnqueueOptions{Delay: time.Hour})}, d.put)
		if err != nil {
			t.Fatal(err)
		}
		hidden := d.list[0]
		d.list[0].Place = 0 // its transaction has not committed
		drafts := make([]foundling.Draft, 600)
		for i := range drafts {
			drafts[i] = topic.Draft(i, foundling.EnqueueOptions{Delay: time.Hour})
		}
		stage := func() {
			if _, err := c.Stage(context.Background(), drafts, d.put); err != nil {
				t.Error(err)
			}
		}
		rounds, movedAfter := 0, 0
		d.more = func() {
			rounds++
			d.mu.Lock()
			switch {
			case rounds == 1:
				d.list[0] = hidden
			case movedAfter == 0 && d.list[0].Place == 0:
				movedAfter = rounds
			}
			d.mu.Unlock()
			if rounds < 90 && movedAfter == 0 {
				stage()
			}
		}
		stage()
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic.Handle(w, func(context.Context, foundling.Message[int]) error { return nil })
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if movedAfter == 0 || movedAfter > 60 {
			t.Errorf("message %s was moved after %d pages", late[0], movedAfter)
		}
	})
}

// pickyDesk cannot move what is staged at its first place.
type pickyDesk struct{ *desk }

var errPicky = errors.New("not this one")

func (d pickyDesk) Unwrap() store.Store { return d.desk }

func (d pickyDesk) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	for i, call := range list {
		for _, place := range call.Need.Staged {
			if place == 1 {
				list[i].Fn = func(store.View) (store.Changes, error) { return store.Changes{}, errPicky }
			}
		}
	}
	return d.desk.Decide(ctx, list...)
}

// newerDesk has something staged by a program of a newer version.
type newerDesk struct{ *desk }

func (d newerDesk) Unwrap() store.Store { return d.desk }

func (d newerDesk) Staged(ctx context.Context, f store.StagedFilter) iter.Seq2[store.Staged, error] {
	return func(yield func(store.Staged, error) bool) {
		for one, err := range d.desk.Staged(ctx, f) {
			if one.Place == 1 {
				one.Draft = []byte(`{"what":"nobody knows"}`)
			}
			if !yield(one, err) {
				return
			}
		}
	}
}

// What cannot enter the log is said to whoever wants something of it, and by what it cannot: he does not wait until his time is over. What was asked for
// beside it is moved.
func TestWhoCancelsWhatCannotBeMovedIsToldWhy(t *testing.T) {
	for name, on := range map[string]struct {
		with func(*desk) store.Store
		is   func(error) bool
	}{
		"the store refuses it": {func(d *desk) store.Store { return pickyDesk{d} }, func(err error) bool { return errors.Is(err, errPicky) }},
		"it cannot be read": {func(d *desk) store.Store { return newerDesk{d} }, func(err error) bool {
			var corrupt *events.Corrupt
			return errors.As(err, &corrupt)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(memory.New(memory.Options{}))
				c := clientOn(t, on.with(d))
				topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
				ids, err := c.Stage(t.Context(), []foundling.Draft{topic.Draft(1, foundling.EnqueueOptions{}), topic.Draft(2, foundling.EnqueueOptions{})}, d.put)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if err := c.Cancel(t.Context(), "tests", ids...); !on.is(err) || time.Since(began) > time.Second {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
				if left := d.left(); len(left) != 1 || left[0].Message != ids[0] {
					t.Errorf("%s is left", fmt.Sprint(left))
				}
			})
		})
	}
}

func clientOn(t *testing.T, s store.Store) *foundling.Client {
	t.Helper()
	c, err := foundling.NewClient(s, foundling.ClientOptions{Actor: "test", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
