package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/spf13/cobra"
)

func newStatus(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say what the store holds, and what is wrong with it",
		Long: "Topics, workers and findings, the worst first, each with its evidence and what to do next.\n" +
			"The exit status is 1 where a finding is a warning or worse.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
	printing(a, cmd)
	return cmd
}

func (a *app) status(ctx context.Context) error {
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := a.look(ctx, s, fsm.DefaultReclaimAfter)
	if err != nil {
		return err
	}
	l.facts.Batch, l.facts.Store = a.batch, a.storeFlag()
	if l.facts.Counted, err = standings(ctx, s, l.now); err != nil { // that is only a pity
		l.doubt = errors.Join(l.doubt, err)
	}
	list := findings.List(l.state, l.facts)
	if a.forPeople() {
		err = l.write(a.stdout, list)
	} else {
		err = l.writeJSON(a, list)
	}
	if err == nil {
		err = a.footer(l)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(f findings.Finding) bool { return f.Severity <= findings.Warning }) {
		return exit(exitFinding)
	}
	return nil
}

// jsonFinding is a thing that is wrong as JSON has it.
type jsonFinding struct {
	Code      string      `json:"code"`
	Severity  string      `json:"severity"`
	Subject   jsonSubject `json:"subject"`
	Since     *time.Time  `json:"since"`
	For       *float64    `json:"for_seconds"`
	Positions []string    `json:"positions"` // of the events that show it
	Text      string      `json:"text"`
	Evidence  []string    `json:"evidence"`
	Next      []string    `json:"next"` // commands that lead on
}

// jsonSubject is what something is about as JSON has it.
type jsonSubject struct {
	Kind string  `json:"kind"`
	ID   *string `json:"id"` // null where it has a name
	Name *string `json:"name"`
}

func subjectOf(e events.Entity) jsonSubject {
	return jsonSubject{Kind: e.Kind.String(), ID: idOrNull(e.ID), Name: orNull(e.Name)}
}

// jsonStatus is what a store holds as JSON has it.
type jsonStatus struct {
	Topics  []jsonTopic  `json:"topics"`
	Workers []jsonWorker `json:"workers"`
}

// writeJSON prints the findings, with what the store holds.
func (l *look) writeJSON(a *app, list []findings.Finding) error {
	result := jsonStatus{Topics: []jsonTopic{}, Workers: []jsonWorker{}}
	for _, t := range l.state.Topics.All() {
		result.Topics = append(result.Topics, l.jsonTopic(t))
	}
	for _, w := range l.state.Workers.All() {
		result.Workers = append(result.Workers, l.jsonWorker(w))
	}
	d := document[jsonFinding]{Schema: "foundling.status/v1", AsOf: atMark(l.mark()), Truncated: l.cut, Warnings: l.warnings(), Result: result}
	for _, f := range list {
		j := jsonFinding{
			Code: string(f.Code), Severity: f.Severity.String(), Subject: subjectOf(f.Subject), Since: instant(f.Since), For: l.ageOrNull(f.Since),
			Positions: []string{}, Text: f.Text, Evidence: append([]string{}, f.Evidence...), Next: append([]string{}, f.Next...),
		}
		for _, p := range f.Positions {
			j.Positions = append(j.Positions, whole(p))
		}
		d.Items = append(d.Items, j)
	}
	return printJSON(a, d)
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
		t.add(harmless(topic.Name), number(topic.Queued), number(topic.Blocked), number(topic.Running), limitCell(topic.Limit), l.cell(topic.Oldest.At),
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
			l.cell(l.beats[w.ID].At), l.cell(w.Started.At), topics)
	}
	return t
}
