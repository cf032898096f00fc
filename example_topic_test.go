package foundling_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/foundlingtest"
)

func ExampleTopic() {
	c, s := inMemory()
	defer s.end()
	type Order struct {
		ID    string
		Items int
	}
	orders := foundling.NewTopic[Order]("orders", foundling.TopicOptions{})
	must(orders.Enqueue(ctx, c.Client, Order{"A-17", 3}, foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		orders.Handle(w, func(_ context.Context, m foundling.Message[Order]) error {
			fmt.Printf("%s: %d items\n", m.Payload.ID, m.Payload.Items)
			return nil
		})
	})
	// Output: A-17: 3 items
}

// What is wrong with a topic is said when it is first used.
func ExampleNewTopic() {
	c, s := inMemory()
	defer s.end()
	nameless := foundling.NewTopic[string]("", foundling.TopicOptions{})
	_, err := nameless.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{})
	fmt.Println(err)
	// Output: enqueue: topic: empty name, want 1 to 200 bytes: invalid
}

// Three attempts, a minute after the first and two after the second, more or less.
func ExampleTopicOptions() {
	c, s := inMemory()
	defer s.end()
	imports := foundling.NewTopic[string]("imports", foundling.TopicOptions{MaxAttempts: 3, BackoffBase: 30 * time.Second})
	id := must(imports.Enqueue(ctx, c.Client, "prices.csv", foundling.EnqueueOptions{}))
	began := c.Now()
	c.RunUntilEnded(s, func(w *foundling.Worker) {
		imports.Handle(w, func(_ context.Context, m foundling.Message[string]) error {
			fmt.Printf("attempt %d after %s\n", m.Attempt, c.Now().Sub(began).Round(time.Minute))
			return errors.New("not there")
		})
	})
	fmt.Println(must(c.Get(ctx, id)).State)
	// Output:
	// attempt 1 after 0s
	// attempt 2 after 1m0s
	// attempt 3 after 3m0s
	// dead_lettered
}

func ExampleTopic_Name() {
	fmt.Println(mail.Name())
	// Output: mail
}

// A key makes enqueueing repeatable: the second call is answered with the message of the first.
func ExampleTopic_Enqueue() {
	c, s := inMemory()
	defer s.end()
	first := must(mail.Enqueue(ctx, c.Client, "welcome, Ann", foundling.EnqueueOptions{Key: "welcome:4411"}))
	again := must(mail.Enqueue(ctx, c.Client, "welcome, Ann", foundling.EnqueueOptions{Key: "welcome:4411"}))
	fmt.Println("the same message:", first == again)
	// Output: the same message: true
}

func ExampleTopic_Draft() {
	c, s := inMemory()
	defer s.end()
	var drafts []foundling.Draft
	for _, name := range []string{"Ann", "Bob"} {
		drafts = append(drafts, mail.Draft("welcome, "+name, foundling.EnqueueOptions{}))
	}
	must(c.EnqueueMany(ctx, drafts...)) // both or none
	c.RunUntilIdle(s, deliver)
	// Output:
	// delivered: welcome, Ann
	// delivered: welcome, Bob
}

// A handler says by what it returns what becomes of its message.
func ExampleTopic_Handle() {
	c, s := inMemory()
	defer s.end()
	for _, text := range []string{"fine", "no address", "try later"} {
		must(mail.Enqueue(ctx, c.Client, text, foundling.EnqueueOptions{}))
	}
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		mail.Handle(w, func(_ context.Context, m foundling.Message[string]) error {
			switch m.Payload {
			case "no address":
				return foundling.DeadLetter(errors.New("it can never be delivered")) // not again
			case "try later":
				return errors.New("server is busy") // again, after a while
			}
			return nil // done
		})
	})
	for _, m := range foundlingtest.Enqueued(s, c, mail) {
		fmt.Printf("%-10s  %s\n", m.Payload, m.Info.State)
	}
	// Output:
	// fine        completed
	// no address  dead_lettered
	// try later   queued
}

func ExampleTopic_Payload() {
	c, s := inMemory()
	defer s.end()
	id := must(receipts.Enqueue(ctx, c.Client, Receipt{"4411", "A-17"}, foundling.EnqueueOptions{}))
	receipt := must(receipts.Payload(must(c.Get(ctx, id))))
	fmt.Println(receipt.Order)
	// Output: A-17
}

