package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store"
)

// tally is a projection for tests: it counts events by type.
type tally struct {
	name    string
	version int
	takes   func(version int) bool // which versions' views Restore takes; nil is its own alone
	panics  int64                  // at which position its code panics; 0 is nowhere

	Counts map[string]int
}

func (t *tally) Name() string { return t.name }

func (t *tally) Version() int { return t.version }

func (t *tally) Apply(r events.Recorded) {
	if t.Counts == nil {
		t.Counts = map[string]int{}
	}
	t.Counts[r.Event.Type().String()]++
	if r.Position == t.panics {
		panic("no such thing\n\x1b[31m")
	}
}

func (t *tally) View() ([]byte, error) { return json.Marshal(t.Counts) }

func (t *tally) Restore(version int, view []byte) error {
	if version != t.version && (t.takes == nil || !t.takes(version)) {
		return errors.New("another version's")
	}
	return json.Unmarshal(view, &t.Counts)
}

func (t *tally) sum() int {
	n := 0
	for _, count := range t.Counts {
		n += count
	}
	return n
}

// made makes copies of a projection.
func made(t tally) func() projections.Durable {
	return func() projections.Durable { c := t; return &c }
}

func totals() projections.Durable { return &projections.Totals{} }

func busy(t *testing.T, seed uint64, steps int) *history.History {
	t.Helper()
	h := history.New(rand.New(rand.NewPCG(seed, 4)).IntN)
	if err := h.Busy(steps); err != nil {
		t.Fatal(err)
	}
	return h
}

func start(t *testing.T, s store.Store, o runner.Options, list ...func() projections.Durable) *runner.Runner {
	t.Helper()
	r, err := runner.New(s, o, list...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func catchUp(t *testing.T, r *runner.Runner) {
	t.Helper()
	if err := r.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// folded is the bytes of a projection that has taken all events that are kept.
func folded(t *testing.T, h *history.History, what projections.Durable) string {
	t.Helper()
	list, err := h.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		what.Apply(r)
	}
	return view(t, what)
}

func view(t *testing.T, what projections.Durable) string {
	t.Helper()
	bytes, err := what.View()
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes)
}

func current(t *testing.T, s store.Store, name string) runner.View {
	t.Helper()
	v, ok, err := runner.Current(t.Context(), s, name)
	if err != nil || !ok {
		t.Fatalf("current view of %s: %t, %v", name, ok, err)
	}
	return v
}

func checkpoints(t *testing.T, s store.Store, f store.CheckpointFilter) []store.Checkpoint {
	t.Helper()
	shelf, _ := store.As[store.Shelf](s)
	list, err := shelf.Checkpoints(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func same[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
