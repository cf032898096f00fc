package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

// streamDigits is how much of an id the lines of events show: they are printed as they are read, before anybody knows how many ids
// there will be.
const streamDigits = 6

// eventsOptions is what the flags of events say.
type eventsOptions struct {
	topic   string
	message string
	types   []string
	after   string
	limit   int
	wide    bool
}

func newEvents(a *app) *cobra.Command {
	var o eventsOptions
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print the log, one event on a line",
		Long: "Position, time, entity, version, states and fields of each event, in the order of the log.\n" +
			"Standard error says where it ended: --after that cursor goes on from there, without a gap and without a repetition.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.events(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.topic, "topic", "", "only of this topic and its messages")
	flags.StringVar(&o.message, "message", "", "only of this message: an id or the end of one")
	flags.StringArrayVar(&o.types, "type", nil, "only of this type, as in message.claimed; may be given again")
	flags.StringVar(&o.after, "after", "", "only what came after this cursor")
	flags.IntVar(&o.limit, "limit", 0, "at most so many (default all)")
	flags.BoolVar(&o.wide, "wide", false, "ids in full")
	cmd.MarkFlagsMutuallyExclusive("topic", "message")
	return cmd
}

func (a *app) events(ctx context.Context, o eventsOptions) error {
	if o.limit < 0 {
		return usage("--limit %d: want 0 or more", o.limit)
	}
	p := &eventPrinter{opts: o, next: store.Cursor(o.after)}
	for _, name := range o.types {
		t, err := events.ParseType(name)
		if err != nil {
			return usage("--type: %w", err)
		}
		p.types = append(p.types, t)
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
		p.entity = events.MessageEntity(ids[0])
	}
	if err := checkCursor(ctx, s, p.next); err != nil {
		return err
	}
	if err := p.print(ctx, s, a.stdout); err != nil {
		return err
	}
	if p.next == "" {
		fmt.Fprintln(a.stderr, "the log is empty")
		return nil
	}
	fmt.Fprintf(a.stderr, "%s · go on with --after %s\n", count(p.printed, "event"), p.next)
	return nil
}

// checkCursor makes a cursor that is none, or another store's, a usage error.
func checkCursor(ctx context.Context, s store.Store, after store.Cursor) error {
	if after == "" {
		return nil
	}
	for _, err := range s.Read(ctx, after, store.Filter{Limit: 1}) {
		if err != nil && !errors.As(err, new(*events.Corrupt)) {
			return usage("--after: %w", err)
		}
	}
	return nil
}

// eventPrinter prints the events that its options ask for.
type eventPrinter struct {
	opts    eventsOptions
	types   []events.Type
	entity  events.Entity
	members map[events.Entity]bool // the topic and its messages
	printed int
	next    store.Cursor // behind the last event that was looked at
}

// print reads the log behind next. It looks at every event itself, but for those of one message, which the store finds by an index: so
// next is where it has been, and not where it last found something.
func (p *eventPrinter) print(ctx context.Context, s store.Store, to io.Writer) error {
	if err := p.learnMembers(ctx, s); err != nil {
		return err
	}
	names := namesFor(&shortIDs{streamDigits})
	if p.opts.wide {
		names.Short = nil
	}
	w := bufio.NewWriter(to)
	for r, err := range s.Read(ctx, p.next, store.Filter{Entity: p.entity}) {
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		if p.wants(r) {
			if _, err := fmt.Fprintln(w, names.Line(r)); err != nil {
				return &exitError{exitStore, err}
			}
			p.printed++
		}
		p.next = s.After(r)
		if p.opts.limit > 0 && p.printed == p.opts.limit {
			break
		}
	}
	if err := w.Flush(); err != nil {
		return &exitError{exitStore, err}
	}
	return nil
}

// learnMembers finds the messages of the topic that were enqueued before the cursor. Their later events do not name it.
func (p *eventPrinter) learnMembers(ctx context.Context, s store.Store) error {
	if p.opts.topic == "" {
		return nil
	}
	p.members = map[events.Entity]bool{events.TopicEntity(p.opts.topic): true}
	if p.next == "" {
		return nil // they are met on the way
	}
	for r, err := range s.Read(ctx, "", store.Filter{Types: []events.Type{events.TypeMessageEnqueued}}) {
		if err != nil {
			return err
		}
		p.meet(r)
	}
	return nil
}

// meet remembers a message of the topic.
func (p *eventPrinter) meet(r events.Recorded) {
	if e, ok := r.Event.(*events.MessageEnqueued); ok && e.Topic == p.opts.topic {
		p.members[r.Entity] = true
	}
}

func (p *eventPrinter) wants(r events.Recorded) bool {
	if p.members != nil {
		p.meet(r)
		if !p.members[r.Entity] {
			return false
		}
	}
	return len(p.types) == 0 || slices.Contains(p.types, r.Event.Type())
}
