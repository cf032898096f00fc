package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/faulty"
)

// errDead is the error of every call of a process that was killed. It is a store.ErrClosed, so that nobody tries again.
var errDead = fmt.Errorf("the process is dead: %w", store.ErrClosed)

// port is the store as one process sees it from its start to its end. Each call takes its time, stands still while the process does, does not
// come through while the store is out of reach, and may lose its answer.
type port struct {
	sim    *simulation
	behind *faulty.Store // which loses answers
	dead   chan struct{}

	mu      sync.Mutex
	random  *rand.Rand
	resumed chan struct{} // closed when the process goes on; nil while it runs
	trouble               // what is between it and the store for a while
	proofs  []events.ID   // of life, which the kernel lets go of
	killed  bool
	marked  bool // something befell it that did not befall all others
}

const usualDelay = 3 * time.Millisecond

// trouble is what can be between a process and the store.
type trouble struct {
	delay  time.Duration // the most that a way to the store takes
	losses int           // of a hundred answers, how many are lost
	mute   bool          // heartbeats, which have a connection of their own, do not come through
}

// newPort is the store of a process that begins. What befalls its calls is drawn from the stream.
func newPort(s *simulation, stream uint64) *port {
	p := &port{sim: s, dead: make(chan struct{}), random: rand.New(rand.NewPCG(s.plan.Seed, stream)), trouble: trouble{delay: usualDelay}}
	p.behind = faulty.New(s.engine, p.fault)
	return p
}

// roll draws one of n.
func (p *port) roll(n int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.Int64N(n)
}

// fault is what befalls a call that has come through.
func (p *port) fault(c faulty.Call) faulty.Fault {
	drawn := p.roll(100)
	p.mu.Lock()
	losses := int64(p.losses)
	p.mu.Unlock()
	if drawn >= losses {
		if drawn >= 97 && (c.Op == faulty.Decide || c.Op == faulty.Lease) {
			return faulty.Twice
		}
		return faulty.None
	}
	list := []faulty.Fault{faulty.LostAfter, faulty.LostBefore, faulty.LostAfter, faulty.Late, faulty.Fail, faulty.LoseHint}
	if c.Op == faulty.Read || c.Op == faulty.Rows || c.Op == faulty.Permits {
		list = []faulty.Fault{faulty.Fail, faulty.BreakOff}
	}
	fault := list[drawn%int64(len(list))]
	if c.Op == faulty.Decide && fault != faulty.LoseHint {
		p.sim.count("store: decide " + fault.String())
	}
	if c.Op == faulty.Outcome && (fault == faulty.LostAfter || fault == faulty.Fail) {
		p.sim.count("store: outcome lost")
	}
	return fault
}

// rest lets the time go by that a way to the store takes.
func (p *port) rest() {
	p.mu.Lock()
	d := p.delay/100 + time.Duration(p.random.Int64N(int64(p.delay)))
	p.mu.Unlock()
	time.Sleep(d)
}

// stand waits while the process stands still. Its error says that the process is dead.
func (p *port) stand() error {
	for {
		p.mu.Lock()
		resumed, killed := p.resumed, p.killed
		p.mu.Unlock()
		if killed {
			return errDead
		}
		if resumed == nil {
			return nil
		}
		select {
		case <-resumed:
			p.rest()
		case <-p.dead:
		}
	}
}

// mark notes that the process may be silent although it lives and the store is there.
func (p *port) mark() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marked = true
}

// still reports whether the process stands still or is dead, so that nothing of it can be seen.
func (p *port) still() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resumed != nil || p.killed
}

// stop makes the process stand still. It is false where it does already.
func (p *port) stop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resumed != nil || p.killed {
		return false
	}
	p.resumed, p.marked = make(chan struct{}), true
	return true
}

// goOn lets the process go on.
func (p *port) goOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resumed != nil {
		close(p.resumed)
		p.resumed = nil
	}
}

// kill ends the process. It is false where that has happened before.
func (p *port) kill() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return false
	}
	p.killed = true
	close(p.dead)
	for _, worker := range p.proofs {
		p.sim.kernel.release(worker)
	}
	return true
}

// suffer puts trouble between the process and the store.
func (p *port) suffer(t trouble) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.delay = max(t.delay, usualDelay)
	p.trouble = t
	p.marked = p.marked || t != trouble{delay: usualDelay}
}

func (p *port) heal() { p.suffer(trouble{}) }

func (p *port) isMute() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mute
}

