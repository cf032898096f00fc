package foundling

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// incarnation is a worker under one id, from its start to its end. All its goroutines end before its run returns.
type incarnation struct {
	*Worker
	id       ID
	log      *slog.Logger
	names    []string    // its topics
	leads    atomic.Bool // the beat, as of its last step
	counted  atomic.Bool // there is a checkpoint of what is counted, or none is to be had: retention may begin
	provable bool        // the engine can prove deaths, and this incarnation's own
	pulse    pulse       // what is known of its own heartbeats

	mu       sync.Mutex
	claims   map[hold]*claim // what it runs or has still to settle
	results  []result        // ended, not settled yet
	unknown  strays          // claims and permits of the last reading that no handler of this worker goes with
	released int             // claims given back
	hooking  int             // calls of OnError under way
	asked    int             // claims that were sent
	answered int             // those of them whose messages are among claims by now, or that came to nothing

	freed    chan struct{} // a hint that a slot came free
	arrived  chan struct{} // a hint that a result waits
	missed   chan struct{} // a hint that the worker was silent for so long that others may have acted on it
	handling sync.WaitGroup
	hooks    sync.WaitGroup
}

// hold names a claim. A message that was taken back may come again to the worker whose first handler of it still runs.
type hold struct {
	message ID
	token   Token
}

// claim is one message in this worker's hands.
type claim struct {
	delivery delivery
	cancel   context.CancelCauseFunc
}

// newIncarnation is a worker under a new id, which nobody knows yet.
func newIncarnation(ctx context.Context, w *Worker) (*incarnation, error) {
	bounded, cancel := w.client.within(ctx)
	defer cancel()
	id, err := w.client.mint(bounded)
	if err != nil {
		return nil, err
	}
	return &incarnation{
		Worker: w, id: id, log: w.log.With(keyWorker, id), names: w.topics(), claims: map[hold]*claim{},
		freed: make(chan struct{}, 1), arrived: make(chan struct{}, 1), missed: make(chan struct{}, 1),
	}, nil
}

// runIncarnation is the life of a worker under a new id.
func runIncarnation(ctx context.Context, w *Worker) error {
	if ctx.Err() != nil {
		return nil // stopped before it began
	}
	// What a start has begun and what a stop has to write must not end with the context that asked for it.
	writing := context.WithoutCancel(ctx)
	inc, err := newIncarnation(writing, w)
	if err != nil {
		return fmt.Errorf("run worker: %w", &startError{err})
	}
	leave, err := inc.enter(writing)
	if err != nil {
		return fmt.Errorf("run worker %s: %w", inc.id, &startError{err})
	}
	defer leave()
	return inc.live(ctx)
}

// live claims until ctx ends or the incarnation is over, then drains. Its heart, its upkeep and its settling go on while it drains: the
// tokens of what it holds are good until the store says otherwise.
func (inc *incarnation) live(ctx context.Context) error {
	writing := context.WithoutCancel(ctx)
	life, end := context.WithCancel(writing)
	defer end()
	defer inc.hooks.Wait()
	claiming, stopClaiming := context.WithCancel(ctx)
	defer stopClaiming()
	var tasks sync.WaitGroup
	var over error // why the incarnation cannot go on
	tasks.Go(func() { inc.settleLoop(life) })
	tasks.Go(func() { inc.upkeepLoop(life) })
	tasks.Go(func() { inc.beatLoop(life) })
	tasks.Go(func() { inc.totalsLoop(life) })
	tasks.Go(func() { inc.fenceLoop(life) })
	tasks.Go(func() { inc.client.stagedLoop(claiming) })
	tasks.Go(func() {
		if over = inc.heartLoop(life); over != nil {
			stopClaiming()
			inc.cancelAll(ErrClaimLost)
		}
	})
	inc.claimLoop(claiming)
	inc.drain()
	unsettled := inc.unsettled()
	end()
	tasks.Wait()
	// With results that the store did not take, the worker's row stays: its proof of life goes, and a sweep gives back what it held.
	if unsettled != nil {
		inc.unstored(writing)
		return errors.Join(over, unsettled)
	}
	return errors.Join(over, inc.stop(writing))
}

