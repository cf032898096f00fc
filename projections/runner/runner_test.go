package runner_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/faulty"
	"pgregory.net/rapid"
)

// small makes a runner save and page often.
var small = runner.Options{Page: 15, Events: 30}

// A process that is killed at whatever call of the store, before or after its work, has counted each event once when another goes on.
func TestKilledAtAnyCallCountsEachEventOnce(t *testing.T) {
	t.Parallel()
	whole := func() int {
		h := busy(t, 2, 250)
		s := faulty.New(h.Store, faulty.Never)
		catchUp(t, start(t, s, small, totals, made(tally{name: "tally", version: 1})))
		return s.Calls()
	}()
	if whole < 40 {
		t.Fatalf("a whole run has %d calls, which is too few to tell much", whole)
	}
	for _, fault := range []faulty.Fault{faulty.StopBefore, faulty.StopAfter} {
		for n := 1; n <= whole; n++ {
			h := busy(t, 2, 250)
			for k := range 2 { // the second process is killed at its first calls, too
				killed := start(t, faulty.New(h.Store, faulty.At(n-k*(n/2), fault)), small, totals, made(tally{name: "tally", version: 1}))
				if err := killed.CatchUp(t.Context()); err == nil && k == 0 {
					t.Fatalf("%s at call %d: it was not killed", fault, n)
				}
			}
			catchUp(t, start(t, h.Store, small, totals, made(tally{name: "tally", version: 1})))
			for name, want := range map[string]projections.Durable{"totals": &projections.Totals{}, "tally": &tally{}} {
				if got, want := string(current(t, h.Store, name).Bytes), folded(t, h, want); got != want {
					t.Fatalf("%s at call %d: %s:\n%s\nthe log leads to\n%s", fault, n, name, got, want)
				}
			}
		}
	}
}

// Three processes run the same projection, each dying and coming back at random, while the log grows and its beginning goes.
func TestManyProcessesCountEachEventOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "n") }
		h := busy(t, rapid.Uint64().Draw(rt, "seed"), 40)
		want := &projections.Totals{} // that has seen it all
		seen := store.Cursor("")
		watch := func() {
			for r, err := range h.Store.Read(t.Context(), seen, store.Filter{}) {
				if err != nil {
					rt.Fatal(err)
				}
				want.Apply(r)
				seen = h.Store.After(r)
			}
		}
		o := runner.Options{Page: 20, Events: 50, Keep: runner.Keep{Newest: 5, Hours: -1, Days: -1}}
		fleet := make([]*runner.Runner, 3)
		for range 40 {
			i := draw(len(fleet))
			if fleet[i] == nil || draw(8) == 0 {
				fleet[i] = start(t, h.Store, o, totals)
			}
			var err error
			switch draw(6) {
			case 0, 1:
				err = h.Busy(5)
			case 2: // what somebody has saved may go, if need be once it has been
				_, saved, viewErr := runner.Current(t.Context(), h.Store, "totals")
				if err = viewErr; err == nil && !saved {
					err = fleet[i].CatchUp(t.Context())
				}
				if watch(); err == nil {
					err = h.Prune(1+draw(100), current(t, h.Store, "totals").Cursor)
				}
			default:
				_, err = fleet[i].Step(t.Context())
			}
			if err != nil {
				rt.Fatal(err)
			}
			watch()
		}
		for _, r := range fleet {
			if r != nil {
				catchUp(t, r)
			}
		}
		catchUp(t, start(t, h.Store, o, totals))
		if got, want := string(current(t, h.Store, "totals").Bytes), view(t, want); got != want {
			rt.Fatalf("kept:\n%s\nthe log led to\n%s", got, want)
		}
		rebuilt, err := runner.Rebuild(t.Context(), h.Store, totals)
		if err != nil || !rebuilt.Same() {
			rt.Fatalf("rebuilt from %+v: %v\n%s\nkept:\n%s", rebuilt.Base, err, rebuilt.Built.Bytes, rebuilt.Stored.Bytes)
		}
		if n := len(checkpoints(t, h.Store, store.CheckpointFilter{})); n > 5+16 {
			rt.Fatalf("%d checkpoints are kept", n)
		}
	})
}

