package child

import (
	"context"
	"errors"
	"time"
)

// drainFor is how long the output of a group that has been killed may take to
// end. Past it, somebody outside the group holds it.
const drainFor = time.Second

// outcome is what happened to a child besides how it ended.
type outcome struct {
	cause      error // why it was asked to stop
	unheld     error // why its output could not be held
	leftBehind bool
}

// ending waits for a child and its output, and is what hurries them. Each of
// its methods is one thing that happens.
type ending struct {
	outcome
	process *process
	grace   time.Duration
	alive   bool
	killed  bool
	timer   <-chan time.Time // nil until there is something to wait no longer for
}

// follow returns when the child has ended and its output too, or the latter
// has been given up. Nothing it started runs on then, except what a child that
// ended by itself left in the background without its output.
func (p *process) follow(ctx context.Context, grace time.Duration) outcome {
	p.closeChildEnds() // or the output would never end
	exited, copied, fed := make(chan struct{}), make(chan error), p.feed()
	go func() { p.awaitExit(); close(exited) }()
	go func() { copied <- p.stdout.copy() }()
	go func() { copied <- p.stderr.copy() }()

	e := &ending{process: p, grace: grace, alive: true}
	asked := ctx.Done()
	for open := 2; e.alive || open > 0; {
		select {
		case <-exited:
			exited = nil
			e.exited()
		case err := <-copied:
			open--
			e.copied(err)
		case <-asked:
			asked = nil
			e.asked(context.Cause(ctx))
		case <-e.timer:
			e.late()
		}
	}
	if e.cause != nil || e.killed {
		p.kill() // what closed its output, but did not end
	}
	p.closeStdin() // somebody may still hold the other end, unread
	<-fed
	return e.outcome
}

func (e *ending) exited() {
	e.alive = false
	if e.timer == nil {
		e.timer = time.After(e.grace) // for what it left behind
	}
}

func (e *ending) copied(err error) {
	if err == nil {
		return
	}
	e.unheld = errors.Join(e.unheld, err)
	e.kill()
}

func (e *ending) asked(cause error) {
	if e.alive {
		e.cause = cause // one that had ended by itself ended well
	}
	if !e.killed {
		e.process.terminate()
		e.timer = time.After(e.grace)
	}
}

func (e *ending) late() {
	if e.killed && !e.alive {
		e.process.giveUpOutput()
		return
	}
	e.leftBehind = !e.alive && e.cause == nil
	e.kill()
}

func (e *ending) kill() {
	e.process.kill()
	e.killed = true
	e.timer = time.After(drainFor)
}
