package foundling

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
)

// State is where a message stands.
type State = events.State

// The states of a message. It is open in the first three; a dead letter has ended unless somebody redrives it; the last three are for good.
const (
	Queued       = events.Queued
	Blocked      = events.Blocked // waits for a lock that was taken at its turn
	Running      = events.Running
	DeadLettered = events.DeadLettered
	Completed    = events.Completed
	Cancelled    = events.Cancelled
	Discarded    = events.Discarded // its lock was taken at its turn, and it does not wait; see SkipIfLocked

	// Staged is where a message stands before all of them, for a moment, that was enqueued in a transaction of the caller's own: it has committed, and
	// the message is not in the log yet. Get tells of it, and List where it is asked for them.
	Staged = events.Staged
)

// States lists the states of messages in the order of a life.
func States() []State {
	return []State{Queued, Blocked, Running, DeadLettered, Completed, Cancelled, Discarded}
}

// ParseState reads the word of a message's state, as in "dead_lettered", or "staged". Any other is an ErrInvalid that names those there are.
func ParseState(word string) (State, error) {
	for _, s := range append(States(), Staged) {
		if word == s.String() {
			return s, nil
		}
	}
	return 0, fmt.Errorf("state %q: want one of %s: %w", word, stateWords(), ErrInvalid)
}

func stateWords() string {
	words := make([]string, 0, len(States()))
	for _, s := range append(States(), Staged) {
		words = append(words, s.String())
	}
	return strings.Join(words, ", ")
}

// hasEnded reports whether a message in the state has ended for good.
func hasEnded(s State) bool { return s == Completed || s == Cancelled || s == Discarded }

// rests reports whether a message in the state goes on by nothing but an operator's wish.
func rests(s State) bool { return hasEnded(s) || s == DeadLettered }

// MessageInfo is what the store says of a message, at the time of asking.
type MessageInfo struct {
	ID         ID
	Topic      string
	State      State
	Priority   Priority
	Key        string
	Lock       string
	Trace      string // W3C traceparent of whoever enqueued it; empty is none
	EnqueuedAt time.Time
	DueAt      time.Time // it was or will not be handled before
	EndedAt    time.Time // when it ended or became a dead letter; zero while it is open. List gives it for what has ended for good alone

	Attempts    int           // claims ever made of it
	Spent       int           // those of them that count: not given back unspent, and not before the last redrive
	MaxAttempts int           // how many may be spent
	Timeout     time.Duration // of its handler; 0 is no bound

	Worker    ID    // whose handler has it; zero while none has
	Token     Token // of that claim
	ClaimedAt time.Time

	// Why it went back to its queue or ended, where its state alone does not say so, such as "retry" or "exhausted", with an operator's words; and
	// the newest error of a handler. List does not read them of what is open or a dead letter.
	Reason, Detail, Error string

	Payload Content
	Result  Content // of a completed one whose handler set a result

	// BeginningPruned says that retention let go of the beginning of its history: of a message that has ended, its topic, what is kept of its
	// payload and its end are all that is known then.
	BeginningPruned bool
}

// Ended reports whether the message has ended for good. A dead letter has not: it can be redriven.
func (m MessageInfo) Ended() bool { return hasEnded(m.State) }

// Content is a payload or a result as it is kept.
type Content struct {
	Bytes  []byte // nil where there is none, or none any more; List does not read them
	Codec  string // the name of what made them; empty is raw bytes
	Size   int    // in bytes, as they were written; 0 where there never was anything
	Erased bool   // they were there and are kept no more

	codec Codec // of the client that read it
}

// Decode sets what v points to, as the client's codec does. Where there is nothing it is an ErrNotFound, where it was erased an ErrErased.
func (c Content) Decode(v any) error {
	switch {
	case c.Erased:
		return fmt.Errorf("decode %d bytes: %w", c.Size, ErrErased)
	case c.Size == 0:
		return fmt.Errorf("decode: there is nothing: %w", ErrNotFound)
	case c.Bytes == nil:
		return fmt.Errorf("decode %d bytes: they were not read, Client.Get reads them: %w", c.Size, ErrInvalid)
	}
	codec := c.codec
	if codec == nil {
		codec = jsonCodec{}
	}
	return decode(codec, coded{c.Codec, c.Bytes}, v)
}

