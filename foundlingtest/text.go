package foundlingtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/foundling-go/foundling"
)

// maxLines is how many lines of a kind the text of a failure has at most.
const maxLines = 40

// since is a time as texts show it: counted from when the client was made.
func (c *Client) since(t time.Time) string {
	d := t.Sub(c.began)
	if d < 0 {
		return d.String()
	}
	return "+" + d.String()
}

// labels calls messages by their topic and their place in it.
type labels map[foundling.ID]string

// of is the message's name; where nobody saw it being enqueued, its id.
func (l labels) of(id foundling.ID) string {
	if label, ok := l[id]; ok {
		return label
	}
	return id.String()
}

// recorded is one event of the log, as texts show it.
type recorded struct {
	topic   string // of a message
	message foundling.ID
	typ     string
	at      time.Time
	line    string
}

// log reads what is kept of the log.
func (c *Client) log() ([]recorded, labels, error) {
	after, err := c.Oldest(ctx())
	if err != nil {
		return nil, nil, err
	}
	var list []recorded
	known, topics, places := labels{}, map[foundling.ID]string{}, map[string]int{}
	for r, err := range c.Events(ctx(), after, foundling.EventFilter{Stop: foundling.StopAtHead}) {
		if err != nil {
			return nil, nil, err
		}
		e := recorded{typ: r.Event.Type().String(), at: r.At()}
		who := strings.TrimSpace(r.Entity.Kind.String() + " " + r.Entity.Name)
		if r.Entity.Kind.String() == "message" {
			e.message = r.Entity.ID
			if e.typ == "message.enqueued" {
				m, err := c.Get(ctx(), e.message)
				if err != nil {
					return nil, nil, err
				}
				places[m.Topic]++
				topics[e.message] = m.Topic
				known[e.message] = fmt.Sprintf("%s %d", m.Topic, places[m.Topic])
			}
			e.topic, who = topics[e.message], known.of(e.message)
		}
		moved := ""
		if r.Version > 0 {
			moved = fmt.Sprintf("  %s → %s", r.From, r.To)
		}
		e.line = fmt.Sprintf("%-8s %-22s %s%s", c.since(e.at), e.typ, who, moved)
		list = append(list, e)
	}
	return list, known, nil
}

// text is lines of a text, the last of them where they are many.
func text(lines []string) string {
	if len(lines) == 0 {
		return "  (nothing)"
	}
	var b strings.Builder
	if cut := len(lines) - maxLines; cut > 0 {
		fmt.Fprintf(&b, "  … %d before\n", cut)
		lines = lines[cut:]
	}
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("  " + line)
	}
	return b.String()
}

// lines is events as they are shown.
func lines(list []recorded) []string {
	all := make([]string, len(list))
	for i, e := range list {
		all[i] = e.line
	}
	return all
}

// openText shows the messages that are open.
func (c *Client) openText() string {
	_, known, err := c.log()
	if err != nil {
		return err.Error()
	}
	page, err := c.List(ctx(), foundling.ListOptions{
		States: []foundling.State{foundling.Queued, foundling.Blocked, foundling.Running}, Limit: maxLines,
	})
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, m := range page.Messages {
		all = append(all, known.of(m.ID)+"  "+c.infoText(m))
	}
	return text(all)
}

// infoText is what is to be known of a message in one line.
func (c *Client) infoText(m foundling.MessageInfo) string {
	parts := []string{m.State.String()}
	if m.Attempts > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d attempts spent", m.Spent, m.MaxAttempts))
	}
	if m.State == foundling.Queued {
		parts = append(parts, "due "+c.since(m.DueAt))
	}
	if m.Reason != "" {
		parts = append(parts, m.Reason)
	}
	if m.Detail != "" {
		parts = append(parts, fmt.Sprintf("%q", m.Detail))
	}
	return strings.Join(parts, ", ")
}