func TestRebuildGivesTheSameBytes(t *testing.T) {
	h := busy(t, 2, 1500)
	r := start(t, h.Store, small, totals)
	catchUp(t, r)
	rebuilt, err := runner.Rebuild(t.Context(), h.Store, totals)
	if err != nil || !rebuilt.Same() || rebuilt.Base != (store.CheckpointKey{}) {
		t.Fatalf("rebuilt from %+v: %v\n%s\nkept:\n%s", rebuilt.Base, err, rebuilt.Built.Bytes, rebuilt.Stored.Bytes)
	}
	same(t, string(rebuilt.Built.Bytes), folded(t, h, &projections.Totals{}))

	// What is kept is spoilt by somebody: it is noticed, and put right.
	bad := rebuilt
	bad.Built.Bytes = []byte(`{"position":1,"at":1,"sweeps":{}}`)
	if err := runner.Adopt(t.Context(), h.Store, bad); err != nil {
		t.Fatal(err)
	}
	rebuilt, err = runner.Rebuild(t.Context(), h.Store, totals)
	if err != nil || rebuilt.Same() {
		t.Fatalf("the spoilt view is the same as the one that was built: %v", err)
	}
	if err := runner.Adopt(t.Context(), h.Store, rebuilt); err != nil {
		t.Fatal(err)
	}
	if err := runner.Adopt(t.Context(), h.Store, rebuilt); !errors.Is(err, store.ErrMoved) {
		t.Errorf("adopted twice: %v", err)
	}
	catchUp(t, r) // which knew nothing of all that
	if err := h.Busy(100); err != nil {
		t.Fatal(err)
	}
	catchUp(t, r)
	same(t, string(current(t, h.Store, "totals").Bytes), folded(t, h, &projections.Totals{}))
}

// A new version is seen by nobody until it has come to the end of the log; the old one goes on meanwhile.
func TestNewVersionBuildsBesideTheOldOne(t *testing.T) {
	h := busy(t, 3, 600)
	old, next := made(tally{name: "tally", version: 1}), made(tally{name: "tally", version: 2})
	catchUp(t, start(t, h.Store, small, old))
	same(t, current(t, h.Store, "tally").Version, 1)

	r := start(t, h.Store, small, next)
	for range 3 {
		if more, err := r.Step(t.Context()); err != nil || !more {
			t.Fatalf("step: %t, %v", more, err)
		}
	}
	same(t, r.Status()[0].Phase, runner.Building)
	same(t, len(checkpoints(t, h.Store, store.CheckpointFilter{Version: 2})) > 0, true)
	same(t, current(t, h.Store, "tally").Version, 1)
	if _, err := runner.Read(t.Context(), h.Store, next, 1000); !errors.Is(err, runner.ErrBuilding) {
		t.Errorf("read of what is being built: %v", err)
	}
	catchUp(t, start(t, h.Store, small, next)) // by another process
	same(t, current(t, h.Store, "tally").Version, 2)
	catchUp(t, r)
	same(t, r.Status()[0].Phase, runner.Following)

	if err := h.Busy(50); err != nil {
		t.Fatal(err)
	}
	catchUp(t, start(t, h.Store, small, old))
	catchUp(t, r)
	for _, version := range []int{1, 2} {
		rebuilt, err := runner.Rebuild(t.Context(), h.Store, made(tally{name: "tally", version: version}))
		if err != nil || !rebuilt.Same() || rebuilt.Stored.Since != (projections.Mark{}) {
			t.Errorf("version %d: %v, since %v", version, err, rebuilt.Stored.Since)
		}
		same(t, string(rebuilt.Built.Bytes), folded(t, h, &tally{}))
	}
}

