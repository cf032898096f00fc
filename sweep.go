package foundling

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/reaper"
	"github.com/foundling-go/foundling/store"
)

// SweepOptions are the settings of a sweep that somebody asks for. The zero value works.
type SweepOptions struct {
	// ReclaimAfter, ClaimGrace, OrphanMaxAttempts and OrphanCount are those of WorkerOptions, with the same defaults.
	ReclaimAfter      time.Duration
	ClaimGrace        time.Duration
	OrphanMaxAttempts int
	OrphanCount       OrphanCount
	// HeartbeatInterval is how often the sweep's own heartbeat is sent while it waits for proof; 0 is an eighth of ReclaimAfter, 15 s at most.
	HeartbeatInterval time.Duration
	// Wait is for how long it may wait until silence can be taken for death, which takes ReclaimAfter; 0 is as long as that takes, None does
	// not wait.
	Wait time.Duration
	// Waiting is told once why it waits and for how long, if it does; nil tells nobody.
	Waiting func(reason, detail string, wait time.Duration)
}

// worker is the settings of the incarnation that sweeps.
func (o SweepOptions) worker() WorkerOptions {
	w := WorkerOptions{
		Concurrency: 1, ReclaimAfter: o.ReclaimAfter, ClaimGrace: o.ClaimGrace, OrphanMaxAttempts: o.OrphanMaxAttempts,
		OrphanCount: o.OrphanCount, HeartbeatInterval: o.HeartbeatInterval, Sweeps: SweepsOff,
	}
	if w.HeartbeatInterval == 0 && w.ReclaimAfter > 0 {
		w.HeartbeatInterval = min(w.ReclaimAfter/8, fsm.DefaultHeartbeatInterval)
	}
	return w
}

// SweepReport is what came of a sweep, or would come of it.
type SweepReport struct {
	ID            ID
	Worker        ID     // the incarnation that swept; zero where it is a plan
	Refused       string // the guard that doubted, such as "liveness_unproven"; empty where none did
	Detail        string // what it saw, in words
	Dead          []DeadWorker
	Requeued      int
	DeadLettered  int
	LocksReleased int
	Spared        int // claims and permits of dead workers that are younger than the grace
	Live          int // workers whose heartbeats are young enough
}

// DeadWorker is one that a sweep held to be dead.
type DeadWorker struct {
	ID       ID
	Host     string
	PID      int
	Evidence string // "process_gone", "silent" or "no_heartbeat"
}

func newSweepReport(r reaper.Report, t events.Thresholds) SweepReport {
	report := SweepReport{
		ID: r.ID, Requeued: r.Requeued, DeadLettered: r.DeadLettered, LocksReleased: r.LocksReleased, Spared: r.Spared,
		Live: len(r.Census.Live(t)),
	}
	if r.Doubt != nil {
		report.Refused, report.Detail = string(r.Doubt.Reason), r.Doubt.Detail
	}
	for _, d := range r.Dead {
		report.Dead = append(report.Dead, DeadWorker{ID: d.Worker.ID, Host: d.Worker.Host, PID: d.Worker.PID, Evidence: string(d.Evidence)})
	}
	return report
}

// Sweep gives back what the dead hold, now, with the guards that the beat has; it needs no leader. Whoever sweeps must be seen to live: it
// registers as a worker, acts on what is proven at once, and where only silence tells the dead from the living it beats until its own view
// is proven or Wait is over. A sweep that may not act is refused, which is recorded with what it saw, and SweepReport.Refused says why: that is
// no error. What could not be read is skipped, and the error names it.
//
// It blocks for up to ReclaimAfter and some commits.
func (c *Client) Sweep(ctx context.Context, o SweepOptions) (SweepReport, error) {
	w, err := NewWorker(c, o.worker())
	if err != nil {
		return SweepReport{}, fmt.Errorf("sweep: %w", err)
	}
	writing := context.WithoutCancel(ctx)
	inc, err := newIncarnation(writing, w)
	if err != nil {
		return SweepReport{}, fmt.Errorf("sweep: %w", err)
	}
	leave, err := inc.enter(writing)
	if err != nil {
		return SweepReport{}, fmt.Errorf("sweep: %w", err)
	}
	defer leave()
	report, err := inc.sweepAsked(ctx, o)
	if stopped := inc.stop(writing); stopped != nil {
		err = errors.Join(err, stopped)
	}
	if err != nil {
		return report, fmt.Errorf("sweep: %w", err)
	}
	return report, nil
}

// sweepAsked sweeps, and again when its doubt is over.
func (inc *incarnation) sweepAsked(ctx context.Context, o SweepOptions) (SweepReport, error) {
	var total SweepReport
	until := time.Now().Add(o.Wait)
	for waited := false; ; waited = true {
		id, err := inc.client.mint(ctx)
		if err != nil {
			return total, err
		}
		s := inc.sweeper(id)
		r, err := s.Run(ctx)
		total.add(newSweepReport(r, inc.opts.thresholds()))
		total.Worker = inc.id
		if err != nil && (r.Census.Now.IsZero() || ctx.Err() != nil) { // else it skipped what it could not read, and the rest goes on
			return total, err
		}
		wait := r.Census.Proven(s.Thresholds) + inc.opts.HeartbeatInterval
		switch {
		case r.Doubt == nil:
			return total, err
		case !r.Blind() && r.Suspects == 0: // the living are heard, and nobody else is there to be judged
			total.Refused, total.Detail = "", ""
			return total, err
		case r.Blind(), o.Wait < 0, o.Wait > 0 && time.Now().Add(wait).After(until):
			return total, errors.Join(err, s.Refuse(ctx, r))
		}
		if !waited && o.Waiting != nil {
			o.Waiting(string(r.Doubt.Reason), r.Doubt.Detail, wait)
		}
		if err := inc.beatFor(ctx, wait); err != nil {
			return total, err
		}
	}
}

// add takes in what a later run did: the sums of what changed, and the rest as it is by now.
func (r *SweepReport) add(later SweepReport) {
	later.Dead = append(r.Dead, later.Dead...)
	later.Requeued += r.Requeued
	later.DeadLettered += r.DeadLettered
	later.LocksReleased += r.LocksReleased
	*r = later
}

// beatFor beats for a while.
func (inc *incarnation) beatFor(ctx context.Context, wait time.Duration) error {
	heart, ok := store.As[store.Heart](inc.client.store)
	if !ok {
		return errors.New("the engine keeps no heartbeats: there is nothing to wait for")
	}
	for end := time.Now().Add(wait); time.Now().Before(end); {
		if !sleep(ctx, min(inc.opts.HeartbeatInterval, time.Until(end))) {
			return ctx.Err()
		}
		if err := errors.Join(inc.beat(ctx, heart, nextBeat), inc.tell(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// PlanSweep says what a sweep would do now, and writes nothing. SweepReport.Refused says what it would be refused for; that it would first wait for
// proof of its own heartbeats goes without saying.
func (c *Client) PlanSweep(ctx context.Context, o SweepOptions) (SweepReport, error) {
	w, err := o.worker().validate()
	if err != nil {
		return SweepReport{}, fmt.Errorf("plan of a sweep: %w", err)
	}
	r, err := reaper.Sweep{Store: c.store, Decide: c.decide, Thresholds: w.thresholds()}.Plan(ctx)
	return newSweepReport(r, w.thresholds()), err
}
