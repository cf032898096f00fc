package foundling

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// pulse is what an incarnation knows of its own heartbeats.
type pulse struct {
	mu     sync.Mutex
	sent   time.Time   // when the last one that came through was sent, by this process's clocks
	got    time.Time   // when its answer came
	own    []time.Time // those that came through, by the store's time: of the last ReclaimAfter, and one before
	fenced bool        // handlers were told since
	lapses int         // how often one came through only when nothing might go on any more
	sights []sight     // what is still to be recorded, bounded by maxSights
}

// sight is what a heartbeat's answer tells beside that it came through.
type sight struct {
	step *fsm.StepClock
	gap  *fsm.GapWorker
}

// maxSights bounds what is kept for the log while the store takes no commit.
const maxSights = 16

// since is how long ago the last heartbeat that came through was sent, by the larger of what the monotonic and the wall clock say: one stops
// while the machine sleeps, the other can be set.
func (p *pulse) since(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent.IsZero() { // the engine keeps no heartbeats
		return 0
	}
	return max(now.Sub(p.sent), now.Round(0).Sub(p.sent.Round(0)))
}

// fresh reports whether new handlers may begin. A heartbeat that is in time is confirmed a moment after its interval, hence the half.
func (inc *incarnation) fresh() bool {
	return inc.pulse.since(time.Now()) <= inc.opts.HeartbeatInterval*3/2
}

// fenced reports whether nothing may go on any more.
func (inc *incarnation) fenced() bool {
	return inc.opts.FenceAfter > 0 && inc.pulse.since(time.Now()) >= inc.opts.FenceAfter
}

// lapses is how often the worker was not heard for so long that nothing might go on any more.
func (inc *incarnation) lapses() int {
	inc.pulse.mu.Lock()
	defer inc.pulse.mu.Unlock()
	return inc.pulse.lapses
}

// own is the heartbeats that came through, for a sweep's proof. They prove nothing while the log does not know of a step of the clock that they
// have shown: ages go by what it knows.
func (inc *incarnation) own() []time.Time {
	inc.pulse.mu.Lock()
	defer inc.pulse.mu.Unlock()
	if slices.ContainsFunc(inc.pulse.sights, func(s sight) bool { return s.step != nil }) {
		return nil
	}
	return slices.Clone(inc.pulse.own)
}

// order says which heartbeat it is.
type order uint8

const (
	nextBeat order = iota
	firstBeat
)

// beat sends one heartbeat and takes in its answer.
func (inc *incarnation) beat(ctx context.Context, heart store.Heart, which order) error {
	bounded, cancel := inc.client.within(ctx)
	defer cancel()
	sent := time.Now()
	at, err := heart.Beat(bounded, store.Beat{
		Worker: inc.id, First: which == firstBeat, Interval: inc.opts.HeartbeatInterval, FenceAfter: max(inc.opts.FenceAfter, 0),
	})
	if err != nil {
		return err
	}
	inc.confirmed(sent, time.Now(), at)
	return nil
}

// confirmed takes in a heartbeat that was sent and answered by this process's clock, and was at some time between by the store's. It commits
// nothing: what else goes on must not silence the heart.
func (inc *incarnation) confirmed(sent, got, at time.Time) {
	p := &inc.pulse
	lapsed := inc.fenced()
	p.mu.Lock()
	defer p.mu.Unlock()
	if lapsed && len(p.own) > 0 {
		p.lapses++
	}
	if s := p.look(sent, got, at, inc); s != (sight{}) && len(p.sights) < maxSights {
		p.sights = append(p.sights, s)
		hint(inc.missed)
	}
	p.sent, p.got, p.fenced = sent, got, false
	for n := len(p.own); n > 0 && p.own[n-1].After(at); n = len(p.own) {
		p.own = p.own[:n-1] // the clock was set back: what is ahead of it proves nothing
	}
	p.own = append(p.own, at)
	from := at.Add(-inc.opts.ReclaimAfter)
	for len(p.own) > 1 && !p.own[1].After(from) {
		p.own = p.own[1:]
	}
}

// look compares a heartbeat with the one before.
func (p *pulse) look(sent, got, at time.Time, inc *incarnation) sight {
	if len(p.own) == 0 {
		return sight{}
	}
	last, interval := p.own[len(p.own)-1], inc.opts.HeartbeatInterval
	// Between the two store times lay at least the one, at most the other, of this process's own.
	least, most := sent.Sub(p.got), got.Sub(p.sent)
	switch moved := at.Sub(last); {
	case moved > most+interval:
		return sight{step: &fsm.StepClock{FromAt: last.Add(most), ToAt: at, Worker: inc.id, Tolerance: interval}}
	case moved < least-interval:
		return sight{step: &fsm.StepClock{FromAt: last.Add(least), ToAt: at, Worker: inc.id, Tolerance: interval}}
	case moved > 2*interval:
		return sight{gap: &fsm.GapWorker{FromAt: last, ToAt: at}}
	}
	return sight{}
}

// tell records what the heartbeats have shown.
func (inc *incarnation) tell(ctx context.Context) error {
	for {
		inc.pulse.mu.Lock()
		sights := inc.pulse.sights
		inc.pulse.mu.Unlock()
		if len(sights) == 0 {
			return nil
		}
		if err := inc.tellOf(ctx, sights[0]); err != nil {
			return err
		}
		inc.pulse.mu.Lock()
		inc.pulse.sights = inc.pulse.sights[1:]
		inc.pulse.mu.Unlock()
	}
}

func (inc *incarnation) tellOf(ctx context.Context, s sight) error {
	if s.gap != nil {
		_, err := inc.operate(ctx, *s.gap)
		if isRefusal(err) { // it was held to be lost meanwhile, which says more
			return nil
		}
		return err
	}
	inc.log.WarnContext(ctx, "the store's clock stepped", keyFrom, s.step.FromAt, keyTo, s.step.ToAt)
	_, err := inc.client.decide(ctx, func(o calls.Origin) store.Call {
		return calls.OperateClock(o, fsm.OperateClock{StepClock: *s.step})
	})
	return err
}

// heartLoop says that the incarnation lives, at a fixed pace and whatever else goes on, until ctx ends. It returns an error when the store
// says that the incarnation is over.
func (inc *incarnation) heartLoop(ctx context.Context) error {
	heart, ok := store.As[store.Heart](inc.client.store)
	if !ok {
		return nil
	}
	ticker := time.NewTicker(inc.opts.HeartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := inc.beat(ctx, heart, nextBeat)
		switch {
		case errors.Is(err, store.ErrNotBeating):
			return err
		case err != nil && ctx.Err() == nil:
			inc.log.ErrorContext(ctx, "heartbeat failed", keyError, err)
		}
	}
}

// fenceLoop ends the contexts of handlers when the heartbeats have not come through for so long that others may soon take the worker for
// dead. It looks twice an interval, which is within the margin that others leave.
func (inc *incarnation) fenceLoop(ctx context.Context) {
	if inc.opts.FenceAfter < 0 {
		return
	}
	ticker := time.NewTicker(inc.opts.HeartbeatInterval / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !inc.fenced() {
			continue
		}
		inc.pulse.mu.Lock()
		again := inc.pulse.fenced
		inc.pulse.fenced = true
		inc.pulse.mu.Unlock()
		ended, warned := inc.fenceAll()
		if !again && ended+warned > 0 {
			inc.log.WarnContext(ctx, "heartbeats do not come through: the worker fences itself",
				keySince, inc.pulse.since(time.Now()), keyHandlersEnded, ended, keyHandlersWarned, warned)
		}
	}
}
