package main

import (
	"context"
	"errors"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

// streamDigits is how much of an id the lines of events show: they are printed as they are read, before anybody knows how many ids
// there will be.
const streamDigits = 6

// afterEnd is the word for the cursor behind the newest event.
const afterEnd = "end"

// eventsOptions is what the flags of events say.
type eventsOptions struct {
	topic   string
	message string
	names   []string
	after   string
	follow  bool
	wide    bool

	types  []events.Type
	entity events.Entity // the message's
}

func newEvents(a *app) *cobra.Command {
	var o eventsOptions
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print the log, one event on a line",
		Long: "Position, time, entity, version, states and fields of each event, in the order of the log.\n" +
			"Standard error says where it ended: --after that cursor goes on from there, without a gap and without a repetition.\n" +
			"--follow goes on with what is still to come, whichever process writes it, until it is interrupted, and then says that cursor too;\n" +
			"the exit status is 130 then. --after end begins with what is still to come.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.events(cmd.Context(), o) },
	}
	printingList(a, cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.topic, "topic", "", "only of this topic and its messages")
	flags.StringVar(&o.message, "message", "", "only of this message: an id or the end of one")
	flags.StringArrayVar(&o.names, "type", nil, "only of this type, as in message.claimed; may be given again")
	flags.StringVar(&o.after, "after", "", "only what came after this `CURSOR`; end is behind all that there is")
	flags.BoolVar(&o.follow, "follow", false, "go on with what is still to come")
	flags.BoolVar(&o.wide, "wide", false, "the same as --output wide")
	cmd.MarkFlagsMutuallyExclusive("topic", "message")
	cmd.MarkFlagsMutuallyExclusive("wide", "output", "json")
	complete(cmd, "topic", a.topicNames())
	complete(cmd, "message", a.messageTails())
	complete(cmd, "type", eventTypes())
	complete(cmd, "after", fixed(afterEnd))
	return cmd
}

func (a *app) events(ctx context.Context, o eventsOptions) error {
	if o.wide {
		a.format = formatWide
	}
	for _, name := range o.names {
		t, err := events.ParseType(name)
		if err != nil {
			return usage("--type: %w", err)
		}
		o.types = append(o.types, t)
	}
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if o.message != "" {
		ids, err := resolve(ctx, s, o.message)
		if err != nil {
			return err
		}
		o.entity = events.MessageEntity(ids[0])
	}
	next, err := o.begin(ctx, s)
	if err != nil {
		return err
	}
	ctx, release := interruptible(ctx)
	defer release()
	p, err := newEventPrinter(a, s, o, next)
	if err != nil {
		return err
	}
	if o.follow {
		err = p.follow(ctx)
	} else {
		err = p.read(ctx)
	}
	if err != nil && !isInterrupt(ctx, err) {
		return errors.Join(err, p.flush())
	}
	return p.conclude(isInterrupt(ctx, err))
}

// begin is the cursor behind which the printing begins. One that is none, or another store's, is a usage error.
func (o eventsOptions) begin(ctx context.Context, s store.Store) (store.Cursor, error) {
	switch o.after {
	case "":
		return store.Oldest(ctx, s)
	case afterEnd:
		return s.Head(ctx)
	}
	after := store.Cursor(o.after)
	for _, err := range s.Read(ctx, after, store.Filter{Limit: 1}) {
		var pruned *store.PrunedError
		switch {
		case errors.As(err, &pruned):
			return "", &exitError{exitNotFound, &hinted{errors.New("--after: what follows that cursor was let go by retention"),
				"begin with what is kept: give no --after"}}
		case err != nil && !errors.As(err, new(*events.Corrupt)):
			return "", usage("--after: %w", err)
		}
	}
	return after, nil
}

// conclude says where the printing ended, and how to go on.
func (p *eventPrinter) conclude(cut bool) error {
	if err := p.end(cut); err != nil {
		return err
	}
	more := "go on with --after " + string(p.next)
	switch {
	case cut && p.next == "":
		return &exitError{exitInterrupted, errors.New("interrupted")}
	case cut:
		return &exitError{exitInterrupted, &hinted{errors.New("interrupted"), more}}
	case p.next == "":
		p.note("the log is empty")
	default:
		p.note("%s · %s", count(p.printed, "event"), more)
	}
	return nil
}

// follow prints what there is and what is still to come.
func (p *eventPrinter) follow(ctx context.Context) error {
	client, err := p.client(p.store, "events")
	if err != nil {
		return err
	}
	filter := foundling.EventFilter{Types: p.opts.types, Topic: p.opts.topic, Entity: p.opts.entity}
	for r, err := range client.Events(ctx, p.next, filter) {
		if err != nil {
			return err
		}
		if err := p.print(r); err != nil {
			return err
		}
		if err := p.flush(); err != nil { // somebody waits for it
			return err
		}
		p.next = p.store.After(r)
		if p.enough() {
			return nil
		}
	}
	return nil
}
