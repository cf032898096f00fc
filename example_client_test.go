package foundling_test

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/foundlingtest"
	"github.com/foundling-go/foundling/store/memory"
)

func ExampleNewClient() {
	store := memory.New(memory.Options{}) // or sqlite.Open
	defer store.Close()
	client, err := foundling.NewClient(store, foundling.ClientOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = mail.Enqueue(ctx, client, "hello", foundling.EnqueueOptions{})
	fmt.Println(err)
	// Output: <nil>
}

// A client enqueues, looks and acts; many goroutines may use one.
func ExampleClient() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, deliver)
	fmt.Println(must(c.Get(ctx, id)).State)
	// Output:
	// delivered: hello
	// completed
}

func ExampleClientOptions() {
	client, err := foundling.NewClient(memory.New(memory.Options{}), foundling.ClientOptions{
		Actor:      "billing-api", // in the log, as who asked
		Logger:     slog.New(slog.NewJSONHandler(os.Stderr, nil)),
		MaxPayload: 4 << 10,
		Timeout:    2 * time.Second, // of one call to the store; foundling.None is no bound
	})
	check(err)
	_, err = mail.Enqueue(ctx, client, strings.Repeat("x", 5000), foundling.EnqueueOptions{})
	fmt.Println(errors.Is(err, foundling.ErrTooLarge))
	// Output: true
}

// xmlCodec keeps payloads as XML.
type xmlCodec struct{}

func (xmlCodec) Name() string                    { return "xml" }
func (xmlCodec) Marshal(v any) ([]byte, error)   { return xml.Marshal(v) }
func (xmlCodec) Unmarshal(b []byte, v any) error { return xml.Unmarshal(b, v) }

func ExampleCodec() {
	s := new(stage)
	defer s.end()
	c := foundlingtest.NewWith(s, foundlingtest.Options{Client: foundling.ClientOptions{Codec: xmlCodec{}}})
	id := must(receipts.Enqueue(ctx, c.Client, Receipt{"4411", "A-17"}, foundling.EnqueueOptions{}))
	m := must(c.Get(ctx, id))
	fmt.Printf("%s: %s\n", m.Payload.Codec, m.Payload.Bytes)
	// Output: xml: <Receipt><User>4411</User><Order>A-17</Order></Receipt>
}

func ExampleClient_Get() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		mail.Handle(w, func(context.Context, foundling.Message[string]) error { return errors.New("server is busy") })
	})
	m := must(c.Get(ctx, id))
	fmt.Printf("%s since it failed (%s), %d of %d attempts spent\n", m.State, m.Error, m.Spent, m.MaxAttempts)

	_, err := c.Get(ctx, foundling.ID{})
	fmt.Println(errors.Is(err, foundling.ErrNotFound))
	// Output:
	// queued since it failed (server is busy), 1 of 25 attempts spent
	// true
}

func ExampleMessageInfo() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{Key: "welcome:4411", Delay: time.Hour}))
	m := must(c.Get(ctx, id))
	fmt.Println(m.Topic, m.State, m.Key, m.DueAt.Sub(m.EnqueuedAt))
	// Output: mail queued welcome:4411 1h0m0s
}

// A dead letter can be redriven, so it has not ended for good.
func ExampleMessageInfo_Ended() {
	c, s := inMemory()
	defer s.end()
	id := must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		mail.Handle(w, func(context.Context, foundling.Message[string]) error { return foundling.DeadLetter(errors.New("no")) })
	})
	fmt.Println(must(c.Get(ctx, id)).Ended())
	check(c.Cancel(ctx, "nobody wants it any more", id))
	fmt.Println(must(c.Get(ctx, id)).Ended())
	// Output:
	// false
	// true
}

func ExampleContent() {
	c, s := inMemory()
	defer s.end()
	id := must(receipts.Enqueue(ctx, c.Client, Receipt{"4411", "A-17"}, foundling.EnqueueOptions{}))
	m := must(c.Get(ctx, id))
	fmt.Printf("%d bytes of %s: %s\n", m.Payload.Size, m.Payload.Codec, m.Payload.Bytes)
	fmt.Printf("%d bytes of result\n", m.Result.Size)
	// Output:
	// 30 bytes of json: {"User":"4411","Order":"A-17"}
	// 0 bytes of result
}

func ExampleContent_Decode() {
	c, s := inMemory()
	defer s.end()
	id := must(receipts.Enqueue(ctx, c.Client, Receipt{"4411", "A-17"}, foundling.EnqueueOptions{}))
	m := must(c.Get(ctx, id))
	var receipt Receipt
	check(m.Payload.Decode(&receipt))
	fmt.Println(receipt.Order)
	fmt.Println(errors.Is(m.Result.Decode(&receipt), foundling.ErrNotFound))
	// Output:
	// A-17
	// true
}

