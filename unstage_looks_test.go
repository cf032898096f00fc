package foundling_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// watchedDesk notes from where it is looked at.
type watchedDesk struct {
	*desk
	seen         sync.Mutex
	whole, later int
}

func (d *watchedDesk) Unwrap() store.Store { return d.desk }

func (d *watchedDesk) Staged(ctx context.Context, f store.StagedFilter) iter.Seq2[store.Staged, error] {
	d.seen.Lock()
	defer d.seen.Unlock()
	if f.After == 0 && len(f.Messages) == 0 {
		d.whole++
	} else {
		d.later++
	}
	return d.desk.Staged(ctx, f)
}

// A look from the beginning steps over all that was moved while somebody holds an old snapshot. Where something comes all the time, there is one a second.
func TestLooksDoNotStepOverAllThatWasMovedEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &watchedDesk{desk: newDesk(memory.New(memory.Options{}))}
		c := clientOn(t, d)
		topic := foundling.NewTopic[int]("mail", foundling.TopicOptions{})
		w := newWorker(t, c, foundling.WorkerOptions{})
		topic.Handle(w, func(context.Context, foundling.Message[int]) error { return nil })
		ctx, stop := context.WithTimeout(t.Context(), 40*time.Second)
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for i := range 600 { // half a minute
			<-tick.C
			if i == 300 { // by now it knows what is late
				d.seen.Lock()
				d.whole, d.later = 0, 0
				d.seen.Unlock()
			}
			if _, err := c.Stage(t.Context(), []foundling.Draft{topic.Draft(1, foundling.EnqueueOptions{})}, d.put); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(d.left()) > 0 || d.whole > 30 || d.later < 200 {
			t.Errorf("%d looks from the beginning and %d from later on, %d are left", d.whole, d.later, len(d.left()))
		}
	})
}
