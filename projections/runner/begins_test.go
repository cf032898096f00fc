package runner_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store"
)

// gapped is a store whose positions have wide gaps: what stands at a position n of the store behind it stands here at n times wide.
type gapped struct {
	*mailbox
	reads int
}

const wide = 16_384

// After implements store.Store.
func (g *gapped) After(r events.Recorded) store.Cursor {
	r.Position /= wide
	return g.mailbox.After(r)
}

// Read implements store.Store.
func (g *gapped) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	g.reads++
	return func(yield func(events.Recorded, error) bool) {
		for r, err := range g.mailbox.Read(ctx, after, f) {
			r.Position *= wide
			if damage := (*events.Corrupt)(nil); errors.As(err, &damage) {
				at := *damage
				at.Position *= wide
				at.Begins = at.Position
				err = &at
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func TestDamagedEventIsPassedOverInOneStepAlthoughPositionsHaveGaps(t *testing.T) {
	m := newMailbox(t)
	for range 10 {
		m.enqueue(t, 1)
	}
	m.damage(t, flipEvent, 6)
	g := &gapped{mailbox: m}
	one := made(tally{name: "tally", version: 1})
	r := start(t, g, runner.Options{}, one)
	catchUp(t, r)
	same(t, r.Status()[0].Phase, runner.Following)
	same(t, r.Status()[0].Passed, runner.Passed{Events: 1, First: 6 * wide, Last: 6 * wide})
	same(t, string(current(t, m, "tally").Bytes), counted(9))
	if g.reads > 10 {
		t.Errorf("%d reads, want one or two for what is damaged", g.reads)
	}
}
