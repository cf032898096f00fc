package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections"
	"github.com/spf13/cobra"
)

const topicActHelp = "It says what would become of the topic, and asks, on a terminal, before it does it; the reason goes into the log. The exit\n" +
	"status is 5 where nothing was done for want of a yes or a reason, and 6 where nothing is to be done, or the topic is not as it was said\n" +
	"to be any more."

// topicAct is what an operator asks to be done to a topic.
type topicAct struct {
	wish
	name  string // of the command
	topic string
	done  string                                    // what it says of what it did
	after func(projections.Topic) projections.Topic // the topic as it would be
	words func(projections.Topic) string            // what that means
	idle  func(projections.Topic) string            // why nothing is to be done, where it would be as it is
	carry func(context.Context, *foundling.Client) error

	ask func(what string) error // asks a person for a yes; nil is on the terminal
}

func newPause(a *app) *cobra.Command {
	var w wish
	cmd := &cobra.Command{
		Use:   "pause TOPIC",
		Short: "Have nothing more of a topic begun, until it is resumed",
		Long:  "What runs goes on, and messages can be enqueued: they wait. " + topicActHelp,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.actOnTopic(cmd.Context(), topicAct{
				wish: w, name: "pause", topic: args[0], done: "paused",
				after: func(t projections.Topic) projections.Topic { t.Paused = true; return t },
				words: func(t projections.Topic) string {
					return fmt.Sprintf("would be paused: %s; what runs goes on, which is %d", waits(t.Queued), t.Running)
				},
				idle:  func(projections.Topic) string { return "it is paused" },
				carry: func(ctx context.Context, c *foundling.Client) error { return c.PauseTopic(ctx, args[0], w.reason) },
			})
		},
	}
	topicActFlags(a, cmd, &w)
	return cmd
}

func newResume(a *app) *cobra.Command {
	var w wish
	cmd := &cobra.Command{
		Use:   "resume TOPIC",
		Short: "Have a paused topic go on",
		Long:  topicActHelp,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.actOnTopic(cmd.Context(), topicAct{
				wish: w, name: "resume", topic: args[0], done: "resumed",
				after: func(t projections.Topic) projections.Topic { t.Paused = false; return t },
				words: func(t projections.Topic) string { return fmt.Sprintf("would go on: %s for a worker", waits(t.Queued)) },
				idle:  func(projections.Topic) string { return "it is not paused" },
				carry: func(ctx context.Context, c *foundling.Client) error { return c.ResumeTopic(ctx, args[0], w.reason) },
			})
		},
	}
	topicActFlags(a, cmd, &w)
	return cmd
}

func newTopicsSet(a *app) *cobra.Command {
	var w wish
	var limit int
	cmd := &cobra.Command{
		Use:   "set TOPIC --limit N",
		Short: "Set how many messages of a topic are handled at once, over all processes",
		Long: "0 is no limit. A lower one ends nothing that runs: nothing is begun until fewer run. Where there was none, nothing is begun until what\n" +
			"runs is counted, which it does. " + topicActHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("limit"):
				return usage("nothing to set: give --limit N")
			case limit < 0:
				return usage("--limit %d: want 0 or more", limit)
			}
			return a.actOnTopic(cmd.Context(), topicAct{
				wish: w, name: "topics set", topic: args[0], done: "set",
				after: func(t projections.Topic) projections.Topic { t.Limit = limit; return t },
				words: func(t projections.Topic) string { return limitWords(t, limit) },
				idle:  func(t projections.Topic) string { return "its limit is " + limitWord(t.Limit) },
				carry: func(ctx context.Context, c *foundling.Client) error {
					return c.ConfigureTopic(ctx, args[0], foundling.TopicSettings{Limit: limit, Reason: w.reason})
				},
			})
		},
	}
	topicActFlags(a, cmd, &w)
	cmd.Flags().IntVar(&limit, "limit", 0, "how many at once; 0 is no limit")
	return cmd
}

// limitWord is a limit in a sentence.
func limitWord(limit int) string {
	if limit == 0 {
		return "none"
	}
	return number(limit)
}

