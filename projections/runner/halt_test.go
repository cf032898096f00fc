package runner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/faulty"
)

// A projection whose code panics stops alone, says where in every process, and goes on from its last checkpoint once the code is mended.
func TestPanicStopsOneProjectionAlone(t *testing.T) {
	h := busy(t, 11, 300)
	list, err := h.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{1, 2, 77, int64(len(list))} {
		t.Run(list[at-1].Event.Type().String(), func(t *testing.T) {
			h := busy(t, 11, 300)
			bad := made(tally{name: "tally", version: 1, panics: at})
			r := start(t, h.Store, small, bad, totals)
			catchUp(t, r)
			want := runner.Halt{Position: at, Entity: list[at-1].Entity, Type: list[at-1].Event.Type(), Text: "no such thing\n\x1b[31m"}
			status := r.Status()
			same(t, status[0].Phase, runner.Halted)
			same(t, status[0].Halt, want)
			same(t, status[1].Phase, runner.Following)
			same(t, string(current(t, h.Store, "totals").Bytes), folded(t, h, &projections.Totals{}))
			if text := want.String(); strings.ContainsAny(text, "\n\x1b") || !strings.Contains(text, "no such thing") {
				t.Errorf("in words: %q", text)
			}

			kept := checkpoints(t, h.Store, store.CheckpointFilter{Name: "tally", Newest: true})
			catchUp(t, r)
			catchUp(t, start(t, h.Store, small, bad, totals)) // tries again, and says nothing new
			same(t, checkpoints(t, h.Store, store.CheckpointFilter{Name: "tally", Newest: true})[0].CheckpointKey, kept[0].CheckpointKey)

			mended := start(t, h.Store, small, made(tally{name: "tally", version: 1}))
			if _, err := mended.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			now := mended.Status()[0]
			same(t, now.Halt.Halted(), now.AsOf.Position < at) // until it has passed the place
			catchUp(t, mended)
			v := current(t, h.Store, "tally")
			same(t, v.Halt, runner.Halt{})
			same(t, string(v.Bytes), folded(t, h, &tally{}))
		})
	}
}

// Where a projection panicked is kept with its checkpoint, whatever befalls the one who keeps it.
func TestPanicIsKeptThoughTheStoreFails(t *testing.T) {
	bad := made(tally{name: "tally", version: 1, panics: 100})
	calls := func() int {
		s := faulty.New(busy(t, 12, 300).Store, faulty.Never)
		catchUp(t, start(t, s, small, bad))
		return s.Calls()
	}()
	for n := range 2 * calls {
		h := busy(t, 12, 300)
		fault := []faulty.Fault{faulty.LostAfter, faulty.Fail}[n%2]
		r := start(t, faulty.New(h.Store, faulty.At(1+n/2, fault)), small, bad)
		failed := 0
		for range 3 {
			if err := r.CatchUp(t.Context()); err != nil {
				if failed++; !errors.Is(err, faulty.ErrPlanned) {
					t.Fatal(err)
				}
			}
		}
		shelf, _ := store.As[store.Shelf](h.Store)
		newest := checkpoints(t, h.Store, store.CheckpointFilter{Name: "tally", Newest: true})[0]
		c, err := shelf.View(t.Context(), newest.CheckpointKey)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(c.View), "no such thing") || r.Status()[0].Phase != runner.Halted {
			t.Errorf("fault %d (%d failed): %s: %s", n, failed, r.Status()[0].Phase, c.View)
		}
	}
}

// fickle is a projection whose code panics elsewhere than in Apply.
type fickle struct {
	tally
	view, restore bool
}

func (f *fickle) View() ([]byte, error) {
	if f.view {
		panic("")
	}
	return f.tally.View()
}

func (f *fickle) Restore(version int, view []byte) error {
	if f.restore {
		panic(errors.New("no view"))
	}
	return f.tally.Restore(version, view)
}

func TestPanicOutsideOfApply(t *testing.T) {
	h := busy(t, 13, 100)
	viewless := func() projections.Durable { return &fickle{tally: tally{name: "a", version: 1}, view: true} }
	whole := func() projections.Durable { return &fickle{tally: tally{name: "b", version: 1}} }
	restless := func() projections.Durable { return &fickle{tally: tally{name: "b", version: 1}, restore: true} }
	r := start(t, h.Store, small, viewless, whole)
	catchUp(t, r)
	same(t, r.Status()[0].Phase, runner.Halted)
	same(t, r.Status()[0].Halt, runner.Halt{Text: "no text"})
	same(t, r.Status()[1].Phase, runner.Following)

	r = start(t, h.Store, small, restless)
	catchUp(t, r)
	same(t, r.Status()[0].Halt.String(), "its view: panic: no view")
	v := current(t, h.Store, "b")
	same(t, v.Halt.Text, "no view")
	same(t, string(v.Bytes), folded(t, h, &tally{}))
	r = start(t, h.Store, small, whole)
	catchUp(t, r)
	same(t, r.Status()[0].Phase, runner.Following)
}

// A view that is not what was saved stops nothing else, and is told.
func TestSpoiltViewIsToldAndOthersGoOn(t *testing.T) {
	h := busy(t, 14, 100)
	for sequence, bytes := range []string{"", "{}", "{\"mail\":1}\n{}", "{}\nno json"} {
		name := "tally" + strings.Repeat("y", sequence)
		_, err := h.Store.Save(t.Context(), store.Checkpoint{
			CheckpointKey: store.CheckpointKey{Name: name, Version: 1, Sequence: 1}, View: []byte(bytes),
		})
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, h.Store, small, made(tally{name: name, version: 1}), totals)
		for more := true; more; {
			more, err = r.Step(t.Context())
			if err == nil || !strings.Contains(err.Error(), "checkpoint 1 of") && !strings.Contains(err.Error(), "restore checkpoint 1") {
				t.Errorf("%q: %v", bytes, err)
			}
		}
		same(t, r.Status()[1].Phase, runner.Following)
	}
}

// Text of a panic that is long, or no text, is kept as far as it can be.
func TestLongPanicIsCut(t *testing.T) {
	h := busy(t, 15, 20)
	what := func() projections.Durable { return &shouting{tally{name: "tally", version: 1}} }
	r := start(t, h.Store, small, what)
	catchUp(t, r)
	same(t, r.Status()[0].Halt.Text, strings.Repeat("é", 512))
	same(t, r.Status()[0].Halt.Position, 1)
}

type shouting struct{ tally }

func (s *shouting) Apply(events.Recorded) { panic(strings.Repeat("é", 10_000)) }
