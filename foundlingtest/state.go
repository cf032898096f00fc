package foundlingtest

import (
	"fmt"
	"slices"

	"github.com/foundling-go/foundling"
)

// RequireState fails the test unless the message stands where it should, with its newest error and its history, and gives what the store says of it.
func RequireState(t TB, c *Client, id foundling.ID, want foundling.State) foundling.MessageInfo {
	t.Helper()
	m, err := c.Get(ctx(), id)
	if err != nil {
		t.Fatalf("foundlingtest: want a message that is %s: %v", want, err)
	}
	if m.State == want {
		return m
	}
	history, label := historyOf(t, c, id)
	failed := ""
	if m.Error != "" {
		failed = "\n  its handler's newest error: " + m.Error
	}
	t.Fatalf("message %s: want %s, it is %s%s\n  its history:\n%s", label, want, c.infoText(m), failed, text(lines(history)))
	return m
}

// RequireHistory fails the test unless the events of a message are of just these types, in their order, as in "message.enqueued". A result that was
// refused is one of them ("message.refused").
func RequireHistory(t TB, c *Client, id foundling.ID, types ...string) {
	t.Helper()
	history, label := historyOf(t, c, id)
	var all []string
	same := len(history) == len(types)
	for i := range max(len(history), len(types)) {
		switch {
		case i >= len(types):
			all = append(all, "+ "+history[i].line)
		case i >= len(history):
			all = append(all, "- "+types[i])
		case history[i].typ != types[i]:
			same = false
			all = append(all, "- "+types[i], "+ "+history[i].line)
		default:
			all = append(all, "  "+history[i].line)
		}
	}
	if !same {
		t.Fatalf("message %s has another history (- wanted, + there is):\n%s", label, text(all))
	}
}

// RequireEvents fails the test unless the log has events of these types in this order, whatever else is between them, as in "topic.paused".
func RequireEvents(t TB, c *Client, types ...string) {
	t.Helper()
	list, _, err := c.log()
	if err != nil {
		t.Fatalf("foundlingtest: %v", err)
	}
	rest := list
	for i, want := range types {
		at := slices.IndexFunc(rest, func(e recorded) bool { return e.typ == want })
		if at < 0 {
			behind := ""
			if i > 0 {
				behind = fmt.Sprintf(" behind its %s", types[i-1])
			}
			t.Fatalf("the log has no %s%s; it has\n%s", want, behind, text(lines(list)))
		}
		rest = rest[at+1:]
	}
}

// historyOf is the events of a message, and what texts call it.
func historyOf(t TB, c *Client, id foundling.ID) ([]recorded, string) {
	t.Helper()
	list, known, err := c.log()
	if err != nil {
		t.Fatalf("foundlingtest: %v", err)
	}
	return slices.DeleteFunc(list, func(e recorded) bool { return e.message != id }), known.of(id)
}
