package model

import (
	"errors"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/internal/scenario"
	"pgregory.net/rapid"
)

// The laws 1 to 8 and 11 of DESIGN section 6: whatever is done in whatever order, the model foresees every event and every refusal, every
// engine gives the same text and the same bytes, and log and rows obey the laws. A step holds each of its events against them (2 and 7), and
// each sweep against a second one on the spot (8).
func TestModel(t *testing.T) {
	engines := scenario.Engines()
	met := newTally()
	inMemory := engines[0].Name == "memory"
	if inMemory {
		checks(t, 1000)
		t.Run("memory", func(t *testing.T) { scripts(t, engines[:1], met) })
	}
	embedded := slices.DeleteFunc(slices.Clone(engines), func(e scenario.Engine) bool { return e.Name == "postgres" })
	if len(embedded) > 1 || len(embedded) == 1 && !inMemory {
		checks(t, 200)
		t.Run("engines side by side", func(t *testing.T) { scripts(t, embedded, met) })
	}
	if len(embedded) < len(engines) {
		checks(t, onAServer())
		t.Run("engines side by side with one on a server", func(t *testing.T) { scripts(t, engines, met) })
	}
	if inMemory && !t.Failed() && !steered() { // two hundred scripts may miss what is rare
		met.complete(t)
	}
}

// onAServer is how many scripts are run on an engine that is asked over a connection: a minute's, unless there is time for more.
func onAServer() int {
	if os.Getenv("FOUNDLING_LONG") != "" {
		return 200
	}
	return 40
}

const (
	fewestSteps = 30
	mostSteps   = 48
)

// steered reports whether the command line says what rapid is to do, as when a failure is looked at again.
func steered() bool {
	return slices.ContainsFunc(os.Args, func(arg string) bool { return strings.Contains(arg, "rapid.") })
}

// checks sets how often rapid.Check checks, and that it leaves no file behind: the seed and a scenario are printed.
func checks(t *testing.T, n int) {
	t.Helper()
	if steered() {
		return
	}
	if err := errors.Join(flag.Set("rapid.checks", strconv.Itoa(n)), flag.Set("rapid.nofailfile", "true")); err != nil {
		t.Fatal(err)
	}
}

// scripts runs random scripts on the engines.
func scripts(t *testing.T, engines []scenario.Engine, met *tally) {
	var failing []action
	defer func() { // rapid.Check leaves a failed test at once
		if len(failing) > 0 {
			t.Logf("a scenario to paste into testdata/scenarios:\n\n%s", story(shorten(t.Context(), engines, failing)))
		}
	}()
	rapid.Check(t, func(rt *rapid.T) {
		script, err := script(rt, t, engines, met)
		if err != nil {
			failing = script
			rt.Fatal(err)
		}
	})
}

// script draws a script step by step and runs it. It gives back what was done, up to the step that failed.
func script(rt *rapid.T, t *testing.T, engines []scenario.Engine, met *tally) (done []action, err error) {
	r, err := begin(t.Context(), engines, met)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	d := drawer{rt, r.model}
	for i := range rapid.IntRange(fewestSteps, mostSteps).Draw(rt, "steps") {
		done = append(done, d.action())
		if err := r.step(done[i]); err != nil {
			return done, err
		}
		if i%checkEvery == checkEvery-1 {
			if err := r.check(); err != nil {
				return done, err
			}
		}
	}
	return done, r.check()
}
