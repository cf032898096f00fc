package replay

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// out is a permit that is out, according to the log.
type out struct {
	store.Permit
	commit   store.CommitID // that took it
	orphaned bool           // its holder was found gone; the next event of that commit takes it back
	settled  int64          // the position at which its worker ended the claim that took it; 0 while the worker did not
	rowed    bool           // it was seen among those that are kept
}

// lockLaw says what is wrong with an event of a lock that the table allows (law 7).
func (v *verifier) lockLaw(r events.Recorded, h *held, after *fsm.Lock) string {
	switch e := r.Event.(type) {
	case *events.LockSnapshotted:
		return v.lockTold(e, h, after)
	case *events.LockAcquired:
		return v.acquired(e, h, after)
	case *events.LockOrphaned:
		return v.orphaned(e, after)
	}
	if end, ends := events.EndOf(r.Event); ends {
		return v.back(r, end, after)
	}
	return ""
}

// lockTold checks the permits that a snapshot tells of: those that are out, where all of them are known.
func (v *verifier) lockTold(e *events.LockSnapshotted, h *held, after *fsm.Lock) string {
	if len(e.Out) != after.Held {
		return fmt.Sprintf("it tells %d permits, %d are out", len(e.Out), after.Held)
	}
	last := events.Token(0)
	version, _ := h.value.At()
	known := v.out(after.Name)
	for _, told := range e.Out {
		p := known[told.Token]
		delete(known, told.Token)
		switch {
		case told.Token <= last:
			return fmt.Sprintf("it tells permit %d behind permit %d", told.Token, last)
		case p == nil && version > 0:
			return fmt.Sprintf("it tells permit %d, which is not out", told.Token)
		case p != nil && p.Permit != toldPermit(after.Name, told):
			return fmt.Sprintf("it tells permit %d as that of worker %s for message %s, it was taken otherwise", told.Token, told.Worker, told.Message)
		}
		last = told.Token
	}
	for token := range known {
		return fmt.Sprintf("it does not tell permit %d, which is out", token)
	}
	return ""
}

// toldPermit is a permit that a snapshot tells of.
func toldPermit(lock string, p events.PermitOut) store.Permit {
	return store.Permit{
		PermitKey: store.PermitKey{Lock: lock, Token: p.Token}, Worker: p.Worker, Message: p.Message, AcquiredAt: p.AcquiredAt, ExpiresAt: p.ExpiresAt,
	}
}

func (v *verifier) acquired(e *events.LockAcquired, h *held, after *fsm.Lock) string {
	before := h.value.(*fsm.Lock)
	switch {
	case e.Token <= h.token:
		return fmt.Sprintf("its token is %d, an earlier permit of the lock has %d", e.Token, h.token)
	case before.Free() <= 0:
		return fmt.Sprintf("it is permit number %d of a lock that has %d", after.Held, max(before.Permits, 1))
	case e.Held != after.Held:
		return fmt.Sprintf("%d permits are recorded as out, it is number %d", e.Held, after.Held)
	case e.Message == events.ID{}:
		return ""
	case !e.ExpiresAt.IsZero():
		return "a claim took it, and it has an end of its own"
	}
	m, known := v.message(e.Message)
	if known && (m.Lock != before.Name || m.State != events.Queued) {
		return fmt.Sprintf("a claim of %s takes it, which is %s and whose lock is %q", m.Entity(), m.State, m.Lock)
	}
	return ""
}

// message is a message that the log has open. One that it has not, its own events tell of.
func (v *verifier) message(id events.ID) (*fsm.Message, bool) {
	if h := v.held[events.MessageEntity(id)]; h != nil {
		return h.value.(*fsm.Message), true
	}
	return nil, false
}

// back checks the end of a permit. No permit ends twice.
func (v *verifier) back(r events.Recorded, end events.PermitEnd, after *fsm.Lock) string {
	p := v.permits[store.PermitKey{Lock: after.Name, Token: end.Token}]
	_, reclaimed := r.Event.(*events.LockReclaimed)
	_, expired := r.Event.(*events.LockExpired)
	switch {
	case p == nil:
		return fmt.Sprintf("it ends permit %d, which is not out", end.Token)
	case end.Held != after.Held:
		return fmt.Sprintf("%d permits are recorded as out, it leaves %d", end.Held, after.Held)
	case reclaimed != p.orphaned:
		return fmt.Sprintf("permit %d: that its holder is gone is %t", end.Token, p.orphaned)
	case expired && (p.ExpiresAt.IsZero() || r.At().Before(p.ExpiresAt)):
		return fmt.Sprintf("permit %d: its time is not over, it ends at %q", end.Token, instant(p.ExpiresAt))
	}
	return ""
}

func (v *verifier) orphaned(e *events.LockOrphaned, after *fsm.Lock) string {
	p := v.permits[store.PermitKey{Lock: after.Name, Token: e.Token}]
	switch {
	case p == nil:
		return fmt.Sprintf("permit %d is not out", e.Token)
	case p.Worker != e.Evidence.Claimer:
		return fmt.Sprintf("worker %s is gone, permit %d is that of %s", e.Evidence.Claimer, e.Token, p.Worker)
	}
	return ""
}

