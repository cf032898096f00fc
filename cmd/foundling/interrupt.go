package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/foundling-go/foundling"
)

// interrupted is the cause with which a command's context ends when somebody asks the process to end.
type interrupted struct{ by os.Signal }

func (i *interrupted) Error() string { return "interrupted: " + i.by.String() }

// interruptEcho is how soon after the first interrupt the same signal is no second one: timeout signals its child, and then the group
// that the child is in.
const interruptEcho = 100 * time.Millisecond

// stopSignals gives a context that ends at the first SIGINT or SIGTERM, to stop in order, and one that ends at the second, to stop at
// once. A third ends the process as the system does. release lets go of the signals and waits for what watched them.
func stopSignals(parent context.Context, first func(os.Signal)) (stop, abort context.Context, release func()) {
	stop, stopNow := context.WithCancelCause(parent)
	abort, abortNow := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		var one os.Signal // the first
		var at time.Time
		for {
			select {
			case s := <-signals:
				switch {
				case one == nil:
					one, at = s, time.Now()
					stopNow(&interrupted{s})
					first(s)
				case s != one || time.Since(at) >= interruptEcho:
					abortNow(&interrupted{s})
					signal.Stop(signals)
					return
				}
			case <-over:
				return
			}
		}
	})
	return stop, abort, func() {
		signal.Stop(signals)
		close(over)
		watching.Wait()
		stopNow(nil)
		abortNow(nil)
	}
}

// abortable ends a running handler when abort ends, and gives its message back, no attempt spent.
func abortable(abort context.Context) foundling.Middleware {
	return func(ctx context.Context, _ foundling.Message[[]byte], next func(context.Context) error) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(abort, func() { cancel(foundling.ErrStopping) })()
		err := next(ctx)
		if err != nil && errors.Is(context.Cause(ctx), foundling.ErrStopping) {
			return foundling.Snooze(0)
		}
		return err
	}
}

// interruptible gives a context that ends at the first SIGINT or SIGTERM, so that what was found until then is printed and said to be cut
// short. A second signal ends the process as the system does.
func interruptible(parent context.Context) (ctx context.Context, release func()) {
	ctx, release = signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, release)
	return ctx, release
}

// isInterrupt reports whether an error is only that somebody interrupted.
func isInterrupt(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled)
}
