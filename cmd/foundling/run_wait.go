package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/findings"
)

// idleFor is how long this process has nothing to run before it says what it waits for.
const idleFor = time.Second

// waiting says, once, what this process waits for while only other processes run lines.
type waiting struct {
	batch *batch
	out   *console
	since time.Time // when this process ran nothing and others did; zero while it is not so
	said  map[events.ID]bool
}

// look finds out whether this process waits for others.
func (w *waiting) look(ctx context.Context, t *tally) error {
	others, own := t.holders()
	switch {
	case own || len(others) == 0:
		w.since = time.Time{}
		return nil
	case w.since.IsZero():
		w.since = time.Now()
	}
	if time.Since(w.since) < idleFor || !slices.ContainsFunc(slices.Collect(maps.Keys(others)), func(id events.ID) bool { return !w.said[id] }) {
		return nil
	}
	known, err := w.batch.peers(ctx)
	if err != nil {
		return err
	}
	if w.said == nil {
		w.said = map[events.ID]bool{}
	}
	ids := slices.SortedFunc(maps.Keys(others), func(x, y events.ID) int { return bytes.Compare(x[:], y[:]) })
	for _, id := range ids {
		p, ok := known[id]
		if !ok || p.life == gone || w.said[id] { // it ended a moment ago, and a sweep gives its lines back
			continue
		}
		w.said[id] = true
		w.out.say("%s: waiting for %s of process %d: %s", w.batch.name, count(others[id], "line"), p.PID, p.why(w.batch.location))
	}
	return nil
}

// why says why lines of a worker that nobody knows to be gone stay with it, and for how long.
func (p peer) why(at location) string {
	until := "what it runs is taken back once it has been silent for " + findings.Span(runReclaimAfter)
	switch {
	case p.life == living && p.Host == thisProcess().Host:
		return "it is alive, or stopped; " + until
	case at.dsn != "":
		return "its end cannot be proven, for a database knows no processes; " + until
	case p.proof:
		return "its end cannot be proven, for the file that would prove it is gone; " + until
	}
	return fmt.Sprintf("its end cannot be proven, for the store's file system, or host %s, has no proof of it; %s", harmless(p.Host), until)
}
