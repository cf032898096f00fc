package foundling_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// The log is the subscription: what a message goes through, as it happens, whichever process does it.
func ExampleClient_Events() {
	c, s := inMemory()
	defer s.end()
	defer c.Start(s, deliver)()
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	for r, err := range c.Events(ctx, "", foundling.EventFilter{Topic: "mail"}) {
		check(err)
		fmt.Println(r.Event.Type())
		if r.Event.Type() == events.TypeMessageCompleted {
			break // else it goes on for ever
		}
	}
	// Unordered output:
	// topic.configured
	// message.enqueued
	// message.claimed
	// delivered: hello
	// message.completed
}

// A follower keeps its place, and begins there again.
func ExampleClient_After() {
	c, s := inMemory()
	defer s.end()
	for i := range 3 {
		must(mail.Enqueue(ctx, c.Client, fmt.Sprint("mail ", i), foundling.EnqueueOptions{}))
	}
	var place foundling.Cursor // kept where what was made of the events is kept
	enqueued := foundling.EventFilter{Types: []events.Type{events.TypeMessageEnqueued}, Stop: foundling.StopAtHead}
	for r, err := range c.Events(ctx, place, enqueued) {
		check(err)
		fmt.Println("position", r.Position)
		place = c.After(r)
		break // it crashes
	}
	for r, err := range c.Events(ctx, place, enqueued) {
		check(err)
		fmt.Println("position", r.Position)
		place = c.After(r)
	}
	// Output:
	// position 2
	// position 3
	// position 4
}

// Whoever wants nothing of the past begins at the head.
func ExampleClient_Head() {
	c, s := inMemory()
	defer s.end()
	must(mail.Enqueue(ctx, c.Client, "before", foundling.EnqueueOptions{}))
	head := must(c.Head(ctx))
	id := must(mail.Enqueue(ctx, c.Client, "behind", foundling.EnqueueOptions{}))
	for r, err := range c.Events(ctx, head, foundling.EventFilter{Stop: foundling.StopAtHead}) {
		check(err)
		fmt.Println(r.Entity == events.MessageEntity(id), r.Event.Type())
	}
	// Output: true message.enqueued
}

// Whoever wants all that there is begins at the oldest event that is kept. The beginning of the log may be gone.
func ExampleClient_Oldest() {
	c, s := inMemory()
	defer s.end()
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, deliver)
	c.Advance(100 * 24 * time.Hour)
	must(c.Prune(ctx, foundling.PruneOptions{}))

	whole := foundling.EventFilter{Stop: foundling.StopAtHead}
	for _, err := range c.Events(ctx, "", whole) {
		fmt.Println("from the beginning: pruned:", errors.Is(err, store.ErrPruned))
	}
	for r, err := range c.Events(ctx, must(c.Oldest(ctx)), whole) {
		check(err)
		fmt.Println("from the oldest:", r.Event.Type())
	}
	// Output:
	// delivered: hello
	// from the beginning: pruned: true
	// from the oldest: topic.snapshotted
	// from the oldest: log.pruned
}

// A cursor is of one store: another one refuses it.
func ExampleCursor() {
	c, s := inMemory()
	defer s.end()
	other, _ := inMemory()
	must(mail.Enqueue(ctx, other.Client, "hello", foundling.EnqueueOptions{}))
	var place foundling.Cursor = must(other.Head(ctx))
	for _, err := range c.Events(ctx, place, foundling.EventFilter{}) {
		fmt.Println(errors.Is(err, store.ErrCursor))
	}
	// Output: true
}

func ExampleEventFilter() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, deliver)
	one := foundling.EventFilter{Entity: events.MessageEntity(id), Stop: foundling.StopAtHead}
	for r, err := range c.Events(ctx, "", one) {
		check(err)
		fmt.Printf("%s → %s\n", r.From, r.To)
	}
	// Output:
	// delivered: hello
	// none → queued
	// queued → running
	// running → completed
}

// One reading ends where the log does, the other with its context.
func ExampleStop() {
	c, s := inMemory()
	defer s.end()
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, stop := range []foundling.Stop{foundling.StopAtHead, foundling.StopNever} {
		for r, err := range c.Events(ctx, "", foundling.EventFilter{Stop: stop}) {
			if err != nil {
				fmt.Println(err)
			} else if stop == foundling.StopNever && r.Event.Type() == events.TypeMessageEnqueued {
				cancel()
			}
		}
		fmt.Println("over")
	}
	// Output:
	// over
	// events: context canceled
	// over
}

// What a message carried goes for good; that it was there, and who let it go, stays.
func ExampleClient_Erase() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "dear Ann", foundling.EnqueueOptions{}))
	fmt.Println("open:", c.Erase(ctx, "she asked for it", id) != nil) // refused: a handler will need it
	c.RunUntilIdle(s, deliver)
	check(c.Erase(ctx, "she asked for it", id))

	m := must(c.Get(ctx, id))
	fmt.Println(m.State, m.Payload.Size, m.Payload.Erased)
	_, err := mail.Payload(m)
	fmt.Println(errors.Is(err, foundling.ErrErased))
	// Output:
	// open: true
	// delivered: dear Ann
	// completed 10 true
	// true
}

// Workers prune by themselves; see WorkerOptions.Retention. This is by hand.
func ExampleClient_Prune() {
	c, s := inMemory()
	defer s.end()
	done := must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, deliver)
	open := must(mail.Enqueue(ctx, c.Client, "next year", foundling.EnqueueOptions{Delay: 365 * 24 * time.Hour}))
	c.Advance(foundling.DefaultRetention + time.Hour)

	must(c.Prune(ctx, foundling.PruneOptions{Reason: "audit is over"}))
	_, err := c.Get(ctx, done)
	fmt.Println("ended, gone:", errors.Is(err, store.ErrPruned))
	fmt.Println("open, whole:", must(mail.Payload(must(c.Get(ctx, open)))))
	// Output:
	// delivered: hello
	// ended, gone: true
	// open, whole: next year
}

func ExampleClient_PlanPrune() {
	c, s := inMemory()
	defer s.end()
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, deliver)
	c.Advance(time.Hour)
	plan := must(c.PlanPrune(ctx, foundling.PruneOptions{OlderThan: time.Minute}))
	fmt.Println(plan.Events > 0, plan.Commits)
	// Output:
	// delivered: hello
	// true 0
}

func ExamplePruneOptions() {
	c, s := inMemory()
	defer s.end()
	_, err := c.Prune(ctx, foundling.PruneOptions{OlderThan: time.Hour, Before: c.Now()})
	fmt.Println(errors.Is(err, foundling.ErrInvalid))
	// Output: true
}

func ExamplePruneReport() {
	c, s := inMemory()
	defer s.end()
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{Delay: time.Hour}))
	c.Advance(time.Minute)
	report := must(c.Prune(ctx, foundling.PruneOptions{OlderThan: time.Second}))
	fmt.Printf("%d events went, %d entities told their state once more\n", report.Events, report.Snapshots)
	// Output: 2 events went, 2 entities told their state once more
}
