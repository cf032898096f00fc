package foundling

import (
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// Refusal is the error of a command that the rules did not carry out: which command, on what, in which state, and why. Nothing moved.
type Refusal = fsm.Refusal

// Errors that callers branch on. All others of the store are in package store.
var (
	// ErrUnknown says that nobody can tell whether the commit happened: the store stayed out of reach while its answer was asked for.
	ErrUnknown = store.ErrUnknown
	// ErrTooLarge says that something is over a bound, which the error names.
	ErrTooLarge = store.ErrTooLarge
	// ErrInvalid says that an argument or a setting cannot be used; the error names it, its value and the bound.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound says that the store does not know what was asked for, or keeps nothing of it any more.
	ErrNotFound = errors.New("not found")
	// ErrErased says that bytes were kept once and are kept no more: somebody erased them, or retention let them go.
	ErrErased = errors.New("erased")
)

// The causes with which a handler's context ends; see context.Cause.
var (
	// ErrTimeout : the handler took longer than its message allows.
	ErrTimeout = errors.New("handler timed out")
	// ErrStopping : the worker stops and has waited long enough. The message is given back, no attempt spent.
	ErrStopping = errors.New("worker is stopping")
	// ErrFenced : the worker could not say for too long that it lives, so that another one may be given the message soon. It is given back.
	ErrFenced = errors.New("worker's heartbeats do not come through")
	// ErrClaimLost : the message is no longer this handler's. What it returns will be refused.
	ErrClaimLost = errors.New("claim was lost")
)

// snoozeWish, cancelWish and deadLetterWish are what a handler may return besides nil and ordinary errors.
type (
	snoozeWish     struct{ after time.Duration }
	cancelWish     struct{ reason string }
	deadLetterWish struct{ err error }
)

func (w *snoozeWish) Error() string     { return fmt.Sprintf("snooze for %s", w.after) }
func (w *cancelWish) Error() string     { return "cancel: " + w.reason }
func (w *deadLetterWish) Error() string { return "dead-letter: " + w.err.Error() }
func (w *deadLetterWish) Unwrap() error { return w.err }

// Snooze is returned by a handler that wants its message again later, no attempt spent.
func Snooze(after time.Duration) error { return &snoozeWish{after} }

// Cancel is returned by a handler whose message is no longer wanted: it ends as cancelled, with the reason in the log.
func Cancel(reason string) error { return &cancelWish{reason} }

// DeadLetter is returned by a handler whose message must not be tried again: it ends as dead-lettered, with err in the log.
func DeadLetter(err error) error {
	if err == nil {
		err = errors.New("no error given")
	}
	return &deadLetterWish{err}
}

// maxErrorText bounds what the log keeps of a handler's error, in bytes.
const maxErrorText = 4 << 10

// errorText is err as the log keeps it: bounded, and marked where it was cut.
func errorText(text string) string {
	const mark = " … (cut)"
	if len(text) <= maxErrorText {
		return text
	}
	return text[:maxErrorText-len(mark)] + mark
}
