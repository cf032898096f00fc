package corpus

import (
	"slices"
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

// theLock is the lock that the samples of messages take.
const theLock = "konto=17 größer"

// pairs lists every type of package events, in the order of their numbers.
func pairs() []pair {
	return slices.Concat(messagePairs(), lockPairs(), workerPairs(), topicPairs(), beatPairs())
}

// messagePairs speak of the fifth claim of a message in its second series of attempts; see messageHistory.
func messagePairs() []pair {
	return []pair{
		{enqueued(), &events.MessageEnqueued{Topic: "t"}},
		{
			&events.MessageClaimed{Topic: "mail für alle", Worker: holder, Token: 14, Attempt: 5, Running: 2, Limit: 3, LockToken: 40},
			&events.MessageClaimed{Worker: holder, Token: 2, Attempt: 1},
		},
		{
			&events.MessageCompleted{Token: 14, Result: events.Facts{
				Size: 5, Codec: "json", Commitment: events.Commitment([16]byte{3}, []byte(`"yes"`)),
			}},
			&events.MessageCompleted{Token: 2},
		},
		{
			&events.MessageRequeued{
				Reason: events.ReasonRetry, Token: 14, DueAt: at.Add(time.Minute), Jitter: -37, Error: nasty, By: "ops@example", Detail: "why",
			},
			&events.MessageRequeued{Reason: events.ReasonReleased, Token: 2},
		},
		{
			&events.MessageOrphaned{Token: 14, Evidence: evidence()},
			&events.MessageOrphaned{Token: 2, Evidence: events.Evidence{Reason: events.ReasonProcessGone, Claimer: holder}},
		},
		{
			&events.MessageDeadLettered{Reason: events.ReasonExhausted, Token: 14, Error: nasty, By: "ops@example", Detail: "why"},
			&events.MessageDeadLettered{Reason: events.ReasonHandler, Token: 2},
		},
		{
			&events.MessageCancelled{Reason: events.ReasonHandler, Token: 14, By: "ops@example", Detail: nasty},
			&events.MessageCancelled{Reason: events.ReasonOperator},
		},
		{
			&events.MessageRedriven{By: "ops@example", Detail: "why", Spent: 1, Orphanings: 1},
			&events.MessageRedriven{},
		},
		{
			&events.MessageRefused{
				Command: "complete", Reason: events.ReasonStaleToken, Sender: other, Sent: 9, Found: 14, Unrecorded: 4,
			},
			&events.MessageRefused{Command: "complete", Reason: events.ReasonWrongState},
		},
		{&events.MessageCounted{}, &events.MessageCounted{}},
		{&events.MessageBlocked{Lock: theLock}, &events.MessageBlocked{Lock: "l"}},
		{&events.MessageUnblocked{Lock: theLock, Repair: true}, &events.MessageUnblocked{Lock: "l"}},
		{
			&events.MessageDiscarded{Reason: events.ReasonLockTaken, Lock: theLock, Key: nasty, Holder: other},
			&events.MessageDiscarded{Reason: events.ReasonLockTaken, Lock: "l"},
		},
		{&events.MessageErased{By: "ops@example", Detail: nasty}, &events.MessageErased{}},
		{&events.MessageSnapshotted{}, &events.MessageSnapshotted{}},
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
		{&events.WorkerPurged{LostAt: at}, &events.WorkerPurged{}},
		{&events.WorkerSnapshotted{}, &events.WorkerSnapshotted{}},
	}
}

func topicPairs() []pair {
	return []pair{
		{configured(), &events.TopicConfigured{}},
		{&events.TopicCounted{}, &events.TopicCounted{}},
		{&events.TopicPaused{By: "ops@example", Detail: nasty}, &events.TopicPaused{}},
		{&events.TopicResumed{By: "ops@example", Detail: nasty}, &events.TopicResumed{}},
		{&events.TopicSnapshotted{}, &events.TopicSnapshotted{}},
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
		Lock:    theLock, OnLocked: events.SkipIfLocked, Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

func evidence() events.Evidence {
	return events.Evidence{
		Reason: events.ReasonSilent, Claimer: holder, LastBeatAt: at.Add(-130 * time.Second), Age: 130 * time.Second,
		Interval: 15 * time.Second, FenceAfter: 90 * time.Second, Decider: other, Sweep: id(0, 2, 1), Term: 6,
		After: 120 * time.Second, Grace: time.Minute, Limit: 5, Count: events.CountOrphanings,
	}
}

func started() *events.WorkerStarted {
	return &events.WorkerStarted{
		Host: "host-1", PID: 4711, Version: "1.2.3", Topics: []string{"mail für alle", "", "t"}, Concurrency: 8,
		HeartbeatInterval: 15 * time.Second, Proof: true, FenceAfter: 90 * time.Second, Limits: []int{3, 0, 1}, Retention: 30 * 24 * time.Hour,
	}
}

func configured() *events.TopicConfigured {
	return &events.TopicConfigured{Limit: 3, Counting: true, By: "ops@example", Detail: nasty}
}
