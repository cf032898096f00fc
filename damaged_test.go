package foundling_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// spoilt is a store in which one message's row is damaged: whatever must see it is refused.
type spoilt struct {
	store.Store
	bad atomic.Pointer[events.Entity]
}

func (s *spoilt) Unwrap() store.Store { return s.Store }

func (s *spoilt) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	receipts := make([]store.Receipt, len(calls))
	for i, call := range calls {
		if bad := s.bad.Load(); bad != nil && sees(call.Need, *bad) {
			receipts[i] = store.Receipt{ID: call.ID, Err: &events.Corrupt{Entity: *bad, Detail: "its row"}}
			continue
		}
		list, err := s.Store.Decide(ctx, call)
		if err != nil {
			return nil, err
		}
		receipts[i] = list[0]
	}
	return receipts, nil
}

func sees(need store.Need, e events.Entity) bool {
	return slices.Contains(need.Held, e) || slices.ContainsFunc(need.Known, func(row store.Row) bool { return row.Entity == e })
}

func TestADamagedRowKeepsNoOtherResultFromBeingStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		s := &spoilt{Store: inner}
		c := clientOf(t, s)
		w := newWorker(t, c, foundling.WorkerOptions{Concurrency: 4})
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		gate := make(chan struct{})
		topic.Handle(w, func(context.Context, foundling.Message[int]) error { <-gate; return nil })
		var ids []foundling.ID
		for n := range 6 { // more than there are slots: the others must still begin
			id, err := topic.Enqueue(t.Context(), c, n, foundling.EnqueueOptions{Lock: string(rune('a' + n))})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		stop := running(t, w)
		time.Sleep(time.Second)
		bad := events.MessageEntity(ids[1])
		s.bad.Store(&bad)
		close(gate)
		time.Sleep(10 * time.Second)
		for i, id := range ids {
			want := "enqueued claimed completed"
			if i == 1 {
				want = "enqueued claimed"
			}
			if got := history(t, inner, id); got != want {
				t.Errorf("message %d: %s, want %s", i, got, want)
			}
		}
		s.bad.Store(nil) // somebody has mended it
		time.Sleep(10 * time.Second)
		if got := history(t, inner, ids[1]); got != "enqueued claimed completed" {
			t.Errorf("once it can be read again: %s", got)
		}
		stop()
		clean(t, inner)
	})
}

// unread is a store in which a walk over rows finds one that it cannot read, and goes on behind it.
type unread struct {
	store.Store
	bad atomic.Pointer[events.Entity]
}

func (s *unread) Unwrap() store.Store { return s.Store }

func (s *unread) Rows(ctx context.Context, f store.RowFilter) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for row, err := range s.Store.Rows(ctx, f) {
			if bad := s.bad.Load(); bad != nil && row.Entity == *bad {
				row, err = store.Row{}, &events.Corrupt{Entity: row.Entity, Detail: "its row"}
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// Neither is the handler of the claim that cannot be read ended, since nothing says that it was lost, nor do the others go unwatched.
func TestReconcilingGoesOnBesideADamagedClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		s := &unread{Store: inner}
		c := clientOf(t, s)
		w := newWorker(t, c, foundling.WorkerOptions{Concurrency: 4})
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		ended := make(chan int, 3)
		topic.Handle(w, func(ctx context.Context, m foundling.Message[int]) error {
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), foundling.ErrClaimLost) {
				select {
				case ended <- m.Payload:
				default: // one too many was told already
				}
			}
			return ctx.Err()
		})
		var ids []foundling.ID
		for n := range 3 {
			id, err := topic.Enqueue(t.Context(), c, n, foundling.EnqueueOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		stop := running(t, w)
		time.Sleep(time.Second)
		bad := events.MessageEntity(ids[0])
		s.bad.Store(&bad)
		if err := c.Cancel(t.Context(), "not wanted", ids[1]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if len(ended) != 1 || <-ended != 1 {
			t.Errorf("want the handler of the cancelled message, and no other, to be told that its claim was lost")
		}
		s.bad.Store(nil)
		stop()
		clean(t, inner)
	})
}

// restless is a store whose heartbeats end an incarnation once, and then do not come through for a while.
type restless struct {
	deaf
	ends, fails atomic.Int32
}

func (r *restless) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	if !b.First && r.ends.Add(-1) >= 0 {
		return time.Time{}, store.ErrNotBeating
	}
	if b.First && r.ends.Load() <= 0 && r.fails.Add(-1) >= 0 {
		return time.Time{}, errors.New("busy")
	}
	return r.heart.Beat(ctx, b)
}

func TestAWorkerThatStartsAgainWaitsForItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		s := &restless{deaf: deaf{Store: inner, heart: inner}}
		s.ends.Store(1)
		s.fails.Store(3)
		c := clientOf(t, s)
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		topic.Handle(w, func(context.Context, foundling.Message[int]) error { return nil })
		stop := running(t, w)
		time.Sleep(time.Minute)
		id, err := topic.Enqueue(t.Context(), c, 1, foundling.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := history(t, inner, id); got != "enqueued claimed completed" || s.fails.Load() >= 0 {
			t.Errorf("after its row was gone and its store busy: %s, %d failures left", got, s.fails.Load())
		}
		stop()
	})
}

func TestCancellingThoseWhoWaitForgetsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		gate := make(chan struct{})
		topic.Handle(w, func(context.Context, foundling.Message[int]) error { <-gate; return nil })
		stop := running(t, w)
		var ids []foundling.ID
		for n := range 4 {
			id, err := topic.Enqueue(t.Context(), c, n, foundling.EnqueueOptions{Lock: "l"})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
			time.Sleep(time.Second)
		}
		if err := c.Cancel(t.Context(), "not wanted", ids[:3]...); err != nil {
			t.Fatal(err)
		}
		close(gate)
		time.Sleep(time.Second)
		if got := history(t, s, ids[3]); got != "enqueued claimed blocked unblocked claimed completed" && got != "enqueued blocked unblocked claimed completed" {
			t.Errorf("the one that was left: %s", got)
		}
		stop()
		clean(t, s)
	})
}
