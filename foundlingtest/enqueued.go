package foundlingtest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/memory"
)

// Message is a message of a topic with its payload.
type Message[T any] struct {
	Info    foundling.MessageInfo
	Payload T // its zero where it was erased
}

// Enqueued gives the messages of a topic that were enqueued, the first one first, whatever has become of them. It fails the test where a
// payload is no T.
func Enqueued[T any](t TB, c *Client, topic foundling.Topic[T]) []Message[T] {
	t.Helper()
	log, known, err := c.log()
	if err != nil {
		t.Fatalf("foundlingtest: %v", err)
	}
	var list []Message[T]
	for _, e := range log {
		if e.typ != "message.enqueued" || e.topic != topic.Name() {
			continue
		}
		info, err := c.Get(ctx(), e.message)
		if err != nil {
			t.Fatalf("foundlingtest: %v", err)
		}
		payload, err := topic.Payload(info)
		if err != nil && !errors.Is(err, foundling.ErrErased) {
			t.Fatalf("message %s: %v", known.of(info.ID), err)
		}
		list = append(list, Message[T]{info, payload})
	}
	return list
}

// RequireEnqueued fails the test unless exactly one message of the topic was enqueued with this payload and these options, whatever has become of
// it, and gives it. Others may be there. The payload is compared as it comes back from a store. Of the options only those are compared that are
// not zero; Delay and At with when the message is due now, so ask before a retry moves that. UniqueFor and OnLocked cannot be asked for.
func RequireEnqueued[T any](t TB, c *Client, topic foundling.Topic[T], payload T, o foundling.EnqueueOptions) Message[T] {
	t.Helper()
	if o.UniqueFor != 0 || o.OnLocked != 0 {
		t.Fatalf("foundlingtest: RequireEnqueued cannot compare UniqueFor and OnLocked: leave them zero")
	}
	want := roundTrip(t, c, topic, payload)
	list := Enqueued(t, c, topic)
	var found []Message[T]
	var all []string
	for i, m := range list {
		differs := differences(m.Info, o)
		if m.Info.Payload.Erased || !reflect.DeepEqual(m.Payload, want.Payload) {
			differs = append([]string{"payload"}, differs...)
		}
		line := fmt.Sprintf("%s %d  %s  %s", topic.Name(), i+1, contentText(m.Info.Payload), c.detailText(m.Info))
		if len(differs) == 0 {
			found = append(found, m)
		} else {
			line += "  ≠ " + strings.Join(differs, ", ")
		}
		all = append(all, line)
	}
	switch {
	case len(found) == 1:
		return found[0]
	case len(found) > 1:
		t.Fatalf("topic %s: want one message like this, there are %d\n  %s\nit was enqueued:\n%s",
			topic.Name(), len(found), wantText(want.Info, o), text(all))
	}
	t.Fatalf("topic %s: want a message like this, there is none\n  %s\nwhat was enqueued (≠ what differs):\n%s",
		topic.Name(), wantText(want.Info, o), text(all))
	return Message[T]{}
}

// RequireNoneEnqueued fails the test where a message of the topic was enqueued, whatever has become of it.
func RequireNoneEnqueued[T any](t TB, c *Client, topic foundling.Topic[T]) {
	t.Helper()
	list := Enqueued(t, c, topic)
	if len(list) == 0 {
		return
	}
	var all []string
	for i, m := range list {
		all = append(all, fmt.Sprintf("%s %d  %s  %s", topic.Name(), i+1, contentText(m.Info.Payload), c.detailText(m.Info)))
	}
	t.Fatalf("topic %s: want no message, %d were enqueued:\n%s", topic.Name(), len(list), text(all))
}

