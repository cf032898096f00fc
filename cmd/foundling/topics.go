package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/spf13/cobra"
)

// afterFlag is the bound by which commands judge who lives: orphan_reclaim_after.
func afterFlag(cmd *cobra.Command, after *time.Duration) {
	cmd.Flags().DurationVar(after, "after", fsm.DefaultReclaimAfter, "how old a heartbeat may be before its worker counts as dead (orphan_reclaim_after)")
}

// checkAfter refuses a bound by which everybody would be dead.
func checkAfter(after time.Duration) error {
	if after <= 0 {
		return usage("--after %s: want more than 0", after)
	}
	return nil
}

func newTopics(a *app) *cobra.Command {
	var after time.Duration
	cmd := &cobra.Command{
		Use:   "topics [NAME]",
		Short: "Say what each topic does; of one, who holds its slots",
		Long: "How many wait, how many run of how many that may, and how old the oldest claim is: counts alone look the same whether a topic\n" +
			"is busy or stands still, but that age rises. Of one topic each open claim is listed with who holds it, and whether that worker\n" +
			"lives, by which evidence.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkAfter(after); err != nil {
				return err
			}
			return a.listing(cmd.Context(), after, func(l *look) error {
				if len(args) > 0 {
					return a.topic(l, args[0])
				}
				return a.topics(l)
			})
		},
	}
	afterFlag(cmd, &after)
	printingList(a, cmd)
	cmd.ValidArgsFunction = once(a.topicNames())
	cmd.AddCommand(newTopicsSet(a))
	return cmd
}

// listing looks at the store and prints what is made of it.
func (a *app) listing(ctx context.Context, after time.Duration, print func(*look) error) error {
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := a.look(ctx, s, after)
	if err != nil {
		return err
	}
	if err := print(l); err != nil {
		return err
	}
	return a.footer(l)
}

// footer says how far the log was read, and what could not be. JSON says it itself. An answer that was cut short is exit status 130.
func (a *app) footer(l *look) error {
	if a.forPeople() {
		for _, w := range l.warnings() {
			fmt.Fprintf(a.stderr, "foundling: not read: %s\n", oneLine(w))
		}
		a.asOf(l.mark())
	}
	if l.cut {
		return &exitError{exitInterrupted, errors.New("interrupted: it is as of where the log was read to")}
	}
	return nil
}

// jsonTopic is a topic as JSON has it.
type jsonTopic struct {
	Topic          string      `json:"topic"`
	Limit          *int        `json:"limit"` // null is none
	Running        int         `json:"running"`
	Queued         int         `json:"queued"`
	Blocked        int         `json:"blocked"`
	OldestClaimAge *float64    `json:"oldest_claim_age_seconds"`
	Paused         bool        `json:"paused"`
	Full           bool        `json:"full"`
	Counting       bool        `json:"counting"`
	DeadLettered   int         `json:"dead_lettered"`
	Completed      int         `json:"completed"`
	Cancelled      int         `json:"cancelled"`
	Discarded      int         `json:"discarded"`
	Claims         []jsonClaim `json:"claims,omitzero"` // where one topic was asked for
}

// jsonClaim is an open claim as JSON has it.
type jsonClaim struct {
	Message string     `json:"message"`
	Age     *float64   `json:"age_seconds"`
	Worker  jsonHolder `json:"worker"`
	Attempt int        `json:"attempt"`
	Counted bool       `json:"counted"` // it takes a slot
	Lock    *string    `json:"lock"`
	Token   string     `json:"token"`
}

func (l *look) jsonTopic(t projections.Topic) jsonTopic {
	j := jsonTopic{
		Topic: t.Name, Running: t.Running, Queued: t.Queued, Blocked: t.Blocked, OldestClaimAge: l.ageOrNull(t.Oldest.At),
		Paused: t.Paused, Full: t.Full(), Counting: t.Counting,
		DeadLettered: t.DeadLettered, Completed: t.Completed, Cancelled: t.Cancelled, Discarded: t.Discarded,
	}
	if t.Limit > 0 {
		j.Limit = &t.Limit
	}
	return j
}

