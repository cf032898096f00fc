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
	var r redriving
	cmd := &cobra.Command{
		Use:   "redrive ID… | --topic TOPIC",
		Short: "Give dead letters a new series of attempts",
		Long: "ID is a message's id or the end of one; --topic takes all dead letters of a topic instead. It says what it is going to do\n" +
			"and asks, on a terminal, before it does it. The reason goes into the log. The exit status is 5 where it was not done for want\n" +
			"of a yes or a reason, and 6 where a message is no dead letter (any more) or its key was taken meanwhile; the others are done.",
		Args: cobra.MaximumNArgs(maxRedriven),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (r.topic == "") {
				return usage("want either ids of messages or --topic; see %s --help", cmd.CommandPath())
			}
			if strings.TrimSpace(r.reason) == "" {
				return &exitError{exitRefused, errors.New(`redrive needs --reason "why": it goes into the log`)}
			}
			return a.redrive(cmd.Context(), args, r)
		},
	}
	cmd.Flags().StringVar(&r.reason, "reason", "", "why, for the log")
	cmd.Flags().StringVar(&r.topic, "topic", "", "all dead letters of this topic")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "do not ask")
	return cmd
}

// redriving is what the flags of redrive say.
type redriving struct {
	topic  string
	reason string
	yes    bool
}

func (a *app) redrive(ctx context.Context, words []string, r redriving) error {
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	ids, dead, err := a.chosen(ctx, s, words, r)
	if err != nil {
		return err
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
	refused, err := a.redriveAll(ctx, client, r.reason, dead)
	switch {
	case err != nil:
		return err
	case refused != nil:
		return refused
	case len(dead) < ids:
		return exit(exitConflict)
	}
	return nil
}

// chosen says what a redrive would do, and gives the number of messages it was asked for and those that are dead letters.
func (a *app) chosen(ctx context.Context, s store.Store, words []string, r redriving) (int, []events.ID, error) {
	if r.topic != "" {
		dead, err := deadOf(ctx, s, r.topic)
		if err == nil && len(dead) == 0 {
			err = &exitError{exitConflict, fmt.Errorf("nothing to redrive: topic %s has no dead letters", harmless(r.topic))}
		}
		return len(dead), dead, err
	}
	ids, err := resolve(ctx, s, words...)
	if err != nil {
		return 0, nil, err
	}
	slices.SortFunc(ids, func(x, y events.ID) int { return strings.Compare(x.String(), y.String()) })
	ids = slices.Compact(ids)
	dead, err := a.preview(ctx, s, ids)
	if err == nil && len(dead) == 0 {
		err = &exitError{exitConflict, errors.New("nothing to redrive: none of them is a dead letter")}
	}
	return len(ids), dead, err
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
	return dead, nil
}

// redriveAll redrives the messages, says how many, and gives what was refused: the others are done all the same.
func (a *app) redriveAll(ctx context.Context, c *foundling.Client, reason string, ids []events.ID) (refused, err error) {
	done := 0
	defer func() {
		if done > 0 {
			fmt.Fprintf(a.stdout, "redriven: %d\n", done)
		}
	}()
	for page := range slices.Chunk(ids, maxRedriven) {
		err := c.Redrive(ctx, reason, page...)
		if err != nil && !errors.As(err, new(*foundling.Refusal)) {
			return refused, err
		}
		done += len(page) - refusals(err)
		refused = errors.Join(refused, err)
	}
	return refused, nil
}

// refusals is how many refusals an error joins.
func refusals(err error) int {
	if err == nil {
		return 0
	}
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		return len(many.Unwrap())
	}
	return 1
}

// preview prints what a redrive of the messages would do, and gives those it would be done to.
func (a *app) preview(ctx context.Context, s store.Store, ids []events.ID) ([]events.ID, error) {
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
