package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/spf13/cobra"
)

// age is a length of time as a flag that may be given in days.
type age time.Duration

// forever is the word for an age that nothing reaches.
const forever = "forever"

// String implements pflag.Value.
func (d *age) String() string {
	if *d == age(foundling.Forever) {
		return forever
	}
	if *d > 0 && time.Duration(*d)%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", time.Duration(*d)/(24*time.Hour))
	}
	return time.Duration(*d).String()
}

// Set implements pflag.Value.
func (d *age) Set(word string) error {
	if word == forever {
		*d = age(foundling.Forever)
		return nil
	}
	if days, ok := strings.CutSuffix(word, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		*d = age(time.Duration(n) * 24 * time.Hour)
		return err
	}
	t, err := time.ParseDuration(word)
	*d = age(t)
	return err
}

// Type implements pflag.Value.
func (*age) Type() string { return "AGE" }

// pruning is what the command line of prune says.
type pruning struct {
	wish
	older age
	dry   bool
}

func newPrune(a *app) *cobra.Command {
	o := pruning{older: age(foundling.DefaultRetention)}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Let the beginning of the log go, with the payloads of what ended there",
		Long: "Workers do this by themselves, with what is older than 90 days; here it is done by hand, now. Messages that are open and dead letters\n" +
			"stay whole: each tells its state once more, and its older events go. Nothing goes that a durable projection, such as the totals of the\n" +
			"metrics, has not counted. It says what would go, and asks, on a terminal, before it does it; the reason goes into the log.\n" +
			"The exit status is 5 where nothing was done for want of a yes or a reason.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.older <= 0 {
				return usage("--older-than %s: want more than 0", time.Duration(o.older))
			}
			if !o.dry {
				if err := o.check("prune"); err != nil {
					return err
				}
			}
			return a.prune(cmd.Context(), o)
		},
	}
	wishFlags(cmd, &o.wish)
	flags := cmd.Flags()
	flags.Var(&o.older, "older-than", "what is older goes, as in 90d or 36h")
	flags.BoolVar(&o.dry, "dry-run", false, "only say what would go")
	printing(a, cmd)
	return cmd
}

func (a *app) prune(ctx context.Context, o pruning) error {
	ctx, release := interruptible(ctx)
	defer release()
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	client, err := a.client(s, "prune")
	if err != nil {
		return err
	}
	options := foundling.PruneOptions{OlderThan: time.Duration(o.older), Reason: o.reason}
	plan, err := client.PlanPrune(ctx, options)
	if err != nil {
		return err
	}
	p := &pruned{app: a, pruning: o, report: plan}
	if p.now, err = s.Now(ctx); err != nil {
		return err
	}
	uncounted := strings.HasPrefix(plan.HeldBackBy, (*projections.Totals)(nil).Name()+" ") // they are brought up to date first
	if o.dry || plan.Events == 0 && !uncounted {
		return p.print("would go", plannedOutcome)
	}
	if a.forPeople() && plan.Events > 0 {
		if err := p.print("would go", plannedOutcome); err != nil {
			return err
		}
	}
	if !o.yes {
		what := count(plan.Events, "event")
		if plan.Events == 0 {
			what = "what the totals have not counted yet"
		}
		if err := a.confirm("prune " + what); err != nil {
			return errors.Join(p.printJSON(plannedOutcome), err)
		}
	}
	p.report, err = client.Prune(ctx, options)
	if p.cut = isInterrupt(ctx, err); err != nil && !p.cut {
		return err
	}
	if err := p.print("went", doneOutcome); err != nil {
		return err
	}
	if p.cut {
		return &exitError{exitInterrupted, errors.New("interrupted: no more went than is said here")}
	}
	return nil
}

// pruned is what came of a prune, or would.
type pruned struct {
	*app
	pruning
	report foundling.PruneReport
	now    time.Time
	cut    bool // it was interrupted
}

// print says what went, or would go.
func (p *pruned) print(verb string, outcome actOutcome) error {
	if !p.forPeople() {
		return p.printJSON(outcome)
	}
	r := p.report
	var b strings.Builder
	if r.Events == 0 {
		fmt.Fprintf(&b, "nothing to prune: no event that may go is older than %s\n", findings.Span(time.Duration(p.older)))
	} else {
		atLeast := ""
		if r.More {
			atLeast = "at least "
		}
		fmt.Fprintf(&b, "%s%s %s, up to position %d of %s, with the payloads and results of the messages that ended there\n",
			atLeast, count(r.Events, "event"), verb, r.Through, absolute(r.UntilAt))
	}
	if r.Snapshots > 0 {
		fmt.Fprintf(&b, "  %s told once more what is still open\n", count(r.Snapshots, "event"))
	}
	if r.HeldBackBy != "" {
		fmt.Fprintf(&b, "  more is old enough and stays: projection %s has not counted it (see foundling projections)\n", harmless(r.HeldBackBy))
	}
	_, err := io.WriteString(p.stdout, b.String())
	return err
}

// jsonPruned is what came of a prune, or would, as JSON has it.
type jsonPruned struct {
	Outcome    actOutcome `json:"outcome"` // planned or done
	Reason     *string    `json:"reason"`
	OlderThan  *float64   `json:"older_than_seconds"`
	Events     int        `json:"events"`
	More       bool       `json:"more"`      // of a plan: more may go than it has looked through
	Commits    *int       `json:"commits"`   // null of a plan
	Snapshots  int        `json:"snapshots"` // what was open told its state once more
	Through    *string    `json:"through"`   // the position of the last event that went; null where none did
	UntilAt    *time.Time `json:"until"`
	HeldBackBy *string    `json:"held_back_by"` // the projection that keeps more from going
}

func (p *pruned) printJSON(outcome actOutcome) error {
	if p.forPeople() {
		return nil
	}
	r := p.report
	j := jsonPruned{
		Outcome: outcome, Reason: orNull(p.reason), OlderThan: seconds(time.Duration(p.older)), Events: r.Events, Snapshots: r.Snapshots,
		UntilAt: instant(r.UntilAt), More: r.More, HeldBackBy: orNull(r.HeldBackBy),
	}
	if outcome == doneOutcome {
		j.Commits = &r.Commits
	}
	if r.Through > 0 {
		j.Through = orNull(whole(r.Through))
	}
	return printJSON(p.app, document[jsonPruned]{Schema: "foundling.prune/v1", AsOf: atTime(p.now), Truncated: p.cut, Items: []jsonPruned{j}})
}
