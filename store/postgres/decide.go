package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// Decide implements store.Store. Calls share a transaction for as long as a later one need not see among rows what an earlier one has changed there.
func (s *Store) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("postgres: decide: %w", err)
	}
	defer s.calls.Done()
	receipts := make([]store.Receipt, 0, len(calls))
	kept := false
	for len(calls) > 0 {
		part, err := s.decide(ctx, calls)
		if err != nil {
			if kept && !errors.Is(err, store.ErrUnknown) {
				err = fmt.Errorf("%w: some of the calls were committed: %w", store.ErrUnknown, err)
			}
			return nil, fmt.Errorf("postgres: decide: %w", err)
		}
		for i := range part {
			kept = kept || len(part[i].Events) > 0
		}
		receipts, calls = append(receipts, part...), calls[len(part):]
	}
	return receipts, nil
}

// plan is what earlier tries of a Decide have taught.
type plan struct {
	reading  bool // what is known must be read
	doubting bool // what is said to be new is looked up
	holding  bool // a glance was not enough
	entities map[events.Entity]bool
	permits  map[store.PermitKey]bool
	topics   map[string]bool // their rows are held: their counts move
	over     int             // how many damaged rows pages pass over
	lost     int             // connections, before anything was to be committed
}

// errHold says that a decision changes what it did not hold.
type errHold struct {
	entities []events.Entity
	permits  []store.PermitKey
	topics   []string
}

func (*errHold) Error() string { return "a decision changes what it did not hold" }

// errCut ends a transaction before a call that must see in the tables what those before it have changed.
var errCut = errors.New("the next call needs a transaction of its own")

// errBlind says that a call cannot be decided by what the caller knows alone.
var errBlind = errors.New("a call must read")

// A commit that was in somebody's way, or found somebody in its own, is tried again after a pause. Locks that are waited for in vain are waited
// for again until the caller's patience is over.
const (
	maxTries  = 50
	leastWait = time.Millisecond
	mostWait  = 100 * time.Millisecond
)

// decide keeps the first of the calls: one at least.
func (s *Store) decide(ctx context.Context, calls []store.Call) ([]store.Receipt, error) {
	p := &plan{entities: map[events.Entity]bool{}, permits: map[store.PermitKey]bool{}, topics: map[string]bool{}}
	wait := leastWait
	for try := 1; ; try++ {
		receipts, err := s.try(ctx, calls, p)
		if err == nil {
			return receipts, nil
		}
		lost := p.lost
		pauses, again := p.learn(err)
		if p.lost > lost {
			s.suspect(p.lost)
		}
		if lacks := s.lacking(err); lacks != nil {
			pauses, again = false, true
			if supplied := lacks(ctx); code(supplied) == codeLocked || code(supplied) == codeDeadlock {
				pauses, err = true, supplied
			} else if supplied != nil {
				return nil, s.classed(supplied)
			}
		}
		if !again || try == maxTries && code(err) != codeLocked {
			return nil, s.classed(err)
		}
		if pauses {
			if err := s.rest(ctx, wait); err != nil {
				return nil, err
			}
			wait = min(2*wait, mostWait)
		}
	}
}

// lacking is what brings what a try has found missing; nil where nothing was.
func (s *Store) lacking(err error) func(context.Context) error {
	switch code(err) {
	case codeBeyond, codeNoRange:
		return s.haveRanges
	case codeStarted:
		return s.recognize
	}
	return nil
}

// learn takes in why a try came to nothing. It is false where there is no use in another.
func (p *plan) learn(err error) (pauses, again bool) {
	var hold *errHold
	switch {
	case errors.Is(err, store.ErrUnknown):
		return false, false
	case errors.As(err, &hold):
		p.reading = true
		for _, e := range hold.entities {
			p.entities[e] = true
		}
		for _, topic := range hold.topics {
			p.topics[topic] = true
		}
		for _, key := range hold.permits {
			p.permits[key] = true
		}
		return false, true
	case errors.Is(err, errBlind):
		p.reading = true
		return false, true
	case errors.Is(err, errGlanced):
		p.holding = true
		return false, true
	}
	switch code(err) {
	case codeMoved:
		pauses, p.reading = p.reading, true
		return pauses, true
	case codeTaken:
		pauses, p.reading, p.doubting = p.doubting, true, true
		return pauses, true
	case codeDeadlock, codeSerial, codeLocked, codeIdleTooLong:
		return true, true
	}
	if isLost(err) && p.lost < askAttempts {
		p.lost++
		return true, true
	}
	return false, false
}

