package corpus

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// pair is what is sampled of one type.
type pair struct{ full, minimal events.Event }

// The workers that the samples speak of.
var (
	holder = id(0, 1, 1)
	other  = id(0, 1, 2)
)

// nasty has what text may have: quotes, control characters, more than ASCII.
const nasty = "exit 1: \"no\\file\"\n\t\x1b[31mrötlich 🙂\u2028=\x7f"

// pairs lists every type of package events, in the order of their numbers.
func pairs() []pair {
	list := append(messagePairs(), workerPairs()...)
	return append(list, topicPairs()...)
}

// messagePairs speak of the fifth claim of a message in its second series of attempts; see messageHistory.
func messagePairs() []pair {
	return []pair{
		{enqueued(), &events.MessageEnqueued{Topic: "t"}},
		{
			&events.MessageClaimed{Worker: holder, Token: 12, Attempt: 5, Running: 2, Limit: 3},
			&events.MessageClaimed{Worker: holder, Token: 2, Attempt: 1},
		},
		{&events.MessageCompleted{Token: 12}, &events.MessageCompleted{Token: 2}},
		{
			&events.MessageRequeued{
				Reason: events.ReasonRetry, Token: 12, DueAt: at.Add(time.Minute), Jitter: -37, Error: nasty, By: "ops@example", Detail: "why",
			},
			&events.MessageRequeued{Reason: events.ReasonReleased, Token: 2},
		},
		{
			&events.MessageOrphaned{Token: 12, Evidence: evidence()},
			&events.MessageOrphaned{Token: 2, Evidence: events.Evidence{Reason: events.ReasonProcessGone, Claimer: holder}},
		},
		{
			&events.MessageDeadLettered{Reason: events.ReasonExhausted, Token: 12, Error: nasty, By: "ops@example", Detail: "why"},
			&events.MessageDeadLettered{Reason: events.ReasonHandler, Token: 2},
		},
		{
			&events.MessageCancelled{Reason: events.ReasonHandler, Token: 12, By: "ops@example", Detail: nasty},
			&events.MessageCancelled{Reason: events.ReasonOperator},
		},
		{
			&events.MessageRedriven{By: "ops@example", Detail: "why", Spent: 1, Orphanings: 1},
			&events.MessageRedriven{},
		},
		{
			&events.MessageRefused{
				Command: "complete", Reason: events.ReasonStaleToken, Sender: other, Sent: 9, Found: 12, Unrecorded: 4,
			},
			&events.MessageRefused{Command: "complete", Reason: events.ReasonWrongState},
		},
		{&events.MessageCounted{}, &events.MessageCounted{}},
	}
}

func workerPairs() []pair {
	return []pair{
		{started(), &events.WorkerStarted{}},
		{&events.WorkerStopped{Released: 2}, &events.WorkerStopped{}},
		{
			&events.WorkerLost{Evidence: evidence()},
			&events.WorkerLost{Evidence: events.Evidence{Reason: events.ReasonProcessGone, Claimer: holder}},
		},
		{&events.WorkerReturned{LostAt: at}, &events.WorkerReturned{}},
		{&events.WorkerGap{FromAt: at.Add(-time.Minute), ToAt: at.Add(-time.Second)}, &events.WorkerGap{}},
	}
}

func topicPairs() []pair {
	return []pair{
		{configured(), &events.TopicConfigured{}},
		{&events.TopicCounted{}, &events.TopicCounted{}},
		{&events.TopicPaused{By: "ops@example", Detail: nasty}, &events.TopicPaused{}},
		{&events.TopicResumed{By: "ops@example", Detail: nasty}, &events.TopicResumed{}},
	}
}

func enqueued() *events.MessageEnqueued {
	return &events.MessageEnqueued{
		Topic: "mail für alle", DueAt: at.Add(time.Hour), Priority: events.High, Key: "order=17", UniqueFor: 48 * time.Hour,
		Limits: events.Limits{
			MaxAttempts: 7, BackoffBase: 1500 * time.Millisecond, BackoffMax: 10 * time.Minute, Timeout: 90 * time.Second,
			OrphanMaxAttempts: 9,
		},
		Payload: events.Facts{Size: 11, Codec: "json", Commitment: events.Commitment([16]byte{1}, []byte("hello world"))},
	}
}

