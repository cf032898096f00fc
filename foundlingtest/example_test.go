package foundlingtest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/foundlingtest"
	"github.com/foundling-go/foundling/projections/replay"
)

// stage stands for the *testing.T of a test: it prints why the test fails.
type stage struct{ failing }

func (s *stage) Fatalf(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
	panic(s)
}

// play runs an Example as a test.
func play(test func(t foundlingtest.TB)) {
	t := new(stage)
	defer func() {
		if p := recover(); p != nil && p != any(t) {
			panic(p)
		}
		for _, cleanup := range t.cleanups {
			cleanup()
		}
	}()
	test(t)
}

// order is the code under test: it enqueues a receipt for an order.
func order(ctx context.Context, c *foundling.Client, user, order string) error {
	_, err := receipts.Enqueue(ctx, c, receipt{user, order}, foundling.EnqueueOptions{Key: "order:" + order, Lock: "user:" + user})
	return err
}

// send is a handler that prints what it gets.
func send(_ context.Context, m foundling.Message[receipt]) error {
	fmt.Println("sent:", m.Payload.Order)
	return nil
}

// sending registers it.
func sending(w *foundling.Worker) { receipts.Handle(w, send) }

// A test: what the code enqueues, what the handler makes of it, and what the log says. In one, t is its *testing.T.
func Example() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		if err := order(context.Background(), c.Client, "4411", "A-17"); err != nil {
			t.Fatalf("%v", err)
		}
		m := foundlingtest.RequireEnqueued(t, c, receipts, receipt{"4411", "A-17"}, foundling.EnqueueOptions{Lock: "user:4411"})
		c.RunUntilEnded(t, sending)
		foundlingtest.RequireState(t, c, m.Info.ID, foundling.Completed)
		foundlingtest.RequireHistory(t, c, m.Info.ID, "message.enqueued", "message.claimed", "message.completed")
	})
	// Output: sent: A-17
}

func ExampleNew() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		fmt.Println(c.Now())
	})
	// Output: 2000-01-01 00:00:00 +0000 UTC
}

func ExampleNewWith() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.NewWith(t, foundlingtest.Options{Start: time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)})
		fmt.Println(c.Now())
	})
	// Output: 2026-03-29 00:30:00 +0000 UTC
}

// Ten handlers at once, so that the race detector sees them together, with the settings of the program.
func ExampleOptions() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.NewWith(t, foundlingtest.Options{
			Client: foundling.ClientOptions{Actor: "api", MaxPayload: 1 << 10},
			Worker: foundling.WorkerOptions{Concurrency: 10},
		})
		c.RunUntilIdle(t, sending)
	})
	// Output:
}

// TB is met by every *testing.T, and by whatever else says why something fails.
func ExampleTB() {
	play(func(t foundlingtest.TB) {
		t.Helper()
		t.Cleanup(func() { fmt.Println("cleaned up") })
		t.Logf("not shown")
		t.Fatalf("as it was meant to")
	})
	// Output:
	// as it was meant to
	// cleaned up
}

// The laws of the log can be checked as well, though a handler cannot break them.
func ExampleClient() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		if err := order(context.Background(), c.Client, "4411", "A-17"); err != nil {
			t.Fatalf("%v", err)
		}
		c.RunUntilIdle(t, sending)
		report, err := replay.Verify(context.Background(), c.Store, replay.Options{Payloads: true})
		fmt.Println("clean:", report.Clean(), err)
	})
	// Output:
	// sent: A-17
	// clean: true <nil>
}

func ExampleClient_Now() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		c.Advance(90 * time.Second)
		fmt.Println(c.Now().Format(time.TimeOnly))
	})
	// Output: 00:01:30
}

func ExampleClient_Advance() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		_, err := receipts.Enqueue(context.Background(), c.Client, receipt{"4411", "A-17"}, foundling.EnqueueOptions{Delay: time.Hour})
		fmt.Println(err)
		c.RunUntilIdle(t, sending)
		fmt.Println("an hour later")
		c.Advance(time.Hour)
		c.RunUntilIdle(t, sending)
	})
	// Output:
	// <nil>
	// an hour later
	// sent: A-17
}

// A retry is due later: it is not waited for.
func ExampleClient_RunUntilIdle() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		if err := order(context.Background(), c.Client, "4411", "A-17"); err != nil {
			t.Fatalf("%v", err)
		}
		c.RunUntilIdle(t, func(w *foundling.Worker) {
			receipts.Handle(w, func(context.Context, foundling.Message[receipt]) error { return errors.New("server is busy") })
		})
		m := foundlingtest.Enqueued(t, c, receipts)[0]
		fmt.Println(m.Info.State, m.Info.Error)
	})
	// Output: queued server is busy
}

// 25 attempts over nine days take no time.
func ExampleClient_RunUntilEnded() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		if err := order(context.Background(), c.Client, "4411", "A-17"); err != nil {
			t.Fatalf("%v", err)
		}
		c.RunUntilEnded(t, func(w *foundling.Worker) {
			receipts.Handle(w, func(context.Context, foundling.Message[receipt]) error { return errors.New("server is busy") })
		})
		m := foundlingtest.Enqueued(t, c, receipts)[0]
		fmt.Println(m.Info.State, "after", m.Info.Attempts, "attempts")
	})
	// Output: dead_lettered after 25 attempts
}

