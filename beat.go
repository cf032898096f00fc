package foundling

import (
	"context"
	"time"

	"github.com/foundling-go/foundling/reaper"
)

// leasePeriods is how many heartbeats the leader's lease lives: it is renewed with each.
const leasePeriods = 3

// beatLoop takes part in the beat: it leads or stands by, until ctx ends. It begins with what needs no leader: a worker that starts where others
// died does not wait for the lease of one of them.
func (inc *incarnation) beatLoop(ctx context.Context) {
	if inc.opts.Sweeps == SweepsOff {
		return
	}
	inc.sweepOnce(ctx)
	beat := &reaper.Beat{
		Store: inc.client.store, Decide: inc.client.decide, Mint: inc.client.mint, Caller: inc.id, Thresholds: inc.opts.thresholds(),
		Interval: inc.opts.ReclaimInterval, Life: leasePeriods * inc.opts.HeartbeatInterval, WorkerTTL: inc.opts.WorkerTTL,
	}
	defer inc.resign(ctx, beat)
	ticker := time.NewTicker(inc.opts.HeartbeatInterval)
	defer ticker.Stop()
	held := ""
	for waits := false; ; {
		if inc.fresh() { // whoever cannot say that he lives does not judge others
			if inc.counted.Load() {
				beat.Retention = max(inc.opts.Retention, 0)
			}
			step := inc.step(ctx, beat)
			if step.Waits && !waits {
				inc.log.InfoContext(ctx, "sweep waits", keyReason, step.Sweep.Doubt.Reason, keyDetail, step.Sweep.Doubt.Detail)
			}
			waits = step.Waits
			held = inc.tellHeld(ctx, step.Pruned, held)
		} else {
			inc.leads.Store(false)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// step is one step of the beat, which must end before its lease does.
func (inc *incarnation) step(ctx context.Context, beat *reaper.Beat) reaper.Step {
	bounded, cancel := context.WithTimeout(ctx, beat.Life*2/3)
	defer cancel()
	step, err := beat.Step(bounded, inc.own())
	inc.leads.Store(step.Leads)
	if step.Elected {
		inc.log.InfoContext(ctx, "leads the beat", keyTerm, step.Term)
	}
	if step.Sweep != nil {
		inc.report(ctx, *step.Sweep)
	}
	if step.Refused {
		inc.log.ErrorContext(ctx, "sweep refused", keyReason, step.Sweep.Doubt.Reason, keyDetail, step.Sweep.Doubt.Detail, keySweep, step.Sweep.ID)
	}
	if step.Repaired > 0 {
		inc.log.ErrorContext(ctx, "messages waited for a lock that was free; they try again", keyMessages, step.Repaired)
	}
	if p := step.Pruned; p.Commits > 0 {
		inc.log.InfoContext(ctx, "retention let the beginning of the log go", keyEvents, p.Events, keyThrough, p.Through, keyUntil, p.UntilAt,
			keySnapshots, p.Told)
	}
	if step.Expired > 0 || step.Purged > 0 {
		inc.log.InfoContext(ctx, "upkeep", keyPermitsExpired, step.Expired, keyWorkersPurged, step.Purged)
	}
	if err != nil && ctx.Err() == nil {
		inc.log.ErrorContext(ctx, "beat failed", keyError, err)
	}
	return step
}

// tellHeld says which projection keeps what is old enough from going, unless it was said before. It gives back what is known now.
func (inc *incarnation) tellHeld(ctx context.Context, p reaper.Pruned, before string) string {
	if !p.Done {
		return before // it did not look
	}
	held := holder(p)
	if held != "" && held != before {
		inc.log.WarnContext(ctx, "a projection holds retention back, which lets nothing go that it has not counted; one that nobody runs"+
			" any more goes with foundling projections drop", keyProjection, p.Held.Name, keyVersion, p.Held.Version)
	}
	return held
}

// report logs what a sweep did.
func (inc *incarnation) report(ctx context.Context, r reaper.Report) {
	if len(r.Dead) > 0 {
		inc.log.WarnContext(ctx, "what workers held that are dead was given back", keySweep, r.ID, keyWorkers, len(r.Dead),
			keyRequeued, r.Requeued, keyDeadLettered, r.DeadLettered, keyLocksReleased, r.LocksReleased)
	}
	if r.Spared > 0 {
		inc.log.WarnContext(ctx, "claims of dead workers are too young to be taken back", keySweep, r.ID, keyClaims, r.Spared,
			keyGrace, inc.opts.ClaimGrace)
	}
}

// sweepOnce gives back, as the worker starts, what those held who are proven to be dead.
func (inc *incarnation) sweepOnce(ctx context.Context) {
	if !inc.provable {
		return
	}
	id, err := inc.client.mint(ctx)
	if err == nil {
		var report reaper.Report
		report, err = inc.sweeper(id).Run(ctx)
		inc.report(ctx, report)
	}
	if err != nil && ctx.Err() == nil {
		inc.log.ErrorContext(ctx, "sweep failed", keyError, err)
	}
}

// sweeper is a sweep by this incarnation that nobody's lease stands for.
func (inc *incarnation) sweeper(id ID) reaper.Sweep {
	return reaper.Sweep{
		Store: inc.client.store, Decide: inc.client.decide, ID: id, Caller: inc.id, Thresholds: inc.opts.thresholds(), Own: inc.own(),
	}
}

// resign gives the lease back at the worker's end.
func (inc *incarnation) resign(ctx context.Context, beat *reaper.Beat) {
	bounded, cancel := inc.client.within(context.WithoutCancel(ctx))
	defer cancel()
	if err := beat.Resign(bounded); err != nil {
		inc.log.WarnContext(ctx, "the lease of the beat was not given back; it ends by itself", keyError, err)
	}
}