// hop is a call of the store by the process. What it had in hand when it was made to stand still is sent late, whatever its context says by then.
func hop[T any](ctx context.Context, p *port, call func(context.Context) (T, error)) (T, error) {
	var none T
	if err := p.reach(ctx); err != nil {
		return none, err
	}
	if ctx.Err() != nil && p.roll(2) == 0 {
		ctx = context.WithoutCancel(ctx)
	}
	answer, err := call(ctx)
	if lost := p.hear(); lost != nil {
		return none, lost
	}
	return answer, err
}

// reach is the way to the store.
func (p *port) reach(ctx context.Context) error {
	p.rest()
	if err := p.stand(); err != nil {
		return err
	}
	return p.sim.outage.pass(ctx)
}

// hear is the way back.
func (p *port) hear() error {
	p.rest()
	if err := p.stand(); err != nil {
		return err
	}
	if over, _ := p.sim.outage.state(); over != nil {
		return errOutage
	}
	return nil
}

// Decide implements store.Store.
func (p *port) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	began := false
	receipts, err := hop(ctx, p, func(ctx context.Context) ([]store.Receipt, error) {
		began = true
		return p.behind.Decide(ctx, calls...)
	})
	if began && errors.Is(err, errOutage) {
		p.sim.count("store: decide answered into an outage")
		return nil, errors.Join(err, store.ErrUnknown)
	}
	if errors.Is(err, errOutage) && ctx.Err() != nil { // it waited in vain: nobody knows whether it is still on its way
		if p.roll(2) == 0 {
			p.sim.background.Go(func() { p.deliver(calls) })
		}
		return nil, errors.Join(err, store.ErrUnknown)
	}
	return receipts, err
}

// deliver brings calls to the store that were given up while it was out of reach.
func (p *port) deliver(calls []store.Call) {
	for {
		over, _ := p.sim.outage.state()
		if over == nil {
			break
		}
		<-over
	}
	p.rest()
	if p.stand() != nil {
		return
	}
	p.sim.count("store: decide delivered late")
	_, _ = p.sim.engine.Decide(context.Background(), calls...) // nobody listens any more
}

// Outcome implements store.Store.
func (p *port) Outcome(ctx context.Context, id store.CommitID) (store.Receipt, bool, error) {
	committed := false
	receipt, err := hop(ctx, p, func(ctx context.Context) (r store.Receipt, err error) {
		r, committed, err = p.behind.Outcome(ctx, id)
		return r, err
	})
	return receipt, committed && err == nil, err
}

// walk is a call with many answers.
func walk[T any](ctx context.Context, p *port, all func(context.Context) iter.Seq2[T, error]) iter.Seq2[T, error] {
	type item struct {
		value T
		err   error
	}
	return func(yield func(T, error) bool) {
		var none T
		list, err := hop(ctx, p, func(ctx context.Context) (list []item, _ error) {
			for value, err := range all(ctx) {
				list = append(list, item{value, err})
			}
			return list, nil
		})
		if err != nil {
			yield(none, err)
			return
		}
		for _, i := range list {
			if !yield(i.value, i.err) {
				return
			}
		}
	}
}

// Read implements store.Store.
func (p *port) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return walk(ctx, p, func(ctx context.Context) iter.Seq2[events.Recorded, error] { return p.behind.Read(ctx, after, f) })
}

// After implements store.Store.
func (p *port) After(r events.Recorded) store.Cursor { return p.behind.After(r) }

// Contents implements store.Store.
func (p *port) Contents(ctx context.Context, message events.ID) (store.Contents, error) {
	return hop(ctx, p, func(ctx context.Context) (store.Contents, error) { return p.behind.Contents(ctx, message) })
}

// Head implements store.Store.
func (p *port) Head(ctx context.Context) (store.Cursor, error) { return hop(ctx, p, p.behind.Head) }

// Rows implements store.Store.
func (p *port) Rows(ctx context.Context, f store.RowFilter) iter.Seq2[store.Row, error] {
	return walk(ctx, p, func(ctx context.Context) iter.Seq2[store.Row, error] { return p.behind.Rows(ctx, f) })
}

// Permits implements store.Store.
func (p *port) Permits(ctx context.Context, f store.PermitFilter) iter.Seq2[store.Permit, error] {
	return walk(ctx, p, func(ctx context.Context) iter.Seq2[store.Permit, error] { return p.behind.Permits(ctx, f) })
}

// Now implements store.Store.
func (p *port) Now(ctx context.Context) (time.Time, error) { return hop(ctx, p, p.behind.Now) }

// Close implements store.Store. The store goes on for the others.
func (p *port) Close() error { return nil }
