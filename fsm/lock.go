package fsm

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// lockLife is the table of a lock's life. A lock never ends; a free one that nobody configured has no row.
var lockLife = newLifecycle(events.KindLock,
	edge(events.TypeLockConfigured, events.Free, events.Absent, events.Free),
	edge(events.TypeLockConfigured, events.Held, events.Held),
	edge(events.TypeLockAcquired, events.Held, events.Absent, events.Free, events.Held),
	edge(events.TypeLockReleased, events.Free, events.Held),
	branch(events.TypeLockReleased, events.Held, events.Held),
	edge(events.TypeLockOrphaned, events.Held, events.Held),
	edge(events.TypeLockReclaimed, events.Free, events.Held),
	branch(events.TypeLockReclaimed, events.Held, events.Held),
	edge(events.TypeLockForceReleased, events.Free, events.Held),
	branch(events.TypeLockForceReleased, events.Held, events.Held),
	edge(events.TypeLockExpired, events.Free, events.Held),
	branch(events.TypeLockExpired, events.Held, events.Held),
	edge(events.TypeLockSnapshotted, events.Free, events.Free),
	edge(events.TypeLockSnapshotted, events.Held, events.Held),
)

// Lock is a named lock as its events have left it. Its zero value is one that was never taken. Who holds its permits stands beside it, in a
// [Permit] each, so that it does not grow with their number.
type Lock struct {
	Name    string
	Version int
	State   events.State
	Permits int // how many it has; 0 is the one of a lock that nobody configured
	Held    int // how many are out
}

// VisitFields names the fields as a store keeps them. The name and the version have columns of their own.
func (l *Lock) VisitFields(f *events.Fields) {
	f.State("state", &l.State)
	f.Int("permits", &l.Permits)
	f.Int("held", &l.Held)
}

// RestingLock is a lock of which only its newest event is left: free, with the one permit that a lock has.
func RestingLock(name string, newest events.Recorded) Lock {
	return Lock{Name: name, Version: newest.Version, State: newest.To}
}

// Free is how many permits can be taken. It is below zero after their number was lowered, until enough have come back.
func (l Lock) Free() int { return max(l.Permits, 1) - l.Held }

// Permit is one that is out: of which lock, and who holds it.
type Permit struct {
	PermitKey
	Worker     events.ID
	Message    events.ID // whose claim took it; zero where it is held without a message
	AcquiredAt time.Time
	ExpiresAt  time.Time // zero where it has no TTL
}

// PermitKey names a permit for ever: tokens of a lock are never used twice.
type PermitKey struct {
	Lock  string
	Token events.Token
}

// ConfigureLock sets how many permits a lock has.
type ConfigureLock struct {
	Permits int
	By      string
	Detail  string
}

// AcquireLock takes a permit.
type AcquireLock struct {
	Token   events.Token
	Worker  events.ID
	Message events.ID
	TTL     time.Duration // 0 is none
}

// ReleaseLock gives a permit back.
type ReleaseLock struct{ Token events.Token }

// ReclaimLock takes a permit from a holder who is gone.
type ReclaimLock struct {
	Token    events.Token
	Evidence events.Evidence
}

// ForceReleaseLock takes a permit from its holder at an operator's wish.
type ForceReleaseLock struct {
	Token  events.Token
	By     string
	Detail string
}

// ExpireLock ends a permit whose time is over.
type ExpireLock struct{ Token events.Token }

// LockCommand is a command to one lock. That the permit it speaks of is out, the composed command has made sure of.
type LockCommand interface {
	// Name is an imperative, as it is recorded with commits.
	Name() string
	decideLock(Lock, time.Time) ([]events.Event, *Refusal)
}

// Decide gives the events that follow from a command at the store's time, or a *Refusal. A command that would change nothing gives no
// event.
func (l Lock) Decide(c LockCommand, now time.Time) ([]events.Event, error) {
	list, refusal := c.decideLock(l, now)
	if refusal != nil {
		return nil, refusal
	}
	return list, nil
}

