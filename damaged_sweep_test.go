package foundling_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// halfProven is an unread store that proves the end of one incarnation, and whose commits see bytes that mean nothing in the row that cannot be read.
type halfProven struct {
	*unread
	gone events.ID
}

func (s *halfProven) Unwrap() store.Store { return s.Store }
func (s *halfProven) Gone(_ context.Context, ids ...events.ID) ([]events.ID, error) {
	if slices.Contains(ids, s.gone) {
		return []events.ID{s.gone}, nil
	}
	return nil, nil
}
func (s *halfProven) Decide(ctx context.Context, list ...store.Call) ([]store.Receipt, error) {
	list = slices.Clone(list)
	for i, call := range list {
		list[i].Fn = func(v store.View) (store.Changes, error) {
			if bad := s.bad.Load(); bad != nil {
				v.Claims = maps.Clone(v.Claims)
				for w, rows := range v.Claims {
					rows = slices.Clone(rows)
					for j := range rows {
						if rows[j].Entity == *bad {
							rows[j].Fields = []byte(`{"state":`)
						}
					}
					v.Claims[w] = rows
				}
			}
			return call.Fn(v)
		}
	}
	return s.Store.Decide(ctx, list...)
}

// What cannot be read of one who is gone keeps nobody from waiting for proof against one who is only silent.
func TestASweepThatSkipsADamagedClaimStillWaitsForProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		release := make(chan struct{})
		var ids []foundling.ID
		var deafs []*deaf
		for _, name := range []string{"one", "two"} {
			d := newDeaf(inner)
			deafs = append(deafs, d)
			topic := foundling.NewTopic[int](name, foundling.TopicOptions{Limit: 1})
			w := newWorker(t, clientOf(t, d), foundling.WorkerOptions{FenceAfter: foundling.None, Sweeps: foundling.SweepsOff})
			topic.Handle(w, func(context.Context, foundling.Message[int]) error { <-release; return nil })
			id, err := topic.Enqueue(t.Context(), clientOf(t, inner), 1, foundling.EnqueueOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
			defer running(t, w)()
		}
		defer close(release)
		time.Sleep(time.Minute)
		for _, d := range deafs {
			d.mute.Store(true)
		}
		time.Sleep(4 * time.Minute)
		bad := events.MessageEntity(ids[0])
		s := &halfProven{unread: &unread{Store: inner}}
		for row, err := range inner.Rows(t.Context(), store.RowFilter{Entities: []events.Entity{bad}}) {
			if err != nil {
				t.Fatal(err)
			}
			s.gone = row.Worker
		}
		s.bad.Store(&bad)
		r, err := clientOf(t, s).Sweep(t.Context(), foundling.SweepOptions{})
		var corrupt *events.Corrupt
		if !errors.As(err, &corrupt) || corrupt.Entity != bad {
			t.Errorf("%v, want it to name what it could not read", err)
		}
		if got := history(t, inner, ids[1]); r.Refused != "" || r.Requeued != 1 || got != "enqueued claimed orphaned requeued:orphan" {
			t.Errorf("refused %q, %d requeued, history of the silent one's message: %s", r.Refused, r.Requeued, got)
		}
	})
}
