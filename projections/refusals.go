package projections

import (
	"slices"

	"github.com/foundling-go/foundling/events"
)

// Refusal is a command that came too late, from the wrong claim or for a permit that was not held, as it was recorded.
type Refusal struct {
	Mark
	Message events.ID // zero where it was for a lock
	Lock    string    // empty where it was for a message
	Command string
	Reason  events.Reason
	Sender  events.ID
	Sent    events.Token
	Found   events.Token // the open claim's; 0 where none was open
	State   events.State // what the message or the lock was
}

// recentRefusals is how many are kept whole.
const recentRefusals = 64

// Refusals adds up the recorded refusals over all topics and locks. Its zero is the beginning of the log.
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
	switch e := r.Event.(type) {
	case *events.MessageRefused:
		f.unrecorded += e.Unrecorded
		f.add(Refusal{
			Mark: markOf(r), Message: r.Entity.ID, Command: e.Command, Reason: e.Reason,
			Sender: e.Sender, Sent: e.Sent, Found: e.Found, State: r.To,
		})
	case *events.LockRefused:
		f.add(Refusal{
			Mark: markOf(r), Lock: r.Entity.Name, Command: e.Command, Reason: e.Reason, Sender: e.Sender, Sent: e.Sent, State: r.To,
		})
	}
}

func (f *Refusals) add(r Refusal) {
	f.total++
	f.recent = latest(f.recent, r, recentRefusals)
}

// AsOf is the last event that was applied.
func (f *Refusals) AsOf() Mark { return f.asOf }

// Total is how many were recorded, and how many more were only counted since their sender sent too many.
func (f *Refusals) Total() (recorded, unrecorded int) { return f.total, f.unrecorded }

// Recent is the last of them, the oldest first.
func (f *Refusals) Recent() []Refusal { return slices.Clone(f.recent) }
