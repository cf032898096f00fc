package fsm_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const day = 24 * time.Hour

// rowsToTell are one row of every kind that is kept.
func rowsToTell() []fsm.Value {
	m, topic, w := messageIn(events.Running), topicIn(events.Paused), workerIn(events.Lost)
	lock, leader, clock := lockIn(events.Held), leaderIn(events.Led), clockIn(events.Active)
	clock.FromAt, clock.ToAt = clock.ToAt, clock.FromAt // it was set back, which makes nothing look old
	return []fsm.Value{&m, &topic, &w, &lock, &leader, &clock}
}

func TestPrune(t *testing.T) {
	permit := session(workerA, now.Add(-time.Hour), 7)
	all := map[string]string{
		"m1": "snapshotted", "topic mail": "snapshotted", "wa": "snapshotted", "lock l": "snapshotted", "leader beat": "snapshotted",
		"clock store": "snapshotted",
	}
	with := func(more map[string]string, key, word string) map[string]string {
		list := map[string]string{key: word}
		for k, v := range more {
			list[k] = v
		}
		return list
	}
	old := now.Add(-91 * day)
	tests := []struct {
		name    string
		command fsm.Prune
		pruning fsm.Pruning
		permits []fsm.Permit
		want    map[string]string
		goes    int64
		unseen  int
	}{
		{"nothing may go", fsm.Prune{Retention: 90 * day, Rows: 9}, fsm.Pruning{}, nil, map[string]string{}, 0, 0},
		{"nothing to tell", fsm.Prune{Retention: 90 * day, Rows: 9}, fsm.Pruning{Through: 20, At: old, Events: 5}, nil,
			map[string]string{"log store": "pruned"}, 20, 0},
		{"all is told, then it goes", fsm.Prune{Retention: 90 * day, Rows: 7}, fsm.Pruning{Through: 20, At: old, Events: 5, Rows: rowsToTell()},
			[]fsm.Permit{permit}, with(all, "log store", "pruned"), 20, 0},
		{"a full page is told, and nothing goes", fsm.Prune{Retention: 90 * day, Rows: 6}, fsm.Pruning{Through: 20, At: old, Events: 5, Rows: rowsToTell()},
			[]fsm.Permit{permit}, all, 0, 0},
		{"no row was asked for, so nothing goes", fsm.Prune{Retention: 90 * day}, fsm.Pruning{Through: 20, At: old, Events: 5}, nil, map[string]string{}, 0, 0},
		{"a lock whose permits were not given", fsm.Prune{Retention: 90 * day, Rows: 7}, fsm.Pruning{Through: 20, At: old, Events: 5, Rows: rowsToTell()},
			nil, map[string]string{}, 0, 1},
		{"just as old as the retention", fsm.Prune{Retention: 90 * day, Rows: 9}, fsm.Pruning{Through: 20, At: now.Add(-90 * day), Events: 5}, nil,
			map[string]string{}, 0, 0},
		{"just older", fsm.Prune{Retention: 90 * day, Rows: 9}, fsm.Pruning{Through: 20, At: now.Add(-90*day - 1), Events: 5}, nil,
			map[string]string{"log store": "pruned"}, 20, 0},
		{"before a time", fsm.Prune{Before: old.Add(1), Rows: 9}, fsm.Pruning{Through: 20, At: old, Events: 5}, nil, map[string]string{"log store": "pruned"}, 20, 0},
		{"not before that time", fsm.Prune{Before: old, Rows: 9}, fsm.Pruning{Through: 20, At: old, Events: 5}, nil, map[string]string{}, 0, 0},
		{"no bound at all", fsm.Prune{Rows: 9}, fsm.Pruning{Through: 20, At: old, Events: 5}, nil, map[string]string{}, 0, 0},
	}
	for _, tt := range tests {
		held := fsm.Held{Now: now, Log: logIn(events.Active), Pruning: tt.pruning, Permits: tt.permits}
		o, seen, err := tt.command.Decide(held)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, told(o)); diff != "" || o.Prune != tt.goes {
			t.Errorf("%s: %d goes, want %d (-want +got):\n%s", tt.name, o.Prune, tt.goes, diff)
		}
		if len(seen.Unseen) != tt.unseen {
			t.Errorf("%s: unseen are %v", tt.name, seen.Unseen)
		}
	}
}

