package projections

import (
	"slices"

	"github.com/foundling-go/foundling/events"
)

// Refusal is a command that came too late or from the wrong claim, as it was recorded.
type Refusal struct {
	Mark
	Message events.ID
	Command string
	Reason  events.Reason
	Sender  events.ID
	Sent    events.Token
	Found   events.Token // the open claim's; 0 where none was open
	State   events.State // what the message was
}

// recentRefusals is how many are kept whole.
const recentRefusals = 64

// Refusals adds up the recorded refusals over all topics. Its zero is the beginning of the log.
type Refusals struct {
	asOf       Mark
	total      int
	unrecorded int
	recent     []Refusal
}

// Apply takes the next event.
func (f *Refusals) Apply(r events.Recorded) {
	if !f.asOf.pass(r) {
		return
	}
	e, ok := r.Event.(*events.MessageRefused)
	if !ok {
		return
	}
	f.total++
	f.unrecorded += e.Unrecorded
	if len(f.recent) == recentRefusals {
		f.recent = slices.Delete(f.recent, 0, 1)
	}
	f.recent = append(f.recent, Refusal{
		Mark: markOf(r), Message: r.Entity.ID, Command: e.Command, Reason: e.Reason,
		Sender: e.Sender, Sent: e.Sent, Found: e.Found, State: r.To,
	})
}

// AsOf is the last event that was applied.
func (f *Refusals) AsOf() Mark { return f.asOf }

// Total is how many were recorded, and how many more were only counted since their sender sent too many.
func (f *Refusals) Total() (recorded, unrecorded int) { return f.total, f.unrecorded }

// Recent is the last of them, the oldest first.
func (f *Refusals) Recent() []Refusal { return slices.Clone(f.recent) }
