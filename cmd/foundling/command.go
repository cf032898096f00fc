package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/internal/child"
)

// maxTail is how much of the end of a child's output its error keeps, in bytes.
const maxTail = 1 << 10

// commander runs a command once for each message. Its handle may be called from many goroutines.
type commander struct {
	template child.Template
	runner   *child.Runner
	out      *console
	stopping <-chan struct{} // closed by the first interrupt
	done     *worked         // of work: what came of its commands
}

// handle is the handler of a message: nil when the command ended well and all its output is written, so that nothing is completed that
// was not printed. How the child failed is the error, with the end of its output. A payload that no command line can carry is
// dead-lettered. Trouble of this machine (the command cannot be started, its output cannot be held or written) is not the message's:
// console.broken is told, and the message is given back. So is one whose command an interrupt ended that was meant for this process.
func (c *commander) handle(ctx context.Context, m foundling.Message[[]byte]) error {
	spec, err := c.template.Fill(m.Payload)
	if err != nil {
		return foundling.DeadLetter(err)
	}
	spec.Env = []string{
		"FOUNDLING_MESSAGE=" + m.ID.String(),
		"FOUNDLING_TOKEN=" + strconv.FormatInt(int64(m.Token), 10),
		"FOUNDLING_ATTEMPT=" + strconv.Itoa(m.Attempt),
	}
	result, runErr := c.runner.Run(ctx, spec)
	defer func() { _ = result.Close() }() // its files have no names: what cannot be dropped goes with the process
	cause := context.Cause(ctx)
	if errors.Is(runErr, child.ErrTooLong) {
		return foundling.DeadLetter(runErr)
	}
	if runErr != nil && cause == nil {
		return c.giveBack(runErr)
	}
	cut := runErr == nil && c.cutShort(result)
	if cut {
		cause = foundling.ErrStopping
	}
	if err := c.print(result, cause); err != nil {
		return c.giveBack(err)
	}
	if result.LeftBehind {
		c.out.warn("foundling: %s: something its command left behind held its output open, and was killed", harmless(string(m.Payload)))
	}
	switch {
	case cut:
		return foundling.Snooze(0)
	case runErr == nil && result.OK():
		return nil
	}
	return failure(result, runErr)
}

// print writes all of a child's output as one piece.
func (c *commander) print(result child.Result, cause error) error {
	return c.out.piece(func() error {
		_, _ = result.WriteStderr(c.out.stderr) // nobody reads it, then
		if errors.Is(cause, foundling.ErrStopping) || errors.Is(cause, foundling.ErrClaimLost) {
			return nil // the message runs again, and its output comes whole then
		}
		_, err := result.WriteStdout(c.out.stdout)
		return err
	})
}

// interruptFor is how long an interrupt that ended a child may take to reach this process too.
const interruptFor = 200 * time.Millisecond

// cutShort reports whether a child was ended by the signal that tells this process to stop. For a moment after its start a child is in
// our process group still, and a terminal, or timeout, signals the whole group; a service manager signals all processes it knows.
func (c *commander) cutShort(result child.Result) bool {
	if result.Ended != "signal: "+syscall.SIGINT.String() && result.Ended != "signal: "+syscall.SIGTERM.String() {
		return false
	}
	timer := time.NewTimer(interruptFor)
	defer timer.Stop()
	select {
	case <-c.stopping:
		return true
	case <-timer.C:
		return false
	}
}

// giveBack leaves a message to a process that can run it, no attempt spent, and says that this one cannot.
func (c *commander) giveBack(err error) error {
	if c.out.broken != nil {
		c.out.broken(err)
	}
	return foundling.Snooze(0)
}

// failure says how a child failed. One that was told to stop says how it took it; the worker adds why it was told.
func failure(result child.Result, err error) error {
	if result.Ended == "" { // the context had ended before it was started
		return err
	}
	if tail := result.Tail(maxTail); tail != "" {
		return fmt.Errorf("%s: %s", result.Ended, tail)
	}
	return errors.New(result.Ended)
}
