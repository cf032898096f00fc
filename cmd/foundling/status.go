package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

func newStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say what the store holds, and what is wrong with it",
		Long: "Topics, workers and findings, the worst first, each with its evidence and what to do next.\n" +
			"The exit status is 1 where a finding is a warning or worse.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
}

func (a *app) status(ctx context.Context) error {
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := takeLook(ctx, s)
	if err != nil {
		return err
	}
	l.facts.Batch, l.facts.Store = a.batch, a.store
	list := findings.List(l.state, l.facts)
	if err := l.write(a.stdout, list); err != nil {
		return err
	}
	mark := l.state.Topics.AsOf()
	a.asOf(mark.Position, mark.At)
	if slices.ContainsFunc(list, func(f findings.Finding) bool { return f.Severity <= findings.Warning }) {
		return exit(exitFinding)
	}
	return nil
}

// look is what a store holds at one moment.
type look struct {
	state findings.State
	facts findings.Facts
}

// takeLook folds the log and asks for the facts that are not in it. What came while it asked is folded too: a worker that stopped in
// between is not taken for one that vanished.
func takeLook(ctx context.Context, s store.Store) (*look, error) {
	l := &look{state: findings.State{
		Topics: &projections.Topics{}, Workers: &projections.Workers{}, Refusals: &projections.Refusals{},
	}}
	follow := func(after store.Cursor) error {
		return projections.Follow(s.Read(ctx, after, store.Filter{}), l.state.Topics, l.state.Workers, l.state.Refusals)
	}
	head, err := s.Head(ctx)
	if err != nil {
		return nil, err
	}
	if err := follow(""); err != nil {
		return nil, err
	}
	if err := l.ask(ctx, s); err != nil {
		return nil, err
	}
	if err := follow(head); err != nil {
		return nil, err
	}
	l.facts.Names = namesFor(l.shortIDs())
	return l, nil
}

// ask gets the facts that the log does not hold.
func (l *look) ask(ctx context.Context, s store.Store) (err error) {
	if l.facts.Now, err = s.Now(ctx); err != nil {
		return err
	}
	if heart, ok := store.As[store.Heart](s); ok {
		beats, err := heart.Beats(ctx)
		if err != nil {
			return err
		}
		l.facts.Heart = true
		for _, b := range beats {
			l.facts.Beats = append(l.facts.Beats, findings.Beat{Worker: b.Worker, Interval: b.Interval, At: b.At})
		}
	}
	watcher, ok := store.As[store.ProcessWatcher](s)
	if !ok {
		return nil
	}
	var ids []events.ID
	for _, w := range l.state.Workers.All() {
		ids = append(ids, w.ID)
	}
	l.facts.Gone, err = watcher.Gone(ctx, ids...)
	return err
}

// shortIDs tells apart everything that status can show.
func (l *look) shortIDs() *shortIDs {
	var messages int64
	var shown []events.ID
	for _, t := range l.state.Topics.All() {
		messages += int64(t.Totals.Enqueued)
	}
	for _, w := range l.state.Workers.All() {
		shown = append(shown, w.ID)
		for _, c := range w.Claims {
			shown = append(shown, c.Message)
		}
	}
	for _, d := range l.state.Topics.DeadLetters() {
		shown = append(shown, d.Message)
	}
	for _, r := range l.state.Refusals.Recent() {
		shown = append(shown, r.Message, r.Sender)
	}
	return shorten(messages, shown...)
}

func (l *look) write(w io.Writer, list []findings.Finding) error {
	parts := []string{l.topics().text(), l.workers().text(), findings.Text(list)}
	if parts[0] == "" {
		parts[0] = "no topics yet\n"
	}
	if parts[2] == "" {
		parts[2] = "✔ nothing is wrong\n"
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

func (l *look) topics() *table {
	t := newTable("TOPIC", ">QUEUED", ">RUNNING", ">LIMIT", ">OLDEST RUNNING", ">COMPLETED", ">DEAD", ">CANCELLED", "")
	for _, topic := range l.state.Topics.All() {
		limit, note := unknown, ""
		if topic.Limit > 0 {
			limit = number(topic.Limit)
		}
		switch {
		case topic.Paused:
			note = "paused"
		case topic.Counting:
			note = "counting its claims"
		case topic.Full():
			note = "full"
		}
		t.add(harmless(topic.Name), number(topic.Queued), number(topic.Running), limit, l.age(topic.Oldest.At),
			number(topic.Completed), number(topic.DeadLettered), number(topic.Cancelled), note)
	}
	return t
}

func (l *look) workers() *table {
	t := newTable("WORKER", "STATE", "PROCESS", ">RUNNING", ">AT ONCE", ">LAST BEAT", ">STARTED", "TOPICS")
	beats := map[events.ID]time.Time{}
	for _, b := range l.facts.Beats {
		beats[b.Worker] = b.At
	}
	for _, w := range l.state.Workers.All() {
		state := w.State.String()
		if slices.Contains(l.facts.Gone, w.ID) {
			state = "gone"
		}
		process := unknown
		if w.PID != 0 {
			process = fmt.Sprintf("%d on %s", w.PID, harmless(w.Host))
		}
		topics := harmless(strings.Join(w.Topics, " "))
		t.add(l.facts.Names.ID(w.ID), state, process, number(len(w.Claims)), number(w.Concurrency),
			l.age(beats[w.ID]), l.age(w.Started.At), topics)
	}
	return t
}

// age is how long ago something was, for a cell.
func (l *look) age(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return findings.Span(max(0, l.facts.Now.Sub(t)))
}
