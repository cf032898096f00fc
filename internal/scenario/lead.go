package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/reaper"
	"github.com/foundling-go/foundling/store"
)

// runLead lets a worker take part in the beat: it takes a step now, and one with each of its heartbeats.
func runLead(ctx context.Context, w *World, l *line, _ string) (Result, error) {
	caller, err := w.names.id(l.word("worker"))
	if err != nil {
		return Result{}, err
	}
	p := w.process(caller)
	if len(l.named) > 0 || p.leads == nil {
		p.leads = &reaper.Beat{
			Store: w.store, Decide: w.decide, Mint: func(context.Context) (events.ID, error) { return w.mint() },
			Caller: caller, Thresholds: thresholds(l),
			Interval:  cmp.Or(l.length("interval"), fsm.DefaultReclaimInterval),
			Life:      cmp.Or(l.length("life"), 3*fsm.DefaultHeartbeatInterval),
			WorkerTTL: cmp.Or(l.length("ttl"), fsm.DefaultWorkerTTL),
			Retention: days(l, "retention"),
		}
	}
	if err := l.end(); err != nil {
		return Result{}, err
	}
	return w.tell(ctx, func(said *strings.Builder) error { return w.lead(ctx, p, said) })
}

// lead is one step of a worker's beat.
func (w *World) lead(ctx context.Context, p *process, said *strings.Builder) error {
	step, err := p.leads.Step(ctx, p.own(w.time(), p.leads.Thresholds.After))
	if step.Sweep != nil && !step.Waits {
		w.sweeps++
		w.swept = counted(*step.Sweep)
	}
	if step.Refused {
		w.swept.refused = step.Sweep.Doubt.Reason
	}
	if step.Waits && !p.waits {
		fmt.Fprintf(said, "%s %s waits for proof: %s\n", since(w.time()), p.worker, step.Sweep.Doubt.Reason)
	}
	p.waits = step.Waits
	if step.Pruned.Events > 0 {
		fmt.Fprintf(said, "%s %s: %s\n", since(w.time()), p.worker, w.pruned(step.Pruned))
	}
	failed := ""
	if err != nil {
		failed = err.Error()
	}
	if failed != "" && failed != p.failed { // a trouble that lasts is told once
		fmt.Fprintf(said, "%s %s: %s\n", since(w.time()), p.worker, failed)
	}
	p.failed = failed
	if p.leads.Retention > 0 { // what it leaves may be gone before anybody looks
		_, err := w.follow(ctx)
		return err
	}
	return nil
}

// runResign lets a worker give its lease back and leave the beat.
func runResign(ctx context.Context, w *World, l *line, _ string) (Result, error) {
	caller, err := w.names.id(l.word("worker"))
	if err = errors.Join(err, l.end()); err != nil {
		return Result{}, err
	}
	p := w.process(caller)
	if p.leads == nil {
		return Result{}, errors.New("resign: it takes no part in the beat")
	}
	return w.tell(ctx, func(*strings.Builder) error {
		leads := p.leads
		p.leads = nil
		return leads.Resign(ctx)
	})
}

// lease is that of the beat, unchanged.
func (w *World) lease(ctx context.Context) (store.Lease, error) {
	leaser, ok := store.As[store.Leaser](w.engine)
	if !ok {
		return store.Lease{}, errors.New("the engine keeps no leases")
	}
	return leaser.Lease(ctx, fsm.Beat, func(l store.Lease, _ time.Time) store.Lease { return l })
}
