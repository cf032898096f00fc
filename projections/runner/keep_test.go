package runner_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
)

// diary is a store on a clock of its own, in which something happens every few minutes.
type diary struct {
	*memory.Store
	now time.Time
	ids byte
}

func newDiary() *diary {
	d := &diary{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	d.Store = memory.New(memory.Options{Clock: func() time.Time { return d.now }})
	return d
}

// entry is one event.
func (d *diary) entry(t *testing.T) {
	t.Helper()
	id, err := mint(d.now, d.ids)
	if err != nil {
		t.Fatal(err)
	}
	d.ids++
	topic := events.TopicEntity(id.String())
	call := store.Call{ID: id, Command: events.Command{Name: "configure-topic"}, Need: store.Need{Held: []events.Entity{topic}}}
	call.Fn = func(store.View) (store.Changes, error) {
		configured := events.Transition{Event: &events.TopicConfigured{}, Version: 1, To: events.Active}
		row := store.Row{Entity: topic, Version: 1, State: events.Active, Fields: []byte(`{}`)}
		return store.Changes{Rows: []store.Change{{Row: row, Transitions: []events.Transition{configured}}}}, nil
	}
	receipts, err := d.Decide(t.Context(), call)
	if err != nil || receipts[0].Err != nil {
		t.Fatal(err, receipts)
	}
}

func mint(at time.Time, n byte) (events.ID, error) {
	text := fmt.Sprintf("%012x", at.UnixMilli())
	return parse(text[:8] + "-" + text[8:] + "-7000-8000-0000000000" + fmt.Sprintf("%02x", n))
}

func parse(text string) (id events.ID, err error) {
	err = id.UnmarshalText([]byte(text))
	return id, err
}

// For 120 days something is saved every ten minutes. What is kept is bounded, and still answers what was believed when.
func TestHistoryIsThinnedOut(t *testing.T) {
	d := newDiary()
	began := d.now
	r := start(t, d, runner.Options{}, made(tally{name: "tally", version: 1}))
	believed := map[time.Time]string{}
	most := 0
	for range 120 * 24 * 6 {
		d.now = d.now.Add(10 * time.Minute)
		d.entry(t)
		catchUp(t, r)
		believed[d.now] = fmt.Sprintf(`{"topic.configured":%d}`, len(believed)+1)
		if n := len(believed); n%97 == 0 {
			most = max(most, len(checkpoints(t, d, store.CheckpointFilter{})))
		}
	}
	if most > 100+16+48+90 {
		t.Errorf("%d checkpoints were kept", most)
	}
	kept := checkpoints(t, d, store.CheckpointFilter{})
	for _, c := range kept {
		v, ok, err := runner.Believed(t.Context(), d, "tally", c.At)
		if err != nil || !ok || v.CheckpointKey != c.CheckpointKey || string(v.Bytes) != believed[c.At] {
			t.Fatalf("at %s: %+v, %t, %v, want %s", c.At, v, ok, err, believed[c.At])
		}
	}
	for _, c := range []struct{ ago, within time.Duration }{
		{0, 0}, {10 * time.Minute, 0}, {16 * time.Hour, 0}, {40 * time.Hour, time.Hour}, {80 * 24 * time.Hour, 24 * time.Hour},
	} {
		at := d.now.Add(-c.ago)
		v, ok, err := runner.Believed(t.Context(), d, "tally", at)
		if err != nil || !ok || at.Sub(v.SavedAt) > c.within || string(v.Bytes) != believed[v.SavedAt] {
			t.Errorf("%s ago: as of %s before, %t, %v", c.ago, at.Sub(v.SavedAt), ok, err)
		}
	}
	if v, ok, err := runner.Believed(t.Context(), d, "tally", began); ok || err != nil {
		t.Errorf("before it began: %+v, %v", v, err)
	}
	if v, ok, err := runner.Current(t.Context(), d, "nobody"); ok || err != nil {
		t.Errorf("of nobody: %+v, %v", v, err)
	}
	if _, _, err := runner.Current(t.Context(), shelfless{d}, "tally"); err == nil {
		t.Error("current view in a store without a shelf")
	}
}

// The checkpoints of a version that nobody runs any more go when they are older than what is kept; what was believed then is known until there.
func TestHistoryOfAnOldVersionGoes(t *testing.T) {
	d := newDiary()
	old := start(t, d, runner.Options{}, made(tally{name: "tally", version: 1}))
	for range 50 {
		d.now = d.now.Add(time.Hour)
		d.entry(t)
		catchUp(t, old)
	}
	ended := d.now
	next := start(t, d, runner.Options{}, made(tally{name: "tally", version: 2}))
	days := func(n int) {
		for range n {
			d.now = d.now.Add(24 * time.Hour)
			d.entry(t)
			catchUp(t, next)
		}
	}
	days(80)
	v, ok, err := runner.Believed(t.Context(), d, "tally", ended)
	same(t, fmt.Sprintf("%d %t %v %s", v.Version, ok, err, v.Bytes), `1 true <nil> {"topic.configured":50}`)
	days(40)
	same(t, len(checkpoints(t, d, store.CheckpointFilter{Name: "tally", Version: 1})), 0)
}