// enter makes the incarnation known: its proof of life first, then its first heartbeat, then its event.
func (inc *incarnation) enter(ctx context.Context) (leave func(), err error) {
	release := func() error { return nil }
	if watcher, ok := store.As[store.ProcessWatcher](inc.client.store); ok {
		bounded, cancel := inc.client.within(ctx)
		held, err := watcher.Attest(bounded, inc.id)
		cancel()
		if err != nil && !errors.Is(err, store.ErrNoProof) {
			return nil, err
		}
		if inc.provable = err == nil; inc.provable {
			release = held
		}
	}
	leave = func() {
		if err := release(); err != nil {
			inc.log.Warn("worker's proof of life was not let go", keyError, err)
		}
	}
	if err := inc.begin(ctx); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// begin sends the first heartbeat, and says what the worker is.
func (inc *incarnation) begin(ctx context.Context) error {
	if heart, ok := store.As[store.Heart](inc.client.store); ok {
		if err := inc.beat(ctx, heart, firstBeat); err != nil {
			return err
		}
	}
	host, _ := os.Hostname() // a worker without a host name is still a worker
	started := events.WorkerStarted{
		Host: host, PID: os.Getpid(), Version: inc.opts.Program, Topics: inc.names,
		Concurrency: inc.opts.Concurrency, HeartbeatInterval: inc.opts.HeartbeatInterval, Proof: inc.provable,
		FenceAfter: max(inc.opts.FenceAfter, 0), Retention: inc.opts.Retention,
	}
	if started.Retention == Forever {
		started.Retention = -time.Microsecond // the least that an event can tell
	}
	for _, name := range inc.names {
		started.Limits = append(started.Limits, inc.handlers[name].start.Limit)
	}
	if _, err := inc.operate(ctx, fsm.StartWorker{Started: started}); err != nil {
		return err
	}
	return inc.introduce(ctx)
}

// introduce makes the worker's topics known that nobody has seen yet, with what the code says they start with. A topic that has another
// limit keeps it: two deploys must not fight over it.
func (inc *incarnation) introduce(ctx context.Context) error {
	if len(inc.names) == 0 {
		return nil // it only sweeps
	}
	command := fsm.Enqueue{Topics: map[string]fsm.TopicStart{}}
	for _, topic := range inc.names {
		command.Topics[topic] = fsm.TopicStart{Limit: inc.handlers[topic].start.Limit}
	}
	if _, err := inc.client.decide(ctx, func(o calls.Origin) store.Call {
		call, _ := calls.Enqueue(o, command, nil)
		return call
	}); err != nil {
		return err
	}
	for _, name := range inc.names {
		inc.client.topics.learn(name)
		declared := inc.handlers[name].start.Limit
		if declared == 0 { // it declares nothing that the store could contradict
			continue
		}
		t, err := inc.client.topic(ctx, name)
		if err != nil {
			return err
		}
		if t.Limit != declared {
			inc.log.WarnContext(ctx, "topic has another limit than this worker's code declares; ConfigureTopic changes it",
				keyTopic, name, keyLimit, t.Limit, keyDeclared, declared)
		}
	}
	return nil
}

// stop says that the incarnation ended as it should. What the store still has under it, such as a claim whose answer was lost, is given
// back with it.
func (inc *incarnation) stop(ctx context.Context) error {
	for stopped := false; !stopped; {
		receipt, err := inc.operate(ctx, fsm.StopWorker{Released: inc.released})
		if err != nil {
			return fmt.Errorf("stop worker %s: %w", inc.id, err)
		}
		for _, r := range receipt.Events {
			switch r.Event.Type() {
			case events.TypeMessageRequeued:
				inc.released++
			case events.TypeWorkerStopped:
				stopped = true
			}
		}
	}
	if heart, ok := store.As[store.Heart](inc.client.store); ok {
		bounded, cancel := inc.client.within(ctx)
		defer cancel()
		if err := heart.Still(bounded, inc.id); err != nil {
			return fmt.Errorf("stop worker %s: %w", inc.id, err)
		}
	}
	return nil
}

func (inc *incarnation) operate(ctx context.Context, command fsm.WorkerCommand) (store.Receipt, error) {
	return inc.client.decide(ctx, func(o calls.Origin) store.Call {
		return calls.OperateWorker(o, fsm.OperateWorker{Worker: inc.id, Command: command})
	})
}

// cancelAll ends the contexts of all running handlers.
func (inc *incarnation) cancelAll(cause error) {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	for _, c := range inc.claims {
		c.cancel(cause)
	}
}

// fenceAll ends the contexts of the running handlers that are to be fenced, and says how many it ended and how many go on.
func (inc *incarnation) fenceAll() (ended, warned int) {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	for _, c := range inc.claims {
		if inc.handlers[c.delivery.message.Topic].start.Fence == FenceWarns {
			warned++
			continue
		}
		ended++
		c.cancel(ErrFenced)
	}
	return ended, warned
}

// drain waits for the running handlers, and ends their contexts when they take too long.
func (inc *incarnation) drain() {
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
		}
	}
	<-done
}

// unsettled waits until every result is in the store, for SettleTimeout at most, and says which are not.
func (inc *incarnation) unsettled() error {
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
		case <-timer.C:
			return fmt.Errorf("worker %s: the store did not take %d results within %s; a sweep gives their messages back",
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
