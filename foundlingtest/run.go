package foundlingtest

import (
	"context"
	"sync"
	"time"

	"github.com/foundling-go/foundling"
)

const (
	// maxEvents is how many events a run may lead to before it is held to go on for ever.
	maxEvents = 1_000_000
	// defaultSteps is how often a run may let time go by, where nothing else is said.
	defaultSteps = 10_000
)

// RunUntilIdle runs a worker, whose handlers register adds, until no message of their topics is running or could be: until all that are left
// are due later, blocked by a lock that is taken, or of a paused topic. It waits for handlers, and fails the test where the worker cannot run.
func (c *Client) RunUntilIdle(t TB, register func(*foundling.Worker)) {
	t.Helper()
	r := c.begin(t, c.hinted(), register)
	r.idle(t)
	r.end(t)
}

// RunUntilEnded runs a worker, whose handlers register adds, and lets time go by to whatever of their topics is due next, again and again, until
// nothing is due later any more: every message has ended, is a dead letter, or waits for something other than time. It fails the test where
// that does not come about within Options.Steps, as with a handler that snoozes for ever.
func (c *Client) RunUntilEnded(t TB, register func(*foundling.Worker)) {
	t.Helper()
	r := c.begin(t, c.hinted(), register)
	next := r.idle(t)
	for range c.steps {
		if next.IsZero() {
			break
		}
		c.clock.advance(next.Sub(c.Now()))
		c.engine.hint()
		next = r.idle(t)
	}
	r.end(t)
	if next.IsZero() {
		return
	}
	t.Fatalf("foundlingtest: after %d steps of time, by %s, there are still messages that wait for more:\n%s", c.steps, c.since(c.Now()), c.openText())
}

// Start runs a worker, whose handlers register adds, beside the test until stop is called or the test ends. stop waits for running handlers
// and returns when their results are in the store; further calls do nothing.
func (c *Client) Start(t TB, register func(*foundling.Worker)) (stop func()) {
	t.Helper()
	r := c.begin(t, c.worker, register)
	var once sync.Once
	stop = func() {
		t.Helper()
		once.Do(func() { r.end(t) })
	}
	t.Cleanup(stop)
	return stop
}

// run is a worker that runs.
type run struct {
	client *Client
	gauge  *gauge
	stop   context.CancelFunc
	alive  context.Context // ends when Run has returned
	result error           // what it returned; to be read once it has
}

// hinted is the settings of a worker that is told when time has gone by.
func (c *Client) hinted() foundling.WorkerOptions {
	o := c.worker
	o.PollInterval = c.clock.poll()
	return o
}

// begin starts a worker and returns when it claims.
func (c *Client) begin(t TB, o foundling.WorkerOptions, register func(*foundling.Worker)) *run {
	t.Helper()
	w, err := foundling.NewWorker(c.Client, o)
	if err != nil {
		t.Fatalf("foundlingtest: %v", err)
	}
	register(w)
	select {
	case <-c.engine.watched: // an old hint
	default:
	}
	running, stop := context.WithCancel(ctx())
	alive, ended := context.WithCancel(ctx())
	r := &run{client: c, gauge: newGauge(c), stop: stop, alive: alive}
	go func() {
		defer ended()
		r.result = w.Run(running)
	}()
	select {
	case <-c.engine.watched:
	case <-alive.Done():
		r.end(t)
	}
	return r
}

// idle waits until nothing more is to be done now, and says when something will be; zero is never.
func (r *run) idle(t TB) (next time.Time) {
	t.Helper()
	for {
		look, err := r.gauge.look()
		if err == nil && !look.idle {
			err = r.gauge.follow(r.alive)
		}
		switch {
		case r.alive.Err() != nil:
			r.end(t)
			t.Fatalf("foundlingtest: the worker has ended with messages to handle")
		case err != nil:
			r.end(t)
			t.Fatalf("foundlingtest: %v", err)
		case look.idle:
			return look.next
		case r.gauge.seen > maxEvents:
			r.end(t)
			t.Fatalf("foundlingtest: after %d events there is still something to do now:\n%s", r.gauge.seen, r.client.openText())
		}
	}
}

// end stops the worker and waits for it.
func (r *run) end(t TB) {
	t.Helper()
	r.stop()
	<-r.alive.Done()
	if r.result != nil {
		t.Fatalf("foundlingtest: %v", r.result)
	}
}
