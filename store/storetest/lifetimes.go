package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// lifetimes are the sentences about contexts and the end of a store.
func lifetimes() []sentence {
	return []sentence{
		{"a context that has ended withdraws everything", endedContext},
		{"a context that ends before the commit began withdraws its calls", withdrawn},
		{"Now is in whole microseconds and does not go back", nowRuns},
		{"a second Close does nothing, and calls after it are ErrClosed", closed},
	}
}

// every is one use of each of the store's methods, by name.
func (b *bed) every(ctx context.Context) map[string]error {
	_, decide := b.s.Decide(ctx, b.giving(configured("a", 0)))
	_, _, outcome := b.s.Outcome(ctx, b.id())
	_, head := b.s.Head(ctx)
	_, now := b.s.Now(ctx)
	all := map[string]error{"Decide": decide, "Outcome": outcome, "Head": head, "Now": now}
	for _, err := range b.s.Read(ctx, "", store.Filter{}) {
		all["Read"] = errors.Join(all["Read"], err)
	}
	for _, err := range b.s.Rows(ctx, store.RowFilter{}) {
		all["Rows"] = errors.Join(all["Rows"], err)
	}
	for _, err := range b.s.Permits(ctx, store.PermitFilter{}) {
		all["Permits"] = errors.Join(all["Permits"], err)
	}
	return all
}

var methods = []string{"Decide", "Outcome", "Head", "Now", "Read", "Rows", "Permits"}

func endedContext(b *bed) {
	b.enqueue("mail", 1)
	head := b.head()
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	all := b.every(ctx)
	for _, method := range methods {
		if err := all[method]; !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnknown) {
			b.t.Errorf("%s: error %v, want %v", method, err, context.Canceled)
		}
	}
	want(b, "head", b.head(), head)
}

func withdrawn(b *bed) {
	first := b.giving(configured("a", 0))
	fn, deciding, goOn := first.Fn, make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(deciding) })
	first.Fn = func(view store.View) (store.Changes, error) {
		begun()
		<-goOn
		return fn(view)
	}
	second := b.giving(configured("b", 0))
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	b.ok(together(2, func(i int) error {
		if i == 0 {
			_, err := b.s.Decide(b.ctx, first)
			return err
		}
		<-deciding
		waiting, answered := make(chan struct{}), make(chan error, 1)
		go func() {
			close(waiting)
			_, err := b.s.Decide(ctx, second)
			answered <- err
		}()
		<-waiting
		cancel()
		close(goOn)
		if err := <-answered; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("decide: error %w, want %w", err, context.Canceled)
		}
		return nil
	}))
	want(b, "rows", fmt.Sprint(entities(b.kept(store.RowFilter{}))), fmt.Sprint([]events.Entity{events.TopicEntity("a")}))
}

func nowRuns(b *bed) {
	var last time.Time
	for range 50 {
		now, err := b.s.Now(b.ctx)
		b.ok(err)
		want(b, "now in microseconds", now, now.Truncate(time.Microsecond))
		if now.Before(last) {
			b.t.Fatalf("now went back from %s to %s", last, now)
		}
		last = now
	}
	if away := time.Since(last).Abs(); away > time.Minute {
		b.t.Fatalf("the store's time is %s away from the machine's", away)
	}
}

func closed(b *bed) {
	b.enqueue("mail", 1)
	b.ok(b.s.Close())
	b.ok(b.s.Close())
	all := b.every(b.ctx)
	for _, method := range methods {
		if err := all[method]; !errors.Is(err, store.ErrClosed) {
			b.t.Errorf("%s: error %v, want %v", method, err, store.ErrClosed)
		}
	}
	if heart, ok := store.As[store.Heart](b.s); ok {
		_, err := heart.Beat(b.ctx, store.Beat{Worker: b.id(), First: true})
		b.is(err, store.ErrClosed)
	}
	if leaser, ok := store.As[store.Leaser](b.s); ok {
		_, err := leaser.Lease(b.ctx, "beat", func(l store.Lease, _ time.Time) store.Lease { return l })
		b.is(err, store.ErrClosed)
	}
}
