package foundling_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/sqlite"
)

type Receipt struct{ User, Order string }

// At most two receipts are sent at once, over all processes on this store.
var receipts = foundling.NewTopic[Receipt]("receipts", foundling.TopicOptions{Limit: 2})

func run(ctx context.Context, path string, send func(Receipt, foundling.Token) error) error {
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
		return send(m.Payload, m.Token) // runs at least once: pass the token on, and refuse a lower one there
	})
	return worker.Run(ctx) // until ctx ends; then finishes what runs and gives the rest back
}

// A program that sends receipts, whoever dies meanwhile. It is the one of the README.
func Example() {
	dir, err := os.MkdirTemp("", "foundling")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(context.Background())
	err = run(ctx, filepath.Join(dir, "app.db"), func(r Receipt, _ foundling.Token) error {
		fmt.Printf("receipt for order %s of user %s\n", r.Order, r.User)
		stop()
		return nil
	})
	fmt.Println("run:", err)
	// Output:
	// receipt for order A-17 of user 4411
	// run: <nil>
}
