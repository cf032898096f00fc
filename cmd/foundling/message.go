package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store"
)

// jsonMessage is a message as JSON has it.
type jsonMessage struct {
	Message         string       `json:"message"`
	Topic           *string      `json:"topic"` // null where retention has let go of it
	State           string       `json:"state"`
	Priority        *string      `json:"priority"`
	Key             *string      `json:"key"`
	Lock            *string      `json:"lock"`
	EnqueuedAt      *time.Time   `json:"enqueued_at"`
	DueAt           *time.Time   `json:"due_at"`
	EndedAt         *time.Time   `json:"ended_at"`
	Attempts        *int         `json:"attempts"`       // claims ever made; null where retention has let go of them
	AttemptsSpent   *int         `json:"attempts_spent"` // those that count
	MaxAttempts     *int         `json:"max_attempts"`
	Timeout         *float64     `json:"timeout_seconds"`
	Worker          *string      `json:"worker"` // null where nobody handles it
	Token           *string      `json:"token"`
	ClaimedAt       *time.Time   `json:"claimed_at"`
	Reason          *string      `json:"reason"`
	Detail          *string      `json:"detail"`
	Error           *string      `json:"error"`
	Trace           *string      `json:"trace"`
	BeginningPruned bool         `json:"beginning_pruned"`
	Payload         *jsonContent `json:"payload"`
	Result          *jsonContent `json:"result"`
}

func (a *app) jsonMessage(m foundling.MessageInfo) jsonMessage {
	j := jsonMessage{
		Message: m.ID.String(), Topic: orNull(m.Topic), State: m.State.String(), Key: orNull(m.Key), Lock: orNull(m.Lock),
		EnqueuedAt: instant(m.EnqueuedAt), DueAt: instant(m.DueAt), EndedAt: instant(m.EndedAt),
		Timeout: spanOrNull(m.Timeout), Worker: idOrNull(m.Worker), ClaimedAt: instant(m.ClaimedAt),
		Reason: orNull(m.Reason), Detail: orNull(m.Detail), Error: orNull(m.Error), Trace: orNull(m.Trace), BeginningPruned: m.BeginningPruned,
		Payload: a.jsonContent(m.Payload), Result: a.jsonContent(m.Result),
	}
	if !headless(m) {
		priority := m.Priority.String()
		j.Priority, j.MaxAttempts, j.Attempts, j.AttemptsSpent = &priority, &m.MaxAttempts, &m.Attempts, &m.Spent
	}
	if m.Worker != (events.ID{}) {
		j.Token = orNull(whole(m.Token))
	}
	return j
}

// headless reports whether the beginning of a message was let go and nothing has told its state since: what it said is not known.
func headless(m foundling.MessageInfo) bool { return m.BeginningPruned && m.EnqueuedAt.IsZero() }

// message says all that is known of one message.
func (a *app) message(ctx context.Context, s store.Store, word string) error {
	ids, err := resolve(ctx, s, word)
	if err != nil {
		return err
	}
	client, err := a.client(s, "messages")
	if err != nil {
		return err
	}
	m, err := client.Get(ctx, ids[0])
	if errors.Is(err, foundling.ErrNotFound) {
		return notFound("no message %s in this store", ids[0])
	}
	if err != nil {
		return err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	if !a.forPeople() {
		return printJSON(a, document[jsonMessage]{Schema: "foundling.messages/v1", AsOf: atTime(now), Items: []jsonMessage{a.jsonMessage(m)}})
	}
	_, err = io.WriteString(a.stdout, a.messageText(m, now))
	a.note("as of %s · its life: foundling trace %s", absolute(now), tailOf(m.ID, 12))
	return err
}

// messageText is a message with everything that is known of it, a line each.
func (a *app) messageText(m foundling.MessageInfo, now time.Time) string {
	t := newTable("MESSAGE", m.ID.String())
	ago := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return fmt.Sprintf("%s ago · %s", findings.Span(max(0, now.Sub(at))), absolute(at))
	}
	line := func(name, text string) {
		if text != "" {
			t.add(name, text)
		}
	}
	line("topic", orUnknown(harmless(m.Topic)))
	line("state", m.State.String())
	line("reason", m.Reason)
	line("detail", harmless(m.Detail))
	line("error", harmless(m.Error))
	line("key", harmless(m.Key))
	line("lock", harmless(m.Lock))
	if !headless(m) {
		line("priority", m.Priority.String())
		line("attempts", fmt.Sprintf("%d made, %d of %d spent", m.Attempts, m.Spent, m.MaxAttempts))
	}
	line("timeout", findingsSpan(m.Timeout))
	line("enqueued", ago(m.EnqueuedAt))
	if m.DueAt.After(now) {
		line("due", fmt.Sprintf("in %s · %s", findings.Span(m.DueAt.Sub(now)), absolute(m.DueAt)))
	}
	line("claimed", ago(m.ClaimedAt))
	if m.Worker != (events.ID{}) {
		line("worker", fmt.Sprintf("%s, token %d", m.Worker, m.Token))
	}
	line("ended", ago(m.EndedAt))
	line("trace", harmless(m.Trace))
	line("payload", a.contentText(m.Payload))
	if m.State == foundling.Completed {
		line("result", a.contentText(m.Result))
	}
	if m.BeginningPruned {
		line("pruned", "the beginning of its history was let go: see retention")
	}
	return t.text()
}

// findingsSpan is a length of time in a line; empty where it is none.
func findingsSpan(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return findings.Span(d)
}
