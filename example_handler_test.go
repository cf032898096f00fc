package foundling_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/memory"
)

// A handler that runs a second time finds by the token that it is the later one.
func ExampleMessage() {
	c, s := inMemory()
	defer s.end()
	must(receipts.Enqueue(ctx, c.Client, Receipt{"4411", "A-17"}, foundling.EnqueueOptions{Lock: "user:4411"}))
	c.RunUntilEnded(s, func(w *foundling.Worker) {
		receipts.Handle(w, func(_ context.Context, m foundling.Message[Receipt]) error {
			fmt.Printf("order %s, attempt %d, holds %s\n", m.Payload.Order, m.Attempt, m.Lock)
			if m.Attempt == 1 {
				return errors.New("server is busy")
			}
			return nil
		})
	})
	// Output:
	// order A-17, attempt 1, holds user:4411
	// order A-17, attempt 2, holds user:4411
}

// What a handler gives back is kept if its message completes.
func ExampleMessage_SetResult() {
	c, s := inMemory()
	defer s.end()
	words := foundling.NewTopic[string]("words", foundling.TopicOptions{})
	id := must(words.Enqueue(ctx, c.Client, "to be or not to be", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		words.Handle(w, func(_ context.Context, m foundling.Message[string]) error {
			large := m.SetResult(make([]byte, foundling.MaxResult+1))
			fmt.Println("too large:", errors.Is(large, foundling.ErrTooLarge))
			return m.SetResult(len(strings.Fields(m.Payload)))
		})
	})
	var n int
	check(must(c.Wait(ctx, id)).Result.Decode(&n))
	fmt.Println(n, "words")
	// Output:
	// too large: true
	// 6 words
}

// Ids that a client mints rise: what was made first sorts first.
func ExampleID() {
	c, s := inMemory()
	defer s.end()
	var a, b foundling.ID
	a = must(mail.Enqueue(ctx, c.Client, "a", foundling.EnqueueOptions{}))
	b = must(mail.Enqueue(ctx, c.Client, "b", foundling.EnqueueOptions{}))
	fmt.Println(a.String() < b.String(), a.Version())
	// Output: true VERSION_7
}

// What a handler writes to keeps the highest token that it has seen, and refuses a lower one: a handler that was thought dead comes too late.
func ExampleToken() {
	var seen foundling.Token
	write := func(text string, token foundling.Token) {
		if token < seen {
			fmt.Println("refused:", text)
			return
		}
		seen = token
		fmt.Println("written:", text)
	}
	c, s := inMemory()
	defer s.end()
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	var first foundling.Token
	c.RunUntilEnded(s, func(w *foundling.Worker) {
		mail.Handle(w, func(_ context.Context, m foundling.Message[string]) error {
			write(fmt.Sprintf("attempt %d", m.Attempt), m.Token)
			if m.Attempt == 1 {
				first = m.Token
				return errors.New("no answer")
			}
			return nil
		})
	})
	write("attempt 1, which was slow", first)
	// Output:
	// written: attempt 1
	// written: attempt 2
	// refused: attempt 1, which was slow
}

// A handler that finds nothing to do yet asks to be called again, no attempt spent.
func ExampleSnooze() {
	c, s := inMemory()
	defer s.end()
	exports := foundling.NewTopic[string]("exports", foundling.TopicOptions{MaxAttempts: foundling.NoRetry})
	id := must(exports.Enqueue(ctx, c.Client, "2026-11", foundling.EnqueueOptions{}))
	began := c.Now()
	c.RunUntilEnded(s, func(w *foundling.Worker) {
		exports.Handle(w, func(context.Context, foundling.Message[string]) error {
			if c.Now().Sub(began) < 20*time.Minute {
				return foundling.Snooze(10 * time.Minute)
			}
			return nil
		})
	})
	m := must(c.Get(ctx, id))
	fmt.Printf("%s after %s, %d claims, %d of %d attempts spent\n", m.State, m.EndedAt.Sub(began), m.Attempts, m.Spent, m.MaxAttempts)
	// Output: completed after 20m0s, 3 claims, 1 of 1 attempts spent
}

func ExampleCancel() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "welcome, Ann", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		mail.Handle(w, func(context.Context, foundling.Message[string]) error { return foundling.Cancel("she has left") })
	})
	m := must(c.Get(ctx, id))
	fmt.Printf("%s: %s\n", m.State, m.Detail)
	// Output: cancelled: she has left
}

func ExampleDeadLetter() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "welcome, Ann", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		mail.Handle(w, func(context.Context, foundling.Message[string]) error {
			return foundling.DeadLetter(errors.New("no such address"))
		})
	})
	m := must(c.Get(ctx, id))
	fmt.Printf("%s after %d of %d attempts: %s\n", m.State, m.Spent, m.MaxAttempts, m.Error)
	// Output: dead_lettered after 1 of 25 attempts: no such address
}

// One fence ends a handler's context before others may take its worker for dead; the other lets it go on, for what is dear to begin again.
func ExampleFence() {
	short := foundling.TopicOptions{Fence: foundling.FenceCancels} // the default
	long := foundling.TopicOptions{Fence: foundling.FenceWarns}
	fmt.Println(short.Fence, long.Fence)
	// Output: 0 1
}

func ExampleNewWorker() {
	client := must(foundling.NewClient(memory.New(memory.Options{}), foundling.ClientOptions{Logger: silent}))
	_, err := foundling.NewWorker(client, foundling.WorkerOptions{HeartbeatInterval: time.Minute})
	fmt.Println(err)
	// Output: worker options: HeartbeatInterval 1m0s, at most a third of ReclaimAfter 2m0s: invalid
}

