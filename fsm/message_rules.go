package fsm

import (
	"math"
	"math/bits"
	"time"

	"github.com/foundling-go/foundling/events"
)

// The values that a zero limit stands for in schema version 1 of message.enqueued.
const (
	DefaultMaxAttempts = 25
	DefaultBackoffBase = time.Second
	DefaultBackoffMax  = 24 * time.Hour

	// DefaultOrphanMaxAttempts is orphan_max_attempts: how many claims may be spent before an orphan is dead-lettered.
	DefaultOrphanMaxAttempts = 5

	// MaxJitter is the most by which a retry's delay is made longer or shorter, in thousandths.
	MaxJitter = 100
)

// MaxAttempts is the limit in force for l.
func MaxAttempts(l events.Limits) int {
	if l.MaxAttempts == 0 {
		return DefaultMaxAttempts
	}
	return l.MaxAttempts
}

// Backoff is the delay before a retry after so many spent attempts: base × 2^spent, at most the upper bound, then made longer or
// shorter by the jitter in thousandths. It cannot overflow.
func Backoff(l events.Limits, spent, jitter int) time.Duration {
	base, ceiling := l.BackoffBase, l.BackoffMax
	if base == 0 {
		base = DefaultBackoffBase
	}
	if ceiling == 0 {
		ceiling = DefaultBackoffMax
	}
	ceiling = min(ceiling, math.MaxInt64/2) // which leaves room for the jitter
	delay := ceiling
	if room := bits.LeadingZeros64(uint64(base)) - 1; base > 0 && spent < room {
		delay = min(base<<spent, ceiling)
	}
	return delay + delay/1000*time.Duration(jitter)
}

// kept is an instant as the log keeps it, in whole microseconds: what is decided must be what is read back.
func kept(t time.Time) time.Time { return t.Truncate(time.Microsecond).UTC() }

// Name is "enqueue".
func (EnqueueMessage) Name() string { return "enqueue" }

func (c EnqueueMessage) decideMessage(m Message, now time.Time) ([]events.Event, *Refusal) {
	if r := m.refuse(c.Name(), events.TypeMessageEnqueued); r != nil {
		return nil, r
	}
	due := c.DueAt
	if due.IsZero() && c.Delay > 0 {
		due = now.Add(c.Delay)
	}
	if due = kept(due); !due.After(now) {
		due = time.Time{}
	}
	return []events.Event{&events.MessageEnqueued{
		Topic: c.Topic, DueAt: due, Priority: c.Priority, Key: c.Key, UniqueFor: c.UniqueFor.Truncate(time.Microsecond),
		Limits: c.Limits, Payload: c.Payload, Lock: c.Lock, OnLocked: c.OnLocked, Trace: events.Traceparent(c.Trace),
	}}, nil
}

// Name is "claim".
func (ClaimMessage) Name() string { return "claim" }

func (c ClaimMessage) decideMessage(m Message, now time.Time) ([]events.Event, *Refusal) {
	if r := m.refuse(c.Name(), events.TypeMessageClaimed); r != nil {
		return nil, r
	}
	if m.DueAt.After(now) {
		r := m.refusal(c.Name(), events.ReasonWrongState)
		r.Detail = "not due before " + m.DueAt.Format(time.RFC3339Nano)
		return nil, r
	}
	claimed := &events.MessageClaimed{
		Topic: m.Topic, Worker: c.Worker, Token: events.Token(m.Version + 1), Attempt: m.Attempts + 1, LockToken: c.LockToken,
	}
	if c.Counted {
		claimed.Running, claimed.Limit = c.Running, c.Limit
	}
	return []events.Event{claimed}, nil
}

// Name is "block".
func (BlockMessage) Name() string { return "block" }