// The event says what went, by whose wish, and how much that makes in all; a lock's snapshot who holds it.
func TestPruneTells(t *testing.T) {
	lock, old := lockIn(events.Held), now.Add(-91*day)
	held := fsm.Held{
		Now: now, Log: logIn(events.Active), Permits: []fsm.Permit{session(workerA, now.Add(-day), 7)},
		Pruning: fsm.Pruning{Through: 20, At: old, Events: 5, Rows: []fsm.Value{&lock}},
	}
	held.Permits = append(held.Permits, fsm.Permit{PermitKey: fsm.PermitKey{Lock: "r", Token: 8}})
	o, seen, err := fsm.Prune{Retention: 90 * day, Rows: 2, Decider: workerB, Term: 3, By: "ops", Detail: "why"}.Decide(held)
	if err != nil {
		t.Fatal(err)
	}
	want := []events.Event{
		&events.LockSnapshotted{
			Snapshot: events.Snapshot{State: events.AppendFields(nil, &lock)},
			Out:      []events.PermitOut{{Token: 7, Worker: workerA, AcquiredAt: now.Add(-day)}},
		},
		&events.LogPruned{
			Through: 20, UntilAt: old, Events: 5, Total: 15, Retention: 90 * day, Decider: workerB, Term: 3, By: "ops", Detail: "why",
		},
	}
	if diff := cmp.Diff(want, facts(o)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(held.Pruning, seen.Pruning); diff != "" {
		t.Errorf("seen (-want +got):\n%s", diff)
	}
	log, _ := o.Changes[1].Value.(*fsm.Log)
	if diff := cmp.Diff(&fsm.Log{Version: 2, State: events.Active, Through: 20, PrunedAt: old, Total: 15}, log); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// What is not kept cannot be told, and a lock that cannot be read is not either: nothing goes.
func TestPruneStopsAtWhatCannotBeTold(t *testing.T) {
	lock, ended, stopped, sweep := lockIn(events.Held), messageIn(events.Completed), workerIn(events.Stopped), sweepIn(events.Finished)
	for name, v := range map[string]fsm.Value{"a lock": &lock, "what has ended": &ended, "who has stopped": &stopped, "a sweep": &sweep} {
		held := fsm.Held{
			Now: now, Permits: []fsm.Permit{session(workerA, now, 7)}, Pruning: fsm.Pruning{Through: 20, At: now.Add(-day), Events: 5, Rows: []fsm.Value{v}},
			Unread: map[string]error{"l": errors.New("damaged")},
		}
		o, _, err := fsm.Prune{Retention: time.Hour, Rows: 9}.Decide(held)
		if err == nil || len(o.Changes) > 0 || o.Prune != 0 {
			t.Errorf("%s: %v, %d goes, %v", name, told(o), o.Prune, err)
		}
	}
}

func TestLongestRetention(t *testing.T) {
	of := func(state events.State, retention time.Duration) fsm.Worker {
		return fsm.Worker{State: state, Retention: retention}
	}
	for _, tt := range []struct {
		workers []fsm.Worker
		want    time.Duration
	}{
		{nil, 0},
		{[]fsm.Worker{of(events.Live, 0)}, 0},
		{[]fsm.Worker{of(events.Live, day), of(events.Lost, 3*day), of(events.Live, 2*day), of(events.Live, 0)}, 3 * day},
		{[]fsm.Worker{of(events.Live, day), of(events.Stopped, 3*day), of(events.Purged, -1)}, day},
		{[]fsm.Worker{of(events.Live, day), of(events.Lost, -time.Microsecond), of(events.Live, 2*day)}, -time.Microsecond},
	} {
		if got := fsm.LongestRetention(slices.Values(tt.workers)); got != tt.want {
			t.Errorf("of %v: %s, want %s", tt.workers, got, tt.want)
		}
	}
}

// clockOf is a clock that stepped so long ago by so much, in pairs.
func clockOf(pairs ...time.Duration) (c fsm.Clock) {
	for i := 0; i < len(pairs); i += 2 {
		at := now.Add(-pairs[i])
		c = c.Evolve(&events.ClockStepped{FromAt: at.Add(-pairs[i+1]), ToAt: at}, at)
	}
	return c
}

// What was decided while the clock was ahead counts as of the step back, and what is told of it lies no later than the prune.
func TestPruneOfWhatWasDecidedAhead(t *testing.T) {
	ahead := now.Add(3650 * day)
	for _, tt := range []struct {
		name  string
		clock fsm.Clock
		want  int64
	}{
		{"no step is known", fsm.Clock{}, 0},
		{"it was set back just as long ago as the retention", clockOf(90*day, -3650*day), 0},
		{"it was set back before", clockOf(90*day+1, -3650*day), 20},
	} {
		held := fsm.Held{Now: now, Clock: tt.clock, Pruning: fsm.Pruning{Through: 20, At: ahead, Events: 5}}
		o, seen, err := fsm.Prune{Retention: 90 * day, Rows: 1}.Decide(held)
		if err != nil || o.Prune != tt.want {
			t.Errorf("%s: through %d, %v, want %d", tt.name, o.Prune, err, tt.want)
		}
		for _, fact := range facts(o) {
			if e, ok := fact.(*events.LogPruned); !ok || !e.UntilAt.Equal(now) || !seen.At.Equal(now) {
				t.Errorf("%s: %+v, seen until %s, want both no later than %s", tt.name, fact, seen.At, now)
			}
		}
	}
}

// However often the clock steps, nothing that was stored looks older than it is, and a clock that is set ahead a little each day does not keep
// what is old for ever.
func TestAClockThatStepsDailyStaysBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var c fsm.Clock
		var truly, shown time.Duration // that passed since the beginning
		begin := now
		stored := [][2]time.Duration{}
		for range rapid.IntRange(1, 300).Draw(rt, "days") {
			stored = append(stored, [2]time.Duration{truly, shown})
			truly, shown = truly+day, shown+day
			if by := time.Duration(rapid.IntRange(-40, 80).Draw(rt, "hours")) * time.Hour; rapid.Bool().Draw(rt, "steps") {
				from := begin.Add(shown)
				shown += by
				c = c.Evolve(&events.ClockStepped{FromAt: from, ToAt: begin.Add(shown)}, begin.Add(shown))
			}
		}
		bound := c.OlderThan(begin.Add(shown), 90*day)
		for _, s := range stored {
			if begin.Add(s[1]).Before(bound) && truly-s[0] < 90*day {
				rt.Fatalf("stored %s ago, it counts as older than 90 days", truly-s[0])
			}
		}
	})
	var c fsm.Clock
	at := now
	for range 3000 {
		from := at.Add(16 * time.Hour)
		at = from.Add(8 * time.Hour)
		c = c.Evolve(&events.ClockStepped{FromAt: from, ToAt: at}, at)
	}
	if got := at.Sub(c.OlderThan(at, 90*day)); got < 135*day || got > 240*day {
		t.Errorf("after 3000 nights of a clock that stood still for 8 hours of the day, what is %s old by it goes, truly 135 days ago are 90", got)
	}
}

