package fsm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

// draft is a message to be, on the topic mail.
func draft(id byte, key string) fsm.Draft {
	return fsm.Draft{ID: events.ID{id}, EnqueueMessage: fsm.EnqueueMessage{Topic: "mail", Key: key}}
}

// given is a draft whose id the caller gave.
func given(id byte) fsm.Draft {
	d := draft(id, "")
	d.Given = true
	return d
}

func TestEnqueueAnswers(t *testing.T) {
	known := fsm.Message{ID: events.ID{1}, State: events.Completed, Topic: "mail", Version: 3}
	mailKey := fsm.Key{Topic: "mail", Name: "k"}
	tests := []struct {
		name   string
		drafts []fsm.Draft
		keys   map[fsm.Key]fsm.KeyHolder
		want   []fsm.Answer
		made   int
	}{
		{"nothing", nil, nil, []fsm.Answer{}, 0},
		{"new ones", []fsm.Draft{draft(2, ""), draft(3, "")}, nil, []fsm.Answer{{ID: events.ID{2}}, {ID: events.ID{3}}}, 2},
		{"a known id, though it has ended", []fsm.Draft{given(1)}, nil, []fsm.Answer{{ID: events.ID{1}, Known: true}}, 0},
		{"a new and a known one", []fsm.Draft{given(2), given(1)}, nil,
			[]fsm.Answer{{ID: events.ID{2}}, {ID: events.ID{1}, Known: true}}, 1},
		{"one id twice", []fsm.Draft{given(2), given(2)}, nil,
			[]fsm.Answer{{ID: events.ID{2}}, {ID: events.ID{2}, Known: true}}, 1},
		{"one key twice", []fsm.Draft{draft(2, "k"), draft(3, "k")}, nil,
			[]fsm.Answer{{ID: events.ID{2}}, {ID: events.ID{2}, Known: true}}, 1},
		{"a key whose holder is open", []fsm.Draft{draft(2, "k")},
			map[fsm.Key]fsm.KeyHolder{mailKey: {Message: events.ID{9}, Open: true}},
			[]fsm.Answer{{ID: events.ID{9}, Known: true}}, 0},
		{"a key that stays taken for its time", []fsm.Draft{draft(2, "k")},
			map[fsm.Key]fsm.KeyHolder{mailKey: {Message: events.ID{9}, UntilAt: now.Add(1)}},
			[]fsm.Answer{{ID: events.ID{9}, Known: true}}, 0},
		{"a key whose time is over", []fsm.Draft{draft(2, "k")},
			map[fsm.Key]fsm.KeyHolder{mailKey: {Message: events.ID{9}, UntilAt: now}},
			[]fsm.Answer{{ID: events.ID{2}}}, 1},
		{"the key of another topic", []fsm.Draft{draft(2, "k")},
			map[fsm.Key]fsm.KeyHolder{{Topic: "post", Name: "k"}: {Message: events.ID{9}, Open: true}},
			[]fsm.Answer{{ID: events.ID{2}}}, 1},
	}
	for _, tt := range tests {
		held := fsm.Held{Now: now, Messages: map[events.ID]fsm.Message{known.ID: known}, Keys: tt.keys}
		outcome, answers, err := fsm.Enqueue{Drafts: tt.drafts}.Decide(held)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, answers); diff != "" {
			t.Errorf("%s: answers (-want +got):\n%s", tt.name, diff)
		}
		if len(outcome.Changes) != tt.made {
			t.Errorf("%s: %d changes, want %d", tt.name, len(outcome.Changes), tt.made)
		}
	}
}

// A known id with another topic or payload is a mistake of the caller, and the whole command is refused.
func TestEnqueueMismatch(t *testing.T) {
	known := fsm.Message{ID: events.ID{1}, State: events.Queued, Topic: "mail", Payload: events.Facts{Size: 3, Codec: "json"}}
	held := fsm.Held{Now: now, Messages: map[events.ID]fsm.Message{known.ID: known}}
	same := given(1)
	same.Payload = known.Payload
	same.Payload.Commitment = [32]byte{1} // salted anew each time, so it says nothing
	if _, answers, err := (fsm.Enqueue{Drafts: []fsm.Draft{same}}).Decide(held); err != nil || !answers[0].Known {
		t.Errorf("the same topic, size and codec: %v, %v", answers, err)
	}
	for name, change := range map[string]func(*fsm.Draft){
		"topic": func(d *fsm.Draft) { d.Topic = "post" },
		"size":  func(d *fsm.Draft) { d.Payload.Size = 4 },
		"codec": func(d *fsm.Draft) { d.Payload.Codec = "" },
	} {
		other := same
		change(&other)
		outcome, _, err := fsm.Enqueue{Drafts: []fsm.Draft{given(2), other}}.Decide(held)
		if !errors.Is(err, &fsm.Refusal{Command: "enqueue", Reason: events.ReasonMismatch}) || len(outcome.Changes) != 0 {
			t.Errorf("another %s: %v, %d changes", name, err, len(outcome.Changes))
		}
	}
}

