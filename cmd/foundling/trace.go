package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

func newTrace(a *app) *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:   "trace ID",
		Short: "Tell the life of a message, step by step",
		Long:  "ID is a message's id or the end of one that no other message of the store has, as in a31.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.openExisting(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			ids, err := resolve(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			t, err := a.newTracing(cmd.Context(), s, ids[0])
			if err != nil {
				return err
			}
			if !a.forPeople() {
				return t.printJSON()
			}
			text := t.text()
			if raw {
				text += "\n" + t.lines()
			}
			_, err = io.WriteString(a.stdout, text)
			return err
		},
	}
	cmd.Flags().BoolVar(&raw, "events", false, "print its events too, as foundling events does")
	printing(a, cmd)
	cmd.ValidArgsFunction = once(a.messageTails())
	return cmd
}

// tracing is a message's life with what is known of those who took part in it.
type tracing struct {
	*app
	life    *projections.Life
	info    foundling.MessageInfo
	workers map[events.ID]process
	names   *events.Names
}

func (a *app) newTracing(ctx context.Context, s store.Store, id events.ID) (*tracing, error) {
	client, err := a.client(s, "trace")
	if err != nil {
		return nil, err
	}
	t := &tracing{app: a, life: projections.NewLife(id), workers: map[events.ID]process{}}
	if err := projections.Follow(logOf(ctx, s, store.Filter{Entity: events.MessageEntity(id)}), t.life); err != nil {
		return nil, err
	}
	t.info, err = client.Get(ctx, id)
	if errors.Is(err, foundling.ErrNotFound) { // nothing that says where it stands is left of it
		t.info, err = foundling.MessageInfo{ID: id, State: t.life.Summary().State}, nil
	}
	if err != nil {
		return nil, err
	}
	shown := []events.ID{id}
	for _, step := range t.life.Entries() {
		if _, known := t.workers[step.Worker]; known || step.Worker == (events.ID{}) {
			continue
		}
		if t.workers[step.Worker], err = processOf(ctx, s, step.Worker); err != nil {
			return nil, err
		}
		shown = append(shown, step.Worker)
	}
	t.names = a.inFull(namesFor(shorten(0, shown...)))
	return t, nil
}

// text is the life as people read it.
func (t *tracing) text() string {
	if t.info.State == foundling.Staged {
		return t.stagedText()
	}
	sum := t.life.Summary()
	var b strings.Builder
	fmt.Fprintf(&b, "message %s on topic %s: %s\n", sum.ID, t.topic(), t.state(sum))
	steps := newTable("WHEN", "STEP", ">ATTEMPT", "WORKER", "")
	if t.life.Headless() {
		b.WriteString("  the beginning of its life was let go: see retention\n")
	}
	for i, step := range t.life.Entries() {
		if e, ok := step.Event.(*events.MessageEnqueued); ok && i == 0 {
			t.head(&b, step, e)
		}
		attempt, worker := "", ""
		if step.Attempt > 0 {
			attempt = number(step.Attempt)
		}
		if step.Worker != (events.ID{}) {
			worker = t.worker(step.Worker)
		}
		when := "+" + findings.Span(max(0, step.At().Sub(sum.EnqueuedAt)))
		if t.wide() || sum.EnqueuedAt.IsZero() {
			when = absolute(step.At())
		}
		verb := strings.TrimPrefix(step.Event.Type().String(), "message.")
		steps.add(when, verb, attempt, worker, t.remarks(step))
	}
	fmt.Fprintf(&b, "  payload  %s\n", t.contentText(t.info.Payload))
	if t.info.Result.Size > 0 {
		fmt.Fprintf(&b, "  result   %s\n", t.contentText(t.info.Result))
	}
	return b.String() + "\n" + steps.text()
}

// stagedText is what there is to say of a message that is not in the log yet.
func (t *tracing) stagedText() string {
	return fmt.Sprintf("message %s on topic %s: staged since %s, by a transaction that has committed: any worker of the store moves it into the log\n  payload  %s\n",
		t.info.ID, harmless(t.info.Topic), absolute(t.info.EnqueuedAt), t.contentText(t.info.Payload))
}

