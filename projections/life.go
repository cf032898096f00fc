package projections

import (
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// Life is what became of one message, step by step. Make it with [NewLife].
type Life struct {
	asOf    Mark
	summary Summary
	entries []Entry
	dueAt   time.Time // as its last enqueueing or redriving left it
}

// Summary is a message's life in one look.
type Summary struct {
	ID         events.ID
	Topic      string
	State      events.State
	Reason     events.Reason // why it is in that state, where the state alone does not say so
	EnqueuedAt time.Time
	ChangedAt  time.Time     // when it came to that state
	ReadyAt    time.Time     // from when on it can be claimed; zero while it is not queued
	Lock       string        // that its claim takes; empty is none
	Trying     bool          // it was unblocked and has not tried since
	Claim      Claim         // the open one; zero while there is none
	Attempts   int           // claims ever made
	Waited     time.Duration // in all, from when it could be claimed until it was
	Blocked    time.Duration // in all, while it was blocked by its lock; what lasts is not in it
	Ran        time.Duration // in all, over claims that have ended
}

// Entry is one step of a message's life. What is zero does not apply to it.
type Entry struct {
	events.Recorded
	Attempt int           // the claim that this step begins, continues or ends
	Worker  events.ID     // who holds or held that claim; of a refusal, who sent it
	By      string        // the operator who asked for it
	Waited  time.Duration // of a claim, and where its lock was taken at its turn: how long the message could have been claimed before
	Blocked time.Duration // of what ends a block: how long it was blocked
	Ran     time.Duration // of the end of a claim: how long it was open
	DueAt   time.Time     // of what puts it in its queue: not claimed before; zero is at once
	Reason  events.Reason
	Error   string // the handler's
	Detail  string // the operator's words
	Lock    string // that was taken, or may be free
	Repair  bool   // it was unblocked since it waited for a lock that was free, which is a fault
}

// NewLife is a message's life before its beginning.
func NewLife(id events.ID) *Life { return &Life{summary: Summary{ID: id}} }

// Apply takes the next event. Those of others are passed over.
func (l *Life) Apply(r events.Recorded) {
	if !l.asOf.pass(r) || r.Entity != events.MessageEntity(l.summary.ID) {
		return
	}
	entry := Entry{Recorded: r}
	switch e := r.Event.(type) {
	case *events.MessageRefused:
		entry.Worker, entry.Reason = e.Sender, e.Reason
		l.met(r)
	case *events.MessageErased:
		entry.By, entry.Detail = e.By, e.Detail
		l.met(r)
	case *events.MessageSnapshotted:
		l.told(r, e)
		entry.Attempt, entry.Worker = l.summary.Claim.Attempt, l.summary.Claim.Worker
	default:
		entry.Attempt, entry.Worker = l.summary.Claim.Attempt, l.summary.Claim.Worker
		l.explain(&entry)
		l.move(&entry)
	}
	l.entries = append(l.entries, entry)
}

// met takes the state from what moved nothing, where no other event tells it any more.
func (l *Life) met(r events.Recorded) {
	if l.summary.State == events.Absent {
		l.summary.State = r.To
	}
}

// told begins with what a snapshot tells, where the beginning of the life was let go.
func (l *Life) told(r events.Recorded, e *events.MessageSnapshotted) {
	fields, ok := toldMessage(e)
	if !ok || l.summary.Topic != "" {
		return
	}
	s := &l.summary
	s.Topic, s.EnqueuedAt, s.Lock, s.Attempts, s.Trying = fields.Topic, fields.Enqueued.time(), fields.Lock, fields.Attempts, fields.Trying != 0
	l.dueAt, s.State = fields.Due.time(), r.To
	switch {
	case claimed(r.To):
		s.Claim = fields.claim(r)
	case r.To == events.Queued:
		s.ReadyAt = l.dueAt
	}
}

// Headless reports whether the beginning of the life was let go: what comes before the first entry, and what is counted of it, is not known.
func (l *Life) Headless() bool {
	return len(l.entries) > 0 && l.entries[0].Event.Type() != events.TypeMessageEnqueued
}

// explain says who asked for a step and why, and when the message is due after it.
func (l *Life) explain(entry *Entry) {
	switch e := entry.Event.(type) {
	case *events.MessageEnqueued:
		l.summary.Topic, l.summary.EnqueuedAt, l.dueAt = e.Topic, entry.At(), e.DueAt
		l.summary.Lock = e.Lock
	case *events.MessageBlocked:
		entry.Lock = e.Lock
	case *events.MessageUnblocked:
		entry.Lock, entry.Repair = e.Lock, e.Repair
	case *events.MessageDiscarded:
		entry.Reason, entry.Lock = e.Reason, e.Lock
	case *events.MessageRequeued:
		entry.Reason, entry.Error, entry.By, entry.Detail = e.Reason, e.Error, e.By, e.Detail
		if !e.DueAt.IsZero() {
			l.dueAt = e.DueAt
		}
	case *events.MessageOrphaned:
		entry.Reason = e.Evidence.Reason
	case *events.MessageDeadLettered:
		entry.Reason, entry.Error, entry.By, entry.Detail = e.Reason, e.Error, e.By, e.Detail
	case *events.MessageCancelled:
		entry.Reason, entry.By, entry.Detail = e.Reason, e.By, e.Detail
	case *events.MessageRedriven:
		entry.By, entry.Detail = e.By, e.Detail
		l.dueAt = entry.At()
	}
}

// move brings the summary to the state after a step, and tells how long the state before it lasted.
func (l *Life) move(entry *Entry) {
	s, at := &l.summary, entry.At()
	if claimed(entry.From) && !claimed(entry.To) {
		entry.Ran = since(s.Claim.At, at)
		s.Ran += entry.Ran
		s.Claim = Claim{}
	}
	if entry.From == events.Blocked {
		entry.Blocked = since(s.ChangedAt, at)
		s.Blocked += entry.Blocked
	}
	s.Trying = false
	switch e := entry.Event.(type) {
	case *events.MessageClaimed:
		entry.Attempt, entry.Worker, entry.Waited = e.Attempt, e.Worker, since(s.ReadyAt, at)
		s.Claim, s.Attempts = claimOf(entry.Recorded, e), e.Attempt
	case *events.MessageBlocked, *events.MessageDiscarded:
		entry.Waited = since(s.ReadyAt, at)
	case *events.MessageUnblocked:
		s.Trying = true
	case *events.MessageCounted:
		s.Claim.Counted = true
	}
	s.Waited += entry.Waited
	s.ReadyAt = time.Time{}
	if entry.To == events.Queued {
		s.ReadyAt = at
		if l.dueAt.After(at) {
			s.ReadyAt, entry.DueAt = l.dueAt, l.dueAt
		}
	}
	if entry.To != entry.From {
		s.State, s.Reason, s.ChangedAt = entry.To, entry.Reason, at
	}
}

// AsOf is the last event that was applied, of whichever message.
func (l *Life) AsOf() Mark { return l.asOf }

// Entries is the steps in their order. There are none where the log does not know the message.
func (l *Life) Entries() []Entry { return slices.Clone(l.entries) }

// Summary gives the life in one look. Its state is absent where the log does not know the message.
func (l *Life) Summary() Summary { return l.summary }
