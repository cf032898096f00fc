package fsm

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// messageLife is the table of a message's life.
var messageLife = newLifecycle(events.KindMessage,
	edge(events.TypeMessageEnqueued, events.Queued, events.Absent),
	edge(events.TypeMessageClaimed, events.Running, events.Queued),
	edge(events.TypeMessageCounted, events.Running, events.Running),
	edge(events.TypeMessageCompleted, events.Completed, events.Running),
	edge(events.TypeMessageRequeued, events.Queued, events.Running, events.Orphaned),
	edge(events.TypeMessageOrphaned, events.Orphaned, events.Running),
	edge(events.TypeMessageDeadLettered, events.DeadLettered, events.Running, events.Orphaned),
	edge(events.TypeMessageBlocked, events.Blocked, events.Queued),
	edge(events.TypeMessageUnblocked, events.Queued, events.Blocked),
	edge(events.TypeMessageDiscarded, events.Discarded, events.Queued),
	edge(events.TypeMessageCancelled, events.Cancelled, events.Queued, events.Blocked, events.Running, events.DeadLettered),
	edge(events.TypeMessageRedriven, events.Queued, events.DeadLettered),
	edge(events.TypeMessageSnapshotted, events.Queued, events.Queued),
	edge(events.TypeMessageSnapshotted, events.Blocked, events.Blocked),
	edge(events.TypeMessageSnapshotted, events.Running, events.Running),
	edge(events.TypeMessageSnapshotted, events.DeadLettered, events.DeadLettered),
)

// Message is one piece of work as its events have left it. Its zero value is a message that does not exist yet.
type Message struct {
	ID         events.ID
	Version    int
	State      events.State
	Topic      string
	Priority   events.Priority
	Key        string
	UniqueAt   time.Time // until when the key stays taken whatever becomes of the message; zero is until it ends
	EnqueuedAt time.Time
	DueAt      time.Time // not claimed before
	Limits     events.Limits
	Payload    events.Facts
	Lock       string // taken by its claim; empty is none
	OnLocked   events.LockPolicy
	Trace      string // W3C traceparent of whoever enqueued it; empty is none
	Trying     bool   // it was unblocked and has not tried since: queued, and holding nothing

	// What has been spent, each count read by the limit that names it.
	Attempts       int // claims ever made
	Releases       int // claims given back unspent: a graceful stop, a snooze, a claim nobody knew of
	Failures       int // claims whose handler failed
	Orphanings     int // claims whose worker was gone
	SpentBefore    int // attempts spent before the last redrive
	OrphanedBefore int // orphanings before the last redrive

	// The open claim; zero while there is none.
	Worker    events.ID
	Token     events.Token
	ClaimedAt time.Time
	Counted   bool         // the claim counts towards its topic's limit
	LockToken events.Token // of the permit that the claim took; it may have been taken from it since
}

// VisitFields names the fields as a store keeps them. The id and the version have columns of their own.
func (m *Message) VisitFields(f *events.Fields) {
	f.State("state", &m.State)
	f.Text("topic", &m.Topic)
	f.Priority("priority", &m.Priority)
	f.Text("key", &m.Key)
	f.Time("unique_until", &m.UniqueAt)
	f.Time("enqueued", &m.EnqueuedAt)
	f.Time("due", &m.DueAt)
	m.Limits.VisitFields(f)
	m.Payload.VisitFields(f)
	f.Text("lock", &m.Lock)
	m.OnLocked.VisitFields(f)
	f.Text("trace", &m.Trace)
	f.Flag("trying", &m.Trying)
	f.Int("attempts", &m.Attempts)
	f.Int("releases", &m.Releases)
	f.Int("failures", &m.Failures)
	f.Int("orphanings", &m.Orphanings)
	f.Int("spent_before", &m.SpentBefore)
	f.Int("orphaned_before", &m.OrphanedBefore)
	f.ID("worker", &m.Worker)
	f.Token("token", &m.Token)
	f.Time("claimed", &m.ClaimedAt)
	f.Flag("counted", &m.Counted)
	f.Token("lock_token", &m.LockToken)
}

// Open reports whether the message still has to end.
func (m Message) Open() bool {
	return m.State == events.Queued || m.State == events.Blocked || m.State == events.Running
}

// Live reports whether a store keeps a row of the message. One that has ended for good is history: its log says all of it. A dead
// letter stays, since it can be redriven.
func (m Message) Live() bool { return m.Open() || m.State == events.DeadLettered }

// Permit is the permit that its open claim took; its token is 0 where it took none.
func (m Message) Permit() PermitKey { return PermitKey{Lock: m.Lock, Token: m.LockToken} }

// Spent is how many attempts count against the message's limit since it was last redriven.
func (m Message) Spent() int { return m.Attempts - m.Releases - m.SpentBefore }

// EnqueueMessage makes a message. Everything random or inherited in it is resolved by the caller.
type EnqueueMessage struct {
	Topic     string
	DueAt     time.Time     // zero is at once
	Delay     time.Duration // added to the store's time where DueAt is zero
	Priority  events.Priority
	Key       string
	UniqueFor time.Duration
	Limits    events.Limits
	Payload   events.Facts
	Lock      string
	OnLocked  events.LockPolicy
	Trace     string // W3C traceparent of the caller; what is none is not kept
}

// ClaimMessage gives the message to a worker. Running and Limit are the topic's, this claim included.
type ClaimMessage struct {
	Worker    events.ID
	Counted   bool
	Running   int
	Limit     int
	LockToken events.Token // of the permit that was taken for it
}

