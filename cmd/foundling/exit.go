package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// The exit codes.
const (
	exitFinding     = 1 // a finding, a difference, a violation, a dead letter
	exitUsage       = 2
	exitStore       = 3 // the store is out of reach
	exitNotFound    = 4
	exitRefused     = 5
	exitConflict    = 6
	exitCorrupt     = 7 // the log is corrupt, or of another version
	exitInterrupted = 130
)

// exitError ends the command with a code. Without an error inside, all has been said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit ends the command with a code and nothing more to say.
func exit(code int) error { return &exitError{code: code} }

// usage is the error of a command line that cannot be understood.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// notFound is the error of something that the store does not have.
func notFound(format string, args ...any) error {
	return &exitError{exitNotFound, fmt.Errorf(format, args...)}
}

// codeOf is the exit code that an error asks for.
func codeOf(err error) int {
	var (
		coded   *exitError
		corrupt *events.Corrupt
		refusal *fsm.Refusal
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &corrupt), errors.Is(err, store.ErrNewer), errors.Is(err, store.ErrForeign):
		return exitCorrupt
	case errors.Is(err, foundling.ErrNotFound), errors.Is(err, store.ErrPruned):
		return exitNotFound
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &refusal):
		return exitConflict
	case errors.Is(err, foundling.ErrInvalid), errors.Is(err, store.ErrTooLarge):
		return exitUsage
	}
	return exitStore
}