// Evolve is the lock after a recorded event. An event of another lifecycle leaves it as it is.
func (l Lock) Evolve(event events.Event, _ time.Time) Lock {
	if _, ok := lockLife.Next(l.State, event.Type()); !ok {
		return l
	}
	l.Version++
	switch e := event.(type) {
	case *events.LockConfigured:
		l.Permits = e.Permits
	case *events.LockAcquired:
		l.Held++
	case *events.LockOrphaned, *events.LockSnapshotted:
		return l
	default:
		l.Held--
	}
	if l.State = events.Free; l.Held > 0 {
		l.State = events.Held
	}
	return l
}

// Name is "configure-lock".
func (ConfigureLock) Name() string { return "configure-lock" }

func (c ConfigureLock) decideLock(l Lock, _ time.Time) ([]events.Event, *Refusal) {
	if max(c.Permits, 1) == max(l.Permits, 1) {
		return nil, nil
	}
	return []events.Event{&events.LockConfigured{Permits: c.Permits, By: c.By, Detail: c.Detail}}, nil
}

// Name is "acquire".
func (AcquireLock) Name() string { return "acquire" }

func (c AcquireLock) decideLock(l Lock, now time.Time) ([]events.Event, *Refusal) {
	if l.Free() <= 0 {
		return nil, l.refusal(c.Name(), events.ReasonLockTaken)
	}
	acquired := &events.LockAcquired{Token: c.Token, Worker: c.Worker, Message: c.Message, Held: l.Held + 1}
	if c.TTL > 0 {
		acquired.ExpiresAt = kept(now.Add(c.TTL))
	}
	return []events.Event{acquired}, nil
}

// Name is "release".
func (ReleaseLock) Name() string { return "release" }

func (c ReleaseLock) decideLock(l Lock, _ time.Time) ([]events.Event, *Refusal) {
	if r := l.refuse(c.Name(), c.Token); r != nil {
		return nil, r
	}
	return []events.Event{&events.LockReleased{Token: c.Token, Held: l.Held - 1}}, nil
}

// Name is "reclaim".
func (ReclaimLock) Name() string { return "reclaim" }

func (c ReclaimLock) decideLock(l Lock, _ time.Time) ([]events.Event, *Refusal) {
	if r := l.refuse(c.Name(), c.Token); r != nil {
		return nil, r
	}
	return []events.Event{
		&events.LockOrphaned{Token: c.Token, Evidence: c.Evidence},
		&events.LockReclaimed{Token: c.Token, Held: l.Held - 1},
	}, nil
}

// Name is "force-release".
func (ForceReleaseLock) Name() string { return "force-release" }

func (c ForceReleaseLock) decideLock(l Lock, _ time.Time) ([]events.Event, *Refusal) {
	if r := l.refuse(c.Name(), c.Token); r != nil {
		return nil, r
	}
	return []events.Event{&events.LockForceReleased{Token: c.Token, Held: l.Held - 1, By: c.By, Detail: c.Detail}}, nil
}

// Name is "expire".
func (ExpireLock) Name() string { return "expire" }

func (c ExpireLock) decideLock(l Lock, _ time.Time) ([]events.Event, *Refusal) {
	if r := l.refuse(c.Name(), c.Token); r != nil {
		return nil, r
	}
	return []events.Event{&events.LockExpired{Token: c.Token, Held: l.Held - 1}}, nil
}

// refuse is the refusal of what ends a permit of a lock that has none out; nil where it has.
func (l Lock) refuse(command string, token events.Token) *Refusal {
	if l.State == events.Held {
		return nil
	}
	r := l.refusal(command, events.ReasonNotHeld)
	r.Sent = token
	return r
}

func (l Lock) refusal(command string, reason events.Reason) *Refusal {
	return &Refusal{Command: command, Entity: events.LockEntity(l.Name), State: l.State, Reason: reason}
}

// Entity is the lock's entity.
func (l *Lock) Entity() events.Entity { return events.LockEntity(l.Name) }

// At is the lock's version and state.
func (l *Lock) At() (int, events.State) { return l.Version, l.State }

// Kept reports whether a store keeps a row of the lock: while it is held, and where somebody configured it.
func (l *Lock) Kept() bool { return l.Held > 0 || l.Permits > 0 }

func (l *Lock) evolved(r events.Recorded) Value { next := l.Evolve(r.Event, r.At()); return &next }

func (l *Lock) versioned(e events.Entity, version int) Value {
	l.Name, l.Version = e.Name, version
	return l
}
