package findings

import (
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// Counted is how far the newest version of a durable projection has come.
type Counted struct {
	Name     string
	Version  int
	Position int64     // of the last event that it has taken
	Since    time.Time // when the first event was stored that it has not taken; zero where there is none, or it cannot be told
	Stopped  string    // why it goes on no more; empty where it does
}

// holding is a finding for each durable projection that has stopped, or has left events uncounted for long: retention lets nothing go behind
// the place where it stands.
func (l *look) holding() []Finding {
	var list []Finding
	for _, c := range l.Counted {
		behind := !c.Since.IsZero() && l.age(c.Since) >= UncountedFor
		if c.Stopped == "" && !behind {
			continue
		}
		name := events.Printable(c.Name, longest)
		found := Finding{
			Code: ProjectionHolds, Severity: Warning, Subject: events.LogEntity(), Since: c.Since, Positions: []int64{c.Position},
			Text:     fmt.Sprintf("projection %s version %d stands still, and retention lets nothing go that it has not counted", name, c.Version),
			Evidence: []string{fmt.Sprintf("it has counted up to position %d", c.Position)},
			Next:     []string{l.command("projections"), l.command("projections drop " + ShellWord(c.Name))},
		}
		if c.Stopped != "" {
			found.Evidence = append(found.Evidence, "stopped: "+events.Printable(c.Stopped, longest))
		}
		if !c.Since.IsZero() {
			found.Evidence = append(found.Evidence, "the next event was stored "+l.ago(c.Since))
		}
		list = append(list, found)
	}
	slices.SortStableFunc(list, func(a, b Finding) int { return a.Since.Compare(b.Since) })
	return list
}
