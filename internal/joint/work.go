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
	workers = 20
	// interval of the heartbeats is short, so that there are many.
	interval = 200 * time.Millisecond
	// page is how many messages a commit enqueues.
	page = 25
)

// limits are those of the topics.
var limits = [...]int{1, 5, 10, 20, 50}

// turns are the topics that message 0, 1, 2 and so on go to, over and over. One by one takes long, so that the narrow topics get less:
// none of them is empty long before the others.
var turns = [...]int{0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 2, 3, 4}

func topics() []foundling.Topic[int] {
	var list []foundling.Topic[int]
	for _, limit := range limits {
		list = append(list, foundling.NewTopic[int](fmt.Sprintf("limit-%d", limit), foundling.TopicOptions{Limit: limit}))
	}
	return list
}

// share is the messages that a process enqueues, by their numbers.
type share struct{ first, count int }

// work enqueues and handles from the first line of the input to its end.
func work(out *output, path string, mine share) error {
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		return err
	}
	h := newHeart(s, s)
	// On a machine that has no time for it a call takes as long as it takes: who waits for this process decides how long.
	c, err := foundling.NewClient(h, foundling.ClientOptions{Logger: out.logger(), Timeout: foundling.None})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	out.say(said{Ready: true})
	if _, err := fmt.Scanln(new(string)); err != nil {
		return errors.Join(err, s.Close())
	}
	ticking, stopTicking := context.WithCancel(context.Background())
	var ticks sync.WaitGroup
	ticks.Go(func() { h.pace.run(ticking) })
	err = flatOut(out, c, mine)
	seen := h.sum()
	stopTicking()
	ticks.Wait()
	out.say(said{Beats: &seen})
	return errors.Join(err, s.Close())
}

// flatOut works until the input ends.
func flatOut(out *output, c *foundling.Client, mine share) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	begin := func(run func() error) {
		all.Go(func() {
			if err := run(); err != nil {
				out.say(said{Error: err.Error()})
			}
		})
	}
	for range workers {
		begin(func() error { return handle(ctx, out, c) })
	}
	for topic := range limits {
		begin(func() error { return enqueue(ctx, c, mine, topic) })
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	cancel()
	all.Wait()
	return err
}

// handle is one worker, which handles messages of all topics by saying their numbers.
func handle(ctx context.Context, out *output, c *foundling.Client) error {
	w, err := foundling.NewWorker(c, foundling.WorkerOptions{HeartbeatInterval: interval})
	if err != nil {
		return err
	}
	for _, topic := range topics() {
		topic.Handle(w, func(_ context.Context, m foundling.Message[int]) error {
			out.say(said{Ran: &m.Payload})
			return nil
		})
	}
	return w.Run(ctx)
}

// enqueue enqueues those of the process's messages that go to one topic.
func enqueue(ctx context.Context, c *foundling.Client, mine share, topic int) error {
	to := topics()[topic]
	var drafts []foundling.Draft
	for n := mine.first; n < mine.first+mine.count; n++ {
		if turns[n%len(turns)] == topic {
			drafts = append(drafts, to.Draft(n, foundling.EnqueueOptions{}))
		}
	}
	for len(drafts) > 0 {
		next := min(page, len(drafts))
		if _, err := c.EnqueueMany(ctx, drafts[:next]...); err != nil {
			return err
		}
		drafts = drafts[next:]
	}
	return nil
}
