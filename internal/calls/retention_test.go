package calls_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/google/go-cmp/cmp"
)

var (
	now  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	mail = events.MessageEntity(events.ID{1})
)

// history is what an entity's events are, from a version on.
func history(entity events.Entity, version int, list ...events.Transition) []events.Recorded {
	commit := &events.Commit{At: now}
	var recorded []events.Recorded
	for i, t := range list {
		if t.Event.Type().Moves() {
			t.Version = version
			version++
		}
		recorded = append(recorded, events.Recorded{Transition: t, Position: int64(i + 100), Entity: entity, Commit: commit})
	}
	return recorded
}

func step(event events.Event, from, to events.State) events.Transition {
	return events.Transition{Event: event, From: from, To: to}
}

// What has no row is what its events lead to. Where the beginning of them may be gone it is known from where it told its state, or as it ended.
func TestRest(t *testing.T) {
	enqueued := step(&events.MessageEnqueued{Topic: "mail"}, events.Absent, events.Queued)
	claimed := step(&events.MessageClaimed{Token: 2, Attempt: 1}, events.Queued, events.Running)
	completed := step(&events.MessageCompleted{Token: 2}, events.Running, events.Completed)
	refused := step(&events.MessageRefused{Command: "complete"}, events.Completed, events.Completed)
	running := fsm.Message{ID: mail.ID, Version: 2, State: events.Running, Topic: "mail", Token: 2, Attempts: 1}
	told := step(&events.MessageSnapshotted{Snapshot: events.Snapshot{State: events.AppendFields(nil, &running)}}, events.Running, events.Running)
	end := fsm.Message{ID: mail.ID, Version: 3, State: events.Completed}
	whole := fsm.Message{ID: mail.ID, Version: 3, State: events.Completed, Topic: "mail", EnqueuedAt: now, DueAt: now, Attempts: 1}
	tests := []struct {
		name     string
		history  []events.Recorded
		prunedAt time.Time
		want     fsm.Value
		wrong    string
	}{
		{"nothing", nil, now, &fsm.Message{ID: mail.ID}, ""},
		{"all of it", history(mail, 1, enqueued, claimed, completed, refused), time.Time{}, &whole, ""},
		{"all of it, others were pruned", history(mail, 1, enqueued, claimed, completed, refused), now, &whole, ""},
		{"its beginning is missing", history(mail, 2, claimed, completed), time.Time{}, nil, "version 2 follows version 0"},
		{"its beginning is gone", history(mail, 2, claimed, completed, refused), now, &end, ""},
		{"its beginning is gone, it refused something first", history(mail, 3, refused, completed), now, &end, ""},
		{"it told its state", history(mail, 2, claimed, told, completed), now,
			&fsm.Message{ID: mail.ID, Version: 4, State: events.Completed, Topic: "mail", Attempts: 1}, ""},
		{"only a refusal is left", history(mail, 4, refused), now, &fsm.Message{ID: mail.ID, State: events.Completed}, ""},
		{"it does not end", history(mail, 2, claimed), now, nil, "it is running, and it has no row"},
	}
	for _, tt := range tests {
		got, err := calls.Rest(mail, tt.history, tt.prunedAt)
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s: %+v, %v, want an error about %q", tt.name, got, err, tt.wrong)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}

// A row that cannot be read cannot tell its state, so that nothing may go.
func TestNothingGoesWhereARowCannotBeRead(t *testing.T) {
	call, seen := calls.Prune(calls.Origin{}, fsm.Prune{Retention: time.Hour, Events: 5, Rows: 5}, calls.Known{Now: now})
	view := store.View{Now: now, Pruning: store.Pruning{Through: 7, At: now.Add(-2 * time.Hour), Events: 3, Rows: []store.Row{
		{Entity: events.TopicEntity("mail"), Version: 1, State: events.Active, Fields: []byte(`{"state":30}`)},
	}}}
	changes, err := call.Fn(view)
	if err != nil || changes.Prune != 7 || len(changes.Rows) != 2 || seen.Events != 3 {
		t.Fatalf("%v, %+v, seen %+v", err, changes, seen)
	}
	view.Pruning.Rows[0].Fields = []byte(`{"colour":"red"}`)
	if changes, err = call.Fn(view); err == nil || !changes.Empty() || !strings.Contains(err.Error(), "topic/mail") {
		t.Errorf("%v, %+v, want an error that names the topic", err, changes)
	}
}

// What a call asks for before it holds anything: as much as may be old enough, and the permits of the locks that it knows it must tell of.
func TestWhatAPruneAsksFor(t *testing.T) {
	clock := fsm.Clock{State: events.Active, StepAt: now, FromAt: now.Add(-time.Hour), ToAt: now}
	known := calls.Known{Now: now, Clock: clock, Upto: "here"}
	seen := known.See([]fsm.Lock{{Name: "m", Permits: 1, Held: 2}, {Name: "l", Held: 1}, {Name: "n"}})
	again := seen.See([]fsm.Lock{{Name: "l", Permits: 9, Held: 4}}) // more may be out by then
	call, _ := calls.Prune(calls.Origin{}, fsm.Prune{Retention: time.Hour, Events: 5, Rows: 6}, again)
	want := store.Need{
		Held:    []events.Entity{events.LogEntity(), events.ClockEntity()},
		Prune:   store.Prunable{Before: now.Add(-2 * time.Hour), Ahead: now, Upto: "here", Events: 5, Rows: 6},
		Holders: []store.LockPage{{Lock: "l", N: 9}, {Lock: "m", N: 2}, {Lock: "n", N: 1}},
	}
	if diff := cmp.Diff(want, call.Need); diff != "" {
		t.Errorf("need (-want +got):\n%s", diff)
	}
	call, _ = calls.Prune(calls.Origin{}, fsm.Prune{Retention: time.Hour, Events: 5, Rows: 6}, known)
	if call.Need.Holders != nil {
		t.Errorf("asks for %v before it knows of any", call.Need.Holders)
	}
}

// The results go with the messages that their items completed, and with no others.
func TestResultsGoWithWhatIsCompleted(t *testing.T) {
	rows := map[events.Entity]store.Row{}
	for i := range byte(4) {
		m := fsm.Message{ID: events.ID{i + 1}, Version: 2, State: events.Running, Topic: "mail", Worker: events.ID{9}, Token: 2, Attempts: 1}
		rows[m.Entity()] = calls.Row(&m)
	}
	settlement := func(id byte, command fsm.MessageCommand) fsm.Settlement {
		return fsm.Settlement{ID: events.ID{id}, Command: command}
	}
	c := fsm.Settle{Sender: events.ID{9}, Recordable: 9, Items: []fsm.Settlement{
		settlement(1, fsm.CompleteMessage{Token: 2}), settlement(2, fsm.FailMessage{Token: 2}), settlement(3, fsm.CompleteMessage{Token: 1}),
		settlement(4, fsm.CompleteMessage{Token: 2}),
	}}
	result := func(text string) *store.Payload { return &store.Payload{Bytes: []byte(text)} }
	call, _ := calls.Settle(calls.Origin{}, c, nil, result("one"), result("two"), result("three"), nil)
	changes, err := call.Fn(store.View{Now: now, Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes.Rows {
		want := ""
		if change.Row.Entity.ID[0] == 1 {
			want = "one"
		}
		if got := change.Result; (got != nil) != (want != "") || got != nil && string(got.Bytes) != want {
			t.Errorf("%s: its result is %+v, want %q", change.Row.Entity, got, want)
		}
	}
	if len(changes.Rows) != 4 {
		t.Errorf("%d changes", len(changes.Rows))
	}
}

func TestAnOriginsTraceIsKeptWhereItIsOne(t *testing.T) {
	good := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for sent, want := range map[string]string{good: good, "nonsense": ""} {
		call, _ := calls.Erase(calls.Origin{Trace: sent}, fsm.Erase{IDs: []events.ID{{1}}})
		if call.Command.Trace != want {
			t.Errorf("%q is kept as %q", sent, call.Command.Trace)
		}
	}
}

// What was erased is not erased again, nor what went with the event that ended its message.
func TestEraseOfWhatIsGone(t *testing.T) {
	enqueued := step(&events.MessageEnqueued{Topic: "mail"}, events.Absent, events.Queued)
	cancelled := step(&events.MessageCancelled{Reason: events.ReasonOperator}, events.Queued, events.Cancelled)
	erased := step(&events.MessageErased{}, events.Cancelled, events.Cancelled)
	for name, tt := range map[string]struct {
		history []events.Recorded
		want    int
	}{
		"its contents are there":  {history(mail, 1, enqueued, cancelled), 1},
		"it was erased":           {history(mail, 1, enqueued, cancelled, erased), 0},
		"its beginning is gone":   {history(mail, 2, cancelled), 1},
		"its end is gone as well": {history(mail, 3, erased), 0},
	} {
		call, refusals := calls.Erase(calls.Origin{}, fsm.Erase{IDs: []events.ID{mail.ID}})
		changes, err := call.Fn(store.View{Now: now, PrunedAt: now, History: map[events.Entity][]events.Recorded{mail: tt.history}})
		if err != nil || (*refusals)[0] != nil || len(changes.Erase) != tt.want || len(changes.Rows) != tt.want {
			t.Errorf("%s: %+v, %v, %v", name, changes, *refusals, err)
		}
	}
	call, refusals := calls.Erase(calls.Origin{}, fsm.Erase{IDs: []events.ID{mail.ID}})
	if changes, err := call.Fn(store.View{Now: now}); err != nil || !changes.Empty() || !errors.Is((*refusals)[0], &fsm.Refusal{Reason: events.ReasonNotFound}) {
		t.Errorf("of somebody unknown: %+v, %v, %v", changes, *refusals, err)
	}
}
