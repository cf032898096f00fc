package calls

import (
	"context"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// message is what a row keeps of a message beside its columns, which hold the rest: nothing is written twice. The message's state must
// be set before it is read.
type message struct{ *fsm.Message }

// VisitFields names the fields. What never changes comes first.
func (m message) VisitFields(f *events.Fields) {
	f.Text("key", &m.Key)
	f.Time("unique_until", &m.UniqueAt)
	f.Time("enqueued", &m.EnqueuedAt)
	m.Limits.VisitFields(f)
	m.Payload.VisitFields(f)
	if m.State != events.Queued { // while it is queued, its due time is a column
		f.Time("due", &m.DueAt)
	}
	f.Int("attempts", &m.Attempts)
	f.Int("releases", &m.Releases)
	f.Int("failures", &m.Failures)
	f.Int("orphanings", &m.Orphanings)
	f.Int("spent_before", &m.SpentBefore)
	f.Int("orphaned_before", &m.OrphanedBefore)
	f.Token("token", &m.Token)
	m.OnLocked.VisitFields(f)
	f.Text("trace", &m.Trace)
}

// Row is what an engine keeps of a value.
func Row(v fsm.Value) store.Row {
	row := columns(v)
	row.Fields = fields(v)
	return row
}

// columns is what it keeps beside the fields.
func columns(v fsm.Value) store.Row {
	version, state := v.At()
	row := store.Row{Entity: v.Entity(), Version: version, State: state}
	switch v := v.(type) {
	case *fsm.Message:
		row.Topic, row.Priority = v.Topic, v.Priority
		row.Worker, row.ClaimedAt, row.Counted = v.Worker, v.ClaimedAt, v.Counted
		row.Lock, row.LockToken, row.Waiting = v.Lock, v.LockToken, waiting(v)
		if v.State == events.Queued {
			row.DueAt = v.DueAt
		}
	case *fsm.Topic:
		row.Running = v.Running
	}
	return row
}

func fields(v fsm.Value) []byte {
	if m, ok := v.(*fsm.Message); ok {
		return events.AppendFields(nil, message{m})
	}
	return events.AppendFields(nil, v)
}

func waiting(m *fsm.Message) store.Waiting {
	switch {
	case m.State == events.Blocked:
		return store.Blocked
	case m.Trying:
		return store.Trying
	}
	return store.NotWaiting
}

// Value gives back the state that a row keeps.
func Value(row store.Row) (fsm.Value, error) {
	if row.Entity.Kind == events.KindMessage {
		m, err := Message(row)
		return &m, err
	}
	v, err := fsm.ReadValue(row.Entity, row.Version, row.Fields)
	if err != nil {
		return nil, err
	}
	if t, ok := v.(*fsm.Topic); ok {
		t.Running = row.Running
	}
	if _, state := v.At(); state != row.State {
		return nil, fmt.Errorf("%s version %d: its fields say %s, its column %s", row.Entity, row.Version, state, row.State)
	}
	return v, nil
}

// Kept reads the state that a store keeps of an entity, holding nothing; false where it keeps none.
func Kept(ctx context.Context, s store.Store, e events.Entity) (fsm.Value, bool, error) {
	for row, err := range s.Rows(ctx, store.RowFilter{Entities: []events.Entity{e}}) {
		if err != nil {
			return nil, false, err
		}
		v, err := Value(row)
		return v, err == nil, err
	}
	return nil, false, nil
}

// Clock is what a store's log knows of its clock; the zero value where that never stepped.
func Clock(ctx context.Context, s store.Store) (fsm.Clock, error) {
	v, _, err := Kept(ctx, s, events.ClockEntity())
	if clock, ok := v.(*fsm.Clock); ok && err == nil {
		return *clock, nil
	}
	return fsm.Clock{}, err
}

// Message gives back the message that a row keeps.
func Message(row store.Row) (fsm.Message, error) {
	m := fsm.Message{
		ID: row.Entity.ID, Version: row.Version, State: row.State, Topic: row.Topic, Priority: row.Priority, DueAt: row.DueAt,
		Worker: row.Worker, ClaimedAt: row.ClaimedAt, Counted: row.Counted,
		Lock: row.Lock, LockToken: row.LockToken, Trying: row.Waiting == store.Trying,
	}
	if row.Entity.Kind != events.KindMessage {
		return m, fmt.Errorf("%s: want a message", row.Entity)
	}
	if (row.Waiting == store.Blocked) != (row.State == events.Blocked) {
		return m, fmt.Errorf("%s version %d: it is %s, and its column of waiting says %d", row.Entity, row.Version, row.State, row.Waiting)
	}
	if !row.State.Known() {
		return m, fmt.Errorf("%s version %d: %s is unknown to this version", row.Entity, row.Version, row.State)
	}
	if err := events.ReadFields(row.Fields, message{&m}); err != nil {
		return m, fmt.Errorf("%s version %d: %w", row.Entity, row.Version, err)
	}
	return m, nil
}