// Later, first, together with nothing else of the same user, and once a day at most.
func ExampleEnqueueOptions() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "your week", foundling.EnqueueOptions{
		At:       time.Date(2000, 1, 3, 8, 0, 0, 0, time.UTC),
		Priority: foundling.High,
		Lock:     "user:4411",
		Key:      "digest:4411", UniqueFor: 24 * time.Hour,
		Timeout: foundling.None,
	}))
	m := must(c.Get(ctx, id))
	fmt.Println(m.State, m.DueAt.Format(time.DateTime), m.Priority, m.Lock)
	// Output: queued 2000-01-03 08:00:00 high user:4411
}

// At most MaxDrafts go into one call, since they are one commit.
func ExampleDraft() {
	c, s := inMemory()
	defer s.end()
	drafts := make([]foundling.Draft, foundling.MaxDrafts+1)
	for i := range drafts {
		drafts[i] = mail.Draft("hello", foundling.EnqueueOptions{})
	}
	_, err := c.EnqueueMany(ctx, drafts...)
	fmt.Println(errors.Is(err, foundling.ErrTooLarge), err)
	// Output: true enqueue: 901 drafts, at most 900 in one commit: too large: split them
}

func ExampleEnqueued() {
	c, s := inMemory()
	defer s.end()
	draft := mail.Draft("welcome, Ann", foundling.EnqueueOptions{Key: "welcome:4411"})
	for range 2 {
		answers := must(c.EnqueueMany(ctx, draft))
		fmt.Println("known:", answers[0].Known)
	}
	// Output:
	// known: false
	// known: true
}

// The messages of two topics in one commit: all of them or none.
func ExampleClient_EnqueueMany() {
	c, s := inMemory()
	defer s.end()
	answers := must(c.EnqueueMany(ctx,
		receipts.Draft(Receipt{"4411", "A-17"}, foundling.EnqueueOptions{}),
		mail.Draft("your order A-17", foundling.EnqueueOptions{Delay: time.Hour}),
	))
	fmt.Println(len(answers), "messages")
	// Output: 2 messages
}

func ExamplePriority() {
	c, s := inMemory()
	defer s.end()
	for _, p := range []foundling.Priority{foundling.Low, foundling.Normal, foundling.High} {
		must(mail.Enqueue(ctx, c.Client, p.String(), foundling.EnqueueOptions{Priority: p}))
	}
	c.RunUntilIdle(s, deliver)
	// Output:
	// delivered: high
	// delivered: normal
	// delivered: low
}

// Both find their lock taken: one waits for it, the other is not wanted any more.
func ExampleLockPolicy() {
	s := new(stage)
	defer s.end()
	c := foundlingtest.NewWith(s, foundlingtest.Options{Worker: foundling.WorkerOptions{Concurrency: 2}})
	var waits, skips foundling.ID
	must(mail.Enqueue(ctx, c.Client, "first", foundling.EnqueueOptions{Lock: "printer"}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		mail.Handle(w, func(ctx context.Context, m foundling.Message[string]) error {
			fmt.Println("delivered:", m.Payload)
			if m.Payload == "first" {
				waits = must(mail.Enqueue(ctx, c.Client, "waits", foundling.EnqueueOptions{Lock: "printer", OnLocked: foundling.WaitForLock}))
				skips = must(mail.Enqueue(ctx, c.Client, "skips", foundling.EnqueueOptions{Lock: "printer", OnLocked: foundling.SkipIfLocked}))
				must(c.Wait(ctx, skips)) // it is another handler's turn meanwhile
			}
			return nil
		})
	})
	fmt.Println(must(c.Get(ctx, waits)).State, must(c.Get(ctx, skips)).State)
	// Output:
	// delivered: first
	// delivered: waits
	// completed discarded
}

// A middleware sees the payload as it is stored.
func ExampleMiddleware() {
	c, s := inMemory()
	defer s.end()
	shout := foundling.Middleware(func(ctx context.Context, m foundling.Message[[]byte], next func(context.Context) error) error {
		fmt.Println("begins:", string(m.Payload))
		err := next(ctx)
		fmt.Println("ends:", err)
		return err
	})
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		mail.Handle(w, func(_ context.Context, m foundling.Message[string]) error {
			fmt.Println(strings.ToUpper(m.Payload))
			return nil
		}, shout)
	})
	// Output:
	// begins: "hello"
	// HELLO
	// ends: <nil>
}
