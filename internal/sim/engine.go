package sim

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// clock is the store's clock, which can be set.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) step(by time.Duration) { c.ahead.Add(int64(by)) }

// engine is the store of all, which tells of each commit as it happens.
type engine struct {
	*memory.Store
	note func([]events.Recorded)

	mu   sync.Mutex
	seen int64 // the last position that was told of
}

// Decide implements store.Store.
func (e *engine) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	receipts, err := e.Store.Decide(ctx, calls...)
	for _, r := range receipts {
		if n := len(r.Events); n > 0 && r.Events[0].Position > e.seen {
			e.seen = r.Events[n-1].Position
			e.note(r.Events)
		}
	}
	return receipts, err
}

// errOutage is the error of a call that found the store out of reach.
var errOutage = errors.New("the store is out of reach")

// outage keeps everybody from the store for a while.
type outage struct {
	mu    sync.Mutex
	over  chan struct{} // nil while the store is there
	hangs bool          // calls wait for its end, rather than fail
}

func (o *outage) begin(hangs hanging) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over == nil {
		o.over, o.hangs = make(chan struct{}), hangs == callsHang
	}
}

// hanging says what becomes of calls while the store is out of reach.
type hanging uint8

const (
	callsFail hanging = iota
	callsHang
)

func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over != nil {
		close(o.over)
		o.over = nil
	}
}

func (o *outage) state() (over <-chan struct{}, hangs bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over, o.hangs
}

// pass waits until the store can be reached, or says that it cannot.
func (o *outage) pass(ctx context.Context) error {
	for {
		over, hangs := o.state()
		if over == nil {
			return nil
		}
		if !hangs {
			return errOutage
		}
		select {
		case <-over:
		case <-ctx.Done():
			return errors.Join(errOutage, ctx.Err())
		}
	}
}

// kernel knows which of the incarnations that were attested have ended.
type kernel struct {
	mu    sync.Mutex
	ended map[events.ID]bool
}

func (k *kernel) attest(worker events.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended[worker] = false
}

func (k *kernel) release(worker events.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended[worker] = true
}

func (k *kernel) gone(workers []events.ID) []events.ID {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []events.ID
	for _, worker := range workers {
		if k.ended[worker] {
			list = append(list, worker)
		}
	}
	return list
}