// A page after the other, the newest message first.
func ExampleClient_List() {
	c, s := inMemory()
	defer s.end()
	for i := range 5 {
		must(mail.Enqueue(ctx, c.Client, fmt.Sprint("mail ", i), foundling.EnqueueOptions{Key: fmt.Sprint("k", i)}))
	}
	list := foundling.ListOptions{Topic: "mail", Limit: 2}
	for {
		page := must(c.List(ctx, list))
		for _, m := range page.Messages {
			fmt.Print(m.Key, " ")
		}
		if page.Next == "" {
			break
		}
		list.After = page.Next
	}
	// Output: k4 k3 k2 k1 k0
}

// Which messages want the lock of a user, and which dead letters are of the last hour.
func ExampleListOptions() {
	c, s := inMemory()
	defer s.end()
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{Lock: "user:4411"}))
	waiting := must(c.List(ctx, foundling.ListOptions{Topic: "mail", Lock: "user:4411"}))
	dead := must(c.List(ctx, foundling.ListOptions{
		Topic: "mail", States: []foundling.State{foundling.DeadLettered}, From: c.Now().Add(-time.Hour),
	}))
	fmt.Println(len(waiting.Messages), len(dead.Messages))
	// Output: 1 0
}

func ExamplePage() {
	c, s := inMemory()
	defer s.end()
	must(mail.Enqueue(ctx, c.Client, "hello", foundling.EnqueueOptions{}))
	page := must(c.List(ctx, foundling.ListOptions{}))
	fmt.Println(len(page.Messages), "messages, next:", page.Next != "", "unread:", len(page.Unread))
	// Output: 1 messages, next: false unread: 0
}

func ExampleListedStates() {
	fmt.Println(foundling.ListedStates())
	// Output: [queued blocked running dead_lettered]
}

func ExampleParseState() {
	state, err := foundling.ParseState("dead_lettered")
	fmt.Println(state, err)
	_, err = foundling.ParseState("lost")
	fmt.Println(err)
	// Output:
	// dead_lettered <nil>
	// state "lost": want one of queued, blocked, running, dead_lettered, completed, cancelled, discarded, staged: invalid
}

func ExampleStates() {
	fmt.Println(foundling.States())
	// Output: [queued blocked running dead_lettered completed cancelled discarded]
}

func ExampleState() {
	waits := func(s foundling.State) bool {
		switch s {
		case foundling.Queued, foundling.Blocked:
			return true
		case foundling.Running, foundling.DeadLettered, foundling.Completed, foundling.Cancelled, foundling.Discarded:
			return false
		}
		return false
	}
	fmt.Println(waits(foundling.Blocked), waits(foundling.Completed))
	// Output: true false
}

// A caller waits for what a handler makes of its message, wherever that runs.
func ExampleClient_Wait() {
	c, s := inMemory()
	defer s.end()
	sums := foundling.NewTopic[[]int]("sums", foundling.TopicOptions{})
	defer c.Start(s, func(w *foundling.Worker) {
		sums.Handle(w, func(_ context.Context, m foundling.Message[[]int]) error {
			sum := 0
			for _, n := range m.Payload {
				sum += n
			}
			return m.SetResult(sum)
		})
	})()
	id := must(sums.Enqueue(ctx, c.Client, []int{1, 2, 3}, foundling.EnqueueOptions{}))
	m := must(c.Wait(ctx, id))
	fmt.Printf("%s: %s\n", m.State, m.Result.Bytes)
	// Output: completed: 6
}

// span is the traceparent that a context carries: what a tracing library keeps there.
type span struct{}

// traces is a foundling.TraceContext; with OpenTelemetry it calls propagation.TraceContext.
type traces struct{}

func (traces) Inject(ctx context.Context) string {
	traceparent, _ := ctx.Value(span{}).(string)
	return traceparent
}

func (traces) Extract(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, span{}, traceparent)
}

func ExampleTraceContext() {
	s := new(stage)
	defer s.end()
	c := foundlingtest.NewWith(s, foundlingtest.Options{Client: foundling.ClientOptions{Trace: traces{}}})
	request := context.WithValue(ctx, span{}, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	must(mail.Enqueue(request, c.Client, "hello", foundling.EnqueueOptions{}))
	c.RunUntilIdle(s, func(w *foundling.Worker) {
		mail.Handle(w, func(ctx context.Context, _ foundling.Message[string]) error {
			fmt.Println(ctx.Value(span{}))
			return nil
		})
	})
	// Output: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
}
