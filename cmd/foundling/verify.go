package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/spf13/cobra"
)

func newVerify(a *app) *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that the log obeys the rules, and that the stored state is what it leads to",
		Long: "It reads the whole log and every row, and may run while others work on the store. Each violation is named with its entity,\n" +
			"version and position. The exit status is 1 where there is one. Not checked: " + replay.OutOfReach + ".",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.verify(cmd.Context(), most) },
	}
	cmd.Flags().IntVar(&most, "violations", 0, "give up after so many (default 100)")
	return cmd
}

func (a *app) verify(ctx context.Context, most int) error {
	if most < 0 {
		return usage("--violations %d: want 0 or more", most)
	}
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	report, unread := replay.Verify(ctx, s, replay.Options{Violations: most, Payloads: true})
	if err := a.printReport(report, unread); err != nil {
		return err
	}
	if errors.As(unread, new(*events.Corrupt)) { // stored data that is not what was written is what verify looks for
		return &exitError{exitFinding, unread}
	}
	if unread == nil && !report.Clean() {
		return exit(exitFinding)
	}
	return unread
}

// printReport prints what was found. Where the store could not be read to its end there is no verdict.
func (a *app) printReport(r replay.Report, unread error) error {
	for _, v := range r.Violations {
		if _, err := fmt.Fprintln(a.stdout, oneLine(v.Text(&events.Names{}))); err != nil {
			return err
		}
	}
	verdict := "clean"
	switch {
	case unread != nil:
		verdict = "not read to the end"
	case !r.Clean():
		verdict = count(len(r.Violations), "violation")
	}
	_, err := fmt.Fprintf(a.stdout, "verified %d events of %d entities in %d commits: %s\n", r.Events, r.Entities, r.Commits, verdict)
	for _, what := range r.Unchecked {
		fmt.Fprintf(a.stderr, "not checked: %s\n", oneLine(what))
	}
	return err
}
