package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/sqlite"
)

const (
	// scribe is the topic that write fills and empties.
	scribe = "scribe"
	// breath is how long it waits between two commits, so that whoever follows comes to the end of the log now and then.
	breath = 20 * time.Millisecond
)

// write enqueues messages by one and by several, handles what there is, and cancels some, from the first line of the input to its end, so that the
// log has commits of all sizes.
func write(out *output, path string) error {
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		return err
	}
	c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: out.logger(), Timeout: foundling.None})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	out.say(said{Ready: true})
	if _, err := fmt.Scanln(new(string)); err != nil {
		return errors.Join(err, s.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, run := range []func(context.Context, *foundling.Client) error{scribble, sort} {
		all.Go(func() {
			if err := run(ctx, c); err != nil && !errors.Is(err, context.Canceled) {
				out.say(said{Error: err.Error()})
			}
		})
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	cancel()
	all.Wait()
	return errors.Join(err, s.Close())
}

// scribble enqueues until ctx ends. Every tenth commit is of messages that it cancels at once.
func scribble(ctx context.Context, c *foundling.Client) error {
	topic := foundling.NewTopic[int](scribe, foundling.TopicOptions{Limit: 20})
	breaths := time.NewTicker(breath)
	defer breaths.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-breaths.C:
		}
		opts := foundling.EnqueueOptions{}
		if n%10 == 0 {
			opts.Delay = time.Hour
		}
		drafts := make([]foundling.Draft, n%7+1)
		for i := range drafts {
			drafts[i] = topic.Draft(n, opts)
		}
		list, err := c.EnqueueMany(ctx, drafts...)
		if err != nil {
			return err
		}
		if n%10 == 0 {
			ids := make([]foundling.ID, len(list))
			for i, e := range list {
				ids[i] = e.ID
			}
			if err := c.Cancel(ctx, "made to be cancelled", ids...); err != nil {
				return err
			}
		}
	}
}

// sort handles until ctx ends.
func sort(ctx context.Context, c *foundling.Client) error {
	w, err := foundling.NewWorker(c, foundling.WorkerOptions{Concurrency: 20})
	if err != nil {
		return err
	}
	foundling.NewTopic[int](scribe, foundling.TopicOptions{Limit: 20}).Handle(w, func(context.Context, foundling.Message[int]) error { return nil })
	return w.Run(ctx)
}
