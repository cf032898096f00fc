package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

// payloadShown is how many bytes of a payload trace shows.
const payloadShown = 80

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
			t, err := newTracing(cmd.Context(), s, ids[0])
			if err != nil {
				return err
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
	return cmd
}

// tracing is a message's life with what is known of those who took part in it.
type tracing struct {
	life    *projections.Life
	workers map[events.ID]*events.WorkerStarted
	payload *store.Payload // nil where the store keeps it no more
	names   *events.Names
}

func newTracing(ctx context.Context, s store.Store, id events.ID) (*tracing, error) {
	t := &tracing{life: projections.NewLife(id), workers: map[events.ID]*events.WorkerStarted{}}
	entity := events.MessageEntity(id)
	if err := projections.Follow(s.Read(ctx, "", store.Filter{Entity: entity}), t.life); err != nil {
		return nil, err
	}
	for row, err := range s.Rows(ctx, store.RowFilter{Entities: []events.Entity{entity}, Payloads: true}) {
		if err != nil {
			return nil, err
		}
		t.payload = row.Payload
	}
	shown := []events.ID{id}
	for _, step := range t.life.Entries() {
		if _, known := t.workers[step.Worker]; known || step.Worker == (events.ID{}) {
			continue
		}
		started, err := startOf(ctx, s, step.Worker)
		if err != nil {
			return nil, err
		}
		t.workers[step.Worker] = started
		shown = append(shown, step.Worker)
	}
	t.names = namesFor(shorten(0, shown...))
	return t, nil
}

// startOf is what a worker said of itself when it started; nil where the log does not know it.
func startOf(ctx context.Context, s store.Store, worker events.ID) (*events.WorkerStarted, error) {
	for r, err := range s.Read(ctx, "", store.Filter{Entity: events.WorkerEntity(worker), Limit: 1}) {
		if err != nil {
			return nil, err
		}
		if started, ok := r.Event.(*events.WorkerStarted); ok {
			return started, nil
		}
	}
	return nil, nil
}

// text is the life as people read it.
func (t *tracing) text() string {
	sum := t.life.Summary()
	var b strings.Builder
	fmt.Fprintf(&b, "message %s on topic %s: %s\n", sum.ID, harmless(sum.Topic), t.state(sum))
	steps := newTable("WHEN", "STEP", ">ATTEMPT", "WORKER", "")
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
		verb := strings.TrimPrefix(step.Event.Type().String(), "message.")
		steps.add(when, verb, attempt, worker, t.remarks(step))
	}
	return b.String() + "\n" + steps.text()
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
	payload := "not shown once the message has ended"
	if t.payload != nil {
		payload = quoted(t.payload.Bytes)
	}
	fmt.Fprintf(b, "  payload  %s, %s\n", count(e.Payload.Size, "byte"), payload)
}

// quoted is the head of a payload, quoted whatever it holds.
func quoted(payload []byte) string {
	if len(payload) > payloadShown {
		return fmt.Sprintf("%q…", payload[:payloadShown])
	}
	return fmt.Sprintf("%q", payload)
}

// worker names who held a claim, with the process it was.
func (t *tracing) worker(id events.ID) string {
	text := t.names.ID(id)
	if w := t.workers[id]; w != nil && w.PID != 0 {
		text += fmt.Sprintf(" (%d on %s)", w.PID, harmless(w.Host))
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
