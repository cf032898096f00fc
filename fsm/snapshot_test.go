package fsm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/corpus"
	"github.com/google/go-cmp/cmp"
)

// snapshots are the samples of all types that say all of an entity's state, whose beginning may be gone.
func snapshots() []corpus.Sample {
	var list []corpus.Sample
	for _, s := range corpus.Samples() {
		if s.Event.Type().Snapshots() && len(s.History) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// A fold that begins with a snapshot comes to what a fold of the whole history comes to.
func TestFoldBeginsWithASnapshot(t *testing.T) {
	for _, s := range snapshots() {
		_, want, err := s.Values()
		if err != nil {
			t.Fatal(err)
		}
		nothing, err := fsm.NewValue(s.Entity)
		if err != nil {
			t.Fatal(err)
		}
		recorded := s.Recorded()
		got, err := fsm.Apply(nothing, recorded[len(recorded)-1])
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-whole +from the snapshot):\n%s", s.Name, diff)
		}
	}
}

// A snapshot moves nothing but the version.
func TestSnapshotLeavesTheState(t *testing.T) {
	for _, s := range snapshots() {
		before, after, err := s.Values()
		if err != nil {
			t.Fatal(err)
		}
		was, _ := before.At()
		is, _ := after.At()
		said, told := events.SnapshotOf(s.Event)
		switch {
		case is != was+1:
			t.Errorf("%s: version %d follows %d", s.Name, is, was)
		case told != (s.Entity.Kind != events.KindLog):
			t.Errorf("%s: is a snapshot %v", s.Name, told)
		case !told: // log.pruned says what has changed
		case string(said.State) != string(events.AppendFields(nil, before)) || string(said.State) != string(events.AppendFields(nil, after)):
			t.Errorf("%s: tells %s of\n%s, which becomes\n%s", s.Name, said.State, events.AppendFields(nil, before), events.AppendFields(nil, after))
		}
	}
}

// What a snapshot tells must be so, and it must stand where such an event can stand.
func TestApplyRefusesAWrongSnapshot(t *testing.T) {
	commit := corpus.Commit()
	m := messageIn(events.Running)
	told := func(v fsm.Value) *events.MessageSnapshotted {
		return &events.MessageSnapshotted{Snapshot: events.Snapshot{State: events.AppendFields(nil, v)}}
	}
	other := m
	other.Attempts = 7
	lock := lockIn(events.Held)
	lockTold := events.Snapshot{State: events.AppendFields(nil, &lock)}
	ended := messageIn(events.Completed)
	nobody := &fsm.Message{ID: m.ID}
	log := logIn(events.Active)
	tests := []struct {
		name  string
		v     fsm.Value
		event events.Event
		to    events.State
		want  string
	}{
		{"another state than is known", &m, told(&other), events.Running, `tells {"state":3,"topic":"mail"`},
		{"nothing", &m, &events.MessageSnapshotted{}, events.Running, "tells , the entity was"},
		{"what is no state", nobody, &events.MessageSnapshotted{Snapshot: events.Snapshot{State: []byte(`{"colour":"red"}`)}}, events.Running, "misplaced field"},
		{"nothing of somebody unknown", nobody, &events.MessageSnapshotted{}, events.Running, "want an object"},
		{"another state than its own", nobody, told(&m), events.Queued, "it tells a message that is running"},
		{"what is kept no more", nobody, told(&ended), events.Completed, "it tells a message that is completed"},
		{"no permit of a lock that is held", &lock, &events.LockSnapshotted{Snapshot: lockTold}, events.Held, "tells of 0 permits that are out, of the lock 1"},
		{"a permit too many", &fsm.Lock{Name: "l"}, &events.LockSnapshotted{Snapshot: lockTold, Out: make([]events.PermitOut, 2)}, events.Held,
			"tells of 2 permits that are out, of the lock 1"},
		{"a sum that is wrong", &log, &events.LogPruned{Through: 20, Events: 5, Total: 16}, events.Active, "tells of 5 events through position 20 and 16 in all"},
		{"what went before", &log, &events.LogPruned{Through: 12, Events: 5, Total: 15}, events.Active, "before it were 10 through 12"},
	}
	for _, tt := range tests {
		version, from := tt.v.At()
		r := events.Recorded{
			Transition: events.Transition{Event: tt.event, Version: max(version+1, 9*min(1, 1-version)), From: from, To: tt.to},
			Position:   41, Entity: tt.v.Entity(), Commit: &commit,
		}
		if version == 0 {
			r.Version, r.From = 9, tt.to
		}
		v, err := fsm.Apply(tt.v, r)
		var corrupt *events.Corrupt
		if !errors.As(err, &corrupt) || corrupt.Position != 41 || !strings.Contains(err.Error(), tt.want) || v != nil {
			t.Errorf("%s: %v, error %v, want one about %q", tt.name, v, err, tt.want)
		}
	}
	first := events.Recorded{
		Transition: events.Transition{Event: &events.LogPruned{Through: 20, Events: 5, Total: 15}, Version: 9, From: events.Absent, To: events.Active},
		Entity:     events.LogEntity(), Commit: &commit,
	}
	if v, err := fsm.Apply(&fsm.Log{}, first); err == nil {
		t.Errorf("a log that was pruned eight times before for the first time: %+v", v)
	}
	headless := events.Recorded{
		Transition: events.Transition{Event: &events.MessageRequeued{Token: 2}, Version: 3, From: events.Running, To: events.Queued},
		Entity:     m.Entity(), Commit: &commit,
	}
	if v, err := fsm.Apply(nobody, headless); err == nil || !strings.Contains(err.Error(), "version 3 follows version 0") {
		t.Errorf("a fold that begins with what is no snapshot: %+v, %v", v, err)
	}
	for name, change := range map[string]func(*events.Recorded){
		"its first version":  func(r *events.Recorded) { r.Version = 1 },
		"no version":         func(r *events.Recorded) { r.Version = 0 },
		"it leads somewhere": func(r *events.Recorded) { r.From = events.Queued },
	} {
		r := events.Recorded{
			Transition: events.Transition{Event: told(&m), Version: 9, From: events.Running, To: events.Running},
			Position:   41, Entity: m.Entity(), Commit: &commit,
		}
		if _, err := fsm.Apply(nobody, r); err != nil {
			t.Fatal(err)
		}
		change(&r)
		if v, err := fsm.Apply(nobody, r); err == nil {
			t.Errorf("%s: makes %+v", name, v)
		}
	}
}

