package events

import (
	"crypto/sha256"
	"time"
)

// Limits bounds how often and how long a message is tried. A zero field means the value that this schema version fixes, given with
// each; it is resolved when the message is enqueued and never changes for it afterwards.
type Limits struct {
	MaxAttempts int           // claims that may be spent before a failure is final; 0 is 25
	BackoffBase time.Duration // the delay after n spent attempts is BackoffBase × 2^n; 0 is 1 s
	BackoffMax  time.Duration // its upper bound; 0 is 24 h
	Timeout     time.Duration // how long a handler may take; 0 is no bound

	// OrphanMaxAttempts is how many claims may be spent before an orphan is dead-lettered; 0 is what the one who sweeps has set.
	OrphanMaxAttempts int
}

func (l *Limits) visit(f *Fields) {
	f.Int("max_attempts", &l.MaxAttempts)
	f.Duration("backoff_base", &l.BackoffBase)
	f.Duration("backoff_max", &l.BackoffMax)
	f.Duration("timeout", &l.Timeout)
	f.Int("orphan_max_attempts", &l.OrphanMaxAttempts)
}

// VisitFields names the limits' fields.
func (l *Limits) VisitFields(f *Fields) { l.visit(f) }

// Facts is what the log keeps of a payload: enough to prove which bytes it was, nothing to read it by. So a payload can be erased
// without touching history.
type Facts struct {
	Size       int      // bytes
	Codec      string   // the name of what encoded it; empty is raw bytes
	Commitment [32]byte // see Commitment
}

func (p *Facts) visit(f *Fields) {
	f.Int("size", &p.Size)
	f.Text("codec", &p.Codec)
	f.Hash("commitment", &p.Commitment)
}

// visitResult names the facts of a result, which stand in one event with a token.
func (p *Facts) visitResult(f *Fields) {
	f.Int("result_size", &p.Size)
	f.Text("result_codec", &p.Codec)
	f.Hash("result_commitment", &p.Commitment)
}

// VisitFields names the facts' fields.
func (p *Facts) VisitFields(f *Fields) { p.visit(f) }

// Commitment is SHA-256 over the salt and the payload. The salt lies with the payload and is erased with it, so that a short payload
// cannot be guessed from its commitment afterwards.
func Commitment(salt [16]byte, payload []byte) [32]byte {
	h := sha256.New()
	h.Write(salt[:])
	h.Write(payload)
	return [32]byte(h.Sum(nil))
}

// MessageEnqueued : a message is durable and waits for its turn.
type MessageEnqueued struct {
	Topic     string
	DueAt     time.Time // not claimed before; zero is at once
	Priority  Priority
	Key       string
	UniqueFor time.Duration // how long after enqueueing the key stays taken even if the message has ended
	Limits    Limits
	Payload   Facts
	Lock      string     // taken by its claim and given back at the claim's end; empty is none
	OnLocked  LockPolicy // what becomes of it where the lock is taken at its turn
	Trace     string     // W3C traceparent of whoever enqueued it, see [Traceparent]; empty is none
}

// Type is message.enqueued.
func (*MessageEnqueued) Type() Type { return TypeMessageEnqueued }

// VisitFields names the event's fields.
func (e *MessageEnqueued) VisitFields(f *Fields) {
	f.Text("topic", &e.Topic)
	f.Time("due", &e.DueAt)
	f.Priority("priority", &e.Priority)
	f.Text("key", &e.Key)
	f.Duration("unique_for", &e.UniqueFor)
	e.Limits.visit(f)
	e.Payload.visit(f)
	f.Text("lock", &e.Lock)
	e.OnLocked.visit(f)
	f.Text("trace", &e.Trace)
}

// MessageClaimed : a worker holds the message and its handler begins. A claim is a start.
type MessageClaimed struct {
	Topic   string // the message's; empty where that is not written down
	Worker  ID
	Token   Token
	Attempt int // claims ever made, this one included
	Running int // open counted claims of the topic after this one; 0 where the topic has no limit
	Limit   int // the topic's limit in force; 0 is none

	LockToken Token // of the permit of its lock that it took in the same commit; 0 where it has no lock
}

// Type is message.claimed.
func (*MessageClaimed) Type() Type { return TypeMessageClaimed }

// VisitFields names the event's fields.
func (e *MessageClaimed) VisitFields(f *Fields) {
	f.Text("topic", &e.Topic)
	f.ID("worker", &e.Worker)
	f.Token("token", &e.Token)
	f.Int("attempt", &e.Attempt)
	f.Int("running", &e.Running)
	f.Int("limit", &e.Limit)
	f.Token("lock_token", &e.LockToken)
}

// MessageBlocked : at its turn its lock was taken. It keeps its place and waits.
type MessageBlocked struct {
	Lock string
}

// Type is message.blocked.
func (*MessageBlocked) Type() Type { return TypeMessageBlocked }

// VisitFields names the event's fields.
func (e *MessageBlocked) VisitFields(f *Fields) { f.Text("lock", &e.Lock) }

// MessageUnblocked : its lock may be free, and it is the first of its topic to try. It holds nothing: a newcomer may be faster.
type MessageUnblocked struct {
	Lock   string
	Repair bool // nobody had told it: the lock was free and its topic's waiters were all blocked, which is a fault
}

// Type is message.unblocked.
func (*MessageUnblocked) Type() Type { return TypeMessageUnblocked }

// VisitFields names the event's fields.
func (e *MessageUnblocked) VisitFields(f *Fields) {
	f.Text("lock", &e.Lock)
	f.Flag("repair", &e.Repair)
}

