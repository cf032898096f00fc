package scenario

import (
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
)

// told is a world in which some steps were done.
func told(t *testing.T, steps ...string) *World {
	t.Helper()
	w, err := New(t.Context(), Engine{"memory", openMemory}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if _, err := w.Do(t.Context(), step, ""); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	return w
}

func TestAnExpectationFailsByItself(t *testing.T) {
	w := told(t, "topic mail limit=2", "worker-start ann", "enqueue mail n=2", "claim ann mail", "release m1 reason=snoozed delay=5s", "claim ann mail")
	for _, line := range []string{
		"running mail 1", "room mail 1", "queued mail 1", "topic mail active", "state m1 queued", "attempts m1 1", "spent m1 0", "releases m1 1",
		"failures m1 0", "orphanings m1 0", "refusals m1 0", "holder m1 nobody", "holder m2 ann", "due m1 +5s", "worker ann live",
		"worker bob none", "state bob none", "events message.claimed 2",
	} {
		if _, err := w.Do(t.Context(), "expect", line); err != nil {
			t.Error(err)
		}
		wrong := line[:strings.LastIndex(line, " ")] + " other"
		if _, err := w.Do(t.Context(), "expect", wrong); err == nil {
			t.Errorf("expect %s: want an error", wrong)
		}
	}
	for _, line := range []string{"running mail", "running mail 1 more", "colour mail red", "state m9 queued", "events message.lost 0"} {
		if _, err := w.Do(t.Context(), "expect", line); err == nil {
			t.Errorf("expect %s: want an error", line)
		}
	}
}

func TestAnExpectationOfLocksAndSweepsFailsByItself(t *testing.T) {
	w := told(t,
		"worker-start ann interval=15s fence=90s", "worker-start bob interval=15s fence=90s", "advance 5m", "lead ann", "enqueue mail n=3 lock=boat",
		"claim bob mail=2", "acquire ann cart", "silence bob", "advance 121s", "sweep ann",
	)
	for _, line := range []string{
		"held boat 0", "held cart 1", "keeper cart ann", "keeper boat nobody", "blocked boat 0", "trying boat 1", "oldest mail 0s",
		"swept requeued 1", "swept dead-lettered 0", "swept locks-released 1", "swept spared 0", "swept dead 1", "swept refused no", "swept sweeps 1",
		"skipped any 0", "skipped claim_grace 0", "skipped caller_missing 0", "leader beat ann",
	} {
		if _, err := w.Do(t.Context(), "expect", line); err != nil {
			t.Error(err)
		}
		wrong := line[:strings.LastIndex(line, " ")] + " other"
		if _, err := w.Do(t.Context(), "expect", wrong); err == nil {
			t.Errorf("expect %s: want an error", wrong)
		}
	}
	for _, line := range []string{"swept clean 1", "skipped lunch 0", "leader band ann"} {
		if _, err := w.Do(t.Context(), "expect", line); err == nil {
			t.Errorf("expect %s: want an error", line)
		}
	}
}

func TestWhatIsNotUnderstoodIsAnError(t *testing.T) {
	w := told(t, "enqueue mail")
	for _, step := range []string{
		"fly", "topic", "topic mail limit=many", "enqueue mail limt=2", "enqueue mail delay=5", "enqueue mail priority=top", "claim",
		"complete", "complete m2", "cancel", "advance", "advance -5s", "pause mail fault=often", "settle", "again and again",
		"enqueue mail lock=boat on-locked=wail", "lock", "acquire ann", "unlock ann boat", "worker-start ann proof=perhaps", "kill", "beat ann bob=1",
		"sweep", "sweep ann grace=little", "sweep ann count=sheep", "sweep ann after=2", "lead", "resign ann", "set-clock noon",
	} {
		if _, err := w.Do(t.Context(), step, ""); err == nil {
			t.Errorf("%s: want an error", step)
		}
	}
	if _, err := w.Do(t.Context(), "settle", "fly m1"); err == nil {
		t.Error("settle with a line that ends no claim: want an error")
	}
	if _, err := w.Do(t.Context(), "together", "advance 1s"); err == nil {
		t.Error("together with a step that commits nothing: want an error")
	}
	if _, err := w.Do(t.Context(), "sweep ann", "wake bob"); err == nil {
		t.Error("what happens before the first commit of a sweep that has none: want an error")
	}
}

// Each list is a log that breaks a law with its last event, and no law before.
func TestTheLawsFindWhatBreaksThem(t *testing.T) {
	enqueued := func() events.Transition {
		return move(&events.MessageEnqueued{Topic: "mail"}, 1, events.Absent, events.Queued)
	}
	claimed := func(version int, token events.Token, attempt int) events.Transition {
		return move(&events.MessageClaimed{Token: token, Attempt: attempt}, version, events.Queued, events.Running)
	}
	completed := func(version int, token events.Token) events.Transition {
		return move(&events.MessageCompleted{Token: token}, version, events.Running, events.Completed)
	}
	requeued := func(version int, token events.Token) events.Transition {
		return move(&events.MessageRequeued{Reason: events.ReasonRetry, Token: token}, version, events.Running, events.Queued)
	}
	for _, test := range []struct {
		name, law string
		log       []events.Transition
	}{
		{"a version is missing", "law 1", []events.Transition{enqueued(), claimed(3, 3, 1)}},
		{"it was in another state", "law 1", []events.Transition{enqueued(), completed(2, 0)}},
		{"the topic is paused", "law 2", []events.Transition{topicMove(&events.TopicPaused{}), enqueued(), claimed(2, 2, 1)}},
		{"the topic is counting", "law 2", []events.Transition{topicMove(&events.TopicConfigured{Limit: 1, Counting: true}), enqueued(), claimed(2, 2, 1)}},
		{"nobody holds what is counted", "law 2", []events.Transition{
			enqueued(), claimed(2, 2, 1), requeued(3, 2), move(&events.MessageCounted{}, 4, events.Queued, events.Queued),
		}},
		{"it is not due", "law 3", []events.Transition{
			move(&events.MessageEnqueued{Topic: "mail", DueAt: start.AddDate(1, 0, 0)}, 1, events.Absent, events.Queued), claimed(2, 2, 1),
		}},
		{"two claims are open", "law 5", []events.Transition{
			enqueued(), claimed(2, 2, 1), move(&events.MessageClaimed{Token: 3, Attempt: 2}, 3, events.Running, events.Running),
		}},
		{"a token comes again", "law 5", []events.Transition{enqueued(), claimed(2, 2, 1), requeued(3, 2), claimed(4, 2, 2)}},
		{"another claim is ended", "law 5", []events.Transition{enqueued(), claimed(2, 2, 1), completed(3, 1)}},
		{"it ends twice", "law 5", []events.Transition{
			enqueued(), claimed(2, 2, 1), completed(3, 2), move(&events.MessageCancelled{}, 4, events.Completed, events.Cancelled),
		}},
		{"the open claim is refused", "law 5", []events.Transition{
			enqueued(), claimed(2, 2, 1), move(&events.MessageRefused{Sent: 2}, 0, events.Running, events.Running),
		}},
		{"an attempt is skipped", "law 6", []events.Transition{enqueued(), claimed(2, 2, 2)}},
		{"a redrive says too little", "law 6", []events.Transition{
			enqueued(), claimed(2, 2, 1), move(&events.MessageDeadLettered{Token: 2}, 3, events.Running, events.DeadLettered),
			move(&events.MessageRedriven{Spent: 0}, 4, events.DeadLettered, events.Queued),
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLaws()
			for i, transition := range test.log {
				err := l.event(record(transition))
				if i < len(test.log)-1 && err != nil {
					t.Fatalf("event %d: %v", i+1, err)
				}
				if i == len(test.log)-1 && (err == nil || !strings.Contains(err.Error(), test.law)) {
					t.Fatalf("the last event: got %v, want that it breaks %s", err, test.law)
				}
			}
		})
	}
}

func TestTheLawsFindAClaimOverTheLimit(t *testing.T) {
	w := told(t, "topic mail limit=1", "enqueue mail", "claim ann mail")
	r := record(move(&events.MessageEnqueued{Topic: "mail"}, 1, events.Absent, events.Queued))
	if err := w.laws.event(r); err != nil {
		t.Fatal(err)
	}
	r = record(move(&events.MessageClaimed{Token: 2, Attempt: 1}, 2, events.Queued, events.Running))
	if err := w.laws.event(r); err == nil || !strings.Contains(err.Error(), "law 2") {
		t.Errorf("got %v, want that it breaks law 2", err)
	}
}

func move(e events.Event, version int, from, to events.State) events.Transition {
	return events.Transition{Event: e, Version: version, From: from, To: to}
}

func topicMove(e events.Event) events.Transition { return move(e, 1, events.Active, events.Active) }

// record is a transition of a message that no step has made, or of the mail topic.
func record(t events.Transition) events.Recorded {
	r := events.Recorded{Transition: t, Entity: events.MessageEntity(events.ID{1}), Commit: &events.Commit{At: start}}
	if t.Event.Type().Kind() == events.KindTopic {
		r.Entity = events.TopicEntity("mail")
	}
	if t.Event.Type().Kind() == events.KindLock {
		r.Entity = events.LockEntity("boat")
	}
	return r
}

// What the rows must be is told by the log, so a check finds a log that goes on without them.
func TestCheckFindsWhatTheRowsDoNotHave(t *testing.T) {
	for _, test := range []struct {
		name, law string
		change    func(*message)
	}{
		{"it has ended", "law 4", func(m *message) { m.state, m.ended = events.Completed, true }},
		{"it is due at another time", "law 3", func(m *message) { m.due = start.AddDate(1, 0, 0) }},
		{"it runs", "law 3", func(m *message) { m.state = events.Running }},
		{"it was claimed", "law 6", func(m *message) { m.claims++ }},
		{"it was released", "law 6", func(m *message) { m.given[events.ReasonReleased]++ }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := told(t, "enqueue mail key=k")
			if err := w.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			id, err := w.ID("m1")
			if err != nil {
				t.Fatal(err)
			}
			test.change(w.laws.messages[id])
			if err := w.Check(t.Context()); err == nil || !strings.Contains(err.Error(), test.law) {
				t.Errorf("got %v, want %s", err, test.law)
			}
		})
	}
}