// topic is where the message belongs, as far as that is still known.
func (t *tracing) topic() string {
	if topic := t.life.Summary().Topic; topic != "" {
		return harmless(topic)
	}
	return unknown
}

// state says where the message is now.
func (t *tracing) state(sum projections.Summary) string {
	text := sum.State.String()
	if sum.Reason != "" {
		text += " (" + string(sum.Reason) + ")"
	}
	if sum.Attempts > 0 {
		text += " after " + count(sum.Attempts, "attempt")
	}
	if sum.Waited > 0 || sum.Ran > 0 {
		text += fmt.Sprintf(", waited %s and ran %s in all", findings.Span(sum.Waited), findings.Span(sum.Ran))
	}
	return text
}

// head says what was enqueued, when and by whom.
func (t *tracing) head(b *strings.Builder, step projections.Entry, e *events.MessageEnqueued) {
	fmt.Fprintf(b, "  enqueued %s by %s\n", absolute(step.At()), harmless(step.Commit.Command.Actor))
	if e.Key != "" {
		fmt.Fprintf(b, "  key      %s\n", harmless(e.Key))
	}
	if e.Lock != "" {
		policy := ""
		if e.OnLocked == events.SkipIfLocked {
			policy = ", discarded where it is taken"
		}
		fmt.Fprintf(b, "  lock     %s%s\n", harmless(e.Lock), policy)
	}
	if e.Priority != events.Normal {
		fmt.Fprintf(b, "  priority %s\n", e.Priority)
	}
	if e.Trace != "" {
		fmt.Fprintf(b, "  trace    %s\n", harmless(e.Trace))
	}
}

// worker names who held a claim, with the process it was.
func (t *tracing) worker(id events.ID) string {
	text := t.names.ID(id)
	if p := t.workers[id]; p.PID != 0 {
		text += " (" + p.text() + ")"
	}
	return text
}

// remarks is what else there is to say of a step.
func (t *tracing) remarks(step projections.Entry) string {
	var list []string
	note := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if text := t.particulars(step); text != "" {
		note("%s", text)
	}
	if step.Blocked > 0 {
		note("was blocked for %s", findings.Span(step.Blocked))
	}
	if step.Waited > 0 {
		note("waited %s", findings.Span(step.Waited))
	}
	if step.Ran > 0 {
		note("ran %s", findings.Span(step.Ran))
	}
	if step.Reason != "" {
		note("%s", step.Reason)
	}
	if step.By != "" {
		note("by %s", harmless(step.By))
	}
	if step.Detail != "" {
		note("%s", harmless(step.Detail))
	}
	if step.Error != "" {
		note("%s", harmless(step.Error))
	}
	if !step.DueAt.IsZero() {
		note("due %s later", findings.Span(step.DueAt.Sub(step.At())))
	}
	return strings.Join(list, " · ")
}

// particulars is what only a step of its kind has.
func (t *tracing) particulars(step projections.Entry) string {
	switch e := step.Event.(type) {
	case *events.MessageRefused:
		return fmt.Sprintf("%s: token %d was sent, %d was current", harmless(e.Command), e.Sent, e.Found)
	case *events.MessageOrphaned:
		return strings.TrimPrefix(vitalOf(e.Evidence).text(), "dead: ")
	case *events.MessageBlocked:
		return fmt.Sprintf("lock %s is taken", harmless(e.Lock))
	case *events.MessageUnblocked:
		text := fmt.Sprintf("lock %s came free", harmless(step.Lock))
		if step.Repair {
			text = fmt.Sprintf("lock %s was free all the while (repaired)", harmless(step.Lock))
		}
		return text
	case *events.MessageClaimed:
		if e.LockToken != 0 {
			return fmt.Sprintf("takes lock %s, token %d", harmless(t.life.Summary().Lock), e.LockToken)
		}
	case *events.MessageErased:
		return "its payload and its result were let go"
	case *events.MessageSnapshotted:
		return "its state was told once more, so that older events may go"
	}
	return ""
}

// lines is the events themselves.
func (t *tracing) lines() string {
	var b strings.Builder
	for _, step := range t.life.Entries() {
		b.WriteString(t.names.Line(step.Recorded) + "\n")
	}
	return b.String()
}
