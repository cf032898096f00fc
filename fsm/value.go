package fsm

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
)

// Value is the state of one entity of any kind: a *Message, *Topic, *Worker, *Lock, *Leader, *Sweep, *Clock or *Log.
type Value interface {
	events.Visitor
	// Entity is whose state it is.
	Entity() events.Entity
	// At is its version and named phase.
	At() (version int, state events.State)
	// Kept reports whether a store keeps a row of it. What is not kept is history: its log says all of it.
	Kept() bool
	evolved(events.Recorded) Value
	versioned(events.Entity, int) Value
}

// NewValue is an entity that does not exist yet.
func NewValue(e events.Entity) (Value, error) {
	switch e.Kind {
	case events.KindMessage:
		return &Message{ID: e.ID}, nil
	case events.KindTopic:
		return &Topic{Name: e.Name}, nil
	case events.KindWorker:
		return &Worker{ID: e.ID}, nil
	case events.KindLock:
		return &Lock{Name: e.Name}, nil
	case events.KindLeader:
		return &Leader{Name: e.Name}, nil
	case events.KindSweep:
		return &Sweep{ID: e.ID}, nil
	case events.KindClock:
		return &Clock{}, nil
	case events.KindLog:
		return &Log{}, nil
	}
	return nil, fmt.Errorf("%s: this version has no machine for its kind", e)
}

// ReadValue gives back what a store keeps of an entity: its version and its fields.
func ReadValue(e events.Entity, version int, fields []byte) (Value, error) {
	v, err := NewValue(e)
	if err != nil {
		return nil, err
	}
	if err := events.ReadFields(fields, v); err != nil {
		return nil, fmt.Errorf("%s version %d: %w", e, version, err)
	}
	v = v.versioned(e, version)
	if _, state := v.At(); !state.Known() {
		return nil, fmt.Errorf("%s version %d: %s is unknown to this version", e, version, state)
	}
	return v, nil
}

// Apply is the entity after a recorded event, with every claim of the record checked: that the type is known, that its version is the
// next one and that the table leads from the entity's state to the recorded one. A record that moves nothing gives v back.
//
// A fold may begin with an event that says all of the entity's state (see events.Type.Snapshots), at whatever version: what came before it may
// have been let go. Where the entity is known, what such an event tells must be so.
func Apply(v Value, r events.Recorded) (Value, error) {
	version, state := v.At()
	corrupt := func(format string, args ...any) error {
		return &events.Corrupt{Entity: r.Entity, Version: r.Version, Position: r.Position, Detail: fmt.Sprintf(format, args...)}
	}
	typ := r.Event.Type()
	if u, ok := r.Event.(*events.Unknown); ok {
		return nil, corrupt("event type %s in schema version %d is unknown to this version: a newer one wrote it", u.Code, u.Schema)
	}
	if typ.Kind() != r.Entity.Kind || v.Entity() != r.Entity {
		return nil, corrupt("%s does not belong to %s", typ, v.Entity())
	}
	if !typ.Moves() {
		if r.Version != 0 {
			return nil, corrupt("%s moves nothing and has version %d", typ, r.Version)
		}
		return v, nil
	}
	if typ.Snapshots() && version == 0 && r.Version > 1 {
		return begin(r)
	}
	if r.Version != version+1 {
		return nil, corrupt("%s: version %d follows version %d", typ, r.Version, version)
	}
	life, err := LifecycleOf(r.Entity.Kind)
	if err != nil {
		return nil, err
	}
	if r.From != state || !life.Leads(state, typ, r.To) {
		to, _ := life.Next(state, typ)
		return nil, corrupt("%s from %s to %s is recorded, the entity was %s and the table leads to %s", typ, r.From, r.To, state, to)
	}
	if wrong := contradiction(v, r.Event); wrong != "" {
		return nil, corrupt("%s %s", typ, wrong)
	}
	next := v.evolved(r)
	if _, to := next.At(); to != r.To {
		return nil, corrupt("%s from %s to %s is recorded, it leads to %s", typ, r.From, r.To, to)
	}
	return next, nil
}

// Entity is the message's entity.
func (m *Message) Entity() events.Entity { return events.MessageEntity(m.ID) }

// At is the message's version and state.
func (m *Message) At() (int, events.State) { return m.Version, m.State }

// Kept reports whether a store keeps a row of the message: while it is open, and as a dead letter.
func (m *Message) Kept() bool { return m.Live() }

func (m *Message) evolved(r events.Recorded) Value { next := m.Evolve(r.Event, r.At()); return &next }

func (m *Message) versioned(e events.Entity, version int) Value {
	m.ID, m.Version = e.ID, version
	return m
}

// Entity is the topic's entity.
func (t *Topic) Entity() events.Entity { return events.TopicEntity(t.Name) }

// At is the topic's version and state.
func (t *Topic) At() (int, events.State) { return t.Version, t.State }

// Kept reports that a topic is kept for ever.
func (t *Topic) Kept() bool { return t.State != events.Absent }

func (t *Topic) evolved(r events.Recorded) Value { next := t.Evolve(r.Event, r.At()); return &next }

func (t *Topic) versioned(e events.Entity, version int) Value {
	t.Name, t.Version = e.Name, version
	return t
}

// Entity is the worker's entity.
func (w *Worker) Entity() events.Entity { return events.WorkerEntity(w.ID) }

// At is the worker's version and state.
func (w *Worker) At() (int, events.State) { return w.Version, w.State }

// Kept reports whether a store keeps a row of the worker: until it has stopped.
func (w *Worker) Kept() bool { return w.State == events.Live || w.State == events.Lost }

func (w *Worker) evolved(r events.Recorded) Value { next := w.Evolve(r.Event, r.At()); return &next }

func (w *Worker) versioned(e events.Entity, version int) Value {
	w.ID, w.Version = e.ID, version
	return w
}
