package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// lock is as much of a lock as the laws speak of.
type lock struct {
	state    events.State
	version  int
	permits  int // 0 where nobody configured it: it has one
	out      map[events.Token]*permit
	newest   events.Token // of all its permits so far
	orphaned events.Token // of the permit that the next event of the commit takes back
}

// permit is one that is out, as the store should list it.
type permit struct {
	store.Permit
	told bool // its claim was ended from outside: its handler was told to stop and has not said that it did
}

func (l *laws) lock(name string) *lock {
	if l.locks[name] == nil {
		l.locks[name] = &lock{out: map[events.Token]*permit{}}
	}
	return l.locks[name]
}

// permit is one that is out; nil where it is not.
func (l *laws) permit(name string, token events.Token) *permit {
	if k := l.locks[name]; k != nil {
		return k.out[token]
	}
	return nil
}

// free is how many permits can be taken.
func (k *lock) free() int { return max(k.permits, 1) - len(k.out) }

// lockEvent takes in an event of a lock: no more permits are out than it has, each comes back once, and tokens rise.
func (l *laws) lockEvent(k *lock, r events.Recorded) error {
	if r.From != k.state {
		return fmt.Errorf("law 1: it is recorded from %s, it was %s", r.From, k.state)
	}
	if e, ok := r.Event.(*events.LockRefused); ok {
		if p := k.out[e.Sent]; r.Version != 0 || r.To != k.state || p != nil && p.Worker == e.Sender {
			return errors.New("law 7: a refusal moves nothing, and a holder is not refused")
		}
		return nil
	}
	if k.version++; r.Version != k.version {
		return fmt.Errorf("law 1: version %d follows %d", r.Version, k.version-1)
	}
	k.state = r.To
	if err := k.move(r); err != nil {
		return err
	}
	if want := len(k.out) > 0; want != (k.state == events.Held) {
		return fmt.Errorf("law 7: it is %s, and %d permits are out", k.state, len(k.out))
	}
	return nil
}

func (k *lock) move(r events.Recorded) error {
	orphaned := k.orphaned
	k.orphaned = 0
	switch e := r.Event.(type) {
	case *events.LockConfigured:
		k.permits = e.Permits
	case *events.LockAcquired:
		return k.acquired(r, e)
	case *events.LockOrphaned:
		k.orphaned = e.Token
		if p := k.out[e.Token]; p == nil || p.Worker != e.Evidence.Claimer {
			return errors.New("law 7: the permit is not out, or another's")
		}
	case *events.LockReclaimed:
		if e.Token != orphaned {
			return errors.New("law 7: what is taken back was not orphaned just before")
		}
		return k.back(e.Token, e.Held)
	case *events.LockSnapshotted:
		return k.told(r, e)
	case *events.LockReleased:
		return k.back(e.Token, e.Held)
	case *events.LockForceReleased:
		return k.back(e.Token, e.Held)
	case *events.LockExpired:
		if p := k.out[e.Token]; p != nil && (p.ExpiresAt.IsZero() || p.ExpiresAt.After(r.At())) {
			return errors.New("law 7: its time is not over")
		}
		return k.back(e.Token, e.Held)
	default:
		return fmt.Errorf("the laws know no %s", r.Event.Type())
	}
	return nil
}

func (k *lock) acquired(r events.Recorded, e *events.LockAcquired) error {
	switch {
	case k.free() <= 0:
		return fmt.Errorf("law 7: %d permits are out of %d", len(k.out), max(k.permits, 1))
	case e.Token <= k.newest:
		return fmt.Errorf("law 7: token %d follows token %d", e.Token, k.newest)
	case e.Held != len(k.out)+1:
		return fmt.Errorf("law 7: %d are recorded as out, it is %d", e.Held, len(k.out)+1)
	}
	k.newest = e.Token
	k.out[e.Token] = &permit{Permit: store.Permit{
		PermitKey: store.PermitKey{Lock: r.Entity.Name, Token: e.Token},
		Worker:    e.Worker, Message: e.Message, AcquiredAt: r.At(), ExpiresAt: e.ExpiresAt,
	}}
	return nil
}

// back takes in that a permit is back.
func (k *lock) back(token events.Token, held int) error {
	if k.out[token] == nil {
		return fmt.Errorf("law 7: permit %d is back already", token)
	}
	if delete(k.out, token); held != len(k.out) {
		return fmt.Errorf("law 7: %d are recorded as out, it is %d", held, len(k.out))
	}
	return nil
}

// waits takes in what becomes of a message at a lock.
func (l *laws) waits(m *message, e events.Event) error {
	free := l.lock(m.lock).free()
	switch e := e.(type) {
	case *events.MessageBlocked:
		if m.trying = false; e.Lock != m.lock || free > 0 {
			return fmt.Errorf("law 3: it waits for lock %q, of which %d are free", e.Lock, free)
		}
	case *events.MessageUnblocked:
		if m.trying = true; e.Lock != m.lock || free <= 0 {
			return fmt.Errorf("law 3: it may try lock %q, of which %d are free", e.Lock, free)
		}
	case *events.MessageDiscarded:
		if m.ended = true; !m.skips || m.claims > 0 || free > 0 {
			return fmt.Errorf("law 3: it waits for its lock, or need not: %d are free, it was claimed %d times", free, m.claims)
		}
	}
	return nil
}

// settled holds what is left between two commits against the laws: every permit has its holder, and no waiter was forgotten.
func (l *laws) settled() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(l.locks)) {
		if err := l.holders(l.locks[name]); err != nil {
			errs = append(errs, fmt.Errorf("lock %s: %w", name, err))
		}
	}
	type queue struct{ lock, topic string }
	blocked, trying := map[queue]bool{}, map[queue]bool{}
	for _, m := range l.messages {
		q := queue{m.lock, m.topic}
		blocked[q] = blocked[q] || m.state == events.Blocked
		trying[q] = trying[q] || m.trying
	}
	for q, waits := range blocked {
		if waits && !trying[q] && l.lock(q.lock).free() > 0 {
			errs = append(errs, fmt.Errorf("law 3: lock %s is free, and of topic %s all who wait for it are blocked", q.lock, q.topic))
		}
	}
	return errors.Join(errs...)
}

// holders is law 7: whoever has a permit is an open claim, an open session, or a handler that was told to stop.
func (l *laws) holders(k *lock) error {
	if k.orphaned != 0 {
		return fmt.Errorf("law 7: orphaned permit %d was left out", k.orphaned)
	}
	for token, p := range k.out {
		if state := l.workers[p.Worker]; state == events.Stopped || state == events.Purged {
			return fmt.Errorf("law 7: the holder of permit %d is %s", token, state)
		}
		if p.Message == (events.ID{}) || p.told {
			continue
		}
		if m := l.messages[p.Message]; m == nil || m.claim.permit != token || m.claim.worker != p.Worker || m.lock != p.Lock {
			return fmt.Errorf("law 7: the claim that took permit %d has ended", token)
		}
	}
	return nil
}