// rest waits a while, some of it by chance, so that those who were in each other's way are not again.
func (s *Store) rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return store.ErrClosed
	}
}

// try runs the calls in one transaction.
func (s *Store) try(ctx context.Context, calls []store.Call, p *plan) ([]store.Receipt, error) {
	a := newAttempt(s, p)
	if !p.reading {
		now, ok := s.lowerBound()
		if !ok || !a.foresee(calls) {
			p.reading = true
			a = newAttempt(s, p) // what it took for so may not be so
		} else {
			a.blind, a.now, a.guarded = true, now, s.ids.state()
			a.dropped, a.pruned = a.guarded.at, a.guarded.through
			receipts, err := a.decideAll(calls)
			if err == nil {
				err = a.commit(ctx)
			}
			return receipts, err
		}
	}
	defer a.close()
	calls = alone(calls)
	a.looks = !p.holding && s.empties.all(calls)
	if err := a.hold(ctx, calls); err != nil {
		if a.conn != nil && a.conn.Conn().IsClosed() && !ended(ctx, err) {
			err = lostError{err}
		}
		return nil, err
	}
	receipts, err := a.decideAll(calls)
	if err == nil && a.looks && len(a.log) > 0 {
		err = errGlanced
	}
	if err != nil {
		return nil, err
	}
	return receipts, a.commit(ctx)
}

// alone is the first of the calls where it prunes, or those before one that does: what it lets go of, nobody beside it may still see.
func alone(calls []store.Call) []store.Call {
	for i := range calls {
		if calls[i].Need.Prune.Asks() {
			return calls[:max(i, 1)]
		}
	}
	return calls
}

// decideAll runs calls up to the first that needs a transaction of its own, and gives their receipts.
func (a *attempt) decideAll(calls []store.Call) ([]store.Receipt, error) {
	receipts := make([]store.Receipt, 0, len(calls))
	for i := range calls {
		receipt, err := a.decide(&calls[i])
		if errors.Is(err, errCut) && i > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		receipts = append(receipts, receipt)
	}
	return receipts, nil
}

// decide runs one call. The error is the store's; a refused call is a receipt.
func (a *attempt) decide(call *store.Call) (store.Receipt, error) {
	refused := store.Receipt{ID: call.ID}
	if a.calls[call.ID] {
		return refused, errCut // it stands twice, and the first of them is not committed yet
	}
	if used, ok := a.used[call.ID]; ok {
		return a.repeat(call.ID, used)
	}
	if refused.Err = checkID(call.ID, a.now, a.dropped); refused.Err != nil {
		return refused, nil
	}
	changes, now, err := a.run(call)
	refusal, ok := ofCall(err)
	if a.blind && (ok || err == nil && changes.Empty()) {
		return refused, errBlind // what it knows may be wrong, and nothing is kept that would show it
	}
	if ok {
		refused.Err = refusal
		return refused, nil
	}
	if err != nil || changes.Empty() {
		return refused, err
	}
	return a.keep(call, now, changes)
}

// run gives the changes of a call that may be kept, and the time at which it was decided.
func (a *attempt) run(call *store.Call) (store.Changes, time.Time, error) {
	view, err := a.see(&call.Need)
	if err != nil {
		return store.Changes{}, view.Now, err
	}
	changes, err := call.Run(view)
	if err == nil {
		err = errors.Join(changes.Check(), storable(changes))
	}
	if err != nil {
		return store.Changes{}, view.Now, atFault{err}
	}
	if a.blind && !changesAll(call.Need.Known, changes) {
		return changes, view.Now, errBlind
	}
	if (changes.Prune != 0 || len(changes.Erase) > 0) && (a.blind || len(a.log) > 0) {
		if a.blind {
			return changes, view.Now, errBlind
		}
		return changes, view.Now, errCut
	}
	return changes, view.Now, a.check(changes)
}

// changesAll reports whether all that was known is changed, so that its versions are found to be right or wrong.
func changesAll(known []store.Row, changes store.Changes) bool {
	if len(known) == 0 {
		return true
	}
	from := make(map[events.Entity]int, len(changes.Rows))
	for i := range changes.Rows {
		from[changes.Rows[i].Row.Entity] = changes.Rows[i].From
	}
	for i := range known {
		if from[known[i].Entity] != known[i].Version {
			return false
		}
	}
	return true
}
