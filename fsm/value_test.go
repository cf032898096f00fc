package fsm_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/corpus"
	"github.com/google/go-cmp/cmp"
)

// Every claim of a record is checked, and the error says which record of which entity it was.
func TestApplyRefusesAWrongRecord(t *testing.T) {
	commit := corpus.Commit()
	m := messageIn(events.Queued)
	good := events.Recorded{
		Transition: events.Transition{
			Event: &events.MessageClaimed{Worker: workerA, Token: 2, Attempt: 1}, Version: 2, From: events.Queued, To: events.Running,
		},
		Position: 41, Entity: m.Entity(), Commit: &commit,
	}
	tests := []struct {
		name   string
		change func(*events.Recorded)
		want   string
	}{
		{"unknown type", func(r *events.Recorded) { r.Event = &events.Unknown{Code: 200, Schema: 1} }, "unknown(200)"},
		{"unknown schema", func(r *events.Recorded) { r.Event = &events.Unknown{Code: events.TypeMessageClaimed, Schema: 9} }, "schema version 9"},
		{"a version left out", func(r *events.Recorded) { r.Version = 3 }, "version 3 follows version 1"},
		{"a version twice", func(r *events.Recorded) { r.Version = 1 }, "version 1 follows version 1"},
		{"no version", func(r *events.Recorded) { r.Version = 0 }, "version 0 follows version 1"},
		{"from another state", func(r *events.Recorded) { r.From = events.Running }, "from running to running is recorded, the entity was queued"},
		{"to another state", func(r *events.Recorded) { r.To = events.Completed }, "to completed is recorded"},
		{"an event that the table lacks here", func(r *events.Recorded) {
			r.Event, r.To = &events.MessageCompleted{Token: 2}, events.Completed
		}, "message.completed from queued to completed"},
		{"an event that the table lacks here and that goes nowhere", func(r *events.Recorded) {
			r.Event, r.To = &events.MessageCompleted{Token: 2}, events.Queued
		}, "message.completed from queued to queued"},
		{"of another message", func(r *events.Recorded) { r.Entity = events.MessageEntity(events.ID{9}) }, "does not belong to message/01"},
		{"of another kind", func(r *events.Recorded) { r.Event = &events.TopicPaused{} }, "topic.paused does not belong"},
		{"a refusal with a version", func(r *events.Recorded) { r.Event = &events.MessageRefused{} }, "moves nothing and has version 2"},
	}
	for _, tt := range tests {
		r := good
		tt.change(&r)
		v, err := fsm.Apply(&m, r)
		var corrupt *events.Corrupt
		if !errors.As(err, &corrupt) || corrupt.Position != 41 || !strings.Contains(err.Error(), tt.want) || v != nil {
			t.Errorf("%s: %v, error %v, want one about %q at position 41", tt.name, v, err, tt.want)
		}
		if typ := r.Event.Type().String(); err != nil && !strings.Contains(err.Error(), typ) {
			t.Errorf("%s: error %q does not name the type %s", tt.name, err, typ)
		}
	}
	before := m
	v, err := fsm.Apply(&m, good)
	if err != nil {
		t.Fatal(err)
	}
	if version, state := v.At(); version != 2 || state != events.Running || !cmp.Equal(before, m) {
		t.Errorf("the good record: %s v%d, and %+v is left behind", state, version, m)
	}
}

// Where the table has two edges, the value says which of them a record must have taken.
func TestApplyOfABranch(t *testing.T) {
	commit := corpus.Commit()
	for out, want := range map[int]events.State{1: events.Free, 2: events.Held} {
		lock := fsm.Lock{Name: "l", Version: 3, State: events.Held, Permits: 2, Held: out}
		for _, to := range []events.State{events.Free, events.Held} {
			v, err := fsm.Apply(&lock, events.Recorded{
				Transition: events.Transition{Event: &events.LockReleased{Token: 7}, Version: 4, From: events.Held, To: to},
				Entity:     lock.Entity(), Commit: &commit,
			})
			var corrupt *events.Corrupt
			if errors.As(err, &corrupt) != (to != want) || (v == nil) != (to != want) {
				t.Errorf("one of %d comes back and leads to %s: %v, %v", out, to, v, err)
			}
		}
	}
}

func TestApplyOfARefusalMovesNothing(t *testing.T) {
	commit := corpus.Commit()
	m := messageIn(events.Running)
	v, err := fsm.Apply(&m, events.Recorded{
		Transition: events.Transition{Event: &events.MessageRefused{Command: "complete"}, From: events.Running, To: events.Running},
		Entity:     m.Entity(), Commit: &commit,
	})
	if err != nil || v != fsm.Value(&m) {
		t.Errorf("%v, %v", v, err)
	}
}

// What a store keeps of a value is all there is of it, beside what has columns of its own.
func TestReadValue(t *testing.T) {
	for _, s := range corpus.Samples() {
		_, want, err := s.Values()
		if err != nil {
			t.Fatal(err)
		}
		version, _ := want.At()
		got, err := fsm.ReadValue(s.Entity, version, events.AppendFields(nil, want))
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-kept +read):\n%s", s.Name, diff)
		}
	}
	for name, tt := range map[string]struct {
		entity events.Entity
		fields string
		want   string
	}{
		"unknown kind":  {events.Entity{Kind: 99}, `{}`, "kind(99)"},
		"unknown state": {events.MessageEntity(thisID), `{"state":99}`, "state(99) is unknown"},
		"unknown field": {events.TopicEntity("mail"), `{"colour":"red"}`, "topic/mail version 3"},
	} {
		if _, err := fsm.ReadValue(tt.entity, 3, []byte(tt.fields)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, tt.want)
		}
	}
}

// A store keeps a row of what still has to end or may come back, and of nothing else.
func TestKept(t *testing.T) {
	want := map[events.State]bool{
		events.Queued: true, events.Blocked: true, events.Running: true, events.DeadLettered: true,
		events.Active: true, events.Paused: true, events.Live: true, events.Lost: true,
		events.Held: true, events.Led: true, events.Vacant: true,
	}
	for _, life := range fsm.Lifecycles() {
		for _, state := range life.States() {
			before := attempts(life.Kind(), state)[0].before
			if before.Kept() != (want[state] && life.Kind() != events.KindLog) { // the log rests in its newest event
				t.Errorf("a %s %s: kept %v", state, life.Kind(), before.Kept())
			}
		}
	}
	if l := (fsm.Lock{Name: "l", State: events.Free, Permits: 1}); !l.Kept() {
		t.Error("a free lock that somebody configured is not kept")
	}
}
