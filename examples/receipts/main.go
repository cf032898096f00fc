// Command receipts is the first program of the README: two receipts at most are sent at once, whoever dies meanwhile.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/sqlite"
)

// Receipt is the payload.
type Receipt struct{ User, Order string }

// At most two receipts are sent at once, over all processes on this store.
var receipts = foundling.NewTopic[Receipt]("receipts", foundling.TopicOptions{Limit: 2})

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	path := "app.db"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	if err := run(ctx, path); err != nil {
		fmt.Fprintln(os.Stderr, "receipts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string) error {
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	client, err := foundling.NewClient(store, foundling.ClientOptions{})
	if err != nil {
		return err
	}
	// Durable when Enqueue returns. One message per order; never two receipts of one user at a time.
	opts := foundling.EnqueueOptions{Key: "order:A-17", Lock: "user:4411"}
	if _, err := receipts.Enqueue(ctx, client, Receipt{"4411", "A-17"}, opts); err != nil {
		return err
	}
	worker, err := foundling.NewWorker(client, foundling.WorkerOptions{Concurrency: 8})
	if err != nil {
		return err
	}
	receipts.Handle(worker, func(ctx context.Context, m foundling.Message[Receipt]) error {
		return send(ctx, m.Payload, m.Token) // runs at least once: pass the token on, and refuse a lower one there
	})
	return worker.Run(ctx) // until ctx ends; then finishes what runs and gives the rest back
}

// send stands for what has an effect elsewhere. A real one gives the token along, and the other side refuses a lower one.
func send(_ context.Context, r Receipt, token foundling.Token) error {
	_, err := fmt.Printf("receipt for order %s of user %s, token %d\n", r.Order, r.User, token)
	return err
}