func (c BlockMessage) decideMessage(m Message, _ time.Time) ([]events.Event, *Refusal) {
	if r := m.refuse(c.Name(), events.TypeMessageBlocked); r != nil {
		return nil, r
	}
	if m.OnLocked == events.SkipIfLocked && m.Attempts == 0 {
		return []events.Event{&events.MessageDiscarded{Reason: events.ReasonLockTaken, Lock: m.Lock}}, nil
	}
	return []events.Event{&events.MessageBlocked{Lock: m.Lock}}, nil
}

// Name is "unblock".
func (UnblockMessage) Name() string { return "unblock" }

func (c UnblockMessage) decideMessage(m Message, _ time.Time) ([]events.Event, *Refusal) {
	if r := m.refuse(c.Name(), events.TypeMessageUnblocked); r != nil {
		return nil, r
	}
	return []events.Event{&events.MessageUnblocked{Lock: m.Lock, Repair: c.Repair}}, nil
}

// Name is "count".
func (CountMessage) Name() string { return "count" }

func (c CountMessage) decideMessage(m Message, _ time.Time) ([]events.Event, *Refusal) {
	if r := m.refuse(c.Name(), events.TypeMessageCounted); r != nil {
		return nil, r
	}
	if m.Counted {
		return nil, nil
	}
	return []events.Event{&events.MessageCounted{}}, nil
}

// Name is "complete".
func (CompleteMessage) Name() string { return "complete" }

func (c CompleteMessage) decideMessage(m Message, _ time.Time) ([]events.Event, *Refusal) {
	if r := m.refuseCallback(c.Name(), events.TypeMessageCompleted, c.Token); r != nil {
		return nil, r
	}
	return []events.Event{&events.MessageCompleted{Token: c.Token, Result: c.Result}}, nil
}

// Name is "fail".
func (FailMessage) Name() string { return "fail" }

func (c FailMessage) decideMessage(m Message, now time.Time) ([]events.Event, *Refusal) {
	if r := m.refuseCallback(c.Name(), events.TypeMessageRequeued, c.Token); r != nil {
		return nil, r
	}
	if m.Spent() >= MaxAttempts(m.Limits) {
		return []events.Event{&events.MessageDeadLettered{Reason: events.ReasonExhausted, Token: c.Token, Error: c.Error}}, nil
	}
	return []events.Event{&events.MessageRequeued{
		Reason: events.ReasonRetry, Token: c.Token, Error: c.Error, Jitter: c.Jitter,
		DueAt: kept(now.Add(Backoff(m.Limits, m.Spent(), c.Jitter))),
	}}, nil
}

// Name is "release".
func (ReleaseMessage) Name() string { return "release" }

func (c ReleaseMessage) decideMessage(m Message, now time.Time) ([]events.Event, *Refusal) {
	if r := m.refuseCallback(c.Name(), events.TypeMessageRequeued, c.Token); r != nil {
		return nil, r
	}
	e := &events.MessageRequeued{Reason: c.Reason, Token: c.Token}
	if c.Delay > 0 {
		e.DueAt = kept(now.Add(c.Delay))
	}
	return []events.Event{e}, nil
}

// Name is "dead-letter".
func (DeadLetterMessage) Name() string { return "dead-letter" }

func (c DeadLetterMessage) decideMessage(m Message, _ time.Time) ([]events.Event, *Refusal) {
	if r := m.refuseCallback(c.Name(), events.TypeMessageDeadLettered, c.Token); r != nil {
		return nil, r
	}
	return []events.Event{&events.MessageDeadLettered{Reason: events.ReasonHandler, Token: c.Token, Error: c.Error}}, nil
}

// Name is "cancel".
func (CancelMessage) Name() string { return "cancel" }

func (c CancelMessage) decideMessage(m Message, _ time.Time) ([]events.Event, *Refusal) {
	reason := events.ReasonOperator
	if c.Token != 0 {
		reason = events.ReasonHandler
		if r := m.refuseCallback(c.Name(), events.TypeMessageCancelled, c.Token); r != nil {
			return nil, r
		}
	} else if r := m.refuse(c.Name(), events.TypeMessageCancelled); r != nil {
		return nil, r
	}
	return []events.Event{&events.MessageCancelled{Reason: reason, Token: m.Token, By: c.By, Detail: c.Detail}}, nil
}

