package foundling_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
)

// An operator takes a message back that nobody needs any more.
func ExampleClient_Cancel() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{Delay: time.Hour}))
	check(c.Cancel(ctx, "order was withdrawn", id))
	m := must(c.Get(ctx, id))
	fmt.Printf("%s: %s\n", m.State, m.Detail)
	// Output: cancelled: order was withdrawn
}

func ExampleClient_Redrive() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{MaxAttempts: foundling.NoRetry}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		mail.Handle(w, func(context.Context, foundling.Message[string]) error { return errors.New("no such server") })
	})
	fmt.Println(must(c.Get(ctx, id)).State)
	check(c.Redrive(ctx, "the server's name was mended", id))
	c.RunUntilIdle(s, deliver)
	// Output:
	// dead_lettered
	// delivered: hello
}

// A message is taken from a handler that lives: its context ends, and what it returns is refused.
func ExampleClient_Requeue() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		mail.Handle(w, func(ctx context.Context, m foundling.Message[string]) error {
			if m.Attempt == 1 {
				fmt.Println("asked:", c.Requeue(ctx, foundling.RequeueOptions{Reason: "test"}, id) != nil) // its worker lives
				check(c.Requeue(ctx, foundling.RequeueOptions{Reason: "test", Force: foundling.Forced}, id))
			}
			return nil
		})
	})
	m := must(c.Get(ctx, id))
	fmt.Println(m.State, "at attempt", m.Attempts)
	// Output:
	// asked: true
	// completed at attempt 2
}

func ExampleRequeueOptions() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	err := c.Requeue(ctx, foundling.RequeueOptions{Reason: "INC-142", ReclaimAfter: time.Minute}, id)
	var refusal *foundling.Refusal
	fmt.Println(errors.As(err, &refusal), refusal.State, refusal.Reason) // nobody handles it
	// Output: true queued wrong_state
}

func ExampleForce() {
	fmt.Println(foundling.RequeueOptions{}.Force == foundling.Unforced, foundling.Forced != foundling.Unforced)
	// Output: true true
}

// A refusal says which command was not carried out, on what, in which state, and why. Nothing has moved.
func ExampleRefusal() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	err := c.Redrive(ctx, "again", id)
	var refusal *foundling.Refusal
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Command, refusal.State, refusal.Reason == events.ReasonWrongState)
	}
	// Output: redrive queued true
}

func ExampleClient_PauseTopic() {
	c, s := inMemory()
	defer s.end()
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	check(c.PauseTopic(ctx, "mail", "the server is being moved"))
	c.RunUntilIdle(s, deliver)
	fmt.Println("it waits")
	check(c.ResumeTopic(ctx, "mail", "it is there again"))
	c.RunUntilIdle(s, deliver)
	// Output:
	// it waits
	// delivered: hello
}

func ExampleClient_ResumeTopic() {
	c, s := inMemory()
	defer s.end()
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	err := c.ResumeTopic(ctx, "mail", "to be sure")
	var refusal *foundling.Refusal
	fmt.Println("it was not paused:", errors.As(err, &refusal))
	// Output: it was not paused: true
}

// The limit that a topic starts with is in the code; this one counts from now on, for all processes.
func ExampleClient_ConfigureTopic() {
	c, s := inMemory()
	defer s.end()
	check(c.ConfigureTopic(ctx, "mail", foundling.TopicSettings{Limit: 3, Reason: "the server takes three at once"}))
	// Output:
}

func ExampleTopicSettings() {
	c, s := inMemory()
	defer s.end()
	err := c.ConfigureTopic(ctx, "mail", foundling.TopicSettings{Limit: -1})
	fmt.Println(err)
	// Output: configure topic: topic mail: Limit -1, want 0 or more: invalid
}

// A lock with two permits lets two hold it, of whatever topic they are.
func ExampleClient_ConfigureLock() {
	c, s := inMemory()
	defer s.end()
	check(c.ConfigureLock(ctx, "smtp", foundling.LockSettings{Permits: 2, Reason: "two connections"}))
	// Output:
}

func ExampleLockSettings() {
	c, s := inMemory()
	defer s.end()
	err := c.ConfigureLock(ctx, "smtp", foundling.LockSettings{Permits: foundling.MaxPermits + 1})
	fmt.Println(err)
	// Output: configure lock smtp: Permits 100001, want 1 to 100000: invalid
}

// An operator takes a lock from whoever has it. What the lock protects must refuse the old holder's token.
func ExampleClient_ReleaseLock() {
	c, s := inMemory()
	defer s.end()
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{Lock: "printer"}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		mail.Handle(w, func(ctx context.Context, m foundling.Message[string]) error {
			fmt.Println("taken from it:", must(c.ReleaseLock(ctx, "INC-142", m.Lock, m.LockToken)))
			return nil
		})
	})
	fmt.Println("free by now:", must(c.ReleaseLock(ctx, "INC-142", "printer", 0)))
	// Output:
	// taken from it: 1
	// free by now: 0
}

// Workers sweep by themselves. A sweep by hand acts on what is proven at once; what only silence tells it waits for, unless it shall not.
func ExampleClient_Sweep() {
	c, s := inMemory()
	defer s.end()
	report := must(c.Sweep(ctx, foundling.SweepOptions{Wait: foundling.None}))
	fmt.Printf("%d dead, %d requeued\n", len(report.Dead), report.Requeued)
	// Output: 0 dead, 0 requeued
}

func ExampleClient_PlanSweep() {
	c, s := inMemory()
	defer s.end()
	plan := must(c.PlanSweep(ctx, foundling.SweepOptions{}))
	fmt.Printf("would requeue %d, release %d locks, dead-letter %d\n", plan.Requeued, plan.LocksReleased, plan.DeadLettered)
	// Output: would requeue 0, release 0 locks, dead-letter 0
}

func ExampleSweepOptions() {
	c, s := inMemory()
	defer s.end()
	_, err := c.PlanSweep(ctx, foundling.SweepOptions{ReclaimAfter: -time.Second})
	fmt.Println(err)
	// Output: plan of a sweep: worker options: ReclaimAfter -1s, want 0 or more: invalid
}

// A sweep whose view of who lives is in doubt changes nothing, and says why.
func ExampleSweepReport() {
	say := func(r foundling.SweepReport) string {
		switch {
		case r.Refused != "":
			return "refused: " + r.Refused + ": " + r.Detail
		case r.Spared > 0:
			return fmt.Sprintf("%d are too young to be taken back: sweep again", r.Spared)
		}
		return fmt.Sprintf("%d messages back in their queues", r.Requeued)
	}
	fmt.Println(say(foundling.SweepReport{Requeued: 2, LocksReleased: 1}))
	// Output: 2 messages back in their queues
}

func ExampleDeadWorker() {
	report := foundling.SweepReport{Dead: []foundling.DeadWorker{{Host: "host-a", PID: 4711, Evidence: "process_gone"}}}
	for _, w := range report.Dead {
		fmt.Printf("process %d on %s is dead: %s\n", w.PID, w.Host, w.Evidence)
	}
	// Output: process 4711 on host-a is dead: process_gone
}

// Callers branch on a few errors with errors.Is.
func Example_errors() {
	c, s := inMemory()
	defer s.end()
	say := func(err error) string {
		switch {
		case err == nil:
			return "done"
		case errors.Is(err, foundling.ErrUnknown):
			return "perhaps: ask again with the same id or key"
		case errors.Is(err, foundling.ErrInvalid), errors.Is(err, foundling.ErrTooLarge):
			return "never: it cannot be enqueued as it is"
		}
		return "no: later perhaps"
	}
	_, err := mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{Key: "a\nb"})
	fmt.Println(say(err))
	_, err = c.Get(ctx, foundling.ID{})
	fmt.Println(errors.Is(err, foundling.ErrNotFound), errors.Is(err, foundling.ErrErased))
	// Output:
	// never: it cannot be enqueued as it is
	// true false
}

// Why a handler's context has ended.
func Example_causes() {
	c, s := inMemory()
	defer s.end()
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{Timeout: time.Millisecond, MaxAttempts: foundling.NoRetry}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		mail.Handle(w, func(ctx context.Context, m foundling.Message[string]) error {
			<-ctx.Done()
			switch cause := context.Cause(ctx); cause {
			case foundling.ErrTimeout:
				fmt.Println("it took too long: an attempt is spent")
			case foundling.ErrStopping, foundling.ErrFenced:
				fmt.Println("the message is given back, no attempt spent")
			case foundling.ErrClaimLost:
				fmt.Println("somebody else has it: undo what can be undone")
			}
			return ctx.Err()
		})
	})
	// Output: it took too long: an attempt is spent
}