func limitWords(t projections.Topic, limit int) string {
	text := fmt.Sprintf("would have limit %s instead of %s", limitWord(limit), limitWord(t.Limit))
	if limit > 0 && t.Running > limit {
		text += fmt.Sprintf("; %d run, so that nothing is begun until fewer than %d do", t.Running, limit)
	}
	return text
}

func topicActFlags(a *app, cmd *cobra.Command, w *wish) {
	wishFlags(cmd, w)
	printing(a, cmd)
	cmd.ValidArgsFunction = once(a.topicNames())
}

// actOnTopic does to a topic what an operator asks for, unless it is not as it was any more.
func (a *app) actOnTopic(ctx context.Context, x topicAct) error {
	if err := x.check(x.name); err != nil {
		return err
	}
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := a.wholeLook(ctx, s, fsm.DefaultReclaimAfter)
	if err != nil {
		return err
	}
	t, ok := l.state.Topics.Topic(x.topic)
	if !ok {
		return notFound("no topic %s in this store", harmless(x.topic))
	}
	if x.same(t, x.after(t)) {
		return &exitError{exitConflict, fmt.Errorf("nothing to do to topic %s: %s", harmless(x.topic), x.idle(t))}
	}
	if err := a.showTopicAct(l, x, t); err != nil {
		return err
	}
	if err := a.decideTopic(x); err != nil {
		return errors.Join(a.printTopicAct(l, x, t, plannedOutcome), err)
	}
	again, err := a.wholeLook(ctx, s, fsm.DefaultReclaimAfter)
	if err != nil {
		return err
	}
	if now, _ := again.state.Topics.Topic(x.topic); !x.same(t, now) {
		return &exitError{exitConflict, fmt.Errorf("nothing was done: topic %s is not as it was said to be any more", harmless(x.topic))}
	}
	client, err := a.client(s, x.name)
	if err != nil {
		return err
	}
	if err := x.carry(ctx, client); err != nil {
		return err
	}
	return a.printTopicAct(again, x, t, doneOutcome)
}

// same reports whether a topic is as it was, as far as it matters to what is done to it.
func (topicAct) same(t, u projections.Topic) bool { return t.Paused == u.Paused && t.Limit == u.Limit }

func (a *app) decideTopic(x topicAct) error {
	what := fmt.Sprintf("%s topic %s", x.name, harmless(x.topic))
	if x.name == "topics set" {
		what = "set the limit of topic " + harmless(x.topic)
	}
	switch {
	case x.yes:
		return nil
	case x.ask != nil:
		return x.ask(what)
	}
	return a.confirm(what)
}

// showTopicAct says what would become of the topic.
func (a *app) showTopicAct(l *look, x topicAct, t projections.Topic) error {
	if !a.forPeople() {
		return nil // all of it comes in one object
	}
	_, err := io.WriteString(a.stdout, l.depths([]projections.Topic{t}).text()+x.words(t)+"\n")
	return err
}

// jsonTopicAct is what would become of a topic, and whether it did, as JSON has it.
type jsonTopicAct struct {
	jsonTopic
	BecomesPaused bool       `json:"becomes_paused"`
	BecomesLimit  *int       `json:"becomes_limit"` // null is none
	Outcome       actOutcome `json:"outcome"`       // planned: nobody said yes; or done
}

// jsonReasoned is why something was done as JSON has it.
type jsonReasoned struct {
	Reason string `json:"reason"`
}

// printTopicAct says what was done.
func (a *app) printTopicAct(l *look, x topicAct, t projections.Topic, outcome actOutcome) error {
	if a.forPeople() {
		if outcome != doneOutcome {
			return nil
		}
		_, err := fmt.Fprintf(a.stdout, "%s: %s\n", x.done, harmless(x.topic))
		return err
	}
	after := x.after(t)
	j := jsonTopicAct{jsonTopic: l.jsonTopic(t), BecomesPaused: after.Paused, Outcome: outcome}
	if after.Limit > 0 {
		j.BecomesLimit = &after.Limit
	}
	return printJSON(a, document[jsonTopicAct]{
		Schema: "foundling." + strings.ReplaceAll(x.name, " ", "_") + "/v1", AsOf: atMark(l.mark()), Warnings: l.warnings(), Result: jsonReasoned{x.reason}, Items: []jsonTopicAct{j},
	})
}
