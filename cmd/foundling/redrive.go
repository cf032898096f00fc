package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// maxRedriven is how many messages one redrive takes: they are one commit.
const maxRedriven = 500

func newRedrive(a *app) *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   "redrive ID…",
		Short: "Give dead letters a new series of attempts",
		Long: "ID is a message's id or the end of one. It says what it is going to do and asks, on a terminal, before it does it.\n" +
			"The reason goes into the log. The exit status is 5 where it was not done for want of a yes or a reason, and 6 where a message\n" +
			"is no dead letter (any more) or its key was taken meanwhile; the others are done.",
		Args: cobra.RangeArgs(1, maxRedriven),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return &exitError{exitRefused, errors.New(`redrive needs --reason "why": it goes into the log`)}
			}
			return a.redrive(cmd.Context(), args, redriving{reason, yes})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// redriving is what the flags of redrive say.
type redriving struct {
	reason string
	yes    bool
}

func (a *app) redrive(ctx context.Context, words []string, r redriving) error {
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	ids, err := resolve(ctx, s, words...)
	if err != nil {
		return err
	}
	slices.SortFunc(ids, func(x, y events.ID) int { return strings.Compare(x.String(), y.String()) })
	ids = slices.Compact(ids)
	dead, err := a.plan(ctx, s, ids)
	if err != nil {
		return err
	}
	if len(dead) == 0 {
		return &exitError{exitConflict, errors.New("nothing to redrive: none of them is a dead letter")}
	}
	if !r.yes {
		if err := a.confirm("redrive " + count(len(dead), "message")); err != nil {
			return err
		}
	}
	client, err := foundling.NewClient(s, foundling.ClientOptions{Actor: a.actor("redrive"), Logger: a.logger()})
	if err != nil {
		return err
	}
	if err := client.Redrive(ctx, r.reason, dead...); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "redriven: %d\n", len(dead))
	if len(dead) < len(ids) {
		return exit(exitConflict)
	}
	return nil
}

// plan prints what a redrive of the messages would do, and gives those it would be done to.
func (a *app) plan(ctx context.Context, s store.Store, ids []events.ID) ([]events.ID, error) {
	entities := make([]events.Entity, len(ids))
	for i, id := range ids {
		entities[i] = events.MessageEntity(id)
	}
	known := map[events.ID]fsm.Message{}
	for row, err := range s.Rows(ctx, store.RowFilter{Entities: entities}) {
		if err != nil {
			return nil, err
		}
		m, err := calls.Message(row)
		if err != nil {
			return nil, err
		}
		known[m.ID] = m
	}
	short := shorten(0, ids...)
	t := newTable("MESSAGE", "TOPIC", "IS", ">ATTEMPTS", "WOULD BE")
	var dead []events.ID
	for _, id := range ids {
		m, ok := known[id]
		switch {
		case !ok:
			t.add(short.text(id), unknown, "ended", unknown, "refused: it has ended and is no dead letter")
		case m.State != events.DeadLettered:
			t.add(short.text(id), harmless(m.Topic), m.State.String(), number(m.Attempts), "refused: it is no dead letter")
		default:
			dead = append(dead, id)
			t.add(short.text(id), harmless(m.Topic), m.State.String(), number(m.Attempts),
				"queued, with "+count(fsm.MaxAttempts(m.Limits), "attempt"))
		}
	}
	_, err := io.WriteString(a.stdout, t.text())
	return dead, err
}

// confirm asks a person for a yes.
func (a *app) confirm(what string) error {
	file, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &exitError{exitRefused, fmt.Errorf("not done: to %s without a terminal to ask on, give --yes", what)}
	}
	fmt.Fprintf(a.stderr, "%s? [y/N] ", what)
	answer, err := bufio.NewReader(file).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err != nil || word != "y" && word != "yes" {
		return &exitError{exitRefused, errors.New("not done")}
	}
	return nil
}