// roundTrip is a message with the payload as it comes back from a store: what a codec leaves out or rounds is left out and rounded.
func roundTrip[T any](t TB, c *Client, topic foundling.Topic[T], payload T) Message[T] {
	t.Helper()
	scratch, err := foundling.NewClient(memory.New(memory.Options{}), foundling.ClientOptions{Codec: c.codec, MaxPayload: 16 << 20})
	if err != nil {
		t.Fatalf("foundlingtest: %v", err)
	}
	id, err := topic.Enqueue(ctx(), scratch, payload, foundling.EnqueueOptions{})
	if err != nil {
		t.Fatalf("foundlingtest: the wanted payload: %v", err)
	}
	info, err := scratch.Get(ctx(), id)
	if err != nil {
		t.Fatalf("foundlingtest: the wanted payload: %v", err)
	}
	back, err := topic.Payload(info)
	if err != nil {
		t.Fatalf("foundlingtest: the wanted payload: %v", err)
	}
	return Message[T]{info, back}
}

// differences names the options that a message does not have.
func differences(m foundling.MessageInfo, o foundling.EnqueueOptions) (names []string) {
	for _, option := range []struct {
		name        string
		asked, same bool
	}{
		{"ID", o.ID != foundling.ID{}, m.ID == o.ID},
		{"Key", o.Key != "", m.Key == o.Key},
		{"Lock", o.Lock != "", m.Lock == o.Lock},
		{"Priority", o.Priority != foundling.Normal, m.Priority == o.Priority},
		{"At", !o.At.IsZero(), m.DueAt.Equal(o.At.Truncate(time.Microsecond))},
		{"Delay", o.Delay != 0, m.DueAt.Sub(m.EnqueuedAt) == o.Delay.Truncate(time.Microsecond)},
		{"MaxAttempts", o.MaxAttempts != 0, m.MaxAttempts == o.MaxAttempts},
		{"Timeout", o.Timeout != 0, m.Timeout == max(o.Timeout, 0)},
	} {
		if option.asked && !option.same {
			names = append(names, option.name)
		}
	}
	return names
}

// wantText shows what was asked for.
func wantText(m foundling.MessageInfo, o foundling.EnqueueOptions) string {
	parts := []string{contentText(m.Payload)}
	add := func(name, value string) { parts = append(parts, name+"="+value) }
	if o.ID != (foundling.ID{}) {
		add("ID", o.ID.String())
	}
	if o.Key != "" {
		add("Key", o.Key)
	}
	if o.Lock != "" {
		add("Lock", o.Lock)
	}
	if o.Priority != foundling.Normal {
		add("Priority", o.Priority.String())
	}
	if !o.At.IsZero() {
		add("At", o.At.UTC().Format(time.RFC3339))
	}
	if o.Delay != 0 {
		add("Delay", o.Delay.String())
	}
	if o.MaxAttempts != 0 {
		add("MaxAttempts", fmt.Sprint(o.MaxAttempts))
	}
	if o.Timeout != 0 {
		add("Timeout", o.Timeout.String())
	}
	return strings.Join(parts, "  ")
}

// detailText is infoText with what the message was enqueued with.
func (c *Client) detailText(m foundling.MessageInfo) string {
	text := c.infoText(m)
	if m.Key != "" {
		text += "  Key=" + m.Key
	}
	if m.Lock != "" {
		text += "  Lock=" + m.Lock
	}
	if m.Priority != foundling.Normal {
		text += "  Priority=" + m.Priority.String()
	}
	if m.Timeout != 0 {
		text += "  Timeout=" + m.Timeout.String()
	}
	return text
}

// maxPayload is how much of a payload a text shows, in bytes.
const maxPayload = 200

// contentText shows a payload: as it is where it is text, quoted where it is not.
func contentText(p foundling.Content) string {
	if p.Erased {
		return fmt.Sprintf("(%d bytes, erased)", p.Size)
	}
	shown, cut := string(p.Bytes), ""
	if len(shown) > maxPayload {
		shown, cut = shown[:maxPayload], fmt.Sprintf("… (%d bytes)", len(p.Bytes))
	}
	if quoted := fmt.Sprintf("%q", shown); strings.ContainsAny(quoted, "\\") && p.Codec != "json" {
		shown = quoted
	}
	return shown + cut
}
