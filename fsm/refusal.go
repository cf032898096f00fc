package fsm

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
)

// Refusal is the error of a command that was not carried out. Nothing moved.
type Refusal struct {
	Command string
	Entity  events.Entity
	State   events.State
	Reason  events.Reason
	Sent    events.Token // the token that the command carried, if it carried one
	Found   events.Token // the token of the open claim; 0 where none is open
	Detail  string       // what else a reader needs: the bound, the way out
}

// Error names the command, the entity, its state and the reason.
func (r *Refusal) Error() string {
	text := fmt.Sprintf("%s refused: %s is %s: %s", r.Command, r.Entity, r.State, r.Reason)
	if r.Reason == events.ReasonStaleToken {
		text += fmt.Sprintf(" (token %d sent, %d is current)", r.Sent, r.Found)
	}
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	return text
}

// Is makes refusals comparable by reason: errors.Is(err, &fsm.Refusal{Reason: events.ReasonStaleToken}).
func (r *Refusal) Is(target error) bool {
	t, ok := target.(*Refusal)
	return ok && t.Reason == r.Reason && (t.Command == "" || t.Command == r.Command)
}
