package main

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/foundling-go/foundling"
)

// jsonWorked is how work ended as JSON has it.
type jsonWorked struct {
	Ended string `json:"ended"` // empty: nothing was queued or running any more; interrupted, terminated or failed
}

// jsonWorkedTopic is what this process did of a topic as JSON has it.
type jsonWorkedTopic struct {
	Topic     string `json:"topic"`
	Commands  int    `json:"commands"`  // that were run, or could not be
	Succeeded int    `json:"succeeded"` // whose messages are completed, unless the claim was lost meanwhile
}

// worked counts what this process did, topic by topic. Its count may be called from many goroutines.
type worked struct {
	mu     sync.Mutex
	topics []jsonWorkedTopic
}

func newWorked(topics []string) *worked {
	w := &worked{}
	for _, name := range topics {
		w.topics = append(w.topics, jsonWorkedTopic{Topic: name})
	}
	return w
}

// counting counts what a handler of one of the topics comes to.
func (w *worked) counting(topic int, handle commandHandler) commandHandler {
	return func(ctx context.Context, m foundling.Message[[]byte]) error {
		err := handle(ctx, m)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.topics[topic].Commands++; err == nil {
			w.topics[topic].Succeeded++
		}
		return err
	}
}

// commandHandler handles a message by running a command.
type commandHandler = func(context.Context, foundling.Message[[]byte]) error

// workEnd is why work ended, and when.
type workEnd struct {
	cause error
	at    time.Time
}

// endOf is why work ended, in a word.
func endOf(cause error) string {
	var by *interrupted
	switch {
	case errors.Is(cause, errEmpty):
		return "empty"
	case !errors.As(cause, &by):
		return "failed"
	case by.by == syscall.SIGTERM:
		return "terminated"
	}
	return "interrupted"
}

// print says what this process did as one object, on standard error since standard output is the children's.
func (w *worked) print(a *app, out *console, e workEnd) {
	if !a.objects() {
		return
	}
	ended := endOf(e.cause)
	d := document[jsonWorkedTopic]{
		Schema: "foundling.work/v1", AsOf: atTime(e.at), Store: orNull(a.storeName()), Truncated: ended == "interrupted",
		Warnings: []string{}, Result: jsonWorked{ended}, Items: w.topics,
	}
	_ = out.piece(func() error { return writeJSON(out.own, d) }) // where nobody can hear it, the work was done all the same
}
