package foundling

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// NoRetry is MaxAttempts for messages that are tried once.
const NoRetry = 1

// TopicOptions are what a topic starts with, and what its messages inherit. The zero value works.
type TopicOptions struct {
	// Limit is how many of its messages are handled at once, over all processes; 0 is no limit. It is recorded when the topic is first
	// seen; after that only ConfigureTopic changes it.
	Limit int
	// MaxAttempts is how many attempts a message has; 0 is 25.
	MaxAttempts int
	// BackoffBase and BackoffMax shape the delay after the n-th spent attempt: BackoffBase × 2^n, at most BackoffMax, give or take a
	// tenth. 0 is 1 s and 24 h.
	BackoffBase time.Duration
	BackoffMax  time.Duration
	// Timeout is how long a handler may take; 0 is no bound.
	Timeout time.Duration
	// OrphanMaxAttempts is how many attempts may be spent before a message whose worker is gone is dead-lettered; 0 is what the worker
	// that sweeps has set.
	OrphanMaxAttempts int
	// Fence says what becomes of handlers when their worker can no longer say that it lives; the zero ends their contexts.
	Fence Fence
}

// Fence says what a worker does with a running handler when its heartbeats have not come through for FenceAfter.
type Fence uint8

// The fences. The zero cancels.
const (
	// FenceCancels ends the handler's context with ErrFenced, before another worker can get the message.
	FenceCancels Fence = 0
	// FenceWarns lets the handler go on. Its result is accepted if its token still holds; if not, it is refused and recorded. For handlers
	// that are safe to run twice at once and dear to begin again.
	FenceWarns Fence = 1
)

func (o TopicOptions) validate(name string) error {
	if err := checkName("topic", name); err != nil {
		return err
	}
	for _, setting := range []struct {
		name  string
		value int64
	}{
		{"Limit", int64(o.Limit)}, {"MaxAttempts", int64(o.MaxAttempts)},
		{"BackoffBase", int64(o.BackoffBase)}, {"BackoffMax", int64(o.BackoffMax)}, {"Timeout", int64(o.Timeout)},
		{"OrphanMaxAttempts", int64(o.OrphanMaxAttempts)},
	} {
		if setting.value < 0 {
			return fmt.Errorf("topic %s: %s %d, want 0 or more: %w", name, setting.name, setting.value, ErrInvalid)
		}
	}
	if o.Fence > FenceWarns {
		return fmt.Errorf("topic %s: Fence %d, want FenceCancels or FenceWarns: %w", name, o.Fence, ErrInvalid)
	}
	return nil
}

// Topic is a queue with one payload type and competing consumers. It is a value; make it once and use it everywhere.
type Topic[T any] struct {
	name string
	opts TopicOptions
}

// NewTopic names a queue. What is wrong with its name or settings is said when it is first used.
func NewTopic[T any](name string, o TopicOptions) Topic[T] { return Topic[T]{name, o} }

// Name is the topic's name.
func (t Topic[T]) Name() string { return t.name }

// EnqueueOptions are settings of one message. The zero value works.
type EnqueueOptions struct {
	ID          ID            // zero is a minted one; a known id is answered with the message that has it, and one of a time that retention took is refused
	Key         string        // unique among the open messages of the topic; a taken one is answered with the message that has it
	UniqueFor   time.Duration // the key stays taken for so long after enqueueing, even if the message has ended
	At          time.Time     // not handled before
	Delay       time.Duration // not handled before that much later; only one of At and Delay
	Priority    Priority
	Lock        string        // its claim takes this lock, over all topics and processes, and gives it back at the claim's end; empty is none
	OnLocked    LockPolicy    // what becomes of it where the lock is taken at its turn; the zero waits
	MaxAttempts int           // 0 is the topic's
	Timeout     time.Duration // 0 is the topic's, None is no bound
}

func (o EnqueueOptions) validate() error {
	if o.Key != "" {
		if err := checkName("key", o.Key); err != nil {
			return err
		}
	}
	if o.Lock != "" {
		if err := checkName("lock", o.Lock); err != nil {
			return err
		}
	}
	switch {
	case o.OnLocked > SkipIfLocked:
		return fmt.Errorf("enqueue options: OnLocked %s, want wait or skip: %w", o.OnLocked, ErrInvalid)
	case o.OnLocked != WaitForLock && o.Lock == "":
		return fmt.Errorf("enqueue options: OnLocked %s without a Lock: %w", o.OnLocked, ErrInvalid)
	case o.UniqueFor > 0 && o.Key == "":
		return fmt.Errorf("enqueue options: UniqueFor %s without a Key: %w", o.UniqueFor, ErrInvalid)
	case o.UniqueFor < 0 || o.Delay < 0:
		return fmt.Errorf("enqueue options: UniqueFor %s, Delay %s, want 0 or more: %w", o.UniqueFor, o.Delay, ErrInvalid)
	case o.Delay > 0 && !o.At.IsZero():
		return fmt.Errorf("enqueue options: both At %s and Delay %s: %w", o.At.Format(time.RFC3339), o.Delay, ErrInvalid)
	case o.At.UTC().Year() > 9999:
		return fmt.Errorf("enqueue options: At in the year %d, at most 9999: %w", o.At.UTC().Year(), ErrInvalid)
	case o.MaxAttempts < 0:
		return fmt.Errorf("enqueue options: MaxAttempts %d, want 0 or more: %w", o.MaxAttempts, ErrInvalid)
	case o.Priority < High || o.Priority > Low:
		return fmt.Errorf("enqueue options: %s, want high, normal or low: %w", o.Priority, ErrInvalid)
	}
	return nil
}

// Draft is a message to be, for EnqueueMany.
type Draft struct {
	topic   string
	start   TopicOptions
	payload any
	opts    EnqueueOptions
}

// Draft makes a message to be.
func (t Topic[T]) Draft(payload T, o EnqueueOptions) Draft {
	return Draft{topic: t.name, start: t.opts, payload: payload, opts: o}
}

// Enqueue makes a message. It is durable when Enqueue returns without error. It blocks for one commit.
func (t Topic[T]) Enqueue(ctx context.Context, c *Client, payload T, o EnqueueOptions) (ID, error) {
	list, err := c.EnqueueMany(ctx, t.Draft(payload, o))
	if err != nil {
		return ID{}, err
	}
	return list[0].ID, nil
}

// limits is what the log keeps of a message's limits: what differs from the built-in values.
func (d Draft) limits() events.Limits {
	l := events.Limits{
		MaxAttempts: d.start.MaxAttempts, BackoffBase: d.start.BackoffBase, BackoffMax: d.start.BackoffMax, Timeout: d.start.Timeout,
		OrphanMaxAttempts: d.start.OrphanMaxAttempts,
	}
	if d.opts.MaxAttempts > 0 {
		l.MaxAttempts = d.opts.MaxAttempts
	}
	switch {
	case d.opts.Timeout > 0:
		l.Timeout = d.opts.Timeout
	case d.opts.Timeout < 0:
		l.Timeout = 0
	}
	return l
}

// checkName refuses what cannot name a topic, a key or a lock.
func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s: empty name, want 1 to %d bytes: %w", what, store.MaxName, ErrInvalid)
	case len(name) > store.MaxName:
		return fmt.Errorf("%s %.40q…: %d bytes, at most %d: %w", what, name, len(name), store.MaxName, ErrTooLarge)
	case !utf8.ValidString(name):
		return fmt.Errorf("%s %q: not UTF-8: %w", what, name, ErrInvalid)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%s %q: %q cannot be printed: %w", what, name, r, ErrInvalid)
		}
	}
	return nil
}

// topicCache remembers which topics the store knows, so that an enqueue holds a topic's row only until it has been seen once.
type topicCache struct{ seen sync.Map }

func (c *topicCache) known(topic string) bool { _, ok := c.seen.Load(topic); return ok }

func (c *topicCache) learn(topic string) { c.seen.Store(topic, struct{}{}) }