// Every version that is kept is listed with its newest view, whether it is current or halted.
func TestVersionsListsWhatIsKept(t *testing.T) {
	h := busy(t, 8, 200)
	if kept, err := runner.Versions(t.Context(), h.Store); err != nil || len(kept) > 0 {
		t.Errorf("before anything ran: %v, %v", kept, err)
	}
	catchUp(t, start(t, h.Store, small, made(tally{name: "tally", version: 1}), totals))
	catchUp(t, start(t, h.Store, small, made(tally{name: "tally", version: 2, panics: 100})))
	kept, err := runner.Versions(t.Context(), h.Store)
	if err != nil || len(kept) != 3 {
		t.Fatalf("%d versions, %v", len(kept), err)
	}
	for i, want := range []struct {
		name    string
		version int
		current bool
		halt    int64
	}{{"tally", 1, true, 0}, {"tally", 2, false, 100}, {"totals", 1, true, 0}} {
		v := kept[i].View
		if v.Name != want.name || v.Version != want.version || v.Current != want.current || v.Halt.Position != want.halt {
			t.Errorf("%d: %+v, want %+v", i, v, want)
		}
		if n := len(checkpoints(t, h.Store, store.CheckpointFilter{Name: v.Name, Version: v.Version})); kept[i].Checkpoints != n {
			t.Errorf("%s version %d has %d checkpoints, told are %d", v.Name, v.Version, n, kept[i].Checkpoints)
		}
	}
	if _, err := runner.Versions(t.Context(), shelfless{h.Store}); !errors.Is(err, runner.ErrNoShelf) {
		t.Errorf("in a store without a shelf: %v", err)
	}
}

// A projection that is forgotten holds nothing back. One that runs all the same counts anew.
func TestForgottenProjectionHoldsNothingBack(t *testing.T) {
	h := busy(t, 8, 200)
	r := start(t, h.Store, small, made(tally{name: "tally", version: 1}), totals)
	catchUp(t, r)
	n := len(checkpoints(t, h.Store, store.CheckpointFilter{Name: "tally"}))
	if got, err := runner.Forget(t.Context(), h.Store, "tally"); err != nil || got != n || n == 0 {
		t.Errorf("forgot %d checkpoints of %d, %v", got, n, err)
	}
	if kept, err := runner.Versions(t.Context(), h.Store); err != nil || len(kept) != 1 || kept[0].View.Name != "totals" {
		t.Errorf("kept is %v, %v, want the totals", kept, err)
	}
	if got, err := runner.Forget(t.Context(), h.Store, "tally"); err != nil || got != 0 {
		t.Errorf("once more: forgot %d, %v", got, err)
	}
	if err := h.Busy(50); err != nil {
		t.Fatal(err)
	}
	catchUp(t, r)
	if got, want := string(current(t, h.Store, "tally").Bytes), folded(t, h, &tally{name: "tally", version: 1}); got != want {
		t.Errorf("the one that ran on has\n%s\nwant\n%s", got, want)
	}
	if _, err := runner.Forget(t.Context(), shelfless{h.Store}, "tally"); !errors.Is(err, runner.ErrNoShelf) {
		t.Errorf("in a store without a shelf: %v", err)
	}
}

// Where the log's beginning has gone, a new version begins with the oldest view of an older version that it takes, and else says since when it counts.
func TestNewVersionOnAPrunedLog(t *testing.T) {
	h := busy(t, 4, 600)
	catchUp(t, start(t, h.Store, small, made(tally{name: "tally", version: 1})))
	all := checkpoints(t, h.Store, store.CheckpointFilter{})
	base := all[len(all)/2]
	if err := h.Prune(1_000_000, base.Cursor); err != nil {
		t.Fatal(err)
	}
	list, err := h.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := list[0]
	catchUp(t, start(t, h.Store, small, made(tally{name: "tally", version: 1})))

	takes := made(tally{name: "tally", version: 2, takes: func(int) bool { return true }})
	catchUp(t, start(t, h.Store, small, takes))
	rebuilt, err := runner.Rebuild(t.Context(), h.Store, takes)
	if err != nil || !rebuilt.Same() || rebuilt.Stored.Since != (projections.Mark{}) {
		t.Errorf("with a base: %v, since %v", err, rebuilt.Stored.Since)
	}
	reading, err := runner.Read(t.Context(), h.Store, takes, 10)
	if err != nil {
		t.Fatal(err)
	}
	same(t, int64(reading.What.(*tally).sum()), list[len(list)-1].Position)

	picky := made(tally{name: "tally", version: 3, takes: func(int) bool { return false }})
	r := start(t, h.Store, small, picky)
	catchUp(t, r)
	since := projections.Mark{Position: first.Position, At: first.At()}
	same(t, r.Status()[0].Since, since)
	same(t, current(t, h.Store, "tally").Since, since)
	same(t, string(current(t, h.Store, "tally").Bytes), folded(t, h, &tally{}))
	catchUp(t, start(t, h.Store, small, picky))
	same(t, current(t, h.Store, "tally").Since, since)

	// What a newer version holds is no base of an older one, whatever that takes.
	catchUp(t, start(t, h.Store, small, made(tally{name: "later", version: 2})))
	older := start(t, h.Store, small, made(tally{name: "later", version: 1, takes: func(int) bool { return true }}))
	catchUp(t, older)
	same(t, older.Status()[0].Since, since)
}

