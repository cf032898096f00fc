package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
)

// payload is what a message carries: the number of its task.
type payload struct{ N int }

// shift is one run of a handler.
type shift struct {
	life    *life
	ctx     context.Context
	message foundling.ID
	token   events.Token
	lock    string
	permit  events.Token
	warned  bool // it is told of a fence and goes on
}

// stage is the handlers that run now.
type stage struct{ shifts map[*shift]bool }

func newStage() *stage { return &stage{map[*shift]bool{}} }

// duty is what a handler does.
type duty struct {
	takes time.Duration
	deaf  bool // it does not look at its context
	ends  error
}

var errBoom = errors.New("boom")

// duty is drawn from what it is a try of, so that it does not depend on who is first.
func (s *simulation) duty(n, attempt int) duty {
	r := rand.New(rand.NewPCG(s.plan.Seed, uint64(n+1)<<20|uint64(attempt)))
	unit := s.plan.Unit
	if s.isCalm() {
		return duty{takes: time.Duration(r.Int64N(int64(unit)))}
	}
	of := func(list ...time.Duration) time.Duration {
		most := list[r.IntN(len(list))]
		return most/2 + time.Duration(r.Int64N(int64(most)))/2
	}
	d := duty{takes: of(unit/5, unit, 3*unit, s.plan.slowest()), deaf: r.IntN(4) == 0}
	if r.IntN(10) == 0 {
		d.takes = of(s.plan.longest())
	}
	switch r.IntN(12) {
	case 0, 1, 2:
		d.ends = errBoom
	case 3:
		d.ends = foundling.Snooze(of(2 * unit))
	case 4:
		if r.IntN(3) == 0 {
			d.ends = foundling.Cancel("not wanted")
		}
	case 5:
		if r.IntN(3) == 0 {
			d.ends = foundling.DeadLetter(errBoom)
		}
	}
	return d
}

// handle is the handler of every topic.
func (l *life) handle(ctx context.Context, m foundling.Message[payload]) error {
	s := l.process.sim
	d := s.duty(m.Payload.N, m.Attempt)
	sh := &shift{
		life: l, ctx: ctx, message: m.ID, token: m.Token, lock: m.Lock, permit: m.LockToken,
		warned: s.plan.fence(m.Topic) == foundling.FenceWarns || l.process.settings.FenceAfter < 0,
	}
	s.enter(sh)
	defer s.leave(sh)
	told := ctx.Done()
	if d.deaf {
		told = nil
	}
	timer := time.NewTimer(d.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-told:
	case <-l.port.dead:
	}
	if l.port.stand() != nil {
		return errDead
	}
	cause := context.Cause(ctx)
	s.count("handler: " + causeWord(cause))
	if cause != nil && !d.deaf {
		return cause
	}
	return d.ends
}

func causeWord(cause error) string {
	switch {
	case cause == nil:
		return "undisturbed"
	case errors.Is(cause, foundling.ErrFenced):
		return "fenced"
	case errors.Is(cause, foundling.ErrClaimLost):
		return "claim lost"
	case errors.Is(cause, foundling.ErrStopping):
		return "stopping"
	case errors.Is(cause, foundling.ErrTimeout):
		return "timed out"
	}
	return cause.Error()
}

func (p *plan) fence(topic string) foundling.Fence {
	for i, o := range p.Topics {
		if topicName(i) == topic {
			return o.Fence
		}
	}
	return foundling.FenceCancels
}

func (s *simulation) isCalm() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calm
}

func (s *simulation) enter(sh *shift) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stage.shifts[sh] = true
	s.violate(s.alone(sh))
}

func (s *simulation) leave(sh *shift) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stage.shifts, sh)
}

// goOn lets the process go on where it stands still. What its handlers believe is held against the log from there on.
func (l *life) goOn() {
	l.port.goOn()
	s := l.process.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	for sh := range s.stage.shifts {
		if sh.life == l {
			s.violate(s.alone(sh))
		}
	}
}

// beside is what a lock is for: whoever takes it runs beside nobody who had it before and does not know that he lost it. The mutex is held.
func (s *simulation) beside(lock string) error {
	for sh := range s.stage.shifts {
		if sh.lock == lock {
			if err := s.alone(sh); err != nil {
				return err
			}
		}
	}
	return nil
}

// alone holds a handler that runs, and was not told to stop, against its lock: its permit is out, or nobody has taken another since. Whoever
// releases a lock by hand has been told what that means. Whoever takes a message back does not: its lock comes with it only where its worker is dead,
// which a clock that steps may make believe. The mutex is held.
func (s *simulation) alone(sh *shift) error {
	if sh.lock == "" || sh.warned || sh.ctx.Err() != nil || sh.life.port.still() {
		return nil
	}
	k := s.laws.lock(sh.lock)
	command, forced := k.forced[sh.permit]
	byHand := forced && (command == "force-release" || s.steps > 0)
	if k.out[sh.permit] != nil || byHand || k.newest == sh.permit {
		return nil
	}
	return besideError{s, sh, k.newest}
}
