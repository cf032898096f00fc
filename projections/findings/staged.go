package findings

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// Staged is a message that waits beside the log. Its zero is none.
type Staged struct {
	Message events.ID
	Since   time.Time
}

// staged is a finding where a message has been staged for long: any worker of the store would move it.
func (l *look) staged() []Finding {
	if l.Staged.Since.IsZero() || l.age(l.Staged.Since) <= StagedFor {
		return nil
	}
	return []Finding{{
		Code: MessagesStaged, Severity: Warning, Subject: events.MessageEntity(l.Staged.Message), Since: l.Staged.Since,
		Text:     l.message(l.Staged.Message) + " was enqueued in a transaction and does not enter the log",
		Evidence: []string{"it was staged " + l.ago(l.Staged.Since)},
		Next:     []string{l.command("messages --state staged"), l.command("workers")},
	}}
}