// What was stored before the clock was set ahead is not as old as it looks.
func TestOlderThan(t *testing.T) {
	stepped := func(ago, ahead time.Duration) fsm.Clock {
		at := now.Add(-ago)
		return fsm.Clock{Version: 1, State: events.Active, StepAt: at, FromAt: at.Add(-ahead), ToAt: at}
	}
	tests := []struct {
		name  string
		clock fsm.Clock
		want  time.Duration // before now
	}{
		{"a clock that never stepped", fsm.Clock{}, 90 * day},
		{"set ahead just now", stepped(0, 400*day), 490 * day},
		{"set ahead a while ago", stepped(89*day, 400*day), 490 * day},
		{"set ahead as long ago", stepped(90*day, 400*day), 90 * day},
		{"set back", stepped(day, -400*day), 90 * day},
		{"set ahead, and then a little", clockOf(2*day, 400*day, day, time.Minute), 490*day + time.Minute},
		{"set ahead long ago, and a little lately", clockOf(90*day+time.Minute, 400*day, day, time.Minute), 90*day + time.Minute},
		{"set ahead truly as long ago", clockOf(90*day+time.Hour, 400*day, day, time.Hour), 90*day + time.Hour},
		{"set ahead, and looking longer ago than it is by the step since", clockOf(91*day, 400*day, day, 2*day), 492 * day},
		{"set ahead and back again", clockOf(2*day, 400*day, day, -400*day), 90 * day},
		{"set ahead and half of it back", clockOf(2*day, 400*day, day, -200*day), 290 * day},
		{"set back and ahead again", clockOf(2*day, -400*day, day, 400*day), 490 * day},
	}
	for _, tt := range tests {
		if got := now.Sub(tt.clock.OlderThan(now, 90*day)); got != tt.want {
			t.Errorf("%s: before %s ago, want %s", tt.name, got, tt.want)
		}
	}
	held := fsm.Held{Now: now, Clock: stepped(day, 400*day), Pruning: fsm.Pruning{Through: 20, At: now.Add(-300 * day), Events: 5}}
	if o, _, err := (fsm.Prune{Retention: 90 * day, Rows: 9}).Decide(held); err != nil || o.Prune != 0 {
		t.Errorf("what only looks older than the retention goes: %v, %v", told(o), err)
	}
}
