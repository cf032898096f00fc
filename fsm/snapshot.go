package fsm

import (
	"bytes"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
)

// Snapshot tells the state of an entity once more, so that its older events may go. It moves nothing but the version. One command serves every
// kind of which rows are kept, but for locks (see [SnapshotLock]); what has no row needs none: it has ended, or rests in its newest event.
type Snapshot struct{}

// Name is "snapshot".
func (Snapshot) Name() string { return "snapshot" }

func (c Snapshot) decideMessage(m Message, _ time.Time) ([]events.Event, *Refusal) {
	if r := m.refuse(c.Name(), events.TypeMessageSnapshotted); r != nil {
		return nil, r
	}
	return []events.Event{&events.MessageSnapshotted{Snapshot: told(&m)}}, nil
}

func (c Snapshot) decideTopic(t Topic) ([]events.Event, *Refusal) {
	if !t.Kept() {
		return nil, t.refusal(c.Name())
	}
	return []events.Event{&events.TopicSnapshotted{Snapshot: told(&t)}}, nil
}

func (c Snapshot) event(w Worker) events.Event { return &events.WorkerSnapshotted{Snapshot: told(&w)} }

// SnapshotLock is a Snapshot of a lock. Its permits stand beside it, and are told with it.
type SnapshotLock struct {
	Out []events.PermitOut // all that are out, by token
}

// Name is "snapshot".
func (SnapshotLock) Name() string { return "snapshot" }

func (c SnapshotLock) decideLock(l Lock, _ time.Time) ([]events.Event, *Refusal) {
	if !l.Kept() {
		return nil, l.refusal(c.Name(), events.ReasonWrongState)
	}
	return []events.Event{&events.LockSnapshotted{Snapshot: told(&l), Out: c.Out}}, nil
}

func (c Snapshot) decideLeader(l Leader) []events.Event {
	if !l.Kept() {
		return nil
	}
	return []events.Event{&events.LeaderSnapshotted{Snapshot: told(&l)}}
}

func (c Snapshot) decideClock(clock Clock) []events.Event {
	if !clock.Kept() {
		return nil
	}
	return []events.Event{&events.ClockSnapshotted{Snapshot: told(&clock)}}
}

// told is the state of a value before the snapshot.
func told(v Value) events.Snapshot { return events.Snapshot{State: events.AppendFields(nil, v)} }

// snapshot tells an entity's state once more.
func (l *ledger) snapshot(v Value) error {
	switch v := v.(type) {
	case *Message:
		_, err := l.move(*v, Snapshot{})
		return err
	case *Topic:
		_, err := l.topic(*v, Snapshot{})
		return err
	case *Worker:
		return l.worker(*v, Snapshot{})
	case *Lock:
		_, err := l.turn(*v, SnapshotLock{Out: l.held.out(v.Name)})
		return err
	case *Leader:
		l.leader(*v, Snapshot{})
		return nil
	case *Clock:
		l.clock(*v, Snapshot{})
		return nil
	}
	return fmt.Errorf("%s: no row of its kind is kept, and none can be told once more", v.Entity())
}

// out is the permits of a lock that are out, as its snapshot tells them.
func (h Held) out(lock string) []events.PermitOut {
	var list []events.PermitOut
	for _, p := range h.Permits {
		if p.Lock == lock {
			list = append(list, events.PermitOut{
				Token: p.Token, Worker: p.Worker, Message: p.Message, AcquiredAt: p.AcquiredAt, ExpiresAt: p.ExpiresAt,
			})
		}
	}
	return list
}