// Name is "orphan".
func (OrphanMessage) Name() string { return "orphan" }

func (c OrphanMessage) decideMessage(m Message, _ time.Time) ([]events.Event, *Refusal) {
	if r := m.refuse(c.Name(), events.TypeMessageOrphaned); r != nil {
		return nil, r
	}
	if m.Worker != c.Evidence.Claimer {
		return nil, m.refusal(c.Name(), events.ReasonStaleToken)
	}
	orphaned := &events.MessageOrphaned{Token: m.Token, Evidence: c.Evidence}
	limit := c.Evidence.Limit
	if own := m.Limits.OrphanMaxAttempts; own > 0 {
		limit = own
	}
	if limit > 0 && m.orphaned(c.Evidence.Count) >= limit {
		return []events.Event{orphaned, &events.MessageDeadLettered{Reason: events.ReasonOrphanLimit, Token: m.Token}}, nil
	}
	return []events.Event{orphaned, &events.MessageRequeued{Reason: events.ReasonOrphan, Token: m.Token}}, nil
}

// orphaned is what the orphan limit reads, this orphaning included: every claim that was spent, or the orphanings alone.
func (m Message) orphaned(count events.OrphanCount) int {
	if count == events.CountOrphanings {
		return m.Orphanings - m.OrphanedBefore + 1
	}
	return m.Spent()
}

// Name is "take-back".
func (TakeBackMessage) Name() string { return "take-back" }

func (c TakeBackMessage) decideMessage(m Message, _ time.Time) ([]events.Event, *Refusal) {
	if r := m.refuse(c.Name(), events.TypeMessageRequeued); r != nil {
		return nil, r
	}
	return []events.Event{&events.MessageRequeued{
		Reason: events.ReasonTakenBack, Token: m.Token, By: c.By, Detail: c.Detail,
	}}, nil
}

// Name is "redrive".
func (RedriveMessage) Name() string { return "redrive" }

func (c RedriveMessage) decideMessage(m Message, _ time.Time) ([]events.Event, *Refusal) {
	if r := m.refuse(c.Name(), events.TypeMessageRedriven); r != nil {
		return nil, r
	}
	return []events.Event{&events.MessageRedriven{
		By: c.By, Detail: c.Detail, Spent: m.Spent(), Orphanings: m.Orphanings - m.OrphanedBefore,
	}}, nil
}

// refuse is the refusal of a command whose event the message's state does not have; nil where it has it. No command finds a message
// orphaned: what follows that state was decided together with what led to it.
func (m Message) refuse(command string, event events.Type) *Refusal {
	if _, ok := messageLife.Next(m.State, event); ok && m.State != events.Orphaned {
		return nil
	}
	reason := events.ReasonWrongState
	if m.State == events.Absent {
		reason = events.ReasonNotFound
	}
	return m.refusal(command, reason)
}

// refuseCallback is refuse for what only the holder of the open claim may ask, whatever state the message came to since.
func (m Message) refuseCallback(command string, event events.Type, token events.Token) *Refusal {
	r := m.refuse(command, event)
	if r == nil && m.State == events.DeadLettered {
		r = m.refusal(command, events.ReasonWrongState) // which an operator may still cancel, and no handler
	}
	if r == nil && m.Token != token {
		r = m.refusal(command, events.ReasonStaleToken)
	}
	if r != nil {
		r.Sent = token
	}
	return r
}

func (m Message) refusal(command string, reason events.Reason) *Refusal {
	return &Refusal{Command: command, Entity: events.MessageEntity(m.ID), State: m.State, Reason: reason, Found: m.Token}
}
