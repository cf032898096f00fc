package fsm_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

// Each draft leaves an event, whatever it meets, and none keeps the others from entering the log.
func TestUnstageTellsOfEveryDraft(t *testing.T) {
	known := fsm.Message{ID: events.ID{1}, State: events.Completed, Topic: "mail", Version: 3, Token: 2}
	headless := fsm.Message{ID: events.ID{4}, State: events.Cancelled, Version: 5}
	other := given(1)
	other.Topic = "post"
	aged := fsm.Draft{ID: v7(now.Add(-2 * time.Hour)), Given: true, EnqueueMessage: fsm.EnqueueMessage{Topic: "mail", Key: "other"}}
	keyed := draft(5, "k")
	keyed.UniqueFor, keyed.Delay = time.Hour, time.Minute
	refused := func(reason events.Reason, found events.Token) []events.Event {
		return []events.Event{&events.MessageRefused{Command: "enqueue", Reason: reason, Found: found}}
	}
	tests := []struct {
		name  string
		draft fsm.Draft
		want  []events.Event
	}{
		{"a new one", draft(2, "free"), []events.Event{&events.MessageEnqueued{Topic: "mail", Key: "free"}}},
		{"one whose id is known", given(1), refused(events.ReasonKnown, 2)},
		{"one whose id is known with another topic", other, refused(events.ReasonMismatch, 2)},
		{"one whose id had a message of which only the end is left", given(4), refused(events.ReasonPruned, 0)},
		{"one whose id is older than the log", aged, []events.Event{
			&events.MessageEnqueued{Topic: "mail"}, &events.MessageDiscarded{Reason: events.ReasonPruned}}},
		{"one whose key is taken", keyed, []events.Event{
			&events.MessageEnqueued{Topic: "mail", DueAt: now.Add(time.Minute)},
			&events.MessageDiscarded{Reason: events.ReasonKeyTaken, Key: "k", Holder: events.ID{9}}}},
	}
	held := fsm.Held{
		Now: now, Messages: map[events.ID]fsm.Message{known.ID: known, headless.ID: headless}, PrunedAt: now.Add(-time.Hour),
		Keys: map[fsm.Key]fsm.KeyHolder{{Topic: "mail", Name: "k"}: {Message: events.ID{9}, Open: true}},
	}
	all := fsm.Unstage{}
	for _, tt := range tests {
		all.Drafts = append(all.Drafts, tt.draft)
		outcome, err := fsm.Unstage{Drafts: []fsm.Draft{tt.draft}}.Decide(held)
		if err != nil || len(outcome.Changes) != 1 {
			t.Errorf("%s: %+v, %v", tt.name, outcome, err)
			continue
		}
		change := outcome.Changes[0]
		var got []events.Event
		for _, transition := range change.Transitions {
			got = append(got, transition.Event)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || change.Value.Entity().ID != tt.draft.ID {
			t.Errorf("%s: of %s (-want +got):\n%s", tt.name, change.Value.Entity(), diff)
		}
		if takes := tt.draft.Key == "free"; takes != (len(outcome.Keys) == 1) {
			t.Errorf("%s: keys %+v", tt.name, outcome.Keys)
		}
	}
	outcome, err := all.Decide(held)
	if err != nil || len(outcome.Changes) != 5 { // two of them are of one message
		t.Errorf("all in one: %d changes, %v, want 5", len(outcome.Changes), err)
	}
}

// Of two that were staged under one id or with one key the first is the message.
func TestUnstageTakesTheFirst(t *testing.T) {
	command := fsm.Unstage{
		Drafts: []fsm.Draft{given(2), given(2), given(2), draft(3, "k"), draft(4, "k")}, Topics: map[string]fsm.TopicStart{"mail": {Limit: 2}},
	}
	outcome, err := command.Decide(fsm.Held{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, change := range outcome.Changes {
		for _, transition := range change.Transitions {
			got = append(got, change.Value.Entity().String()+" "+transition.Event.Type().String())
		}
	}
	two, three, four := events.MessageEntity(events.ID{2}).String(), events.MessageEntity(events.ID{3}).String(), events.MessageEntity(events.ID{4}).String()
	want := []string{
		"topic/mail topic.configured", two + " message.enqueued", two + " message.refused", two + " message.refused", three + " message.enqueued",
		four + " message.enqueued", four + " message.discarded",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// v7 is an id of a time.
func v7(t time.Time) (id events.ID) {
	ms := t.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6], id[8] = 0x70, 0x80
	return id
}
