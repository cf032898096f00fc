package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// maxBatch bounds how many calls share a commit.
const maxBatch = 500

// Batch makes concurrent calls share commits: whatever arrived while the last commit was in flight goes into the next one. Each call is
// still settled and decided by itself. Nobody waits for company: a call that finds the store idle goes at once.
//
// A caller whose ctx ends before its own calls were decided is withdrawn at once, whoever else shares the commit. Until that commit has
// ended the slices of its calls may still be read.
//
// It keeps the engine's optional powers reachable through [As].
func Batch(inner Store) Store {
	return &batch{Store: inner}
}

// As finds an optional power of a store (Waiter, ProcessWatcher, Heart, Leaser, Pruner, Shelf, Stager) behind any decorators.
func As[T any](s Store) (T, bool) {
	for {
		if power, ok := s.(T); ok {
			return power, true
		}
		wrapper, ok := s.(interface{ Unwrap() Store })
		if !ok {
			var none T
			return none, false
		}
		s = wrapper.Unwrap()
	}
}

type batch struct {
	Store
	mu      sync.Mutex
	waiting []*group
	busy    bool // somebody carries groups to the store
}

// group is the calls of one Decide.
type group struct {
	ctx      context.Context
	calls    []Call
	receipts []Receipt
	err      error
	done     chan struct{}
	state    atomic.Int32 // waiting, begun or withdrawn
}

// The states of a group. From waiting there is one step, to begun or to withdrawn, and whoever makes it decides what becomes of the
// group.
const (
	waiting int32 = iota
	begun
	withdrawn
)

// begin makes sure that the group can be withdrawn no more. It is false where that has happened.
func (g *group) begin() bool {
	return g.state.CompareAndSwap(waiting, begun) || g.state.Load() == begun
}

// errWithdrawn refuses the calls of a group whose caller was told that nothing was done.
var errWithdrawn = errors.New("withdrawn: its context has ended")

// joining is the group's calls for a commit with others. The first that is decided begins the group.
func (g *group) joining(list []Call) []Call {
	for _, call := range g.calls {
		fn := call.Fn
		call.Fn = func(view View) (Changes, error) {
			if !g.begin() {
				return Changes{}, errWithdrawn
			}
			return fn(view)
		}
		list = append(list, call)
	}
	return list
}

// alone has the store decide the group by itself, which then heeds its context.
func (g *group) alone(s Store) ([]Receipt, error) {
	if !g.begin() {
		return nil, errWithdrawn
	}
	return s.Decide(g.ctx, g.calls...)
}

// Unwrap is the store behind the decorator.
func (b *batch) Unwrap() Store { return b.Store }

// Decide implements Store.
func (b *batch) Decide(ctx context.Context, calls ...Call) ([]Receipt, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	g := &group{ctx: ctx, calls: calls, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, g)
	carry := !b.busy
	b.busy = true
	b.mu.Unlock()
	if carry {
		// The carrier serves everybody who came meanwhile and hands over when nobody waits, so it works apart from its own caller.
		go b.carry()
	}
	select {
	case <-g.done:
		return g.receipts, g.err
	case <-ctx.Done():
		if b.withdraw(g) {
			return nil, ctx.Err()
		}
		<-g.done // it is being committed, which no context cancels
		return g.receipts, g.err
	}
}

// withdraw gives up a group that has not begun, and takes it out of the queue where nobody carries it yet.
func (b *batch) withdraw(g *group) bool {
	if !g.state.CompareAndSwap(waiting, withdrawn) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, g); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	return true
}

func (b *batch) carry() {
	for {
		groups := b.take()
		if groups == nil {
			return
		}
		b.commit(groups)
	}
}

// take is the next groups to commit together: as many as the bound allows, at least one. With nobody waiting the carrier is done.
func (b *batch) take() []*group {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, calls := 0, 0
	for n < len(b.waiting) && (n == 0 || calls+len(b.waiting[n].calls) <= maxBatch) {
		calls += len(b.waiting[n].calls)
		n++
	}
	if n == 0 {
		b.busy = false
		return nil
	}
	groups := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	return groups
}

// commit brings the groups to the store as one commit. Where that fails before anything was kept, each group is tried by itself, so
// that one that the store cannot take (too large, a failing disk page) does not fail its neighbours.
func (b *batch) commit(groups []*group) {
	if len(groups) == 1 {
		g := groups[0]
		g.receipts, g.err = g.alone(b.Store)
		close(g.done)
		return
	}
	ctx, cancel := joint(groups)
	defer cancel()
	var calls []Call
	for _, g := range groups {
		calls = g.joining(calls)
	}
	receipts, err := b.Store.Decide(ctx, calls...)
	for _, g := range groups {
		if err != nil {
			g.receipts, g.err = b.settle(g, err)
		} else {
			g.receipts, receipts = receipts[:len(g.calls):len(g.calls)], receipts[len(g.calls):]
		}
		close(g.done)
	}
}

// settle is a group's answer after the joint commit failed: the doubt, where there is one, else what the store says of it alone.
func (b *batch) settle(g *group, err error) ([]Receipt, error) {
	if errors.Is(err, ErrUnknown) || errors.Is(err, ErrClosed) {
		return nil, err
	}
	return g.alone(b.Store)
}

// joint is a context that ends when those of all groups have ended.
func joint(groups []*group) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(groups[0].ctx))
	var left atomic.Int64
	left.Store(int64(len(groups)))
	stops := make([]func() bool, len(groups))
	for i, g := range groups {
		stops[i] = context.AfterFunc(g.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
