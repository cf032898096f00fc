package reaper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// Beat is what the leader does, step by step: its caller steps it at a steady pace, such as that of its heartbeats. It is for one goroutine.
type Beat struct {
	Store      store.Store
	Decide     Decide
	Mint       func(context.Context) (events.ID, error)
	Caller     events.ID
	Thresholds events.Thresholds
	Interval   time.Duration // orphan_reclaim_interval: how often the leader sweeps on the evidence of silence
	Life       time.Duration // of the lease, three steps or more
	WorkerTTL  time.Duration // worker_ttl: how long a lost worker that holds nothing is remembered
	Retention  time.Duration // how old events must be to go; 0 keeps them for ever

	term    int       // under which it leads; 0 while it does not
	seen    fsm.Lease // of somebody else, as it was when it was looked at last
	doubted time.Time // since when a sweep that is due waits for proof, or when it last had nobody to judge; zero while none waits
}

// Step is what came of one step.
type Step struct {
	Leads    bool
	Term     int
	Elected  bool    // it leads since this step
	Sweep    *Report // of a sweep that was due; nil where none was
	Waits    bool    // a sweep is due, and waits until its doubt is over
	Refused  bool    // a refusal was recorded
	Expired  int     // permits whose time was over
	Repaired int     // waiters whom nobody had told of a free lock: each is a fault
	Purged   int     // workers that were forgotten
	Pruned   Pruned  // what of the log's beginning went
}

// Step renews the lease, or asks for it, and does what is due if the caller leads. own is the caller's confirmed heartbeats, see Sweep. Where
// anything about the lease is uncertain, the caller does not lead. An error tells of what failed; the next step tries it again.
//
// With proof of death a leader acts at every step, since that needs no waiting; on silence it acts every Interval.
func (b *Beat) Step(ctx context.Context, own []time.Time) (Step, error) {
	step, lease, err := b.lead(ctx)
	if err != nil || !step.Leads {
		b.doubted = time.Time{}
		return step, err
	}
	err = errors.Join(b.sweep(ctx, lease, own, &step), b.upkeep(ctx, &step), b.prune(ctx, own, &step))
	return step, err
}

// lead campaigns for the lease. While somebody else has it for a known time, nobody's turn is spent on looking.
func (b *Beat) lead(ctx context.Context) (Step, fsm.Lease, error) {
	held := b.term
	b.term = 0 // uncertain means not leader
	leaser, ok := store.As[store.Leaser](b.Store)
	if !ok { // nobody can be kept from leading, which is safe
		return Step{Leads: true}, fsm.Lease{}, nil
	}
	c := fsm.Candidate{Worker: b.Caller, Term: held, Life: b.Life}
	taken, err := b.taken(ctx, &c)
	if err != nil || taken {
		return Step{}, b.seen, err
	}
	if held == 0 {
		if c.Above, err = b.lastTerm(ctx); err != nil {
			return Step{}, b.seen, err
		}
	}
	lease, err := b.turn(ctx, leaser, func(l fsm.Lease, now time.Time) fsm.Lease { return l.Campaign(c, now) })
	if err != nil {
		return Step{}, lease, err
	}
	if b.seen = lease; lease.Holder != b.Caller {
		return Step{}, lease, nil
	}
	step := Step{Leads: true, Term: lease.Term, Elected: lease.Term != held}
	if step.Elected {
		if err := b.operate(ctx, fsm.ElectLeader{Worker: b.Caller, Term: lease.Term}); err != nil {
			return Step{}, lease, fmt.Errorf("term %d: %w", lease.Term, err)
		}
	}
	b.term = lease.Term
	return step, lease, nil
}

// lastTerm is the last term that the log knows of.
func (b *Beat) lastTerm(ctx context.Context) (int, error) {
	v, _, err := calls.Kept(ctx, b.Store, events.LeaderEntity(fsm.Beat))
	if leader, ok := v.(*fsm.Leader); ok && err == nil {
		return leader.Term, nil
	}
	return 0, err
}

// taken reports whether the lease that was seen last is still somebody else's, and names a holder who is proven to have ended.
func (b *Beat) taken(ctx context.Context, c *fsm.Candidate) (bool, error) {
	if b.seen.Holder == (events.ID{}) || b.seen.Holder == b.Caller {
		return false, nil
	}
	gone, err := b.gone(ctx, b.seen.Holder)
	if err != nil {
		return false, err
	}
	if gone {
		c.Gone = b.seen.Holder
		return false, nil
	}
	now, err := b.Store.Now(ctx)
	return now.Before(b.seen.UntilAt) && b.seen.UntilAt.Sub(now) <= b.seen.Life, err
}

