package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

// actHelp is what all commands have in common that do something to messages.
const actHelp = "ID is a message's id or the end of one. It says what would become of each message, and asks, on a terminal, before it does it.\n" +
	"The reason goes into the log. The exit status is 1 where some could not be done and were said to be, 5 where nothing was done for\n" +
	"want of a yes, a reason or --force, and 6 where one was not as it was said to be any more, or none could be done; the others are done."

func newRedrive(a *app) *cobra.Command {
	var w wish
	var topic string
	cmd := &cobra.Command{
		Use:   "redrive ID… | --topic TOPIC",
		Short: "Give dead letters a new series of attempts",
		Long:  actHelp + "\n--topic takes all dead letters of a topic instead.",
		Args:  cobra.MaximumNArgs(maxActed),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (topic == "") {
				return usage("want either ids of messages or --topic; see %s --help", cmd.CommandPath())
			}
			x := action{
				wish: w, name: "redrive", done: "redriven", otherwise: ", no dead letter", command: fsm.RedriveMessage{}, after: fsm.DefaultReclaimAfter,
				carry: func(ctx context.Context, c *foundling.Client, ids ...events.ID) error {
					return c.Redrive(ctx, w.reason, ids...)
				},
			}
			if topic != "" {
				return a.acting(cmd.Context(), x, func(s store.Store) ([]events.ID, error) { return deadOf(cmd.Context(), s, topic) })
			}
			return a.actOn(cmd.Context(), x, args)
		},
	}
	wishFlags(cmd, &w)
	cmd.Flags().StringVar(&topic, "topic", "", "all dead letters of this topic")
	printing(a, cmd)
	cmd.ValidArgsFunction = a.messageTails()
	complete(cmd, "topic", a.topicNames())
	return cmd
}

// actOn acts on the messages that the words name.
func (a *app) actOn(ctx context.Context, x action, words []string) error {
	return a.acting(ctx, x, func(s store.Store) ([]events.ID, error) { return resolveEach(ctx, s, words) })
}

// resolveEach finds the messages that the words name, each once.
func resolveEach(ctx context.Context, s store.Store, words []string) ([]events.ID, error) {
	ids, err := resolve(ctx, s, words...)
	slices.SortFunc(ids, func(x, y events.ID) int { return bytes.Compare(x[:], y[:]) })
	return slices.Compact(ids), err
}

// acting opens the store, finds the messages and acts on them.
func (a *app) acting(ctx context.Context, x action, find func(store.Store) ([]events.ID, error)) error {
	if err := x.check(x.name); err != nil {
		return err
	}
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	ids, err := find(s)
	if err != nil {
		return err
	}
	return a.act(ctx, s, x, ids)
}

// deadOf is the dead letters of a topic.
func deadOf(ctx context.Context, s store.Store, topic string) ([]events.ID, error) {
	var dead []events.ID
	for row, err := range s.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Topic: topic}) {
		if err != nil {
			return nil, err
		}
		if row.State == events.DeadLettered {
			dead = append(dead, row.Entity.ID)
		}
	}
	if len(dead) == 0 {
		return nil, &exitError{exitConflict, fmt.Errorf("nothing to redrive: topic %s has no dead letters", harmless(topic))}
	}
	return dead, nil
}