// Payload is the payload of a message of the topic that Client.Get has read. A message of another topic is an ErrInvalid, an erased payload an
// ErrErased.
func (t Topic[T]) Payload(m MessageInfo) (T, error) {
	var payload T
	if m.Topic != t.name {
		return payload, fmt.Errorf("payload of message %s: it is of topic %q, not of %q: %w", m.ID, m.Topic, t.name, ErrInvalid)
	}
	if err := m.Payload.Decode(&payload); err != nil {
		return payload, fmt.Errorf("payload of message %s: %w", m.ID, err)
	}
	return payload, nil
}

// newInfo is what the rules know of a message.
func newInfo(m fsm.Message) MessageInfo {
	return MessageInfo{
		ID: m.ID, Topic: m.Topic, State: m.State, Priority: m.Priority, Key: m.Key, Lock: m.Lock, Trace: m.Trace,
		EnqueuedAt: m.EnqueuedAt, DueAt: m.DueAt,
		Attempts: m.Attempts, Spent: m.Spent(), MaxAttempts: fsm.MaxAttempts(m.Limits), Timeout: m.Limits.Timeout,
		Worker: m.Worker, Token: m.Token, ClaimedAt: m.ClaimedAt,
		Payload: Content{Codec: m.Payload.Codec, Size: m.Payload.Size},
	}
}

// chronicle is a message with what its events say beside its state.
type chronicle struct {
	info     MessageInfo
	payload  events.Facts
	result   events.Facts
	headless bool // it has ended, and none of the events that are left says what it was
}

// errBeginningLost says that a history without its beginning does not say what a message is.
var errBeginningLost = errors.New("the beginning of its history is not there")

// newChronicle folds the kept events of a message, of which there is one at least.
func newChronicle(history []events.Recorded) (chronicle, error) {
	entity := history[0].Entity
	begin := slices.IndexFunc(history, func(r events.Recorded) bool { return r.Version == 1 || r.Event.Type().Snapshots() })
	if begin < 0 {
		return endOnly(history)
	}
	v, err := calls.Fold(entity, history[begin:])
	if err != nil {
		return chronicle{}, err
	}
	m, ok := v.(*fsm.Message)
	if !ok {
		return chronicle{}, fmt.Errorf("%s: want a message", entity)
	}
	c := chronicle{info: newInfo(*m), payload: m.Payload}
	c.info.BeginningPruned = history[begin].Version != 1
	for _, r := range history[begin:] {
		c.tell(r)
	}
	return c, nil
}

// endOnly is what the events of a message say whose beginning is gone: it has ended, or they would begin with its state.
func endOnly(history []events.Recorded) (chronicle, error) {
	last := history[len(history)-1] // a refusal or an erasure tells the state as well
	c := chronicle{info: MessageInfo{ID: last.Entity.ID, State: last.To, BeginningPruned: true}, headless: true}
	if !hasEnded(last.To) {
		return c, fmt.Errorf("%s: %w", last.Entity, errBeginningLost)
	}
	for _, r := range history {
		c.tell(r)
	}
	return c, nil
}

// tell takes in what one event says beside the state.
func (c *chronicle) tell(r events.Recorded) {
	switch e := r.Event.(type) {
	case *events.MessageClaimed:
		c.because("", "")
	case *events.MessageRequeued:
		c.because(e.Reason, e.Detail)
		if e.Error != "" {
			c.info.Error = e.Error
		}
	case *events.MessageDeadLettered:
		c.because(e.Reason, e.Detail)
		if e.Error != "" {
			c.info.Error = e.Error
		}
	case *events.MessageCancelled:
		c.because(e.Reason, e.Detail)
	case *events.MessageDiscarded:
		c.because(e.Reason, "")
		if e.Key != "" {
			c.info.Detail = fmt.Sprintf("message %s has key %q", e.Holder, e.Key)
		}
	case *events.MessageCompleted:
		c.because("", "")
		c.result = e.Result
		c.info.Result = Content{Codec: e.Result.Codec, Size: e.Result.Size}
	case *events.MessageRedriven:
		c.because("", e.Detail)
	case *events.MessageErased:
		c.info.Payload.Erased = c.info.Payload.Size > 0
		c.info.Result.Erased = c.info.Result.Size > 0
	}
	switch {
	case r.From == r.To: // it moves nothing, or tells the state once more
	case rests(r.To):
		c.info.EndedAt = r.At()
	default:
		c.info.EndedAt = time.Time{}
	}
}

func (c *chronicle) because(reason events.Reason, detail string) {
	c.info.Reason, c.info.Detail = string(reason), detail
}