func ExampleWorker() {
	client := must(foundling.NewClient(memory.New(memory.Options{}), foundling.ClientOptions{Logger: silent}))
	worker := must(foundling.NewWorker(client, foundling.WorkerOptions{}))
	ctx, stop := context.WithCancel(ctx)
	mail.Handle(worker, func(_ context.Context, m foundling.Message[string]) error {
		fmt.Println("delivered:", m.Payload)
		stop() // this Example has one message; a service runs until it is told to stop
		return nil
	})
	must(mail.Enqueue(ctx, client, "hello", foundling.EnqueueOptions{}))
	fmt.Println(worker.Run(ctx))
	// Output:
	// delivered: hello
	// <nil>
}

// A stop waits for running handlers. One that takes longer than DrainTimeout finds its context ended, and its message is given back.
func ExampleWorker_Run() {
	client := must(foundling.NewClient(memory.New(memory.Options{}), foundling.ClientOptions{Logger: silent}))
	worker := must(foundling.NewWorker(client, foundling.WorkerOptions{DrainTimeout: time.Millisecond}))
	running, stop := context.WithCancel(ctx)
	mail.Handle(worker, func(ctx context.Context, _ foundling.Message[string]) error {
		stop()
		<-ctx.Done()
		fmt.Println("told:", context.Cause(ctx))
		return ctx.Err()
	})
	id := must(mail.Enqueue(ctx, client, "hello", foundling.EnqueueOptions{}))
	fmt.Println("run:", worker.Run(running))
	m := must(client.Get(ctx, id))
	fmt.Printf("%s, %s, %d attempts spent\n", m.State, m.Reason, m.Spent)
	// Output:
	// told: worker is stopping
	// run: <nil>
	// queued, released, 0 attempts spent
}

// What most settings are for: how much at once, and what to do when something fails.
func ExampleWorkerOptions() {
	client := must(foundling.NewClient(memory.New(memory.Options{}), foundling.ClientOptions{Logger: silent}))
	_, err := foundling.NewWorker(client, foundling.WorkerOptions{
		Concurrency:  20,
		PerTopic:     map[string]int{"exports": 2}, // heavy ones leave the others room
		DrainTimeout: foundling.None,               // a stop waits for as long as handlers take
		Retention:    foundling.Forever,            // instead of foundling.DefaultRetention
		OnError: func(_ context.Context, e foundling.HandlerError) {
			fmt.Println(e.Topic, e.Attempt, e.Outcome, e.Err)
		},
	})
	fmt.Println(err)
	// Output: <nil>
}

// A worker that shall not give back what the dead held leaves that to others.
func ExampleSweeps() {
	on := foundling.WorkerOptions{Sweeps: foundling.SweepsOn} // the default
	off := foundling.WorkerOptions{Sweeps: foundling.SweepsOff}
	fmt.Println(on.Sweeps, off.Sweeps)
	// Output: 0 1
}

// The orphan limit counts every claim, or only those whose worker died, for messages that are meant to be retried often.
func ExampleOrphanCount() {
	fmt.Println(foundling.CountClaims, foundling.CountOrphanings)
	// Output: claims orphanings
}

func ExampleHandlerError() {
	client := must(foundling.NewClient(memory.New(memory.Options{}), foundling.ClientOptions{Logger: silent}))
	ctx, stop := context.WithCancel(ctx)
	worker := must(foundling.NewWorker(client, foundling.WorkerOptions{
		OnError: func(_ context.Context, e foundling.HandlerError) { // here an error tracker would be told
			fmt.Printf("%s, attempt %d: %v: %s\n", e.Topic, e.Attempt, e.Err, e.Outcome)
			stop()
		},
	}))
	mail.Handle(worker, func(context.Context, foundling.Message[string]) error { return errors.New("server is busy") })
	must(mail.Enqueue(ctx, client, "hello", foundling.EnqueueOptions{}))
	check(worker.Run(ctx))
	// Output: mail, attempt 1: server is busy: retry
}

func ExampleOutcome() {
	worth := func(o foundling.Outcome) string {
		switch o {
		case foundling.OutcomeRetry:
			return "nothing: it runs again"
		case foundling.OutcomeDeadLettered:
			return "a look: nobody tries it any more"
		case foundling.OutcomeRefused, foundling.OutcomeUnknown:
			return "nothing: somebody else has it, or will"
		}
		return ""
	}
	fmt.Println(worth(foundling.OutcomeDeadLettered))
	// Output: a look: nobody tries it any more
}

func ExampleOutcome_String() {
	fmt.Println(foundling.OutcomeRetry.String(), foundling.OutcomeDeadLettered.String())
	// Output: retry dead_lettered
}

func ExamplePanicError() {
	client := must(foundling.NewClient(memory.New(memory.Options{}), foundling.ClientOptions{Logger: silent}))
	ctx, stop := context.WithCancel(ctx)
	worker := must(foundling.NewWorker(client, foundling.WorkerOptions{
		OnError: func(_ context.Context, e foundling.HandlerError) {
			var panicked *foundling.PanicError
			if errors.As(e.Err, &panicked) {
				fmt.Println("panicked with", panicked.Value)
			}
			stop()
		},
	}))
	mail.Handle(worker, func(context.Context, foundling.Message[string]) error { panic("at the disco") })
	must(mail.Enqueue(ctx, client, "hello", foundling.EnqueueOptions{}))
	check(worker.Run(ctx))
	// Output: panicked with at the disco
}

func ExamplePanicError_Error() {
	err := &foundling.PanicError{Value: "at the disco", Stack: []byte("goroutine 1 …")}
	fmt.Println(err.Error())
	// Output:
	// panic: at the disco
	// goroutine 1 …
}