// Of what has no row and no beginning, the newest event says what there is to say.
func TestRest(t *testing.T) {
	recorded := func(e events.Entity, event events.Event, version int, to events.State) events.Recorded {
		return events.Recorded{Transition: events.Transition{Event: event, Version: version, To: to}, Position: 7, Entity: e}
	}
	at := now.Add(-time.Hour)
	tests := []struct {
		newest events.Recorded
		want   fsm.Value
		wrong  string
	}{
		{recorded(events.MessageEntity(thisID), &events.MessageCompleted{}, 9, events.Completed),
			&fsm.Message{ID: thisID, Version: 9, State: events.Completed}, ""},
		{recorded(events.MessageEntity(thisID), &events.MessageClaimed{}, 9, events.Running), nil, "it is running, and it has no row"},
		{recorded(events.MessageEntity(thisID), &events.MessageDeadLettered{}, 9, events.DeadLettered), nil, "it is dead_lettered, and it has no row"},
		{recorded(events.WorkerEntity(workerA), &events.WorkerStopped{}, 3, events.Stopped), &fsm.Worker{ID: workerA, Version: 3, State: events.Stopped}, ""},
		{recorded(events.WorkerEntity(workerA), &events.WorkerLost{}, 3, events.Lost), nil, "it is lost, and it has no row"},
		{recorded(events.SweepEntity(thisID), &events.SweepRefused{}, 2, events.Refused), &fsm.Sweep{ID: thisID, Version: 2, State: events.Refused}, ""},
		{recorded(events.LockEntity("l"), &events.LockReleased{}, 8, events.Free), &fsm.Lock{Name: "l", Version: 8, State: events.Free}, ""},
		{recorded(events.LockEntity("l"), &events.LockAcquired{}, 8, events.Held), nil, "it is held, and it has no row"},
		{recorded(events.LogEntity(), &events.LogPruned{Through: 5, UntilAt: at, Events: 2, Total: 4}, 3, events.Active),
			&fsm.Log{Version: 3, State: events.Active, Through: 5, PrunedAt: at, Total: 4}, ""},
		{recorded(events.LogEntity(), &events.Unknown{Code: 93}, 3, events.Active), nil, "unknown(93)"},
		{recorded(events.TopicEntity("mail"), &events.TopicPaused{}, 3, events.Paused), nil, "one is kept of every topic"},
	}
	for _, tt := range tests {
		got, err := fsm.Rest(tt.newest)
		if tt.wrong == "" {
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%s %s: %v (-want +got):\n%s", tt.newest.Entity, tt.newest.To, err, diff)
			}
			continue
		}
		if corrupt := new(events.Corrupt); !errors.As(err, &corrupt) || corrupt.Position != 7 || !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s %s: %+v, %v, want an error about %q", tt.newest.Entity, tt.newest.To, got, err, tt.wrong)
		}
	}
}