func (a *app) topics(l *look) error {
	all, more := few(a, l.state.Topics.All())
	if !a.forPeople() {
		d := document[jsonTopic]{Schema: "foundling.topics/v1", AsOf: atMark(l.mark()), Truncated: more || l.cut, Warnings: l.warnings()}
		for _, t := range all {
			d.Items = append(d.Items, l.jsonTopic(t))
		}
		return printJSON(a, d)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.stdout, "no topics yet")
		return err
	}
	_, err := io.WriteString(a.stdout, l.depths(all).text()+andMore(more))
	return err
}

// depths is how deep topics are and what runs.
func (l *look) depths(list []projections.Topic) *table {
	t := newTable("TOPIC", ">LIMIT", ">RUNNING", ">QUEUED", ">BLOCKED", ">OLDEST CLAIM", "")
	for _, topic := range list {
		t.add(harmless(topic.Name), limitCell(topic.Limit), number(topic.Running), number(topic.Queued), number(topic.Blocked),
			l.cell(topic.Oldest.At), topicNote(topic))
	}
	return t
}

func limitCell(limit int) string {
	if limit == 0 {
		return unknown
	}
	return number(limit)
}

// topicNote is what else there is to say of a topic.
func topicNote(t projections.Topic) string {
	switch {
	case t.Paused:
		return "paused"
	case t.Counting:
		return "counting its claims"
	case t.Full():
		return "full"
	}
	return ""
}

// topic is one topic with its slots.
func (a *app) topic(l *look, name string) error {
	topic, ok := l.state.Topics.Topic(name)
	if !ok {
		return notFound("no topic %s in this store", harmless(name))
	}
	claims := l.state.Topics.Claims(name)
	if !a.forPeople() {
		j := l.jsonTopic(topic)
		j.Claims = []jsonClaim{}
		for _, c := range claims {
			lock, _ := l.state.Locks.Of(c.Message)
			j.Claims = append(j.Claims, jsonClaim{
				Message: c.Message.String(), Age: l.ageOrNull(c.At), Worker: l.jsonHolder(c.Worker), Attempt: c.Attempt, Counted: c.Counted,
				Lock: orNull(lock), Token: whole(c.Token),
			})
		}
		return printJSON(a, document[jsonTopic]{Schema: "foundling.topics/v1", AsOf: atMark(l.mark()), Truncated: l.cut, Warnings: l.warnings(), Items: []jsonTopic{j}})
	}
	parts := []string{l.depths([]projections.Topic{topic}).text() + settingsLines(l, topic)}
	if len(claims) > 0 {
		parts = append(parts, l.slots(topic, claims).text())
	}
	_, err := io.WriteString(a.stdout, strings.Join(parts, "\n"))
	return err
}

// settingsLines says who set what a topic goes by.
func settingsLines(l *look, t projections.Topic) string {
	var b strings.Builder
	say := func(what string, n projections.Notice) {
		if n.Position > 0 && n.By != "" {
			fmt.Fprintf(&b, "%s %s ago by %s%s\n", what, findings.Span(l.age(n.At)), harmless(n.By), because(n.Detail))
		}
	}
	say("limit set", t.Set)
	say("paused", t.Pause)
	return b.String()
}

// because is somebody's reason, where there is one.
func because(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + harmless(detail)
}

// slots is who holds a topic's open claims.
func (l *look) slots(topic projections.Topic, claims []projections.Claim) *table {
	t := newTable("MESSAGE", ">CLAIM AGE", "WORKER", "LIVES", ">ATTEMPT", "LOCK", "")
	for _, c := range claims {
		lock, ok := l.state.Locks.Of(c.Message)
		if !ok {
			lock = unknown
		}
		note := ""
		if topic.Limit > 0 && !c.Counted {
			note = "from before the limit: takes no slot"
		}
		t.add(l.facts.Names.ID(c.Message), l.cell(c.At), l.holder(c.Worker), l.of(c.Worker).text(), number(c.Attempt), harmless(lock), note)
	}
	return t
}
