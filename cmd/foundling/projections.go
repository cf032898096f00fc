package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

// maxLag is up to how many events a projection's lag is counted.
const maxLag = 100_000

func newProjections(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "projections",
		Short: "Say how far each durable projection has counted the log, and what has stopped",
		Long: "Every version of each that the store keeps checkpoints of, such as the totals of the metrics. Retention lets nothing go that the newest\n" +
			"version has not counted, so one that has stopped holds it back. The exit status is 1 where one has, or has passed over what is damaged.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.projections(cmd.Context()) },
	}
	printing(a, cmd)
	cmd.AddCommand(newProjectionsDrop(a))
	return cmd
}

// countedVersion is a version of a projection with how far it is behind.
type countedVersion struct {
	runner.Kept
	lag runner.Lag
	err error // why the lag cannot be told
}

func (a *app) projections(ctx context.Context) error {
	ctx, release := interruptible(ctx)
	defer release()
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	list, err := versionsOf(ctx, s, maxLag)
	if err != nil {
		return err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	if err := a.printProjections(list, now); err != nil {
		return err
	}
	if slices.ContainsFunc(list, countedVersion.wrong) {
		return exit(exitFinding)
	}
	return nil
}

// versionsOf is every version that the store keeps checkpoints of, whose lag is counted up to most events.
func versionsOf(ctx context.Context, s store.Store, most int) ([]countedVersion, error) {
	kept, err := runner.Versions(ctx, s)
	if err != nil && !errors.Is(err, runner.ErrNoShelf) {
		return nil, err
	}
	var list []countedVersion
	for _, k := range kept {
		v := countedVersion{Kept: k}
		v.lag, v.err = runner.LagOf(ctx, s, k.View.Cursor, most)
		if v.err != nil && !isCursorLost(v.err) && !errors.As(v.err, new(*events.Corrupt)) {
			return nil, v.err
		}
		list = append(list, v)
	}
	return list, nil
}

func (a *app) printProjections(list []countedVersion, now time.Time) error {
	if !a.forPeople() {
		return printJSON(a, document[jsonProjection]{Schema: "foundling.projections/v1", AsOf: atTime(now), Items: jsonProjections(list)})
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.stdout, "no projection has a checkpoint yet: workers keep the totals")
		return err
	}
	t := newTable("PROJECTION", ">VERSION", "PHASE", ">POSITION", ">LAG", ">BEHIND", ">SAVED", ">CHECKPOINTS", "")
	for _, v := range list {
		lag := number(v.lag.Events)
		switch {
		case v.err != nil:
			lag = unknown
		case v.lag.More:
			lag = ">" + lag
		}
		saved := findings.Span(max(0, now.Sub(v.View.SavedAt)))
		if a.wide() {
			saved = absolute(v.View.SavedAt)
		}
		t.add(harmless(v.View.Name), number(v.View.Version), v.phase(), fmt.Sprint(v.View.AsOf.Position), lag, findings.Span(v.lag.For), saved,
			number(v.Checkpoints), v.note(a))
	}
	_, err := io.WriteString(a.stdout, t.text())
	a.note("as of %s", absolute(now))
	return err
}

// stopped reports whether a version goes on no more.
func (v countedVersion) stopped() bool { return v.View.Halt.Halted() || v.err != nil }

// wrong reports whether somebody should look at a version.
func (v countedVersion) wrong() bool { return v.stopped() || v.View.Passed.Events > 0 || v.Spoilt > 0 }

// phase is what a version is at, in a word.
func (v countedVersion) phase() string {
	switch {
	case v.stopped():
		return runner.Halted.String()
	case !v.View.Current:
		return runner.Building.String()
	}
	return runner.Following.String()
}

// why is why a version has stopped; empty where it has not.
func (v countedVersion) why() string {
	switch {
	case v.View.Halt.Halted():
		return v.View.Halt.String()
	case v.err != nil:
		return v.err.Error()
	}
	return ""
}

// note says what is wrong with a version, and since when it counts.
func (v countedVersion) note(a *app) string {
	var notes []string
	if v.stopped() {
		notes = append(notes, "stopped: "+v.why())
	}
	if passed := v.View.Passed.String(); passed != "" {
		notes = append(notes, passed)
	}
	if v.Spoilt > 0 {
		notes = append(notes, count(v.Spoilt, "newer checkpoint")+" cannot be read")
	}
	if v.View.Since.Position > 0 {
		notes = append(notes, fmt.Sprintf("counts since position %d", v.View.Since.Position))
	}
	if len(notes) == 0 && a.wide() {
		notes = append(notes, "cursor "+string(v.View.Cursor))
	}
	return strings.Join(notes, "; ")
}

// jsonProjection is a version of a projection as JSON has it.
type jsonProjection struct {
	Projection  string     `json:"projection"`
	Version     int        `json:"version"`
	Phase       string     `json:"phase"`
	Position    string     `json:"position"` // of the last event that it has taken
	Cursor      string     `json:"cursor"`   // behind that
	Time        *time.Time `json:"time"`     // of that event
	Since       *string    `json:"since"`    // the position of the first event that it counted, where older ones were let go; null counts all
	LagEvents   *int       `json:"lag_events"`
	LagMore     bool       `json:"lag_more"` // there are more than that
	Lag         *float64   `json:"lag_seconds"`
	SavedAt     *time.Time `json:"saved_at"`
	Checkpoints int        `json:"checkpoints"`
	Stopped     *string    `json:"stopped"`       // why it has stopped; null where it has not
	Passed      int        `json:"passed_events"` // that it has not counted since they cannot be read
	PassedFirst *string    `json:"passed_first"`  // the position of the first of them; null where there are none
	Spoilt      int        `json:"spoilt"`        // newer checkpoints that cannot be read
}

func jsonProjections(list []countedVersion) []jsonProjection {
	var all []jsonProjection
	for _, v := range list {
		j := jsonProjection{
			Projection: v.View.Name, Version: v.View.Version, Phase: v.phase(), Position: whole(v.View.AsOf.Position), Cursor: string(v.View.Cursor),
			Time: instant(v.View.AsOf.At), SavedAt: instant(v.View.SavedAt), Checkpoints: v.Checkpoints, LagMore: v.lag.More,
		}
		if v.View.Since.Position > 0 {
			j.Since = orNull(whole(v.View.Since.Position))
		}
		if v.err == nil {
			j.LagEvents, j.Lag = &v.lag.Events, seconds(v.lag.For)
		}
		j.Stopped, j.Passed, j.Spoilt = orNull(v.why()), v.View.Passed.Events, v.Spoilt
		if j.Passed > 0 {
			j.PassedFirst = orNull(whole(v.View.Passed.First))
		}
		all = append(all, j)
	}
	return all
}

// standings is the newest version of each durable projection, for the findings.
func standings(ctx context.Context, s store.Store, now time.Time) ([]findings.Counted, error) {
	versions, err := versionsOf(ctx, s, 1)
	var list []findings.Counted
	for _, v := range versions { // by name, then version
		c := findings.Counted{Name: v.View.Name, Version: v.View.Version, Position: v.View.AsOf.Position, Stopped: v.why()}
		if v.lag.Events > 0 {
			c.Since = now.Add(-v.lag.For)
		}
		if n := len(list); n > 0 && list[n-1].Name == c.Name {
			list = list[:n-1]
		}
		list = append(list, c)
	}
	return list, err
}

// isCursorLost reports whether a checkpoint stands where the log does not reach, or is not any more.
func isCursorLost(err error) bool {
	return errors.Is(err, store.ErrAhead) || errors.Is(err, store.ErrCursor) || errors.Is(err, store.ErrPruned)
}
