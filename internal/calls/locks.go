package calls

import (
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// Acquire is the call of fsm.Acquire, with the permit as of the last run of its Fn.
func Acquire(o Origin, c fsm.Acquire) (store.Call, *fsm.Permit) {
	call := o.call(c.Name(), nil, holding(c.Lock))
	permit := new(fsm.Permit)
	call.Fn = decide(func(held fsm.Held) (fsm.Outcome, error) {
		outcome, p, err := c.Decide(held)
		*permit = p
		return outcome, err
	})
	return call, permit
}

// holding is what a command on a lock and whoever holds it must see.
func holding(lock string) store.Need {
	return store.Need{Locks: []string{lock}, Holders: []store.LockPage{{Lock: lock, N: fsm.LockPage}}}
}

// Unlock is the call of fsm.Unlock, with the refusals of its permits as of the last run of its Fn.
func Unlock(o Origin, c fsm.Unlock) (store.Call, *[]*fsm.Refusal) {
	var need store.Need
	for _, key := range c.Permits {
		need.Locks = append(need.Locks, key.Lock)
		need.Permits = append(need.Permits, store.PermitKey(key))
	}
	return refusing(o.call(c.Name(), &c, need), c.Decide)
}

// ForceRelease is the call of fsm.ForceRelease. It has taken the last permit when its receipt has no event.
func ForceRelease(o Origin, c fsm.ForceRelease) store.Call {
	need := holding(c.Lock)
	if c.Token != 0 {
		need.Holders, need.Permits = nil, []store.PermitKey{{Lock: c.Lock, Token: c.Token}}
	}
	call := o.call(c.Name(), nil, need)
	call.Fn = decide(c.Decide)
	return call
}

// ExpireLocks is the call of fsm.ExpireLocks. It has ended the last permit when its receipt has no event.
func ExpireLocks(o Origin, c fsm.ExpireLocks) store.Call {
	call := o.call(c.Name(), nil, holding(c.Lock))
	call.Fn = decide(c.Decide)
	return call
}

// OperateLock is the call of fsm.OperateLock.
func OperateLock(o Origin, c fsm.OperateLock) store.Call {
	call := o.call(c.Name(), nil, store.Need{Locks: []string{c.Lock}})
	call.Fn = decide(c.Decide)
	return call
}

// RepairLock is the call of fsm.RepairLock.
func RepairLock(o Origin, c fsm.RepairLock) store.Call {
	call := o.call(c.Name(), nil, store.Need{Locks: []string{c.Lock}})
	call.Fn = decide(c.Decide)
	return call
}

// OperateLeader is the call of fsm.OperateLeader.
func OperateLeader(o Origin, c fsm.OperateLeader) store.Call {
	call := o.call(c.Name(), nil, store.Need{Held: []events.Entity{events.LeaderEntity(c.Leadership)}})
	call.Fn = decide(c.Decide)
	return call
}

// OperateClock is the call of fsm.OperateClock.
func OperateClock(o Origin, c fsm.OperateClock) store.Call {
	call := o.call(c.Name(), nil, store.Need{Held: []events.Entity{events.ClockEntity()}})
	call.Fn = decide(c.Decide)
	return call
}

// RecordSweep is the call of fsm.RecordSweep.
func RecordSweep(o Origin, c fsm.RecordSweep) store.Call {
	call := o.call(c.Name(), nil, store.Need{Held: []events.Entity{events.SweepEntity(c.Sweep)}})
	call.Fn = decide(c.Decide)
	return call
}
