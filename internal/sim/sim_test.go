package sim

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// steered reports whether the command line says what rapid is to do, as when a failure is looked at again.
func steered() bool {
	return slices.ContainsFunc(os.Args, func(arg string) bool { return strings.Contains(arg, "rapid.") })
}

// checks sets how often rapid.Check checks, that it leaves no file behind, and for how long it looks for a shorter plan that fails: two runs of
// one plan may differ, since goroutines that are ready at the same instant take their turns as they like.
func checks(t *testing.T, n int) {
	t.Helper()
	if steered() {
		return
	}
	err := errors.Join(flag.Set("rapid.checks", strconv.Itoa(n)), flag.Set("rapid.nofailfile", "true"), flag.Set("rapid.shrinktime", "20s"))
	if err != nil {
		t.Fatal(err)
	}
}

// fair draws ten bits. Rapid's own numbers prefer small ones, and its choices the first of a list.
var fair = rapid.Custom(func(t *rapid.T) int {
	n := 0
	for range 10 {
		n *= 2
		if rapid.Bool().Draw(t, "bit") {
			n++
		}
	}
	return n
})

var plans = rapid.Custom(func(t *rapid.T) *plan {
	p := drawPlan(func(n int) int { return fair.Draw(t, "pick") % n })
	return &p
})

// simulate runs so many simulations, and counts what they meet.
func simulate(t *testing.T, n int) tally {
	checks(t, n)
	met := tally{}
	var story string
	defer func() { // rapid.Check leaves a failed test at once
		if story != "" {
			t.Log("the run that failed last:\n\n" + story)
		}
	}()
	rapid.Check(t, func(rt *rapid.T) {
		p := plans.Draw(rt, "plan")
		rapid.SyncTest(rt, func(rt *rapid.T) {
			s := newSimulation(*p)
			err := s.run(rt.Context())
			met.add(s.all())
			if err != nil {
				story = fmt.Sprintf("%s\n%v", s.story(), err)
				rt.Fatal(err)
			}
		})
	})
	return met
}

// Some processes on one store, killed, stopped, cut off and confused: the log obeys the laws after each event, and in the end everything has
// settled, every lock is free, no count is left and nobody waits for what is free.
func TestSimulation(t *testing.T) {
	met := simulate(t, 300)
	if !steered() {
		met.complete(t, often)
	}
}

// After ten thousand runs: every lock free or held by one who lives, each count that of the open claims, nobody waits for a free lock. What is so
// rare that a few hundred runs may miss it was met as well.
func TestTenThousandSimulations(t *testing.T) {
	if os.Getenv("FOUNDLING_LONG") == "" {
		t.Skip("minutes: left to ./test --long")
	}
	if raced() {
		again(t, "^TestTenThousandSimulations$")
		return
	}
	met := simulate(t, 10_000)
	if !steered() {
		met.complete(t, append(slices.Clone(often), seldom...))
	}
}
