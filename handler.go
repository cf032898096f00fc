package foundling

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// Message is what a handler gets.
type Message[T any] struct {
	ID         ID
	Topic      string
	Payload    T
	Attempt    int // claims ever made of it, this one included
	Token      Token
	Key        string
	Lock       string // that it holds while it is handled; empty is none
	LockToken  Token  // of that lock: for what the lock protects, as Token is for what the message writes
	EnqueuedAt time.Time

	result *resultSlot
}

// Middleware wraps every run of a topic's handler. It sees the payload as bytes, and calls next once to go on, or not at all.
type Middleware func(ctx context.Context, m Message[[]byte], next func(context.Context) error) error

// handler runs one message of a topic.
type handler struct {
	topic string
	start TopicOptions
	run   func(ctx context.Context, d delivery) error
}

// delivery is a claimed message on its way to its handler.
type delivery struct {
	message Message[[]byte]
	codec   string
	timeout time.Duration
	trace   string // of whoever enqueued it
	row     store.Row
}

func (d delivery) hold() hold { return hold{d.message.ID, d.message.Token} }

// newDelivery reads a claimed row.
func newDelivery(row store.Row) (delivery, error) {
	m, err := calls.Message(row)
	if err != nil {
		return delivery{}, err
	}
	d := delivery{row: row, codec: m.Payload.Codec, timeout: m.Limits.Timeout, trace: m.Trace, message: Message[[]byte]{
		ID: m.ID, Topic: m.Topic, Attempt: m.Attempts, Token: m.Token, Key: m.Key,
		Lock: m.Lock, LockToken: m.LockToken, EnqueuedAt: m.EnqueuedAt,
	}}
	if row.Payload == nil {
		return d, fmt.Errorf("message %s: its payload is not in the store", m.ID)
	}
	if got := events.Commitment(row.Payload.Salt, row.Payload.Bytes); got != m.Payload.Commitment {
		return d, fmt.Errorf("message %s: its payload is not the one that was enqueued", m.ID)
	}
	d.message.Payload = row.Payload.Bytes
	return d, nil
}

// Handle registers the handler of a topic with a worker, before the worker runs. A handler gets a message at least once, and should
// return when its context ends; context.Cause says why it did. Nil completes the message; an error tries it again after its backoff, or
// dead-letters it when its attempts are spent; a panic is an error with its stack; see also Snooze, Cancel and DeadLetter, and
// WorkerOptions.OnError. What it has to give back it sets with Message.SetResult.
func (t Topic[T]) Handle(w *Worker, handle func(context.Context, Message[T]) error, middleware ...Middleware) {
	codec := w.client.opts.Codec
	run := func(ctx context.Context, d delivery) error {
		m := Message[T]{
			ID: d.message.ID, Topic: d.message.Topic, Attempt: d.message.Attempt, Token: d.message.Token,
			Key: d.message.Key, Lock: d.message.Lock, LockToken: d.message.LockToken, EnqueuedAt: d.message.EnqueuedAt,
			result: d.message.result,
		}
		if err := decode(codec, coded{d.codec, d.message.Payload}, &m.Payload); err != nil {
			return fmt.Errorf("payload: %w", err)
		}
		return handle(ctx, m)
	}
	for i := len(middleware) - 1; i >= 0; i-- {
		outer, inner := middleware[i], run
		run = func(ctx context.Context, d delivery) error {
			return outer(ctx, d.message, func(ctx context.Context) error { return inner(ctx, d) })
		}
	}
	w.register(handler{topic: t.name, start: t.opts, run: run})
}

// errGoexit is the error of a handler that ended its goroutine, as testing's FailNow does.
var errGoexit = errors.New("handler ended its goroutine (runtime.Goexit)")

// safely runs a handler; a panic is an error with its stack.
func (h handler) safely(ctx context.Context, d delivery) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return h.run(ctx, d)
}

// explained is what a handler returned, with why its context ended where that is the reason.
func (d delivery) explained(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrTimeout) {
		return fmt.Errorf("%w after %s: %w", ErrTimeout, d.timeout, err)
	}
	return err
}

// verdict turns what a handler returned into the command that ends its claim.
func verdict(ctx context.Context, d delivery, err error, jitter int) fsm.MessageCommand {
	token := d.message.Token
	var (
		snooze *snoozeWish
		cancel *cancelWish
		dead   *deadLetterWish
	)
	switch cause := context.Cause(ctx); {
	case err == nil:
		return fsm.CompleteMessage{Token: token}
	case errors.As(err, &snooze):
		return fsm.ReleaseMessage{Token: token, Reason: events.ReasonSnoozed, Delay: snooze.after}
	case errors.As(err, &cancel):
		return fsm.CancelMessage{Token: token, Detail: errorText(cancel.reason)}
	case errors.As(err, &dead):
		return fsm.DeadLetterMessage{Token: token, Error: errorText(dead.err.Error())}
	case errors.Is(cause, ErrStopping) || errors.Is(cause, ErrClaimLost) || errors.Is(cause, ErrFenced):
		return fsm.ReleaseMessage{Token: token, Reason: events.ReasonReleased}
	}
	return fsm.FailMessage{Token: token, Error: errorText(err.Error()), Jitter: jitter}
}
