package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foundling-go/foundling/projections/runner"
	"github.com/spf13/cobra"
)

func newProjectionsDrop(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "drop NAME",
		Short: "Drop what a projection has counted, so that it holds back no pruning",
		Long: "For one that nobody runs any more: all its versions go, with their history. One that runs begins again with the oldest event that is kept.\n" +
			"The log is as it was: projections are no part of it. It says what would go, and asks, on a terminal, before it does it.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.dropProjection(cmd.Context(), args[0], yes) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	printing(a, cmd)
	return cmd
}

// jsonDropped is what came of a drop.
type jsonDropped struct {
	Dropped int `json:"dropped"` // checkpoints
}

func (a *app) dropProjection(ctx context.Context, name string, yes bool) error {
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	list, err := versionsOf(ctx, s, maxLag)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(v countedVersion) bool { return v.View.Name != name })
	if len(list) == 0 {
		return notFound("no projection %s in this store", quoted([]byte(name)))
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	if a.forPeople() {
		if err := a.printProjections(list, now); err != nil {
			return err
		}
	}
	print := func(dropped int) error {
		return printJSON(a, document[jsonProjection]{
			Schema: "foundling.projections_drop/v1", AsOf: atTime(now), Items: jsonProjections(list), Result: jsonDropped{dropped},
		})
	}
	if !yes {
		if err := a.confirm("drop projection " + harmless(name)); err != nil {
			if !a.forPeople() {
				err = errors.Join(print(0), err)
			}
			return err
		}
	}
	dropped, err := runner.Forget(ctx, s, name)
	if err != nil {
		return err
	}
	if !a.forPeople() {
		return print(dropped)
	}
	_, err = fmt.Fprintf(a.stdout, "dropped: %s\n", count(dropped, "checkpoint"))
	return err
}