// MessageDiscarded : its lock was taken at its turn, and it does not wait. Or it was staged in a transaction of a user's own, and when it came into
// the log its key was taken, or its id so old that nobody can say whether it was there before.
type MessageDiscarded struct {
	Reason Reason // lock_taken, key_taken or pruned
	Lock   string
	Key    string // that it was to have
	Holder ID     // the message that has the key
}

// Type is message.discarded.
func (*MessageDiscarded) Type() Type { return TypeMessageDiscarded }

// VisitFields names the event's fields.
func (e *MessageDiscarded) VisitFields(f *Fields) {
	f.Reason("reason", &e.Reason)
	f.Text("lock", &e.Lock)
	f.Text("key", &e.Key)
	f.ID("holder", &e.Holder)
}

// MessageCounted : the claim was open when its topic got a limit; from here on it counts towards it.
type MessageCounted struct{}

// Type is message.counted.
func (*MessageCounted) Type() Type { return TypeMessageCounted }

// VisitFields names the event's fields: it has none.
func (*MessageCounted) VisitFields(*Fields) {}

// MessageCompleted : its handler ended well.
type MessageCompleted struct {
	Token  Token
	Result Facts // of what the handler gave back; zero where it gave nothing
}

// Type is message.completed.
func (*MessageCompleted) Type() Type { return TypeMessageCompleted }

// VisitFields names the event's fields.
func (e *MessageCompleted) VisitFields(f *Fields) {
	f.Token("token", &e.Token)
	e.Result.visitResult(f)
}

// MessageRequeued : the message waits for its turn again; Reason says why.
type MessageRequeued struct {
	Reason Reason // retry, released, snoozed, unclaimed, taken_back or orphan
	Token  Token  // the claim that ended
	DueAt  time.Time
	Jitter int    // thousandths by which the delay of a retry was made longer or shorter
	Error  string // the handler's error, bounded
	By     string // the operator, for taken_back
	Detail string // the operator's words
}

// Type is message.requeued.
func (*MessageRequeued) Type() Type { return TypeMessageRequeued }

// VisitFields names the event's fields.
func (e *MessageRequeued) VisitFields(f *Fields) {
	f.Reason("reason", &e.Reason)
	f.Token("token", &e.Token)
	f.Time("due", &e.DueAt)
	f.Int("jitter", &e.Jitter)
	f.Text("error", &e.Error)
	f.Text("by", &e.By)
	f.Text("detail", &e.Detail)
}

// MessageOrphaned : the worker that held the message is gone. What becomes of the message is the next event of the same commit.
type MessageOrphaned struct {
	Token    Token // the claim that ended
	Evidence Evidence
}

// Type is message.orphaned.
func (*MessageOrphaned) Type() Type { return TypeMessageOrphaned }

// VisitFields names the event's fields.
func (e *MessageOrphaned) VisitFields(f *Fields) {
	f.Token("token", &e.Token)
	e.Evidence.visit(f)
}

// MessageDeadLettered : the message will not be tried again unless an operator redrives it.
type MessageDeadLettered struct {
	Reason Reason // exhausted, handler, operator or orphan_limit
	Token  Token  // the claim that ended
	Error  string
	By     string
	Detail string
}

// Type is message.dead_lettered.
func (*MessageDeadLettered) Type() Type { return TypeMessageDeadLettered }

// VisitFields names the event's fields.
func (e *MessageDeadLettered) VisitFields(f *Fields) {
	f.Reason("reason", &e.Reason)
	f.Token("token", &e.Token)
	f.Text("error", &e.Error)
	f.Text("by", &e.By)
	f.Text("detail", &e.Detail)
}

// MessageCancelled : somebody no longer wants it, be it open or a dead letter.
type MessageCancelled struct {
	Reason Reason // handler or operator
	Token  Token  // the claim that ended, if one was open
	By     string
	Detail string
}

// Type is message.cancelled.
func (*MessageCancelled) Type() Type { return TypeMessageCancelled }

// VisitFields names the event's fields.
func (e *MessageCancelled) VisitFields(f *Fields) {
	f.Reason("reason", &e.Reason)
	f.Token("token", &e.Token)
	f.Text("by", &e.By)
	f.Text("detail", &e.Detail)
}

// MessageRedriven : a dead letter gets a new series of attempts. What the old series spent stays in the counts and is recorded here.
type MessageRedriven struct {
	By         string
	Detail     string
	Spent      int // attempts spent in the series that ended
	Orphanings int // orphanings in the series that ended
}

// Type is message.redriven.
func (*MessageRedriven) Type() Type { return TypeMessageRedriven }

// VisitFields names the event's fields.
func (e *MessageRedriven) VisitFields(f *Fields) {
	f.Text("by", &e.By)
	f.Text("detail", &e.Detail)
	f.Int("spent", &e.Spent)
	f.Int("orphanings", &e.Orphanings)
}

// MessageRefused : a command came too late or from the wrong claim. It moves nothing and has no version.
type MessageRefused struct {
	Command    string
	Reason     Reason // stale_token or wrong_state; known, mismatch or pruned of what was staged under its id
	Sender     ID     // the incarnation that sent it
	Sent       Token
	Found      Token // the open claim's; 0 where none is open
	Unrecorded int   // refusals of this sender left out before this one, so that a storm of them stays small
}

// Type is message.refused.
func (*MessageRefused) Type() Type { return TypeMessageRefused }

// VisitFields names the event's fields.
func (e *MessageRefused) VisitFields(f *Fields) {
	f.Text("command", &e.Command)
	f.Reason("reason", &e.Reason)
	f.ID("sender", &e.Sender)
	f.Token("sent", &e.Sent)
	f.Token("found", &e.Found)
	f.Int("unrecorded", &e.Unrecorded)
}
