package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

// messageRows is how many messages are listed where nobody says how many.
const messageRows = 100

// messagesOptions is what the flags of messages say.
type messagesOptions struct {
	topic, key, lock string
	states           []string
	from, to         string
	after            string

	given func(name string) bool // whether the command line has the flag
}

func newMessages(a *app) *cobra.Command {
	var o messagesOptions
	cmd := &cobra.Command{
		Use:   "messages [ID]",
		Short: "List messages; of one, all that is known of it, with its payload and its result",
		Long: "Messages that are staged, where --state asks for them, come first, then those that are open and dead letters, the newest first, then, where --state asks for them, those that have ended,\n" +
			"in the order in which they did. ID is a message's id or the end of one.\n" +
			"Where there is more than --rows, standard error says how to go on, and JSON has it as next.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.given = cmd.Flags().Changed
			s, err := a.openExisting(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			if len(args) > 0 {
				return a.message(cmd.Context(), s, args[0])
			}
			return a.messages(cmd.Context(), s, o)
		},
	}
	printingList(a, cmd)
	flags := cmd.Flags()
	flags.Lookup("rows").Usage = fmt.Sprintf("list at most `N` messages; 0 is all (default %d)", messageRows)
	flags.StringVar(&o.topic, "topic", "", "only of this topic")
	flags.StringArrayVar(&o.states, "state", nil, "only in this state, as in queued or dead_lettered; may be given again; all is every state")
	flags.StringVar(&o.key, "key", "", "only the messages of --topic that have this key")
	flags.StringVar(&o.lock, "lock", "", "only those that take this lock")
	flags.StringVar(&o.from, "from", "", "only those enqueued since this `TIME`: RFC 3339, or how long ago as in -15m")
	flags.StringVar(&o.to, "to", "", "only those enqueued before this `TIME`")
	flags.StringVar(&o.after, "after", "", "go on where a list ended: the `PLACE` that it said")
	cmd.ValidArgsFunction = once(a.messageTails())
	complete(cmd, "topic", a.topicNames())
	complete(cmd, "lock", a.lockNames())
	complete(cmd, "state", fixed(append(stateWords(), allStates)...))
	return cmd
}

// allStates is the word for every state.
const allStates = "all"

func stateWords() []string {
	var words []string
	for _, s := range append(foundling.States(), foundling.Staged) {
		words = append(words, s.String())
	}
	return words
}

func (o messagesOptions) list(ctx context.Context, s store.Store) (foundling.ListOptions, error) {
	list := foundling.ListOptions{Topic: o.topic, Key: o.key, Lock: o.lock, After: o.after}
	for _, word := range o.states {
		if word == allStates {
			list.States = append(foundling.States(), foundling.Staged)
			break
		}
		state, err := foundling.ParseState(word)
		if err != nil {
			return list, usage("--state: %w", err)
		}
		list.States = append(list.States, state)
	}
	var err error
	if list.From, err = moment(ctx, s, "from", o.from); err != nil {
		return list, err
	}
	list.Until, err = moment(ctx, s, "to", o.to)
	return list, err
}