// A limit in code is what a topic starts with, and nothing more.
func TestEnqueueMakesTopicsKnown(t *testing.T) {
	starts := map[string]fsm.TopicStart{"mail": {Limit: 3}}
	c := fsm.Enqueue{Drafts: []fsm.Draft{draft(1, ""), draft(2, "")}, Topics: starts}
	outcome, _, err := c.Decide(fsm.Held{Now: now})
	if err != nil || len(outcome.Changes) != 3 {
		t.Fatalf("%v, %d changes", err, len(outcome.Changes))
	}
	want := fsm.Change{
		Value: &fsm.Topic{Name: "mail", Version: 1, State: events.Active, Limit: 3},
		Transitions: []events.Transition{{
			Event: &events.TopicConfigured{Limit: 3}, Version: 1, From: events.Absent, To: events.Active,
		}},
	}
	if diff := cmp.Diff(want, outcome.Changes[0]); diff != "" {
		t.Errorf("the topic (-want +got):\n%s", diff)
	}
	seen := fsm.Held{Now: now, Topics: map[string]fsm.Topic{"mail": {Name: "mail", Version: 1, State: events.Active}}}
	if outcome, _, err = c.Decide(seen); err != nil || len(outcome.Changes) != 2 {
		t.Errorf("a topic that was seen: %v, %d changes, want the messages alone", err, len(outcome.Changes))
	}
	c.Topics = nil
	if outcome, _, err = c.Decide(fsm.Held{Now: now}); err != nil || len(outcome.Changes) != 2 {
		t.Errorf("a topic that the caller knows of: %v, %d changes, want the messages alone", err, len(outcome.Changes))
	}
}

