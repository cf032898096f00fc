package faulty

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// The errors of calls that the plan made fail.
var (
	// ErrPlanned is the error of a call whose answer is an error by plan.
	ErrPlanned = errors.New("fault by plan")
	// ErrStopped is the error of the call that stopped the store, and of every later one. It is a store.ErrClosed, so that nobody
	// tries again.
	ErrStopped = fmt.Errorf("stopped by plan: %w", store.ErrClosed)
)

// Store is a store with faults. Optional powers of the store behind it are reached through [store.As] and have the same faults.
type Store struct {
	inner store.Store
	plan  Plan
	next  store.Store // the first link of its powers; see link

	mu      sync.Mutex
	calls   int
	of      [len(opWords)]int
	stopped bool
	late    map[store.CommitID]store.Call
	proofs  map[*proof]struct{}
}

// New wraps a store, for one process of those that use it.
func New(inner store.Store, plan Plan) *Store {
	s := &Store{inner: inner, plan: plan, late: map[store.CommitID]store.Call{}, proofs: map[*proof]struct{}{}}
	s.next = s.link()
	return s
}

// Unwrap is the store behind the faults, with the powers that it has in between.
func (s *Store) Unwrap() store.Store { return s.next }

// Calls is how many calls there were, hints aside. Those after a stop count too.
func (s *Store) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// CallsOf is how many calls of one operation there were.
func (s *Store) CallsOf(op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[op]
}

// Stopped reports whether the plan has stopped the store.
func (s *Store) Stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// count numbers a call.
func (s *Store) count(op Op) Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[op]++
	if op == Hint {
		return Call{N: s.of[op], Op: op, Of: s.of[op]}
	}
	s.calls++
	return Call{N: s.calls, Op: op, Of: s.of[op]}
}

// begin is the fault of the call that begins, with its error where it goes no further.
func (s *Store) begin(op Op) (Fault, error) {
	fault := s.plan(s.count(op))
	if fault == StopBefore {
		s.stop()
	}
	if s.Stopped() {
		return fault, stopped(op)
	}
	if fault == Fail {
		return fault, planned(op)
	}
	return fault, nil
}

// end is the error of a call that has done its work and whose answer is lost.
func (s *Store) end(op Op, fault Fault) error {
	if fault == StopAfter {
		s.stop()
	}
	if s.Stopped() { // perhaps by another call: a process that is no more hears no answer
		return stopped(op)
	}
	if fault == LostAfter {
		return planned(op)
	}
	return nil
}

func planned(op Op) error { return fmt.Errorf("faulty: %s: %w", op, ErrPlanned) }

func stopped(op Op) error { return fmt.Errorf("faulty: %s: %w", op, ErrStopped) }

// stop takes the store from its process. The kernel would let go of what the process had attested.
func (s *Store) stop() {
	s.mu.Lock()
	s.stopped = true
	proofs := s.proofs
	s.proofs = map[*proof]struct{}{}
	s.mu.Unlock()
	for p := range proofs {
		_ = p.release() // the process is gone: there is nobody to tell
	}
}

// Decide implements store.Store.
func (s *Store) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	fault, err := s.begin(Decide)
	if err != nil {
		return nil, err
	}
	switch fault {
	case Late:
		s.hold(calls)
		fallthrough
	case LostBefore:
		return nil, unknown(planned(Decide))
	case Twice:
		calls = twice(calls)
	}
	receipts, err := s.inner.Decide(ctx, calls...)
	if lost := s.end(Decide, fault); lost != nil {
		return nil, unknown(lost)
	}
	return receipts, err
}

func unknown(err error) error { return fmt.Errorf("%w: %w", err, store.ErrUnknown) }

func (s *Store) hold(calls []store.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range calls {
		s.late[call.ID] = call
	}
}

// twice makes every Fn run for an empty store first, as an engine may run it before it has seen what changed meanwhile.
func twice(calls []store.Call) []store.Call {
	calls = slices.Clone(calls)
	for i, call := range calls {
		calls[i].Fn = func(view store.View) (store.Changes, error) {
			_, _ = call.Fn(store.View{Now: view.Now}) // thrown away, as the contract says
			return call.Fn(view)
		}
	}
	return calls
}

