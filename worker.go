package foundling

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// Sweeps says whether a worker gives back what the dead held.
type Sweeps uint8

// The zero is on.
const (
	SweepsOn Sweeps = iota
	SweepsOff
)

// WorkerOptions are a worker's settings. The zero value works.
type WorkerOptions struct {
	// Concurrency is how many handlers run at once in this worker; 0 is 10.
	Concurrency int
	// PerTopic bounds how many handlers of a topic run at once in this worker, within Concurrency; a topic that is not in it has no
	// bound of its own.
	PerTopic map[string]int
	// HeartbeatInterval is how often the worker says that it lives and compares its claims with the store's; 0 is 15 s.
	HeartbeatInterval time.Duration
	// PollInterval is the longest time between two looks for work while nothing hints at any; 0 is 250 ms.
	PollInterval time.Duration
	// DrainTimeout is how long a stop waits for running handlers before it ends their contexts; 0 is 30 s, None waits for as long as
	// they take.
	DrainTimeout time.Duration
	// SettleTimeout is how long a stop then tries to bring results to a store out of reach; 0 is 30 s.
	SettleTimeout time.Duration
	// Sweeps says whether the worker gives back what the dead held, at its start and with every heartbeat; the zero is on. It acts on
	// proof alone: see store.ProcessWatcher.
	Sweeps Sweeps
	// OrphanMaxAttempts is how many attempts may be spent before a message whose worker is gone is dead-lettered instead of requeued;
	// 0 is 5.
	OrphanMaxAttempts int
	// Program is the version that the log shows for the worker; empty is that of the main module.
	Program string
}

func (o WorkerOptions) validate() (WorkerOptions, error) {
	for _, setting := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"HeartbeatInterval", &o.HeartbeatInterval, 15 * time.Second},
		{"PollInterval", &o.PollInterval, 250 * time.Millisecond},
		{"SettleTimeout", &o.SettleTimeout, 30 * time.Second},
	} {
		if *setting.value < 0 {
			return o, fmt.Errorf("worker options: %s %s, want 0 or more: %w", setting.name, *setting.value, ErrInvalid)
		}
		if *setting.value == 0 {
			*setting.value = setting.zero
		}
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 30 * time.Second
	}
	if o.Concurrency == 0 {
		o.Concurrency = 10
	}
	if o.Concurrency < 0 || o.Concurrency > maxConcurrency {
		return o, fmt.Errorf("worker options: Concurrency %d, want 1 to %d: %w", o.Concurrency, maxConcurrency, ErrInvalid)
	}
	for topic, n := range o.PerTopic {
		if n < 1 {
			return o, fmt.Errorf("worker options: PerTopic %d for topic %s, want 1 or more: %w", n, topic, ErrInvalid)
		}
	}
	if o.OrphanMaxAttempts < 0 {
		return o, fmt.Errorf("worker options: OrphanMaxAttempts %d, want 0 or more: %w", o.OrphanMaxAttempts, ErrInvalid)
	}
	if o.OrphanMaxAttempts == 0 {
		o.OrphanMaxAttempts = fsm.DefaultOrphanMaxAttempts
	}
	if info, ok := debug.ReadBuildInfo(); ok && o.Program == "" {
		o.Program = info.Main.Version
	}
	return o, nil
}

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
	for {
		err := runIncarnation(ctx, w)
		if !errors.Is(err, store.ErrNotBeating) || ctx.Err() != nil {
			return err
		}
		w.log.WarnContext(ctx, "worker's heartbeat row is gone; it starts again under a new id", "error", err)
	}
}