// A worker beside the test, for code that waits for what a handler makes.
func ExampleClient_Start() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		stop := c.Start(t, sending)
		id, err := receipts.Enqueue(context.Background(), c.Client, receipt{"4411", "A-17"}, foundling.EnqueueOptions{})
		if err != nil {
			t.Fatalf("%v", err)
		}
		m, err := c.Wait(context.Background(), id)
		fmt.Println(m.State, err)
		stop()
	})
	// Output:
	// sent: A-17
	// completed <nil>
}

func ExampleMessage() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		if err := order(context.Background(), c.Client, "4411", "A-17"); err != nil {
			t.Fatalf("%v", err)
		}
		var m foundlingtest.Message[receipt] = foundlingtest.Enqueued(t, c, receipts)[0]
		fmt.Println(m.Payload.Order, m.Info.Key, m.Info.State)
	})
	// Output: A-17 order:A-17 queued
}

// Whatever has become of them: these have ended.
func ExampleEnqueued() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		for _, name := range []string{"A-17", "A-18"} {
			if err := order(context.Background(), c.Client, "4411", name); err != nil {
				t.Fatalf("%v", err)
			}
		}
		c.RunUntilEnded(t, sending)
		for _, m := range foundlingtest.Enqueued(t, c, receipts) {
			fmt.Println(m.Payload.Order, m.Info.State)
		}
	})
	// Output:
	// sent: A-17
	// sent: A-18
	// A-17 completed
	// A-18 completed
}

// A failure says what there is, and what of it differs.
func ExampleRequireEnqueued() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		if err := order(context.Background(), c.Client, "4411", "A-17"); err != nil {
			t.Fatalf("%v", err)
		}
		foundlingtest.RequireEnqueued(t, c, receipts, receipt{"4411", "A-17"}, foundling.EnqueueOptions{Delay: time.Hour})
	})
	// Output:
	// topic receipts: want a message like this, there is none
	//   {"User":"4411","Order":"A-17"}  Delay=1h0m0s
	// what was enqueued (≠ what differs):
	//   receipts 1  {"User":"4411","Order":"A-17"}  queued, due +0s  Key=order:A-17  Lock=user:4411  ≠ Delay
}

func ExampleRequireNoneEnqueued() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		foundlingtest.RequireNoneEnqueued(t, c, mails)
		if err := order(context.Background(), c.Client, "4411", "A-17"); err != nil {
			t.Fatalf("%v", err)
		}
		foundlingtest.RequireNoneEnqueued(t, c, receipts)
	})
	// Output:
	// topic receipts: want no message, 1 were enqueued:
	//   receipts 1  {"User":"4411","Order":"A-17"}  queued, due +0s  Key=order:A-17  Lock=user:4411
}

func ExampleRequireState() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		if err := order(context.Background(), c.Client, "4411", "A-17"); err != nil {
			t.Fatalf("%v", err)
		}
		c.RunUntilIdle(t, func(w *foundling.Worker) {
			receipts.Handle(w, func(context.Context, foundling.Message[receipt]) error {
				return foundling.DeadLetter(errors.New("no such address"))
			})
		})
		foundlingtest.RequireState(t, c, foundlingtest.Enqueued(t, c, receipts)[0].Info.ID, foundling.Completed)
	})
	// Output:
	// message receipts 1: want completed, it is dead_lettered, 1 of 25 attempts spent, handler
	//   its handler's newest error: no such address
	//   its history:
	//   +0s      message.enqueued       receipts 1  none → queued
	//   +0s      message.claimed        receipts 1  queued → running
	//   +0s      message.dead_lettered  receipts 1  running → dead_lettered
}

func ExampleRequireHistory() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		if err := order(context.Background(), c.Client, "4411", "A-17"); err != nil {
			t.Fatalf("%v", err)
		}
		c.RunUntilIdle(t, sending)
		foundlingtest.RequireHistory(t, c, foundlingtest.Enqueued(t, c, receipts)[0].Info.ID, "message.enqueued", "message.cancelled")
	})
	// Output:
	// sent: A-17
	// message receipts 1 has another history (- wanted, + there is):
	//     +0s      message.enqueued       receipts 1  none → queued
	//   - message.cancelled
	//   + +0s      message.claimed        receipts 1  queued → running
	//   + +0s      message.completed      receipts 1  running → completed
}

func ExampleRequireEvents() {
	play(func(t foundlingtest.TB) {
		c := foundlingtest.New(t)
		if err := order(context.Background(), c.Client, "4411", "A-17"); err != nil {
			t.Fatalf("%v", err)
		}
		if err := c.PauseTopic(context.Background(), "receipts", "the server is being moved"); err != nil {
			t.Fatalf("%v", err)
		}
		foundlingtest.RequireEvents(t, c, "message.enqueued", "topic.paused")
		foundlingtest.RequireEvents(t, c, "topic.paused", "topic.resumed")
	})
	// Output:
	// the log has no topic.resumed behind its topic.paused; it has
	//   +0s      topic.configured       topic receipts  none → active
	//   +0s      message.enqueued       receipts 1  none → queued
	//   +0s      topic.paused           topic receipts  active → paused
}
