// Package corpus makes samples of every event type: what the golden file of stored forms is written from, and what a store's tests
// keep and read back.
package corpus

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
)

// Sample is one event at the end of a life that leads up to it. A type has a full sample, in which no field is zero that the state lets it
// set, for every edge that its lifecycle has it on, and one minimal sample with only what the rules always set.
type Sample struct {
	Name    string // unique, never used for anything else: type, full or minimal, the state it starts from, and the branch where there are two
	Entity  events.Entity
	History []events.Event // leads from nothing to the state in which the event happens
	Event   events.Event
}

// at is the time of all samples; its microseconds have no zeros to lose.
var at = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

// Samples makes them anew, by type. Every call gives equal ones.
func Samples() []Sample {
	var list []Sample
	for _, p := range pairs() {
		edges := edges(p.minimal.Type())
		for _, edge := range edges {
			list = append(list, p.sample("full", edge))
		}
		list = append(list, p.sample("minimal", edges[0]))
	}
	return list
}

// edges are those of the type's lifecycle that have it. A refusal, which moves nothing, is met by what somebody holds.
func edges(typ events.Type) []fsm.Edge {
	var list []fsm.Edge
	for _, life := range fsm.Lifecycles() {
		for _, edge := range life.Edges() {
			if edge.Event == typ {
				list = append(list, edge)
			}
		}
	}
	switch {
	case len(list) > 0:
		return list
	case typ.Kind() == events.KindLock:
		return []fsm.Edge{{From: events.Held, Event: typ, To: events.Held}}
	case typ == events.TypeMessageErased: // only of what has ended for good
		return []fsm.Edge{{From: events.Completed, Event: typ, To: events.Completed}}
	}
	return []fsm.Edge{{From: events.Running, Event: typ, To: events.Running}}
}

func (p pair) sample(size string, edge fsm.Edge) Sample {
	typ, kind := edge.Event, edge.Event.Kind()
	s := Sample{Name: fmt.Sprintf("%s %s %s", typ, size, edge.From), Event: p.minimal}
	if othersHold(edge) {
		s.Name += ", others hold"
	}
	switch {
	case kind == events.KindClock:
		s.Entity = events.ClockEntity() // there is but one
	case kind == events.KindLog:
		s.Entity = events.LogEntity() // as well
	case kind.Named():
		s.Entity = events.Entity{Kind: kind, Name: s.Name}
	default:
		s.Entity = events.Entity{Kind: kind, ID: id(typ, byte(edge.From), size[0])}
	}
	s.History = history(edge, size)
	if size == "full" {
		list := counted(s.History, p.full)
		s.History, s.Event = list[:len(list)-1:len(list)-1], list[len(list)-1]
	}
	if _, ok := events.SnapshotOf(s.Event); ok {
		s.Event = s.told()
	}
	return s
}

// told is the snapshot of what the history has led to: the same in a minimal sample and in a full one, but for what there is to tell.
func (s Sample) told() events.Event {
	before, err := s.lead()
	if err != nil {
		panic(err) // a history that leads nowhere is a mistake of this package
	}
	snapshot := events.Snapshot{State: events.AppendFields(nil, before)}
	switch s.Event.(type) {
	case *events.MessageSnapshotted:
		return &events.MessageSnapshotted{Snapshot: snapshot}
	case *events.LockSnapshotted:
		return &events.LockSnapshotted{Snapshot: snapshot, Out: s.out()}
	case *events.WorkerSnapshotted:
		return &events.WorkerSnapshotted{Snapshot: snapshot}
	case *events.TopicSnapshotted:
		return &events.TopicSnapshotted{Snapshot: snapshot}
	case *events.LeaderSnapshotted:
		return &events.LeaderSnapshotted{Snapshot: snapshot}
	}
	return &events.ClockSnapshotted{Snapshot: snapshot}
}

// othersHold reports whether the edge is that of a permit that comes back while another one is out.
func othersHold(edge fsm.Edge) bool {
	switch edge.Event {
	case events.TypeLockReleased, events.TypeLockReclaimed, events.TypeLockForceReleased, events.TypeLockExpired:
		return edge.To == events.Held
	}
	return false
}

// id is an id of version 7 with a readable end.
func id(typ events.Type, rest ...byte) events.ID {
	var v events.ID
	binary.BigEndian.PutUint64(v[:8], uint64(at.UnixMilli())<<16)
	v[6], v[8] = 0x70, 0x80
	binary.BigEndian.PutUint16(v[12:], uint16(typ))
	copy(v[14:], rest)
	return v
}

// Transitions are the history and then the event, with what the lifecycle's table makes of them.
func (s Sample) Transitions() []events.Transition {
	life, err := fsm.LifecycleOf(s.Entity.Kind)
	if err != nil {
		panic(err) // a sample of a kind that has no lifecycle is a mistake of this package
	}
	var list []events.Transition
	version, state, out := 0, events.Absent, 0
	for _, event := range append(slices.Clone(s.History), s.Event) {
		t := events.Transition{Event: event, From: state, To: state}
		if event.Type().Moves() {
			version++
			t.Version = version
			t.To, _ = life.Next(state, event.Type())
			if out += permit(event); out > 0 && life.Leads(state, event.Type(), events.Held) {
				t.To = events.Held
			}
			state = t.To
		}
		list = append(list, t)
	}
	return list
}

// Recorded are the transitions as they stand in a log that holds nothing else, all in one commit.
func (s Sample) Recorded() []events.Recorded {
	transitions := s.Transitions()
	commit := Commit()
	commit.Count = len(transitions)
	list := make([]events.Recorded, len(transitions))
	for i, t := range transitions {
		list[i] = events.Recorded{Transition: t, Position: int64(i + 1), Entity: s.Entity, Commit: &commit}
	}
	return list
}

// Values are the entity before the event and after it.
func (s Sample) Values() (before, after fsm.Value, err error) {
	if before, err = s.lead(); err == nil {
		list := s.Recorded()
		after, err = fsm.Apply(before, list[len(list)-1])
	}
	if err != nil {
		return nil, nil, fmt.Errorf("sample %s: %w", s.Name, err)
	}
	return before, after, nil
}

// lead is what the history leads to.
func (s Sample) lead() (fsm.Value, error) {
	v, err := fsm.NewValue(s.Entity)
	list := s.Recorded()
	for _, r := range list[:len(list)-1] {
		if err != nil {
			break
		}
		v, err = fsm.Apply(v, r)
	}
	return v, err
}

// Commit is the commit that all samples are recorded with, as far as it does not depend on them: its count and checksum are zero.
func Commit() events.Commit {
	return events.Commit{
		ID: id(0, 0, 1), At: at,
		Command: events.Command{
			Name: "sample", Params: []byte(`{"n":1,"text":"a } \" {"}`), Actor: "corpus",
			Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		},
	}
}

// Names shows the samples' ids by their ends, and times as they are.
func Names() *events.Names {
	return &events.Names{Short: func(v events.ID) string { return hex.EncodeToString(v[12:]) }}
}

// out is the permits that the history has left out, all acquired at the same time.
func (s Sample) out() []events.PermitOut {
	var list []events.PermitOut
	for _, event := range s.History {
		if e, ok := event.(*events.LockAcquired); ok {
			list = append(list, events.PermitOut{Token: e.Token, Worker: e.Worker, Message: e.Message, AcquiredAt: at, ExpiresAt: e.ExpiresAt})
		}
	}
	return list
}
