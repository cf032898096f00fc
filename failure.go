package foundling

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// HandlerError is one attempt that failed in this process, as WorkerOptions.OnError is told.
type HandlerError struct {
	ID      ID
	Topic   string
	Attempt int // claims ever made of the message, this one included
	Token   Token
	Err     error     // what the handler returned, or was ended by; a panic is a *PanicError
	Outcome Outcome   // what became of the message
	DueAt   time.Time // with OutcomeRetry: it is not handled again before
}

// Outcome says what became of a message whose handler failed.
type Outcome uint8

// The outcomes.
const (
	OutcomeRetry        Outcome = iota // it runs again
	OutcomeDeadLettered                // its attempts are spent, or the handler asked for it: it runs no more unless somebody redrives it
	OutcomeRefused                     // the failure came too late to count: the claim was over by then, and the message is somebody else's or has ended
	OutcomeUnknown                     // the store was out of reach until the worker had to stop: a sweep gives the message back
)

var outcomeWords = [...]string{"retry", "dead_lettered", "refused", "unknown"}

// String is the outcome's word, as in "retry".
func (o Outcome) String() string {
	if int(o) < len(outcomeWords) {
		return outcomeWords[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// PanicError is the error of a handler that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error is the value with the stack below it.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// failure is an attempt that failed, on its way to the store.
type failure struct {
	delivery delivery
	err      error
}

// newFailure is the failure that a command tells of; nil where it tells of none.
func newFailure(d delivery, command fsm.MessageCommand, err error) *failure {
	switch command.(type) {
	case fsm.FailMessage:
	case fsm.DeadLetterMessage:
		var wish *deadLetterWish
		if errors.As(err, &wish) {
			err = wish.err
		}
	default:
		return nil
	}
	return &failure{delivery: d, err: err}
}

// outcomes tells of the failures among some results, now that the store has taken them.
func (inc *incarnation) outcomes(ctx context.Context, page []result, receipt store.Receipt) {
	if inc.opts.OnError == nil {
		return
	}
	ended := map[hold]events.Event{}
	for _, r := range receipt.Events {
		switch e := r.Event.(type) {
		case *events.MessageRequeued:
			ended[hold{r.Entity.ID, e.Token}] = e
		case *events.MessageDeadLettered:
			ended[hold{r.Entity.ID, e.Token}] = e
		}
	}
	for _, r := range page {
		if r.failure == nil {
			continue
		}
		told := r.failure.told(OutcomeRefused)
		switch e := ended[r.hold].(type) {
		case *events.MessageRequeued:
			told.Outcome, told.DueAt = OutcomeRetry, e.DueAt
		case *events.MessageDeadLettered:
			told.Outcome = OutcomeDeadLettered
		}
		inc.onError(ctx, r.failure.delivery, told)
	}
}

// unstored tells of the failures that the store has not taken when the worker ends.
func (inc *incarnation) unstored(ctx context.Context) {
	inc.mu.Lock()
	left := inc.results
	inc.mu.Unlock()
	for _, r := range left {
		if r.failure != nil && inc.opts.OnError != nil {
			inc.onError(ctx, r.failure.delivery, r.failure.told(OutcomeUnknown))
		}
	}
}

func (f *failure) told(o Outcome) HandlerError {
	m := f.delivery.message
	return HandlerError{ID: m.ID, Topic: m.Topic, Attempt: m.Attempt, Token: m.Token, Err: f.err, Outcome: o}
}

// onError calls the hook beside everything else. It takes the slot of the handler that failed, so that hooks which are slow make the worker slow
// and not its memory large.
func (inc *incarnation) onError(ctx context.Context, d delivery, told HandlerError) {
	inc.mu.Lock()
	inc.hooking++
	inc.mu.Unlock()
	ctx = inc.client.extracted(context.WithoutCancel(ctx), d.trace)
	inc.hooks.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				inc.log.ErrorContext(ctx, "OnError panicked", d.attrs(keyError, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))...)
			}
			inc.mu.Lock()
			inc.hooking--
			inc.mu.Unlock()
			hint(inc.freed)
		}()
		inc.opts.OnError(ctx, told)
	})
}
