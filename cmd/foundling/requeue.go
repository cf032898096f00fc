package main

import (
	"context"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/spf13/cobra"
)

func newRequeue(a *app) *cobra.Command {
	var w wish
	var force bool
	var after time.Duration
	cmd := &cobra.Command{
		Use:   "requeue ID…",
		Short: "Take messages from their workers: they wait again, the attempt stays spent",
		Long: actHelp + "\n\nWhat a dead worker holds comes back whole: the message, its slot and its lock. A worker that lives keeps its message unless it is\n" +
			"forced: then its handler is told to end and its result is refused, but until it has ended the message may be handled twice at once;\n" +
			"its lock stays taken for as long.",
		Args: cobra.RangeArgs(1, maxActed),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkAfter(after); err != nil {
				return err
			}
			x := action{
				wish: w, name: "requeue", done: "requeued", otherwise: ": nobody handles it", command: fsm.TakeBackMessage{}, after: after,
			}
			if force {
				x.force = foundling.Forced
			}
			x.carry = func(ctx context.Context, c *foundling.Client, ids ...events.ID) error {
				return c.Requeue(ctx, foundling.RequeueOptions{Reason: w.reason, Force: x.force, ReclaimAfter: after}, ids...)
			}
			return a.actOn(cmd.Context(), x, args)
		},
	}
	wishFlags(cmd, &w)
	cmd.Flags().BoolVar(&force, "force", false, "take a message also from a worker that lives")
	afterFlag(cmd, &after)
	printing(a, cmd)
	cmd.ValidArgsFunction = a.messageTails()
	return cmd
}

func newCancel(a *app) *cobra.Command {
	var w wish
	cmd := &cobra.Command{
		Use:   "cancel ID…",
		Short: "End messages that are no longer wanted",
		Long: actHelp + "\n\nThe handler of one that is being handled is told to end, and its result is refused; its lock stays taken until it has ended.\n" +
			"That of a dead worker comes back at once.",
		Args: cobra.RangeArgs(1, maxActed),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.actOn(cmd.Context(), action{
				wish: w, name: "cancel", done: "cancelled", otherwise: "", command: fsm.CancelMessage{}, after: fsm.DefaultReclaimAfter,
				carry: func(ctx context.Context, c *foundling.Client, ids ...events.ID) error {
					return c.Cancel(ctx, w.reason, ids...)
				},
			}, args)
		},
	}
	wishFlags(cmd, &w)
	printing(a, cmd)
	cmd.ValidArgsFunction = a.messageTails()
	return cmd
}