// Retention went past what an old binary had saved, which nobody ran for long: it begins anew, and says so.
func TestOvertakenByRetentionBeginsAnew(t *testing.T) {
	h := busy(t, 5, 100)
	r := start(t, h.Store, small, totals)
	catchUp(t, r)
	if err := h.Busy(300); err != nil {
		t.Fatal(err)
	}
	if err := h.Prune(1_000_000, ""); err != nil {
		t.Fatal(err)
	}
	if err := h.Busy(50); err != nil {
		t.Fatal(err)
	}
	catchUp(t, r)
	v := current(t, h.Store, "totals")
	if v.Since.Position == 0 || v.Since.Position > v.AsOf.Position {
		t.Errorf("it counts since %+v, as of %+v", v.Since, v.AsOf)
	}
	var reached projections.Totals
	if err := reached.Restore(v.Version, v.Bytes); err != nil {
		t.Fatal(err)
	}
	same(t, reached.Counts().Topics[projections.UnknownTopic].Enqueued, 0)
}

func TestForeignAndAheadCheckpointsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		cursor store.Cursor
		want   error
	}{
		"ahead":   {store.CursorAt(events.ID{15: 1}, 1<<40), store.ErrAhead},
		"foreign": {store.CursorAt(events.ID{15: 2}, 1), store.ErrCursor},
		"no":      {"mail", store.ErrCursor},
	} {
		t.Run(name, func(t *testing.T) {
			h := busy(t, 6, 50)
			_, err := h.Store.Save(t.Context(), store.Checkpoint{
				CheckpointKey: store.CheckpointKey{Name: "tally", Version: 1, Sequence: 1}, Cursor: c.cursor, View: []byte("{}\n{}"),
			})
			if err != nil {
				t.Fatal(err)
			}
			r := start(t, h.Store, small, made(tally{name: "tally", version: 1}), totals)
			catchUp(t, r)
			status := r.Status()
			if status[0].Phase != runner.Halted || !errors.Is(status[0].Err, c.want) {
				t.Errorf("it is %s: %v, want %v", status[0].Phase, status[0].Err, c.want)
			}
			same(t, status[1].Phase, runner.Following)
			same(t, len(checkpoints(t, h.Store, store.CheckpointFilter{Name: "tally"})), 1)
			if _, err := runner.Rebuild(t.Context(), h.Store, made(tally{name: "tally", version: 1})); err == nil {
				t.Error("it was rebuilt up to where the log has never been")
			}
		})
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	h := busy(t, 7, 1)
	for want, c := range map[string]struct {
		o    runner.Options
		list []func() projections.Durable
	}{
		"projection runner: option Events is -1: want 1 or more":   {o: runner.Options{Events: -1}},
		"projection runner: option Page is -2: want 1 or more":     {o: runner.Options{Page: -2}},
		"projection runner: option Every is 1ns: want 1ms or more": {o: runner.Options{Every: 1}},
		"projection runner: option Poll is -1ns: want 1ms or more": {o: runner.Options{Poll: -1}},
		"projection runner: name \"\": want 1 to 200 bytes":        {list: []func() projections.Durable{made(tally{version: 1})}},
		"projection runner: tally: version 0: want 1 or more":      {list: []func() projections.Durable{made(tally{name: "tally"})}},
		"projection runner: totals is there twice":                 {list: []func() projections.Durable{totals, totals}},
	} {
		_, err := runner.New(h.Store, c.o, c.list...)
		same(t, fmt.Sprint(err), want)
	}
	if _, err := runner.New(shelfless{h.Store}, runner.Options{}); !errors.Is(err, runner.ErrNoShelf) {
		t.Errorf("a store without a shelf: %v", err)
	}
}

// shelfless is a store that keeps no checkpoints.
type shelfless struct{ store.Store }