// What becomes of a key when its message ends.
func TestKeys(t *testing.T) {
	key := fsm.Key{Topic: "mail", Name: "k"}
	open := fsm.KeyHolder{Message: thisID, Open: true}
	unique := fsm.KeyHolder{Message: thisID, Open: true, UntilAt: now.Add(time.Hour)}
	tests := []struct {
		name      string
		uniqueFor time.Duration
		first     fsm.KeyHolder // when it is enqueued
		end       fsm.MessageCommand
		endAt     time.Time
		want      []fsm.KeyChange // when it ends
	}{
		{"completed", 0, open, fsm.CompleteMessage{Token: 2}, now, []fsm.KeyChange{{Key: key}}},
		{"cancelled", 0, open, fsm.CancelMessage{Token: 2}, now, []fsm.KeyChange{{Key: key}}},
		{"dead-lettered", 0, open, fsm.DeadLetterMessage{Token: 2}, now, []fsm.KeyChange{{Key: key}}},
		{"requeued", 0, open, fsm.FailMessage{Token: 2}, now, nil},
		{"completed within its time", time.Hour, unique, fsm.CompleteMessage{Token: 2}, now.Add(time.Minute),
			[]fsm.KeyChange{{Key: key, Holder: fsm.KeyHolder{Message: thisID, UntilAt: now.Add(time.Hour)}}}},
		{"completed after its time", time.Hour, unique, fsm.CompleteMessage{Token: 2}, now.Add(time.Hour), []fsm.KeyChange{{Key: key}}},
	}
	for _, tt := range tests {
		d := draft(1, "k")
		d.UniqueFor = tt.uniqueFor
		made, _, err := fsm.Enqueue{Drafts: []fsm.Draft{d}}.Decide(fsm.Held{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]fsm.KeyChange{{Key: key, Holder: tt.first}}, made.Keys); diff != "" {
			t.Errorf("%s: enqueued (-want +got):\n%s", tt.name, diff)
		}
		m := claim(t, *made.Changes[0].Value.(*fsm.Message))
		held := fsm.Held{Now: tt.endAt, Messages: map[events.ID]fsm.Message{m.ID: m}}
		ended, refusals, err := fsm.Settle{Items: []fsm.Settlement{{ID: m.ID, Command: tt.end}}}.Decide(held)
		if err != nil || refusals[0] != nil {
			t.Fatalf("%s: %v, %v", tt.name, refusals, err)
		}
		if diff := cmp.Diff(tt.want, ended.Keys); diff != "" {
			t.Errorf("%s: ended (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A dead letter whose key another message has meanwhile stays where it is.
func TestRedriveAndKeys(t *testing.T) {
	key := fsm.Key{Topic: "mail", Name: "k"}
	dead := messageIn(events.DeadLettered)
	dead.Key = "k"
	other := events.ID{9}
	tests := []struct {
		name    string
		holder  fsm.KeyHolder
		refused bool
	}{
		{"nobody has it", fsm.KeyHolder{}, false},
		{"another has it", fsm.KeyHolder{Message: other, Open: true}, true},
		{"another had it and it is not free yet", fsm.KeyHolder{Message: other, UntilAt: now.Add(1)}, true},
		{"another had it", fsm.KeyHolder{Message: other, UntilAt: now}, false},
		{"it has it itself for its time", fsm.KeyHolder{Message: dead.ID, UntilAt: now.Add(1)}, false},
	}
	for _, tt := range tests {
		held := fsm.Held{
			Now: now, Messages: map[events.ID]fsm.Message{dead.ID: dead}, Keys: map[fsm.Key]fsm.KeyHolder{key: tt.holder},
		}
		c := fsm.Operate{IDs: []events.ID{dead.ID}, Command: fsm.RedriveMessage{}}
		outcome, refusals, err := c.Decide(held)
		if err != nil {
			t.Fatal(err)
		}
		if tt.refused {
			if !errors.Is(refusals[0], &fsm.Refusal{Command: "redrive", Reason: events.ReasonKeyTaken}) || len(outcome.Changes) != 0 {
				t.Errorf("%s: %v, %d changes", tt.name, refusals[0], len(outcome.Changes))
			}
			continue
		}
		want := []fsm.KeyChange{{Key: key, Holder: fsm.KeyHolder{Message: dead.ID, Open: true}}}
		if diff := cmp.Diff(want, outcome.Keys); diff != "" || refusals[0] != nil {
			t.Errorf("%s: %v, keys (-want +got):\n%s", tt.name, refusals[0], diff)
		}
	}
}

// Of two dead letters with one key that are redriven together, the first gets it.
func TestRedriveOfTwoWithOneKey(t *testing.T) {
	one, two := messageIn(events.DeadLettered), messageIn(events.DeadLettered)
	one.Key, two.Key, two.ID = "k", "k", events.ID{2}
	held := fsm.Held{Now: now, Messages: map[events.ID]fsm.Message{one.ID: one, two.ID: two}}
	c := fsm.Operate{IDs: []events.ID{one.ID, two.ID}, Command: fsm.RedriveMessage{}}
	outcome, refusals, err := c.Decide(held)
	if err != nil || refusals[0] != nil || !errors.Is(refusals[1], &fsm.Refusal{Reason: events.ReasonKeyTaken}) || len(outcome.Changes) != 1 {
		t.Errorf("%v, %v, %d changes", err, refusals, len(outcome.Changes))
	}
}

// An id that is as old as what was pruned may have been there before. Nobody can say so any more, and taking it as new would do it twice.
func TestEnqueueOfAnIDThatMayBeForgotten(t *testing.T) {
	prunedAt := time.UnixMilli(1_767_000_000_000).Add(300 * time.Microsecond).UTC()
	at := func(milli int64) events.ID {
		id := events.ID{6: 0x70, 8: 0x80, 15: 1}
		for i := range 6 {
			id[i] = byte(milli >> (40 - 8*i))
		}
		return id
	}
	kept := fsm.Message{ID: at(1_766_000_000_000), State: events.DeadLettered, Topic: "mail", Version: 30}
	end := fsm.Message{ID: at(1_766_999_000_000), State: events.Completed, Version: 9} // of which only that is left
	draft := func(id events.ID) fsm.Draft {
		return fsm.Draft{ID: id, Given: true, EnqueueMessage: fsm.EnqueueMessage{Topic: "mail"}}
	}
	minted := draft(at(1_766_000_000_001))
	minted.Given = false
	tests := []struct {
		name     string
		draft    fsm.Draft
		prunedAt time.Time
		want     events.Reason
		made     int
	}{
		{"older", draft(at(1_766_000_000_001)), prunedAt, events.ReasonPruned, 0},
		{"of the same millisecond", draft(at(1_767_000_000_000)), prunedAt, events.ReasonPruned, 0},
		{"younger", draft(at(1_767_000_000_001)), prunedAt, "", 1},
		{"older, and nothing was pruned", draft(at(1_766_000_000_001)), time.Time{}, "", 1},
		{"older, and minted here", minted, prunedAt, "", 1},
		{"one that tells no time", draft(events.ID{1}), prunedAt, "", 1},
		{"older, and it is there", draft(kept.ID), prunedAt, "", 0},
		{"of which only its end is there", draft(end.ID), prunedAt, events.ReasonPruned, 0},
	}
	for _, tt := range tests {
		held := fsm.Held{Now: now, PrunedAt: tt.prunedAt, Messages: map[events.ID]fsm.Message{kept.ID: kept, end.ID: end}}
		o, _, err := fsm.Enqueue{Drafts: []fsm.Draft{tt.draft}}.Decide(held)
		var r *fsm.Refusal
		errors.As(err, &r)
		if (err != nil) != (tt.want != "") || err != nil && (r == nil || r.Reason != tt.want) || len(o.Changes) != tt.made {
			t.Errorf("%s: %d made, %v, want %d and %q", tt.name, len(o.Changes), err, tt.made, tt.want)
		}
	}
}

// The caller's trace goes with the message, if it is one.
func TestEnqueueKeepsATrace(t *testing.T) {
	good := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for sent, want := range map[string]string{good: good, "": "", "nonsense": ""} {
		m, list := decide(t, fsm.Message{ID: thisID}, fsm.EnqueueMessage{Topic: "mail", Trace: sent}, now)
		if e := list[0].(*events.MessageEnqueued); e.Trace != want || m.Trace != want {
			t.Errorf("%q: recorded as %q, the message has %q", sent, e.Trace, m.Trace)
		}
	}
}
