package foundling

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/reaper"
)

const (
	// DefaultRetention is how old events must be to be let go, where nothing else is said.
	DefaultRetention = 90 * 24 * time.Hour
	// Forever as a retention lets nothing go.
	Forever time.Duration = -1

	// minRetention is the shortest; it must leave time to read what has just been written.
	minRetention = time.Second
)

// PruneOptions are the settings of a prune that somebody asks for. The zero value works.
type PruneOptions struct {
	OlderThan time.Duration // how long ago what goes was decided; 0 is DefaultRetention, at least 1 s
	Before    time.Time     // before when it was decided, unless zero; only one of OlderThan and Before
	Reason    string        // goes into the log
}

func (o PruneOptions) validate() (PruneOptions, error) {
	switch {
	case o.OlderThan != 0 && !o.Before.IsZero():
		return o, fmt.Errorf("prune options: both OlderThan %s and Before %s: %w", o.OlderThan, o.Before.Format(time.RFC3339), ErrInvalid)
	case o.OlderThan != 0 && o.OlderThan < minRetention:
		return o, fmt.Errorf("prune options: OlderThan %s, at least %s: %w", o.OlderThan, minRetention, ErrInvalid)
	case o.OlderThan == 0 && o.Before.IsZero():
		o.OlderThan = DefaultRetention
	}
	return o, nil
}

// PruneReport is what came of a prune, or would come of it.
type PruneReport struct {
	Commits   int       // 0 of a plan
	Events    int       // that went, with the payloads and results of the messages that ended there
	Snapshots int       // of what is open, or may come back: it told its state once more, so that its older events could go. Of a plan 1,000 at most
	More      bool      // of a plan: these are 100,000 events or nearly, and more may go
	Through   int64     // the position of the last event that went; 0 where none did
	UntilAt   time.Time // when its commit was decided; zero where none went
	// HeldBackBy is the durable projection, as in "totals version 1", whose newest checkpoint keeps more from going that is old enough: what it has not
	// counted stays. Empty where none does.
	HeldBackBy string
}

func newPruneReport(r reaper.Pruned) PruneReport {
	return PruneReport{
		Commits: r.Commits, Events: r.Events, Snapshots: r.Told, Through: r.Through, UntilAt: r.UntilAt, More: r.More, HeldBackBy: holder(r),
	}
}

// holder is the projection that keeps more from going; empty where none does.
func holder(r reaper.Pruned) string {
	if r.Held.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s version %d", r.Held.Name, r.Held.Version)
}

// Prune lets the beginning of the log go, with the payloads and results of the messages that ended there. What is open, or a dead letter, stays whole:
// it tells its state once more, and its events go. Nothing goes that a durable projection has not counted; what Foundling itself counts is counted
// first, as far as it can be: PruneReport.HeldBackBy names what could not. Workers do the same by themselves; see WorkerOptions.Retention.
//
// It blocks for a commit for each 5,000 events, and for as long as counting takes. Broken off, it has done what it reports, and the next goes on. An engine that keeps its whole log is a
// [store.ErrNoPruner].
func (c *Client) Prune(ctx context.Context, o PruneOptions) (PruneReport, error) {
	o, err := o.validate()
	if err != nil {
		return PruneReport{}, err
	}
	uncounted := c.count(ctx)
	if ctx.Err() != nil {
		return PruneReport{}, fmt.Errorf("prune: count what goes: %w", uncounted)
	}
	r, err := c.prune(o).Run(ctx) // of what was counted
	if err != nil && uncounted != nil {
		err = errors.Join(err, fmt.Errorf("prune: count what goes: %w", uncounted))
	}
	return newPruneReport(r), err
}

// PlanPrune says what a prune would let go now, and writes nothing. PruneReport.HeldBackBy may name "totals": Prune brings these up to date first.
func (c *Client) PlanPrune(ctx context.Context, o PruneOptions) (PruneReport, error) {
	o, err := o.validate()
	if err != nil {
		return PruneReport{}, err
	}
	r, err := c.prune(o).Plan(ctx)
	return newPruneReport(r), err
}

// count brings the durable projections up to date that Foundling itself reads.
func (c *Client) count(ctx context.Context) error {
	r, err := newTotals(c.store)
	if errors.Is(err, runner.ErrNoShelf) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.CatchUp(ctx)
}

func (c *Client) prune(o PruneOptions) reaper.Prune {
	return reaper.Prune{
		Store: c.store, Decide: c.decide, Retention: o.OlderThan, Before: o.Before, By: c.opts.Actor, Detail: errorText(o.Reason),
	}
}
