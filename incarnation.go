package foundling

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/reaper"
	"github.com/foundling-go/foundling/store"
)

// incarnation is a worker under one id, from its start to its end. All its goroutines end before its run returns.
type incarnation struct {
	*Worker
	id    ID
	log   *slog.Logger
	names []string // its topics

	mu      sync.Mutex
	claims  map[ID]*claim // what it runs or has still to settle
	results []result      // ended, not settled yet
	unknown map[ID]int    // claims of the last reading that nobody ran, by how many readings said so
	swept   bool          // the engine can prove deaths

	freed    chan struct{} // a hint that a slot came free
	arrived  chan struct{} // a hint that a result waits
	handling sync.WaitGroup
}

// claim is one message in this worker's hands.
type claim struct {
	delivery delivery
	cancel   context.CancelCauseFunc
	strange  int // readings in a row in which the store did not know of it
}

// runIncarnation is the life of a worker under a new id.
func runIncarnation(ctx context.Context, w *Worker) error {
	if ctx.Err() != nil {
		return nil // stopped before it began
	}
	// What a start has begun and what a stop has to write must not end with the context that asked for it.
	writing := context.WithoutCancel(ctx)
	id, err := w.client.mint(writing)
	if err != nil {
		return fmt.Errorf("run worker: %w", err)
	}
	inc := &incarnation{
		Worker: w, id: id, log: w.log.With("worker", id), names: w.topics(), claims: map[ID]*claim{},
		freed: make(chan struct{}, 1), arrived: make(chan struct{}, 1),
	}
	leave, err := inc.enter(writing)
	if err != nil {
		return fmt.Errorf("run worker %s: %w", id, err)
	}
	defer leave()

	life, end := context.WithCancelCause(writing) // of heart and settling: they go on while the worker drains
	defer end(nil)
	claiming, stopClaiming := context.WithCancel(ctx)
	defer stopClaiming()
	var tasks sync.WaitGroup
	tasks.Go(func() { inc.settleLoop(life) })
	tasks.Go(func() {
		if err := inc.beatLoop(life); err != nil {
			end(err) // this incarnation is over
			stopClaiming()
			inc.cancelAll(ErrClaimLost)
		}
	})
	inc.claimLoop(claiming)
	inc.drain(life)
	stopErr := inc.unsettled(life)
	over := context.Cause(life)
	end(nil)
	tasks.Wait()
	if over != nil {
		return over
	}
	return errors.Join(stopErr, inc.stop(writing))
}

// enter makes the incarnation known: its proof of life first, then its first heartbeat, then its event.
func (inc *incarnation) enter(ctx context.Context) (leave func(), err error) {
	release := func() error { return nil }
	if watcher, ok := store.As[store.ProcessWatcher](inc.client.store); ok {
		held, err := watcher.Attest(ctx, inc.id)
		if err != nil && !errors.Is(err, store.ErrNoProof) {
			return nil, err
		}
		if inc.swept = err == nil; inc.swept {
			release = held
		}
	}
	leave = func() {
		if err := release(); err != nil {
			inc.log.Warn("worker's proof of life was not let go", "error", err)
		}
	}
	if heart, ok := store.As[store.Heart](inc.client.store); ok {
		beat := store.Beat{Worker: inc.id, First: true, Interval: inc.opts.HeartbeatInterval}
		bounded, cancel := inc.client.within(ctx)
		defer cancel()
		if _, err := heart.Beat(bounded, beat); err != nil {
			leave()
			return nil, err
		}
	}
	host, _ := os.Hostname() // a worker without a host name is still a worker
	started := events.WorkerStarted{
		Host: host, PID: os.Getpid(), Version: inc.opts.Program, Topics: inc.names,
		Concurrency: inc.opts.Concurrency, HeartbeatInterval: inc.opts.HeartbeatInterval, Proof: inc.swept,
	}
	if err := inc.operate(ctx, fsm.StartWorker{Started: started}); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// stop says that the incarnation ended as it should.
func (inc *incarnation) stop(ctx context.Context) error {
	if err := inc.operate(ctx, fsm.StopWorker{}); err != nil {
		return fmt.Errorf("stop worker %s: %w", inc.id, err)
	}
	if heart, ok := store.As[store.Heart](inc.client.store); ok {
		if err := heart.Still(ctx, inc.id); err != nil {
			return fmt.Errorf("stop worker %s: %w", inc.id, err)
		}
	}
	return nil
}

func (inc *incarnation) operate(ctx context.Context, command fsm.WorkerCommand) error {
	_, err := inc.client.decide(ctx, func(o calls.Origin) store.Call {
		return calls.OperateWorker(o, fsm.OperateWorker{Worker: inc.id, Command: command})
	})
	return err
}

// sweep gives back what the dead held.
func (inc *incarnation) sweep(ctx context.Context) {
	if !inc.swept || inc.opts.Sweeps == SweepsOff {
		return
	}
	report, err := reaper.Sweep{
		Store: inc.client.store, Decide: inc.client.decide, Caller: inc.id, Limit: inc.opts.OrphanMaxAttempts,
	}.Run(ctx)
	if len(report.Workers) > 0 {
		inc.log.WarnContext(ctx, "messages of workers that are gone were given back",
			"workers", len(report.Workers), "requeued", report.Requeued, "dead_lettered", report.DeadLettered)
		if inc.opts.OnSwept != nil {
			inc.opts.OnSwept(Swept(report))
		}
	}
	if err != nil && ctx.Err() == nil {
		inc.log.ErrorContext(ctx, "sweep failed", "error", err)
	}
}

// cancelAll ends the contexts of all running handlers.
func (inc *incarnation) cancelAll(cause error) {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	for _, c := range inc.claims {
		c.cancel(cause)
	}
}

// drain waits for the running handlers, and ends their contexts when they take too long.
func (inc *incarnation) drain(life context.Context) {
	done := make(chan struct{})
	go func() { // ends with the last handler, which drain waits for
		inc.handling.Wait()
		close(done)
	}()
	if inc.opts.DrainTimeout >= 0 {
		timer := time.NewTimer(inc.opts.DrainTimeout)
		defer timer.Stop()
		select {
		case <-done:
			return
		case <-timer.C:
			inc.cancelAll(ErrStopping)
		case <-life.Done():
		}
	}
	<-done
}

// unsettled waits until every result is in the store, for SettleTimeout at most, and says which are not.
func (inc *incarnation) unsettled(life context.Context) error {
	timer := time.NewTimer(inc.opts.SettleTimeout)
	defer timer.Stop()
	for {
		inc.mu.Lock()
		left := len(inc.claims)
		inc.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-inc.freed:
		case <-life.Done():
			return nil // whoever ended it says why
		case <-timer.C:
			return fmt.Errorf("worker %s: the store did not take %d results within %s; their messages are given back by a sweep",
				inc.id, left, inc.opts.SettleTimeout)
		}
	}
}

// hint wakes whoever waits on a channel of one hint.
func hint(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