// Outcome implements store.Store.
func (s *Store) Outcome(ctx context.Context, id store.CommitID) (store.Receipt, bool, error) {
	var committed bool
	receipt, err := do(s, Outcome, func() (r store.Receipt, err error) {
		r, committed, err = s.inner.Outcome(ctx, id)
		if err == nil {
			s.deliver(ctx, id)
		}
		return r, err
	})
	return receipt, committed && err == nil, err
}

// deliver brings a call to the store that was on its way while its id was settled. Whoever sent it has given it up, so nobody is told
// what became of it: where it is not refused, the store does it behind everybody's back.
func (s *Store) deliver(ctx context.Context, id store.CommitID) {
	s.mu.Lock()
	call, ok := s.late[id]
	delete(s.late, id)
	s.mu.Unlock()
	if ok {
		_, _ = s.inner.Decide(context.WithoutCancel(ctx), call)
	}
}

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return each(s, Read, s.inner.Read(ctx, after, f))
}

// After implements store.Store. It reads nothing and is no call.
func (s *Store) After(r events.Recorded) store.Cursor { return s.inner.After(r) }

// Head implements store.Store.
func (s *Store) Head(ctx context.Context) (store.Cursor, error) {
	return do(s, Head, func() (store.Cursor, error) { return s.inner.Head(ctx) })
}

// Rows implements store.Store.
func (s *Store) Rows(ctx context.Context, f store.RowFilter) iter.Seq2[store.Row, error] {
	return each(s, Rows, s.inner.Rows(ctx, f))
}

// Permits implements store.Store.
func (s *Store) Permits(ctx context.Context, f store.PermitFilter) iter.Seq2[store.Permit, error] {
	return each(s, Permits, s.inner.Permits(ctx, f))
}

// Contents implements store.Store.
func (s *Store) Contents(ctx context.Context, message events.ID) (store.Contents, error) {
	return do(s, Contents, func() (store.Contents, error) { return s.inner.Contents(ctx, message) })
}

// Now implements store.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	return do(s, Now, func() (time.Time, error) { return s.inner.Now(ctx) })
}

// Close implements store.Store. It is no call that could have a fault. Once the plan has stopped the store it does nothing: a process
// that is no more closes nothing, and others may use the store behind it.
func (s *Store) Close() error {
	if s.Stopped() {
		return nil
	}
	return s.inner.Close()
}

// do is a call with one answer.
func do[T any](s *Store, op Op, call func() (T, error)) (T, error) {
	return face(s, op, func(Fault) (T, error) { return call() })
}

// face is do for a call that is told of its fault.
func face[T any](s *Store, op Op, call func(Fault) (T, error)) (T, error) {
	var none T
	fault, err := s.begin(op)
	if err == nil && fault == LostBefore && lasting(op) {
		err = planned(op)
	}
	if err != nil {
		return none, err
	}
	answer, err := call(fault)
	if fault == LostAfter && !lasting(op) {
		fault = None
	}
	if lost := s.end(op, fault); lost != nil {
		return none, lost
	}
	return answer, err
}

// lasting tells the operations beside Decide that leave something behind, so that it matters when their answer is lost.
func lasting(op Op) bool {
	switch op {
	case Outcome, Beat, Still, Lease, Save, Drop:
		return true
	}
	return false
}

// each is a call with many answers. It is counted when the caller begins to walk them.
func each[T any](s *Store, op Op, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		fault, err := s.begin(op)
		if err != nil {
			yield(none, err)
			return
		}
		given, wanted := 0, true
		for item, err := range all {
			var broken error // an error of the store's own may have more behind it
			switch {
			case err != nil:
			case s.Stopped():
				broken = stopped(op)
			case fault == BreakOff && given == 1:
				broken = planned(op)
			}
			given++
			if wanted = yield(item, cmp.Or(err, broken)); !wanted || broken != nil {
				break
			}
		}
		if fault == StopAfter {
			s.stop()
			if wanted {
				yield(none, stopped(op))
			}
		}
	}
}
