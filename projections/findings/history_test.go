package findings_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/store"
	"pgregory.net/rapid"
)

// Of a busy store whose log has lost its beginning the same is found of what is open, and what nobody knows any more is not made up.
func TestListOfAPrunedLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history.New(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
		if err := h.Busy(rapid.IntRange(20, 120).Draw(t, "steps")); err != nil {
			t.Fatal(err)
		}
		whole := findings.NewState()
		if err := projections.Follow(h.Store.Read(context.Background(), "", store.Filter{}), whole); err != nil {
			t.Fatal(err)
		}
		if err := h.Prune(rapid.IntRange(1, 300).Draw(t, "events"), ""); err != nil {
			t.Fatal(err)
		}
		log, err := h.Log(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		kept := findings.NewState()
		for _, r := range log {
			kept.Apply(r)
		}
		facts := findings.Facts{Now: h.Now().Add(2 * time.Minute), Heart: true}
		got, want := standing(kept, facts), standing(whole, facts)
		if !slices.Equal(got, want) {
			t.Errorf("of the kept log is found\n%s\nof the whole\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		text := findings.Text(findings.List(kept, facts))
		for _, bad := range []string{"()", "unknown(", "position 0)", "00000000-0000"} {
			if strings.Contains(text, bad) {
				t.Errorf("%q in\n%s", bad, text)
			}
		}
	})
}

// standing is what is found of what is open: which codes, of whom.
func standing(s findings.State, f findings.Facts) []string {
	var list []string
	for _, found := range findings.List(s, f) {
		switch found.Code {
		case findings.WorkerGone, findings.WorkerSilent, findings.TopicPaused, findings.TopicCounting, findings.LimitDiffers,
			findings.LockHolderGone, findings.LockIdle, findings.HandlerRunning, findings.LeaderMissing:
			list = append(list, fmt.Sprintf("%s %s", found.Code, found.Subject))
		}
	}
	slices.Sort(list)
	return list
}

// Of a busy store that keeps its rules there is no finding of a fault of Foundling, and one of every permit whose holder is gone.
func TestListOfABusyStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history.New(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
		if err := h.Busy(rapid.IntRange(1, 80).Draw(t, "steps")); err != nil {
			t.Fatal(err)
		}
		state := findings.NewState()
		if err := projections.Follow(h.Store.Read(context.Background(), "", store.Filter{}), state); err != nil {
			t.Fatal(err)
		}
		facts := findings.Facts{Now: h.Now(), Heart: true}
		beats, err := h.Store.Beats(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range beats {
			facts.Beats = append(facts.Beats, findings.Beat{Worker: b.Worker, Interval: b.Interval, At: b.At})
		}
		list := findings.List(state, facts)
		for _, f := range list {
			if f.Code == findings.LockIdle || f.Code == findings.LockRepaired {
				t.Errorf("%s", findings.Text([]findings.Finding{f}))
			}
		}
		for _, lock := range state.Locks.All() {
			for _, p := range lock.Out {
				w, known := state.Workers.Worker(p.Worker)
				if !known {
					t.Errorf("permit %d of %q is held by a worker that the projection does not know", p.Token, lock.Name)
				}
				found := slices.ContainsFunc(list, func(f findings.Finding) bool {
					return f.Code == findings.LockHolderGone && f.Subject == events.LockEntity(lock.Name) && slices.Contains(f.Positions, p.Position)
				})
				if found != (w.State != events.Live) {
					t.Errorf("permit %d of %q: its holder is %s, that it is gone is found is %t", p.Token, lock.Name, w.State, found)
				}
			}
		}
	})
}
