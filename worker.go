package foundling

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/foundling-go/foundling/store"
)

// maxConcurrency keeps one claim within the bound of a commit.
const maxConcurrency = 5000

// Worker handles the messages of some topics.
type Worker struct {
	client   *Client
	opts     WorkerOptions
	log      *slog.Logger
	running  atomic.Bool
	mu       sync.Mutex
	handlers map[string]handler
	wrong    error // what was wrong with a registration
}

// NewWorker makes a worker. Register its handlers with Topic.Handle, then call Run.
func NewWorker(c *Client, o WorkerOptions) (*Worker, error) {
	if c == nil {
		return nil, fmt.Errorf("new worker: no client: %w", ErrInvalid)
	}
	o, err := o.validate()
	if err != nil {
		return nil, err
	}
	return &Worker{client: c, opts: o, log: c.opts.Logger, handlers: map[string]handler{}}, nil
}

func (w *Worker) register(h handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, twice := w.handlers[h.topic]
	switch {
	case w.running.Load():
		w.wrong = errors.Join(w.wrong, fmt.Errorf("handle topic %s: the worker runs already: %w", h.topic, ErrInvalid))
	case twice:
		w.wrong = errors.Join(w.wrong, fmt.Errorf("handle topic %s: it has a handler already: %w", h.topic, ErrInvalid))
	default:
		w.wrong = errors.Join(w.wrong, h.start.validate(h.topic))
		w.handlers[h.topic] = h
	}
}

// topics is the names of the topics the worker has handlers for, in order.
func (w *Worker) topics() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]string, 0, len(w.handlers))
	for topic := range w.handlers {
		list = append(list, topic)
	}
	slices.Sort(list)
	return list
}

// Run claims and handles messages until ctx ends. Then it begins nothing more, waits for running handlers, ends the contexts of those
// that take longer than DrainTimeout and gives their messages back, and returns nil once every result is in the store. A handler that
// does not return when its context ends keeps Run waiting: nobody else may have its message meanwhile. It may be called once.
//
// Once it has begun, a store out of reach does not end it: it tries again, and keeps results until they are accepted or refused. An error
// says what was wrong from the start, or that the store did not take all results in the end; a sweep gives their messages back.
func (w *Worker) Run(ctx context.Context) error {
	if !w.running.CompareAndSwap(false, true) {
		return fmt.Errorf("run worker: it was run before; make another: %w", ErrInvalid)
	}
	w.mu.Lock()
	err := w.wrong
	w.mu.Unlock()
	if err != nil {
		return fmt.Errorf("run worker: %w", err)
	}
	if len(w.topics()) == 0 {
		return fmt.Errorf("run worker: no handlers; register one with Topic.Handle: %w", ErrInvalid)
	}
	pace := retryPace()
	for first := true; ; first = false {
		err := runIncarnation(ctx, w)
		var start *startError
		switch {
		case errors.Is(err, store.ErrNotBeating) && ctx.Err() == nil:
			w.log.WarnContext(ctx, "worker's heartbeat row is gone; it starts again under a new id", keyError, err)
		case errors.As(err, &start) && !first && !errors.Is(err, store.ErrClosed):
			w.log.ErrorContext(ctx, "worker could not start again yet", keyError, err)
			if !sleep(ctx, pace.NextBackOff()) {
				return nil // it was stopped while it ran nothing
			}
		default:
			return err
		}
	}
}

// startError is that of an incarnation that nobody got to know.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }
