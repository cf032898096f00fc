package foundling

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/internal/mint"
	"github.com/foundling-go/foundling/store"
)

// ID names a message: a UUIDv7, minted by the client unless the caller gives one.
type ID = events.ID

// Token is a fencing token: it rises with every claim of a message. Pass it on to what a handler writes to, and refuse a lower one
// there.
type Token = events.Token

// Priority orders the messages of a topic.
type Priority = events.Priority

// The priorities. The zero is Normal.
const (
	High   = events.High
	Normal = events.Normal
	Low    = events.Low
)

// LockPolicy says what becomes of a message that finds its lock taken at its turn.
type LockPolicy = events.LockPolicy

// The policies. The zero waits.
const (
	WaitForLock  = events.WaitForLock
	SkipIfLocked = events.SkipIfLocked // discarded; one that was claimed before waits all the same
)

// None says "none" where zero says "the default".
const None time.Duration = -1

// ClientOptions are a client's settings. The zero value works.
type ClientOptions struct {
	Actor      string        // who asks, in the log; empty is HOST:PID
	Codec      Codec         // what encodes payloads; nil is encoding/json
	Rand       io.Reader     // all randomness: ids, salts, jitter; nil is crypto/rand
	Logger     *slog.Logger  // nil is slog.Default
	Trace      TraceContext  // carries the trace of who enqueues over to handlers, and into the log; nil carries none
	Timeout    time.Duration // bound on one call to the store; 0 is 10 s, None is no bound
	MaxPayload int           // bytes; 0 is 1 MiB, at most 16 MiB
}

func (o ClientOptions) validate() (ClientOptions, error) {
	if o.Actor == "" {
		host, _ := os.Hostname() // a client without a host name is still a client
		o.Actor = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if len(o.Actor) > store.MaxName {
		return o, fmt.Errorf("client options: Actor of %d bytes, at most %d: %w", len(o.Actor), store.MaxName, ErrInvalid)
	}
	if o.Codec == nil {
		o.Codec = jsonCodec{}
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.MaxPayload == 0 {
		o.MaxPayload = 1 << 20
	}
	if o.MaxPayload < 0 || o.MaxPayload > store.MaxPayload {
		return o, fmt.Errorf("client options: MaxPayload %d, want 1 to %d: %w", o.MaxPayload, store.MaxPayload, ErrInvalid)
	}
	return o, nil
}

// Client enqueues messages and acts on them. It may be used from many goroutines; they share the store's commits.
type Client struct {
	store  store.Store
	opts   ClientOptions
	source *mint.Source
	topics topicCache
	tail   *tail
	waits  *waits
	staged *staging
	polls  *polls
}

// NewClient makes a client of a store. The store stays the caller's to close, after everything that uses the client has ended.
func NewClient(s store.Store, o ClientOptions) (*Client, error) {
	if s == nil {
		return nil, fmt.Errorf("new client: no store: %w", ErrInvalid)
	}
	o, err := o.validate()
	if err != nil {
		return nil, err
	}
	return &Client{store: store.Batch(s), opts: o, source: mint.New(o.Rand), tail: newTail(), waits: newWaits(), staged: newStaging(), polls: newPolls()}, nil
}

// within bounds one call to the store.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.opts.Timeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.opts.Timeout)
}

// mint makes an id at about the store's time, so that it is as old as the store thinks. The store is asked only where it knows its time by no other way.
func (c *Client) mint(ctx context.Context) (ID, error) {
	now := c.near()
	if now.IsZero() {
		var err error
		if now, err = c.store.Now(ctx); err != nil {
			return ID{}, err
		}
	}
	return c.source.ID(now)
}

// near is what is known of the store's time without asking; zero where nothing is.
func (c *Client) near() time.Time {
	if s, ok := store.As[interface{ Near() time.Time }](c.store); ok {
		return s.Near()
	}
	return time.Time{}
}

// decide commits one call and settles its outcome: the receipt of a commit that happened, or an error after which it has not. Only
// where the store stays out of reach until the time is up is it ErrUnknown.
func (c *Client) decide(ctx context.Context, prepare func(calls.Origin) store.Call) (store.Receipt, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	trace := c.injected(ctx)
	for {
		id, err := c.mint(ctx)
		if err != nil {
			return store.Receipt{}, err
		}
		receipts, err := c.store.Decide(ctx, prepare(calls.Origin{ID: id, Actor: c.opts.Actor, Trace: trace}))
		if err == nil {
			c.committed(receipts[0])
			return receipts[0], receipts[0].Err
		}
		if !errors.Is(err, store.ErrUnknown) {
			return store.Receipt{}, err
		}
		receipt, committed, err := c.outcome(ctx, id, err)
		if committed || err != nil {
			c.committed(receipt)
			return receipt, err
		}
		// It is certain now that nothing happened and that nothing will: the same may be asked again under a new id.
	}
}

// committed lets those know who follow the log.
func (c *Client) committed(r store.Receipt) {
	if len(r.Events) > 0 {
		c.tail.grew()
	}
}

// outcome asks what became of a commit until the store says so or the context ends.
func (c *Client) outcome(ctx context.Context, id store.CommitID, cause error) (store.Receipt, bool, error) {
	type settled struct {
		receipt   store.Receipt
		committed bool
	}
	answer, err := backoff.Retry(ctx, func() (settled, error) {
		receipt, committed, err := c.store.Outcome(ctx, id)
		if errors.Is(err, store.ErrClosed) {
			return settled{}, backoff.Permanent(err)
		}
		return settled{receipt, committed}, err
	}, backoff.WithBackOff(retryPace()), backoff.WithMaxElapsedTime(0))
	if err != nil {
		return store.Receipt{}, false, errors.Join(cause, fmt.Errorf("commit %s: %w", id, err))
	}
	return answer.receipt, answer.committed, nil
}

// retryPace is how calls to a store out of reach are spread.
func retryPace() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval: 20 * time.Millisecond, RandomizationFactor: 0.3, Multiplier: 2, MaxInterval: 2 * time.Second,
	}
}
