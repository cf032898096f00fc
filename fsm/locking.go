package fsm

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// LockPage is how many permits one commit takes back at most.
const LockPage = 100

// Acquire takes a permit of a lock without a message. A permit whose time is over makes room in the same commit.
type Acquire struct {
	Lock   string
	Worker events.ID
	TTL    time.Duration // 0 is none
}

// Name is "acquire".
func (Acquire) Name() string { return "acquire" }

// Decide gives what the store must keep, and the permit. A lock without a free permit is a *Refusal.
func (c Acquire) Decide(held Held) (Outcome, Permit, error) {
	l := newLedger(held)
	if err := l.expire(c.Lock); err != nil {
		return Outcome{}, Permit{}, err
	}
	if _, err := l.acquire(l.lock(c.Lock), AcquireLock{Worker: c.Worker, TTL: c.TTL}); err != nil {
		return Outcome{}, Permit{}, err
	}
	permit := l.outcome.Permits[len(l.outcome.Permits)-1].Permit
	outcome, err := l.close()
	return outcome, permit, err
}

// Unlock gives permits back: holder and token must be those of the permit. One that is back already, or another's, is refused, which is
// recorded under its lock, and frees nothing.
type Unlock struct {
	Worker     events.ID
	Permits    []PermitKey
	Recordable int // refusals that may be recorded
}

// Name is "unlock".
func (Unlock) Name() string { return "unlock" }

// VisitFields names the parameters that the events do not carry.
func (c *Unlock) VisitFields(f *events.Fields) {
	f.ID("worker", &c.Worker)
	f.Int("recordable", &c.Recordable)
}

// Decide gives what the store must keep, and per permit nil or its *Refusal.
func (c Unlock) Decide(held Held) (Outcome, []*Refusal, error) {
	l := newLedger(held)
	refusals := make([]*Refusal, len(c.Permits))
	for i, key := range c.Permits {
		if p, out := l.permit(key); out && p.Worker == c.Worker {
			if err := l.giveBack(p, ReleaseLock{Token: p.Token}); err != nil {
				return Outcome{}, nil, err
			}
			continue
		}
		lock := l.lock(key.Lock)
		refusals[i] = lock.refusal(c.Name(), events.ReasonNotHeld)
		refusals[i].Sent = key.Token
		if lock.State == events.Absent || c.Recordable <= 0 || l.recorded(refusals[i]) {
			continue // what was never locked leaves nothing
		}
		c.Recordable--
		l.refuseLock(lock, &events.LockRefused{Command: c.Name(), Reason: events.ReasonNotHeld, Sender: c.Worker, Sent: key.Token})
	}
	outcome, err := l.close()
	return outcome, refusals, err
}

// ForceRelease takes permits of a lock from whoever holds them, at an operator's wish and whether they live or not. A lock that is free is left
// as it is.
type ForceRelease struct {
	Lock   string
	Token  events.Token // only this permit; 0 is all of them, a page at a time
	By     string
	Detail string
}

// Name is "force-release".
func (ForceRelease) Name() string { return "force-release" }

// Decide gives what the store must keep.
func (c ForceRelease) Decide(held Held) (Outcome, error) {
	if err := held.Unread[c.Lock]; err != nil {
		return Outcome{}, err
	}
	l := newLedger(held)
	for _, p := range held.Permits {
		if p.Lock != c.Lock || c.Token != 0 && p.Token != c.Token {
			continue
		}
		if err := l.giveBack(p, ForceReleaseLock{Token: p.Token, By: c.By, Detail: c.Detail}); err != nil {
			return Outcome{}, err
		}
	}
	return l.close()
}

// ExpireLocks ends the permits of a lock whose time is over, a page at a time.
type ExpireLocks struct{ Lock string }

// Name is "expire".
func (ExpireLocks) Name() string { return "expire" }

// Decide gives what the store must keep.
func (c ExpireLocks) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	if err := l.expire(c.Lock); err != nil {
		return Outcome{}, err
	}
	return l.close()
}

// expire ends permits of a lock whose time is over.
func (l *ledger) expire(lock string) error {
	for _, p := range l.held.Permits {
		if p.Lock != lock || p.ExpiresAt.IsZero() || l.held.Now.Before(p.ExpiresAt) {
			continue
		}
		if err := l.giveBack(p, ExpireLock{Token: p.Token}); err != nil {
			return err
		}
	}
	return nil
}

// OperateLock sets how many permits a lock has.
type OperateLock struct {
	Lock string
	ConfigureLock
}

// Decide gives what the store must keep. More permits than before are offered to those who wait.
func (c OperateLock) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	before := l.lock(c.Lock)
	after, err := l.turn(before, c.ConfigureLock)
	if err != nil {
		return Outcome{}, err
	}
	if after.Version > before.Version { // what is as it was is offered to nobody
		l.offered = append(l.offered, offer{lock: c.Lock})
	}
	return l.close()
}

// RepairLock makes good what no rule should have left: a lock with a free permit whose waiters of some topic are all blocked. It is a fault,
// and its events say so.
type RepairLock struct{ Lock string }

// Name is "repair-lock".
func (RepairLock) Name() string { return "repair-lock" }

// Decide gives what the store must keep: nothing where all is well.
func (c RepairLock) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	trying := map[string]bool{} // topics
	for _, m := range held.Waiting[c.Lock] {
		if m.Trying {
			trying[m.Topic] = true
		}
	}
	for _, m := range held.Waiting[c.Lock] {
		if m.State != events.Blocked || trying[m.Topic] {
			continue
		}
		trying[m.Topic] = true
		if err := l.unblock(offer{c.Lock, m.Topic}, UnblockMessage{Repair: true}); err != nil {
			return Outcome{}, err
		}
	}
	return l.close()
}