func (b *Beat) turn(ctx context.Context, leaser store.Leaser, rule func(fsm.Lease, time.Time) fsm.Lease) (fsm.Lease, error) {
	lease, err := leaser.Lease(ctx, fsm.Beat, func(l store.Lease, now time.Time) store.Lease {
		return store.Lease(rule(fsm.Lease(l), now))
	})
	if err != nil {
		return fsm.Lease{}, fmt.Errorf("lease %s: %w", fsm.Beat, err)
	}
	return fsm.Lease(lease), nil
}

// gone reports whether a holder of the lease is proven to have ended.
func (b *Beat) gone(ctx context.Context, holder events.ID) (bool, error) {
	watcher, ok := store.As[store.ProcessWatcher](b.Store)
	if !ok {
		return false, nil
	}
	gone, err := watcher.Gone(ctx, holder)
	return len(gone) > 0, err
}

func (b *Beat) operate(ctx context.Context, command fsm.LeaderCommand) error {
	_, err := b.Decide(ctx, func(o calls.Origin) store.Call {
		return calls.OperateLeader(o, fsm.OperateLeader{Leadership: fsm.Beat, Command: command})
	})
	return err
}

// Resign gives the lease back, so that nobody has to wait for its end.
func (b *Beat) Resign(ctx context.Context) error {
	if b.term == 0 {
		return nil
	}
	leaser, ok := store.As[store.Leaser](b.Store)
	if !ok {
		return nil
	}
	c := fsm.Candidate{Worker: b.Caller, Term: b.term}
	b.term = 0
	if err := b.operate(ctx, fsm.ResignLeader{Worker: c.Worker, Term: c.Term}); err != nil {
		return fmt.Errorf("resign: %w", err)
	}
	_, err := b.turn(ctx, leaser, func(l fsm.Lease, _ time.Time) fsm.Lease { return l.Resign(c) })
	return err
}

// sweep sweeps where it is due by the lease's rhythm, and where proof of death is to be had.
func (b *Beat) sweep(ctx context.Context, lease fsm.Lease, own []time.Time, step *Step) error {
	now, err := b.Store.Now(ctx)
	if err != nil {
		return err
	}
	due := lease.SweptAt.IsZero() || now.Before(lease.SweptAt) || now.Sub(lease.SweptAt) >= b.Interval
	_, provable := store.As[store.ProcessWatcher](b.Store)
	if !due && !provable {
		return nil
	}
	id, err := b.Mint(ctx)
	if err != nil {
		return err
	}
	s := Sweep{
		Store: b.Store, Decide: b.Decide, ID: id, Caller: b.Caller, Term: step.Term, Thresholds: b.Thresholds, Own: own,
		ProvenOnly: !due,
	}
	report, err := s.Run(ctx)
	if due || report.Acted() {
		step.Sweep = &report
	}
	if !due || err != nil && report.Census.Now.IsZero() {
		return err // it read nothing: the next step tries again
	}
	return errors.Join(err, b.conclude(ctx, s, report, step))
}

// conclude ends a sweep that was due: it is done, refused, or waits for its doubt to be over.
func (b *Beat) conclude(ctx context.Context, s Sweep, r Report, step *Step) error {
	now := r.Census.Now
	if r.Doubt != nil && !r.Blind() {
		if b.doubted.IsZero() || now.Before(b.doubted) || r.Suspects == 0 { // while all are heard, nobody waits for its end
			b.doubted = now
		}
		if now.Sub(b.doubted) <= b.Thresholds.After+b.Interval {
			step.Waits = true
			return nil
		}
	}
	b.doubted = time.Time{}
	var refused error
	if r.Doubt != nil {
		refused = s.Refuse(ctx, r)
		step.Refused = refused == nil
	}
	leaser, ok := store.As[store.Leaser](b.Store)
	if !ok {
		return refused
	}
	_, err := b.turn(ctx, leaser, func(l fsm.Lease, _ time.Time) fsm.Lease {
		if l.Holder == b.Caller && l.Term == step.Term {
			l.SweptAt = now
		}
		return l
	})
	return errors.Join(refused, err)
}
