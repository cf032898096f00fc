package findings_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/projections/findings"
)

// A projection that stands still kept the log from being pruned for ever, and nothing said so.
func TestListOfProjections(t *testing.T) {
	counted := func(c findings.Counted) func(*scene) {
		return func(s *scene) {
			s.at = 48 * time.Hour
			s.facts.Counted = []findings.Counted{c}
		}
	}
	check(t, map[string]situation{
		"it has counted all":                {counted(findings.Counted{Name: "totals", Version: 1, Position: 9}), ""},
		"it has not counted what came late": {counted(findings.Counted{Name: "totals", Version: 1, Position: 9, Since: epoch.Add(25 * time.Hour)}), ""},
		"it has not gone on for a day": {counted(findings.Counted{Name: "my mail", Version: 2, Position: 9, Since: epoch.Add(24 * time.Hour)}), `
▲ warning projection_holds: projection my mail version 2 stands still, and retention lets nothing go that it has not counted
  because it has counted up to position 9
  because the next event was stored 1d00:00 ago
  next    foundling projections
  next    foundling projections drop 'my mail'
`},
		"it has stopped": {counted(findings.Counted{Name: "totals", Version: 1, Position: 9, Stopped: "its view: panic: \x1b[31m"}), `
▲ warning projection_holds: projection totals version 1 stands still, and retention lets nothing go that it has not counted
  because it has counted up to position 9
  because stopped: "its view: panic: \x1b[31m"
  next    foundling projections
  next    foundling projections drop totals
`},
	})
}
