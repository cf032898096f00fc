package fsm

import (
	"slices"

	"github.com/foundling-go/foundling/events"
)

// This file is what a ledger does with everything but messages.

// topic carries out a command on a topic.
func (l *ledger) topic(t Topic, c TopicCommand) (Topic, error) {
	list, err := t.Decide(c, l.held.Now)
	if err != nil || len(list) == 0 {
		return t, err
	}
	after := t
	for _, event := range list {
		before := after
		after = after.Evolve(event, l.held.Now)
		l.change(&after, t.Version, []events.Transition{{Event: event, Version: after.Version, From: before.State, To: after.State}})
	}
	return after, nil
}

// worker carries out a command on a worker.
func (l *ledger) worker(w Worker, c WorkerCommand) error {
	list, err := w.Decide(c, l.held.Now)
	if err != nil {
		return err
	}
	after := w
	for _, event := range list {
		before := after
		after = after.Evolve(event, l.held.Now)
		l.change(&after, w.Version, []events.Transition{{Event: event, Version: after.Version, From: before.State, To: after.State}})
	}
	return nil
}

// leader carries out a command on a leadership.
func (l *ledger) leader(leader Leader, c LeaderCommand) {
	after := leader
	for _, event := range c.decideLeader(leader) {
		before := after
		after = after.Evolve(event, l.held.Now)
		l.change(&after, leader.Version, []events.Transition{{Event: event, Version: after.Version, From: before.State, To: after.State}})
	}
}

// clock carries out a command on the clock.
func (l *ledger) clock(clock Clock, c ClockCommand) {
	for _, event := range clock.Decide(c, l.held.Now) {
		after := clock.Evolve(event, l.held.Now)
		l.change(&after, clock.Version, []events.Transition{{Event: event, Version: after.Version, From: clock.State, To: after.State}})
	}
}

// lock is the lock as it stands by now.
func (l *ledger) lock(name string) Lock {
	if lock, ok := l.locks[name]; ok {
		return lock
	}
	lock := l.held.Locks[name]
	lock.Name = name
	return lock
}

// turn carries out a command on a lock.
func (l *ledger) turn(lock Lock, c LockCommand) (Lock, error) {
	if err := l.held.Unread[lock.Name]; err != nil {
		return lock, err
	}
	list, err := lock.Decide(c, l.held.Now)
	if err != nil || len(list) == 0 {
		return lock, err
	}
	after := lock
	for _, event := range list {
		before := after
		after = after.Evolve(event, l.held.Now)
		l.change(&after, lock.Version, []events.Transition{{Event: event, Version: after.Version, From: before.State, To: after.State}})
	}
	if l.locks == nil {
		l.locks = map[string]Lock{}
	}
	l.locks[lock.Name] = after
	return after, nil
}

// acquire takes a permit of a lock, under the next token of the store.
func (l *ledger) acquire(lock Lock, c AcquireLock) (events.Token, error) {
	c.Token = l.held.Fence
	after, err := l.turn(lock, c)
	if err != nil {
		return 0, err
	}
	l.held.Fence++
	permit := Permit{
		PermitKey: PermitKey{Lock: lock.Name, Token: c.Token}, Worker: c.Worker, Message: c.Message, AcquiredAt: l.held.Now,
	}
	if c.TTL > 0 {
		permit.ExpiresAt = kept(l.held.Now.Add(c.TTL))
	}
	l.outcome.Permits = append(l.outcome.Permits, PermitChange{Permit: permit})
	if after.Free() > 0 {
		l.offered = append(l.offered, offer{lock: lock.Name}) // who was told of it may have left another
	}
	return c.Token, nil
}

// permit is a permit that is out by now.
func (l *ledger) permit(key PermitKey) (Permit, bool) {
	i := slices.IndexFunc(l.held.Permits, func(p Permit) bool { return p.PermitKey == key })
	if i < 0 || l.back[key] {
		return Permit{}, false
	}
	return l.held.Permits[i], true
}

// giveBack ends a permit that is out, and offers its lock to those who wait.
func (l *ledger) giveBack(p Permit, c LockCommand) error {
	if _, err := l.turn(l.lock(p.Lock), c); err != nil {
		return err
	}
	if l.back == nil {
		l.back = map[PermitKey]bool{}
	}
	l.back[p.PermitKey] = true
	l.outcome.Permits = append(l.outcome.Permits, PermitChange{Permit: p, Back: true})
	l.offered = append(l.offered, offer{lock: p.Lock})
	return nil
}

// refuseLock records a refusal under the lock it met. It moves nothing.
func (l *ledger) refuseLock(lock Lock, refused *events.LockRefused) {
	l.change(&lock, lock.Version, []events.Transition{{Event: refused, From: lock.State, To: lock.State}})
}

// close unblocks who waits for what the commit left free, and gives the outcome. Of every topic that has waiters the first one goes back to
// its queue: it holds nothing yet, and a topic that is paused or full keeps no other from trying.
func (l *ledger) close() (Outcome, error) {
	all := map[string]bool{} // locks that are offered to every topic
	for _, o := range l.offered {
		if o.topic == "" {
			all[o.lock] = true
		}
	}
	done := map[offer]bool{}
	for _, o := range l.offered {
		if done[o] || o.topic != "" && all[o.lock] {
			continue
		}
		done[o] = true
		if err := l.unblock(o, UnblockMessage{}); err != nil {
			return Outcome{}, err
		}
	}
	return l.outcome, nil
}

// last puts an entity's part behind all others. Its events stand side by side: what was refused of a waiter before in this commit goes with it
// behind what left the lock free, so that the log can be followed event by event.
func (l *ledger) last(entity events.Entity) {
	at := l.place[entity]
	c := l.outcome.Changes[at]
	l.outcome.Changes = append(slices.Delete(l.outcome.Changes, at, at+1), c)
	for i := at; i < len(l.outcome.Changes); i++ {
		l.place[l.outcome.Changes[i].Value.Entity()] = i
	}
}

// unblock sends the first waiter of each topic that an offer is for to try.
func (l *ledger) unblock(o offer, c UnblockMessage) error {
	if l.lock(o.lock).Free() <= 0 || l.held.Unread[o.lock] != nil {
		return nil
	}
	told := map[string]bool{} // topics
	for _, m := range l.held.Waiting[o.lock] {
		if moved, ok := l.moved[m.ID]; ok {
			m = *moved // this commit may have ended the first of them
		}
		if m.State != events.Blocked || told[m.Topic] || o.topic != "" && m.Topic != o.topic {
			continue
		}
		told[m.Topic] = true
		if _, err := l.move(m, c); err != nil {
			return err
		}
		l.last(m.Entity())
	}
	return nil
}