// keepPermit follows the permits that are out.
func (v *verifier) keepPermit(r events.Recorded, h *held) {
	switch e := r.Event.(type) {
	case *events.LockSnapshotted:
		for _, told := range e.Out {
			p := toldPermit(r.Entity.Name, told)
			if h.token = max(h.token, told.Token); v.permits[p.PermitKey] == nil {
				v.permits[p.PermitKey] = &out{Permit: p}
			}
		}
	case *events.LockAcquired:
		p := permitOf(r, e)
		h.token = e.Token
		v.permits[p.PermitKey] = &out{Permit: p, commit: r.Commit.ID}
	case *events.LockOrphaned:
		// that of a headless lock may not be known
		if p := v.permits[store.PermitKey{Lock: r.Entity.Name, Token: e.Token}]; p != nil {
			p.orphaned = true
		}
	}
	if end, ends := events.EndOf(r.Event); ends {
		delete(v.permits, store.PermitKey{Lock: r.Entity.Name, Token: end.Token})
	}
}

// permitOf is what a store keeps of a permit.
func permitOf(r events.Recorded, e *events.LockAcquired) store.Permit {
	return store.Permit{
		PermitKey: store.PermitKey{Lock: r.Entity.Name, Token: e.Token},
		Worker:    e.Worker, Message: e.Message, AcquiredAt: r.At(), ExpiresAt: e.ExpiresAt,
	}
}

// took checks that a claim names the permit that it took in its own commit.
func (v *verifier) took(r events.Recorded, e *events.MessageClaimed, m *fsm.Message) string {
	if (m.Lock != "") != (e.LockToken != 0) {
		return fmt.Sprintf("permit %d is recorded, its lock is %q", e.LockToken, m.Lock)
	}
	lock := events.LockEntity(m.Lock)
	if m.Lock == "" || v.broken[lock] {
		return ""
	}
	switch p := v.permits[store.PermitKey(m.Permit())]; {
	case p == nil:
		return fmt.Sprintf("permit %d of %s is not out", e.LockToken, lock)
	case p.Message != m.ID || p.Worker != e.Worker:
		v.distrust(lock)
		return fmt.Sprintf("permit %d of %s is that of worker %s for message %s", e.LockToken, lock, p.Worker, p.Message)
	case p.commit != r.Commit.ID:
		return fmt.Sprintf("permit %d of %s was not taken by the same commit", e.LockToken, lock)
	}
	return ""
}

// waiting checks what a message meets at its turn, and what sends it to try (law 3).
func (v *verifier) waiting(r events.Recorded, m *fsm.Message) string {
	var name string
	takes := false // it is told that the lock was taken
	switch e := r.Event.(type) {
	case *events.MessageBlocked:
		name, takes = e.Lock, true
	case *events.MessageDiscarded:
		if e.Reason != events.ReasonLockTaken {
			return discarded(e, m)
		}
		name, takes = e.Lock, true
	case *events.MessageUnblocked:
		name = e.Lock
	}
	waits := m.OnLocked != events.SkipIfLocked || m.Attempts > 0
	switch free := v.free(name); {
	case name != m.Lock || name == "":
		return fmt.Sprintf("lock %q is recorded, the message's is %q", name, m.Lock)
	case takes && waits != (r.Event.Type() == events.TypeMessageBlocked):
		return fmt.Sprintf("it was claimed %d times, and its policy is %s", m.Attempts, m.OnLocked)
	case v.broken[events.LockEntity(name)] || v.blind(r):
		return ""
	case takes && free > 0:
		return fmt.Sprintf("lock %q has a free permit", name)
	case !takes && free <= 0:
		return fmt.Sprintf("lock %q has no free permit", name)
	}
	return ""
}

// discarded says what is wrong with a message that was staged and ends as it enters the log: it has had no turn, and takes no key from whom it names.
func discarded(e *events.MessageDiscarded, m *fsm.Message) string {
	switch {
	case m.Version > 1 || m.Key != "":
		return fmt.Sprintf("it is discarded for %q at version %d, and its key is %q", e.Reason, m.Version, m.Key)
	case (e.Reason == events.ReasonKeyTaken) != (e.Key != "" && e.Holder != events.ID{}):
		return fmt.Sprintf("it is discarded for %q, and key %q of holder %s is recorded", e.Reason, e.Key, e.Holder)
	}
	return ""
}

// free is how many permits of a lock can be taken. One that is not held rests, with the one permit that a lock has.
func (v *verifier) free(lock string) int {
	if h := v.held[events.LockEntity(lock)]; h != nil {
		return h.value.(*fsm.Lock).Free()
	}
	return 1
}

// settles notes that the worker itself ended a claim: the permit that it took must come back in the same commit. One whose claim was ended
// from outside may stay with a worker that lives.
func (v *verifier) settles(r events.Recorded, before *fsm.Message) {
	p := v.permits[store.PermitKey(before.Permit())]
	if p == nil || p.Message != before.ID {
		return
	}
	reason := events.ReasonHandler // of what was completed
	switch e := r.Event.(type) {
	case *events.MessageRequeued:
		reason = e.Reason
	case *events.MessageCancelled:
		reason = e.Reason
	case *events.MessageDeadLettered:
		reason = e.Reason
	}
	if reason != events.ReasonOperator && reason != events.ReasonTakenBack {
		p.settled = r.Position
	}
}

// distrust believes nothing more of a lock, nor of its permits.
func (v *verifier) distrust(lock events.Entity) {
	v.broken[lock] = true
	delete(v.held, lock)
	for key := range v.permits {
		if key.Lock == lock.Name {
			delete(v.permits, key)
		}
	}
}
