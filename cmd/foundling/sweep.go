package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

// sweeping is what the command line of sweep says.
type sweeping struct {
	settings
	dry  bool
	wait time.Duration
}

func newSweep(a *app) *cobra.Command {
	var o sweeping
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Give back what dead workers hold: their messages, slots and locks",
		Long: "Workers do this by themselves; here it is done by hand, now. Whoever sweeps must be seen to live: it registers as a worker and\n" +
			"acts at once on what is proven. Where only silence tells the dead from the living it first waits, beating, until its own view is\n" +
			"proven, which takes --after; in a database that is always so. --wait 0s does not wait. A sweep that cannot trust what it sees\n" +
			"changes nothing, says which guard doubted and why, and leaves that in the log. --after and --grace are short for the settings\n" +
			"orphan_reclaim_after and orphan_claim_grace.\n" +
			"The exit status is 5 where a guard refused. A dry run writes nothing; its exit status is 1 where a sweep would act.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if o.wait < 0 {
				return usage("--wait %s: want 0 or more", o.wait)
			}
			return a.sweep(cmd.Context(), o)
		},
	}
	short(cmd)
	o.judging(cmd)
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "only say what a sweep would do")
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "wait at most so long for proof (default as long as it takes, which is --after and a little)")
	printing(a, cmd)
	return cmd
}

func (a *app) sweep(ctx context.Context, o sweeping) error {
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer release()
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	client, err := a.client(s, "sweep")
	if err != nil {
		return err
	}
	options, err := o.options(a)
	if err != nil {
		return err
	}
	sw := &swept{app: a, sweeping: o}
	if o.dry {
		return sw.plan(ctx, s, client, options)
	}
	return sw.run(ctx, s, client, options)
}

// options is the sweep as the library takes it.
func (o sweeping) options(a *app) (foundling.SweepOptions, error) {
	options, err := o.settings.sweep()
	if o.given("wait") {
		if options.Wait = o.wait; o.wait == 0 {
			options.Wait = foundling.None
		}
	}
	options.Waiting = func(reason, detail string, wait time.Duration) {
		a.console().say("foundling: %s: %s; it waits %s for proof, and beats meanwhile", reason, harmless(detail), findings.Span(wait))
	}
	return options, err
}

// swept is what came of a sweep, or would.
type swept struct {
	*app
	sweeping
	report foundling.SweepReport
	cut    bool // it was interrupted
	now    time.Time
	dead   []deceased
	names  *events.Names
}

// run sweeps, and says what came of it.
func (w *swept) run(ctx context.Context, s store.Store, c *foundling.Client, o foundling.SweepOptions) error {
	before, err := s.Head(ctx)
	if err != nil {
		return err
	}
	w.console().say("foundling: registers as a worker and looks who lives")
	var unread error // what the sweep could not read; the rest is told
	if w.report, unread = c.Sweep(ctx, o); unread != nil && w.report.ID == (foundling.ID{}) {
		return unread
	}
	if w.cut = ctx.Err() != nil; w.cut {
		w.report.Refused, w.report.Detail = "", "" // it would have waited
		unread = &exitError{exitInterrupted, errors.New("interrupted: no more was given back than is said here")}
	}
	reading := context.WithoutCancel(ctx) // what was done is said, also after an interrupt
	if err := w.learn(reading, s, before); err != nil {
		return errors.Join(unread, err)
	}
	if err := w.print(); err != nil {
		return errors.Join(unread, err)
	}
	if unread == nil && w.report.Refused != "" {
		return exit(exitRefused)
	}
	return unread
}

// plan says what a sweep would do.
func (w *swept) plan(ctx context.Context, s store.Store, c *foundling.Client, o foundling.SweepOptions) error {
	var unread error
	w.report, unread = c.PlanSweep(ctx, o)
	if err := w.learnPlan(ctx, s); err != nil {
		return errors.Join(unread, err)
	}
	if err := w.print(); err != nil {
		return errors.Join(unread, err)
	}
	switch {
	case unread != nil:
		return unread
	case len(w.report.Dead) > 0:
		return exit(exitFinding)
	case w.report.Refused != "":
		return exit(exitRefused)
	}
	return nil
}