// contradiction is what an event that says all of an entity's state says otherwise than the entity is known; empty where it says the same.
func contradiction(v Value, event events.Event) string {
	if snapshot, ok := events.SnapshotOf(event); ok {
		if known := events.AppendFields(nil, v); !bytes.Equal(snapshot.State, known) {
			return fmt.Sprintf("tells %s, the entity was %s", snapshot.State, known)
		}
	}
	if e, ok := event.(*events.LockSnapshotted); ok {
		if lock, ok := v.(*Lock); ok && len(e.Out) != lock.Held {
			return fmt.Sprintf("tells of %d permits that are out, of the lock %d are", len(e.Out), lock.Held)
		}
	}
	e, ok := event.(*events.LogPruned)
	if !ok {
		return ""
	}
	if log, ok := v.(*Log); ok && (e.Total != log.Total+e.Events || e.Through <= log.Through) {
		return fmt.Sprintf("tells of %d events through position %d and %d in all, before it were %d through %d", e.Events, e.Through, e.Total, log.Total, log.Through)
	}
	return ""
}

// begin is the value that an event tells which says all of its entity's state, as of that event.
func begin(r events.Recorded) (Value, error) {
	corrupt := func(format string, args ...any) error {
		return &events.Corrupt{Entity: r.Entity, Version: r.Version, Position: r.Position, Detail: fmt.Sprintf(format, args...)}
	}
	if r.From != r.To {
		return nil, corrupt("%s from %s to %s is recorded, it leads nowhere", r.Event.Type(), r.From, r.To)
	}
	if pruned, ok := r.Event.(*events.LogPruned); ok {
		v := RestingLog(r.Version, pruned)
		return checked(&v, r)
	}
	snapshot, _ := events.SnapshotOf(r.Event)
	v, err := ReadValue(r.Entity, r.Version, snapshot.State)
	if err != nil {
		return nil, corrupt("%s: %v", r.Event.Type(), err)
	}
	if wrong := contradiction(v, r.Event); wrong != "" {
		return nil, corrupt("%s %s", r.Event.Type(), wrong)
	}
	return checked(v, r)
}

// checked is v where it is in the state that the event recorded, and the table has such an event in that state.
func checked(v Value, r events.Recorded) (Value, error) {
	life, err := LifecycleOf(r.Entity.Kind)
	if err != nil {
		return nil, err
	}
	if _, state := v.At(); state != r.To || !life.Leads(r.From, r.Event.Type(), r.To) {
		return nil, &events.Corrupt{Entity: r.Entity, Version: r.Version, Position: r.Position, Detail: fmt.Sprintf(
			"%s from %s to %s is recorded, it tells a %s that is %s", r.Event.Type(), r.From, r.To, r.Entity.Kind, state)}
	}
	return v, nil
}

// Rest is an entity without a row of which the beginning is gone: what its newest event says that moved it. It has ended or, of a kind that
// rests, is as that event left it. An error is an event that says no such thing.
func Rest(newest events.Recorded) (Value, error) {
	e := newest.Entity
	corrupt := func(format string, args ...any) error {
		return &events.Corrupt{Entity: e, Version: newest.Version, Position: newest.Position, Detail: fmt.Sprintf(format, args...)}
	}
	var v Value
	switch e.Kind {
	case events.KindMessage:
		v = &Message{ID: e.ID, Version: newest.Version, State: newest.To}
	case events.KindWorker:
		v = &Worker{ID: e.ID, Version: newest.Version, State: newest.To}
	case events.KindSweep:
		v = &Sweep{ID: e.ID, Version: newest.Version, State: newest.To}
	case events.KindLock:
		l := RestingLock(e.Name, newest)
		if v = &l; l.State == events.Held {
			return nil, corrupt("its newest event says that it is held, and it has no row")
		}
	case events.KindLog:
		pruned, ok := newest.Event.(*events.LogPruned)
		if !ok {
			return nil, corrupt("%s is not known to say what the log has come to", newest.Event.Type())
		}
		l := RestingLog(newest.Version, pruned)
		v = &l
	default:
		return nil, corrupt("it has no row, and one is kept of every %s", e.Kind)
	}
	if v.Kept() {
		return nil, corrupt("its newest event says that it is %s, and it has no row", newest.To)
	}
	return v, nil
}
