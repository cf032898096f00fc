package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections/findings"
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
	l, err := takeLook(ctx, s, fsm.DefaultReclaimAfter)
	if err != nil {
		return err
	}
	l.facts.Batch, l.facts.Store = a.batch, a.store
	list := findings.List(l.state, l.facts)
	if err := l.write(a.stdout, list); err != nil {
		return err
	}
	a.footer(l)
	if slices.ContainsFunc(list, func(f findings.Finding) bool { return f.Severity <= findings.Warning }) {
		return exit(exitFinding)
	}
	return nil
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
	t := newTable("TOPIC", ">QUEUED", ">BLOCKED", ">RUNNING", ">LIMIT", ">OLDEST RUNNING", ">COMPLETED", ">DEAD", ">CANCELLED",
		">DISCARDED", "")
	for _, topic := range l.state.Topics.All() {
		t.add(harmless(topic.Name), number(topic.Queued), number(topic.Blocked), number(topic.Running), limitCell(topic.Limit), l.span(topic.Oldest.At),
			number(topic.Completed), number(topic.DeadLettered), number(topic.Cancelled), number(topic.Discarded), topicNote(topic))
	}
	return t
}

func (l *look) workers() *table {
	t := newTable("WORKER", "STATE", "PROCESS", ">RUNNING", ">AT ONCE", ">LAST BEAT", ">STARTED", "TOPICS")
	for _, w := range l.state.Workers.All() {
		state := w.State.String()
		if l.gone[w.ID] {
			state = "gone"
		}
		topics := harmless(strings.Join(w.Topics, " "))
		t.add(l.facts.Names.ID(w.ID), state, process{w.Host, w.PID}.text(), number(len(w.Claims)), number(w.Concurrency),
			l.span(l.beats[w.ID].At), l.span(w.Started.At), topics)
	}
	return t
}