// BlockMessage says that its lock was taken at its turn. One that does not wait is discarded instead, unless it was claimed before.
type BlockMessage struct{}

// UnblockMessage sends it to try again.
type UnblockMessage struct{ Repair bool }

// CountMessage makes an open claim count towards its topic's limit, which was set after the claim.
type CountMessage struct{}

// CompleteMessage says that the handler of the claim ended well.
type CompleteMessage struct {
	Token  events.Token
	Result events.Facts // of what it gave back; zero where it gave nothing
}

// FailMessage says that the handler of the claim failed. The message is tried again after its backoff, or dead-lettered when its
// attempts are spent.
type FailMessage struct {
	Token  events.Token
	Error  string
	Jitter int // thousandths, -100 to 100, drawn by the caller
}

// ReleaseMessage gives the claim back without an attempt spent: the worker stops, the handler snoozes, or nobody knows the claim.
type ReleaseMessage struct {
	Token  events.Token
	Reason events.Reason // released, snoozed or unclaimed
	Delay  time.Duration // from the store's time on
}

// DeadLetterMessage ends the message at its handler's wish.
type DeadLetterMessage struct {
	Token events.Token
	Error string
}

// CancelMessage ends a message that is no longer wanted. A handler sends its token; an operator sends none, and a running claim is
// then taken away. A dead letter that is cancelled cannot be redriven any more.
type CancelMessage struct {
	Token  events.Token
	By     string
	Detail string
}

// OrphanMessage takes the message from a worker that is gone.
type OrphanMessage struct {
	Evidence events.Evidence
}

// TakeBackMessage takes a running message from its worker at an operator's wish. The attempt stays spent. See [Operate] for when it may.
type TakeBackMessage struct {
	By     string
	Detail string
}

// RedriveMessage gives a dead letter a new series of attempts.
type RedriveMessage struct {
	By     string
	Detail string
}

// MessageCommand is a command to one message.
type MessageCommand interface {
	// Name is an imperative, as it is recorded with commits.
	Name() string
	decideMessage(Message, time.Time) ([]events.Event, *Refusal)
}

// Decide gives the events that follow from a command at the store's time, or a *Refusal.
func (m Message) Decide(c MessageCommand, now time.Time) ([]events.Event, error) {
	list, refusal := c.decideMessage(m, now)
	if refusal != nil {
		return nil, refusal
	}
	return list, nil
}

// Evolve is the message after an event that was recorded at the given time. An event of another lifecycle, or a refusal, leaves it
// as it is.
func (m Message) Evolve(event events.Event, at time.Time) Message {
	to, ok := messageLife.Next(m.State, event.Type())
	if !ok {
		return m
	}
	m.State = to
	m.Version++
	switch e := event.(type) {
	case *events.MessageEnqueued:
		return m.evolveEnqueued(e, at)
	case *events.MessageClaimed:
		m.Attempts++
		m.Worker, m.Token, m.ClaimedAt, m.Counted, m.LockToken = e.Worker, e.Token, at, e.Limit > 0, e.LockToken
		m.Trying = false
		return m
	case *events.MessageCounted:
		m.Counted = true
		return m
	case *events.MessageSnapshotted:
		return m
	case *events.MessageBlocked:
		m.Trying = false
		return m
	case *events.MessageUnblocked:
		m.Trying = true
		if m.DueAt.After(at) { // it was due when it was blocked; the clock was set back since
			m.DueAt = at
		}
		return m
	case *events.MessageRequeued:
		return m.unclaimed().evolveRequeued(e, at)
	case *events.MessageOrphaned:
		m.Orphanings++
		return m // what it held is told by the event that follows in the same commit
	case *events.MessageDeadLettered:
		if e.Reason == events.ReasonExhausted || e.Reason == events.ReasonHandler {
			m.Failures++
		}
		return m.unclaimed()
	case *events.MessageRedriven:
		m.SpentBefore, m.OrphanedBefore, m.DueAt = m.Attempts-m.Releases, m.Orphanings, at
		return m
	default:
		return m.unclaimed()
	}
}

func (m Message) evolveEnqueued(e *events.MessageEnqueued, at time.Time) Message {
	m.Topic, m.Priority, m.Key, m.Limits, m.Payload = e.Topic, e.Priority, e.Key, e.Limits, e.Payload
	m.Lock, m.OnLocked, m.Trace = e.Lock, e.OnLocked, e.Trace
	m.EnqueuedAt, m.DueAt = at, at
	if e.DueAt.After(at) {
		m.DueAt = e.DueAt
	}
	if e.UniqueFor > 0 {
		m.UniqueAt = at.Add(e.UniqueFor)
	}
	return m
}

func (m Message) evolveRequeued(e *events.MessageRequeued, at time.Time) Message {
	switch e.Reason {
	case events.ReasonRetry:
		m.Failures++
	case events.ReasonReleased, events.ReasonSnoozed, events.ReasonUnclaimed:
		m.Releases++
	}
	switch {
	case !e.DueAt.IsZero():
		m.DueAt = e.DueAt
	case m.DueAt.After(at): // it was due when it was claimed; the clock was set back since
		m.DueAt = at
	} // else it keeps its old place, ahead of what came later
	return m
}

// unclaimed is the message with no claim open.
func (m Message) unclaimed() Message {
	m.Worker, m.Token, m.ClaimedAt, m.Counted, m.LockToken = events.ID{}, 0, time.Time{}, false, 0
	m.Trying = false
	return m
}
