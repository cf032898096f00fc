package replay

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// Options are the settings of Verify. The zero value works.
type Options struct {
	// Violations is how many are listed before it gives up; 0 is 100.
	Violations int
	// Payloads also reads the payload of every kept message and compares it with what its message.enqueued says of it.
	Payloads bool
	// Progress is told now and then how many events have been checked; nil is nobody.
	Progress func(events int)
}

const defaultViolations = 100

func (o Options) validate() error {
	if o.Violations < 0 {
		return fmt.Errorf("option Violations is %d: want 0 or more", o.Violations)
	}
	return nil
}

// Report is what Verify found.
type Report struct {
	Events     int // read and checked
	Commits    int
	Entities   int
	Rows       int          // compared with the log
	Permits    int          // compared with the log
	Staged     int          // messages that wait beside the log, each by itself; see store.Stager
	Head       store.Cursor // the log was checked at least up to here
	Through    int64        // what is up to this position had been let go, so that nothing is said of it: see [PrunedOutOfReach]; 0 is nothing
	Violations []Violation  // in the order in which they were found; empty is clean, for what was checked
	Unchecked  []string     // what could not be checked, and why; empty where all of it was
}

// OutOfReach is what no verification checks, since no store can list it, in words to show beside a report.
const OutOfReach = "the store's own tables of taken keys, of commit ids, of heartbeats, of leases and of places in the queue, and payloads of messages that have ended"

// PrunedOutOfReach is what no verification checks of a log of which the beginning was let go, in words to show beside a report.
const PrunedOutOfReach = "what was let go; and of what had begun there, until it told its state once more, everything but that its versions and states follow each other: limits, permits, keys and who waits"

// Clean reports whether nothing was found.
func (r Report) Clean() bool { return len(r.Violations) == 0 }

// Violation is one place where the log is not what the rules lead to, or not what is stored.
type Violation struct {
	Entity   events.Entity // zero where what is stored no longer says it
	Version  int           // of the entity, at the event or in the row that is wrong; 0 where an event moves nothing
	Position int64         // of the event; of a row that is wrong, of the last event of its entity that was read, as far as it is known
	Detail   string
}

// Text names entity, version and position, and says what is wrong. It is a single line.
func (v Violation) Text(names *events.Names) string {
	if v.Entity == (events.Entity{}) {
		return fmt.Sprintf("position %d: %s", v.Position, v.Detail)
	}
	return fmt.Sprintf("%s version %d at position %d: %s", names.Entity(v.Entity), v.Version, v.Position, v.Detail)
}
