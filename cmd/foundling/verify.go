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
	printing(a, cmd)
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
	ctx, release := interruptible(ctx)
	defer release()
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

// verdict is what a verification came to, in a word. Where the store could not be read to its end there is none.
func verdict(r replay.Report, unread error) string {
	switch {
	case unread != nil:
		return "unread"
	case !r.Clean():
		return "violated"
	}
	return "clean"
}

// jsonVerified is what a verification came to as JSON has it.
type jsonVerified struct {
	Verdict   string   `json:"verdict"` // clean, violated, or unread where the store could not be read to its end
	Events    int      `json:"events"`
	Entities  int      `json:"entities"`
	Commits   int      `json:"commits"`
	Rows      int      `json:"rows"`
	Permits   int      `json:"permits"`
	Staged    int      `json:"staged"`    // messages of transactions of users' own that wait beside the log
	Head      *string  `json:"head"`      // the cursor up to which the log was checked
	Unchecked []string `json:"unchecked"` // what could not be checked, and why
}

// jsonViolation is a place where the log is not what the rules lead to as JSON has it.
type jsonViolation struct {
	Subject  *jsonSubject `json:"subject"` // null where what is stored no longer says it
	Version  int          `json:"version"`
	Position string       `json:"position"`
	Detail   string       `json:"detail"`
}

func (a *app) reportJSON(r replay.Report, unread error) error {
	d := document[jsonViolation]{Schema: "foundling.verify/v1", Truncated: unread != nil, Result: jsonVerified{
		Verdict: verdict(r, unread), Events: r.Events, Entities: r.Entities, Commits: r.Commits, Rows: r.Rows, Permits: r.Permits, Staged: r.Staged, Head: orNull(string(r.Head)),
		Unchecked: append([]string{}, r.Unchecked...),
	}}
	for _, v := range r.Violations {
		j := jsonViolation{Version: v.Version, Position: whole(v.Position), Detail: v.Detail}
		if v.Entity != (events.Entity{}) {
			subject := subjectOf(v.Entity)
			j.Subject = &subject
		}
		d.Items = append(d.Items, j)
	}
	return printJSON(a, d)
}

// printReport prints what was found. Where the store could not be read to its end there is no verdict.
func (a *app) printReport(r replay.Report, unread error) error {
	if !a.forPeople() {
		return a.reportJSON(r, unread)
	}
	for _, v := range r.Violations {
		if _, err := fmt.Fprintln(a.stdout, oneLine(v.Text(&events.Names{}))); err != nil {
			return err
		}
	}
	said := "clean"
	switch verdict(r, unread) {
	case "unread":
		said = "not read to the end"
	case "violated":
		said = count(len(r.Violations), "violation")
	}
	_, err := fmt.Fprintf(a.stdout, "verified %d events of %d entities in %d commits: %s\n", r.Events, r.Entities, r.Commits, said)
	if r.Staged > 0 {
		fmt.Fprintf(a.stderr, "staged beside the log: %s\n", count(r.Staged, "message"))
	}
	for _, what := range r.Unchecked {
		fmt.Fprintf(a.stderr, "not checked: %s\n", oneLine(what))
	}
	return err
}