// messages lists messages.
func (a *app) messages(ctx context.Context, s store.Store, o messagesOptions) error {
	list, err := o.list(ctx, s)
	if err != nil {
		return err
	}
	client, err := a.client(s, "messages")
	if err != nil {
		return err
	}
	ctx, release := interruptible(ctx)
	defer release()
	p := &messagePrinter{app: a, client: client, list: list, most: messageRows}
	if o.given("rows") {
		p.most = a.rows
	}
	if !a.forPeople() {
		if p.feed, err = newFeed[jsonMessage](a, "foundling.messages/v1"); err != nil {
			return err
		}
	}
	err = p.pages(ctx)
	if err != nil && !isInterrupt(ctx, err) {
		return err
	}
	p.cut = err != nil
	if p.now, err = s.Now(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return p.conclude()
}

// messagePrinter lists messages page by page.
type messagePrinter struct {
	*app
	client *foundling.Client
	list   foundling.ListOptions
	most   int                // 0 is all
	feed   *feed[jsonMessage] // for programs; nil gathers for people

	gathered []foundling.MessageInfo
	n        int
	unread   []string
	next     string
	cut      bool // it was interrupted
	now      time.Time
}

// maxMessagePage is the most that the library lists at once.
const maxMessagePage = 1000

func (p *messagePrinter) pages(ctx context.Context) error {
	for {
		p.list.Limit = maxMessagePage
		if left := p.most - p.n; p.most > 0 && left < maxMessagePage {
			p.list.Limit = left
		}
		page, err := p.client.List(ctx, p.list)
		if err != nil {
			return err
		}
		for _, m := range page.Messages {
			if err := p.take(m); err != nil {
				return err
			}
		}
		for _, err := range page.Unread {
			p.unread = append(p.unread, err.Error())
		}
		p.next, p.list.After = page.Next, page.Next
		if p.next == "" || p.n == p.most && p.most > 0 || p.unheard() {
			return nil
		}
	}
}

func (p *messagePrinter) take(m foundling.MessageInfo) error {
	p.n++
	if p.feed == nil {
		p.gathered = append(p.gathered, m)
		return nil
	}
	return p.feed.add(p.jsonMessage(m))
}

// conclude prints what was gathered, and where the list goes on.
func (p *messagePrinter) conclude() error {
	interrupted := &exitError{exitInterrupted, errors.New("interrupted")}
	if p.next == "" && p.cut {
		p.next = p.list.After // where it has not been yet
	}
	if p.next != "" {
		interrupted.err = &hinted{interrupted.err, "go on with --after " + p.next}
	}
	var err error
	if p.feed != nil {
		err = p.feed.end(end{AsOf: atTime(p.now), Truncated: p.cut || p.next != "", Next: orNull(p.next), Warnings: p.unread})
	} else {
		err = p.table()
	}
	if err == nil && p.cut {
		return interrupted
	}
	return err
}

func (p *messagePrinter) table() error {
	text := "no such messages\n"
	if p.n > 0 {
		text = p.messageTable(p.gathered, p.now).text()
	}
	if _, err := io.WriteString(p.stdout, text); err != nil {
		return err
	}
	for _, unread := range p.unread {
		fmt.Fprintf(p.stderr, "foundling: not read: %s\n", oneLine(unread))
	}
	if p.next != "" && !p.cut {
		p.note("%s · go on with --after %s", count(p.n, "message"), p.next)
		return nil
	}
	p.note("%s · %s", count(p.n, "message"), absolute(p.now))
	return nil
}

// messageTable is messages, a row each.
func (a *app) messageTable(list []foundling.MessageInfo, now time.Time) *table {
	var shown []events.ID
	for _, m := range list {
		shown = append(shown, m.ID)
		if m.Worker != (events.ID{}) {
			shown = append(shown, m.Worker)
		}
	}
	names := a.inFull(namesFor(shorten(0, shown...)))
	since := func(t time.Time) string {
		switch {
		case t.IsZero():
			return unknown
		case a.wide():
			return absolute(t)
		}
		return findings.Span(max(0, now.Sub(t)))
	}
	header := []string{"MESSAGE", "TOPIC", "STATE", ">ATTEMPTS", ">ENQUEUED", ">ENDED", "KEY", "LOCK", "WORKER", ""}
	if a.wide() {
		header = append(header[:len(header)-1], "PRIORITY", ">BYTES", "")
	}
	t := newTable(header...)
	for _, m := range list {
		worker := unknown
		if m.Worker != (events.ID{}) {
			worker = names.ID(m.Worker)
		}
		attempts, priority := number(m.Attempts), m.Priority.String()
		if headless(m) {
			attempts, priority = unknown, unknown
		}
		cells := []string{names.ID(m.ID), orUnknown(harmless(m.Topic)), m.State.String(), attempts, since(m.EnqueuedAt), since(m.EndedAt),
			orUnknown(harmless(m.Key)), orUnknown(harmless(m.Lock)), worker}
		if a.wide() {
			cells = append(cells, priority, number(m.Payload.Size))
		}
		t.add(append(cells, messageNote(m, now))...)
	}
	return t
}

// orUnknown is a text for a cell.
func orUnknown(s string) string {
	if s == "" {
		return unknown
	}
	return s
}

// messageNote is what else there is to say of a message in a list.
func messageNote(m foundling.MessageInfo, now time.Time) string {
	var list []string
	if m.State == foundling.Queued && m.DueAt.After(now) {
		list = append(list, "due in "+findings.Span(m.DueAt.Sub(now)))
	}
	if m.Reason != "" {
		list = append(list, m.Reason)
	}
	if m.BeginningPruned {
		list = append(list, "its beginning was let go")
	}
	return strings.Join(list, " · ")
}