func evidence() events.Evidence {
	return events.Evidence{
		Reason: events.ReasonProcessGone, Claimer: holder, LastBeatAt: at.Add(-5 * time.Second), Decider: other, Limit: 5,
	}
}

func started() *events.WorkerStarted {
	return &events.WorkerStarted{
		Host: "host-1", PID: 4711, Version: "1.2.3", Topics: []string{"mail für alle", "", "t"}, Concurrency: 8,
		HeartbeatInterval: 15 * time.Second, Proof: true,
	}
}

func configured() *events.TopicConfigured {
	return &events.TopicConfigured{Limit: 3, Counting: true, By: "ops@example", Detail: nasty}
}

// history leads an entity from nothing to a state: a full one sets every field that the state can have set, a minimal one as few as
// it can.
func history(kind events.Kind, to events.State, size string) []events.Event {
	switch {
	case to == events.Absent:
		return nil
	case kind == events.KindMessage && size == "full":
		return messageHistory(to)
	case kind == events.KindMessage:
		return shortMessageHistory(to)
	}
	life := []events.Event{&events.TopicConfigured{}, &events.TopicPaused{}}
	switch {
	case kind == events.KindTopic && size == "full":
		life = []events.Event{configured(), &events.TopicPaused{By: "ops@example"}}
	case kind == events.KindWorker && size == "full":
		life = []events.Event{started(), &events.WorkerLost{Evidence: evidence()}}
	case kind == events.KindWorker:
		life = []events.Event{&events.WorkerStarted{}, &events.WorkerLost{}}
	}
	if to == events.Active || to == events.Live {
		return life[:1]
	}
	return life
}

// messageHistory leaves no count at zero.
func messageHistory(to events.State) []events.Event {
	list := []events.Event{
		enqueued(),
		&events.MessageClaimed{Worker: other, Token: 2, Attempt: 1},
		&events.MessageRequeued{Reason: events.ReasonReleased, Token: 2},
		&events.MessageClaimed{Worker: other, Token: 4, Attempt: 2},
		&events.MessageRequeued{Reason: events.ReasonRetry, Token: 4, DueAt: at.Add(3 * time.Second), Error: "no"},
		&events.MessageClaimed{Worker: other, Token: 6, Attempt: 3},
		&events.MessageOrphaned{Token: 6, Evidence: evidence()},
		&events.MessageRequeued{Reason: events.ReasonOrphan, Token: 6},
		&events.MessageClaimed{Worker: other, Token: 9, Attempt: 4},
		&events.MessageDeadLettered{Reason: events.ReasonHandler, Token: 9, Error: "never"},
		&events.MessageRedriven{Spent: 3, Orphanings: 1},
	}
	if to == events.Queued {
		return list
	}
	list = append(list, &events.MessageClaimed{Worker: holder, Token: 12, Attempt: 5}, &events.MessageCounted{})
	switch to {
	case events.Orphaned:
		list = append(list, &events.MessageOrphaned{Token: 12, Evidence: evidence()})
	case events.DeadLettered:
		list = append(list, &events.MessageDeadLettered{Reason: events.ReasonExhausted, Token: 12})
	}
	return list
}

func shortMessageHistory(to events.State) []events.Event {
	list := []events.Event{&events.MessageEnqueued{Topic: "t"}}
	if to == events.Queued {
		return list
	}
	list = append(list, &events.MessageClaimed{Worker: holder, Token: 2, Attempt: 1})
	switch to {
	case events.Orphaned:
		list = append(list, &events.MessageOrphaned{Token: 2})
	case events.DeadLettered:
		list = append(list, &events.MessageDeadLettered{Reason: events.ReasonHandler, Token: 2})
	}
	return list
}
