package fsm_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

// sweeping is the reclaim of a sweep with the default settings that has just looked at worker a.
func sweeping() fsm.Reclaim {
	return fsm.Reclaim{BeganAt: now, Page: 100, Evidence: events.Evidence{
		Claimer: workerA, Decider: workerB, Sweep: events.ID{9}, Term: 3,
		After: fsm.DefaultReclaimAfter, Grace: fsm.DefaultClaimGrace, Limit: fsm.DefaultOrphanMaxAttempts,
	}}
}

// beating is the heartbeat of worker a, so old, with the default settings.
func beating(age time.Duration) map[events.ID]fsm.Member {
	return map[events.ID]fsm.Member{workerA: {
		Worker: workerA, LastBeatAt: now.Add(-age), Interval: fsm.DefaultHeartbeatInterval,
		FenceAfter: fsm.FenceAfter(fsm.DefaultReclaimAfter, fsm.DefaultHeartbeatInterval),
	}}
}

// estate is what worker a holds: a message with a permit, one without, and a session, all since some time ago.
func estate(age time.Duration) fsm.Held {
	m1, p1 := running(1, workerA, now.Add(-age), 4)
	m2, _ := running(2, workerA, now.Add(-age), 0)
	m1.Counted = true
	return fsm.Held{
		Now: now, Workers: map[events.ID]fsm.Worker{workerA: workerIn(events.Live)},
		Claims:  map[events.ID][]fsm.Message{workerA: {m1, m2}},
		Permits: []fsm.Permit{p1, session(workerA, now.Add(-age), 5)},
		Locks:   heldLock(2, 2),
		Beats:   beating(time.Hour),
	}
}

// all is that estate given back.
func all() map[string]string {
	return map[string]string{
		"wa": "lost", "m1": "orphaned requeued", "m2": "orphaned requeued", "lock l": "orphaned reclaimed orphaned reclaimed",
		"permits": "-l/4 -l/5",
	}
}

// Scenarios A03, C01, C04 and C05: what a dead worker holds comes back in one commit: worker, messages, slots and permits.
func TestReclaim(t *testing.T) {
	held := estate(time.Hour)
	outcome, seen, err := sweeping().Decide(held)
	if err != nil || seen != (fsm.Reclaimed{}) {
		t.Fatalf("%v, %+v", err, seen)
	}
	if diff := cmp.Diff(all(), told(outcome)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]fsm.Count{{Topic: "mail", Delta: -1}}, outcome.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	want := sweeping().Evidence
	want.Reason, want.LastBeatAt, want.Age = events.ReasonSilent, now.Add(-time.Hour), time.Hour
	want.Interval, want.FenceAfter = 15*time.Second, 90*time.Second
	token := events.Token(4)
	for _, event := range facts(outcome) {
		var got events.Evidence
		switch e := event.(type) {
		case *events.WorkerLost:
			got = e.Evidence
		case *events.MessageOrphaned:
			got = e.Evidence
		case *events.LockOrphaned:
			got = e.Evidence
		case *events.LockReclaimed:
			if e.Token != token || e.Held != int(5-token) {
				t.Errorf("the permit is back as %+v", e)
			}
			token++
			continue
		default:
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("evidence of %s (-want +got):\n%s", event.Type(), diff)
		}
	}
	for _, c := range outcome.Changes {
		if m, ok := c.Value.(*fsm.Message); ok && (m.Attempts != 1 || m.Worker != events.ID{} || m.LockToken != 0 || !m.ClaimedAt.IsZero()) {
			t.Errorf("requeued as %+v", m)
		}
	}
}

// Scenarios A05, A08, A12, C03, B11 and B12: who is dead is judged at the commit's time, by the slower of the sweeper's and the worker's bound.
func TestReclaimJudges(t *testing.T) {
	fleet := fsm.Member{Worker: workerA, Interval: time.Minute, FenceAfter: 3 * time.Minute} // its own bound is 240 s
	const s = time.Second
	tests := []struct {
		name string
		beat time.Duration
		slow bool // the worker with a bound of its own
		dead bool
	}{
		{"beats", 0, false, false},
		{"silent for 119 s", 119 * s, false, false},
		{"silent for 120 s", 120 * s, false, false},
		{"silent for 120 s and a microsecond", 120*s + time.Microsecond, false, true},
		{"silent for 121 s", 121 * s, false, true},
		{"silent for 125 s, and may be for 240", 125 * s, true, false},
		{"silent for its own 240 s", 240 * s, true, false},
		{"silent for its own 240 s and a microsecond", 240*s + time.Microsecond, true, true},
		{"has beaten since the sweep looked", -s, false, false},
	}
	for _, tt := range tests {
		held := estate(10 * time.Hour)
		held.Beats = beating(tt.beat)
		if tt.slow {
			m := fleet
			m.LastBeatAt = now.Add(-tt.beat)
			held.Beats = map[events.ID]fsm.Member{workerA: m}
		}
		outcome, seen, err := sweeping().Decide(held)
		want := map[string]string{}
		if tt.dead {
			want = all()
		}
		if diff := cmp.Diff(want, told(outcome)); err != nil || seen != (fsm.Reclaimed{Alive: !tt.dead}) || diff != "" {
			t.Errorf("%s: %v, %+v (-want +got):\n%s", tt.name, err, seen, diff)
		}
	}
}

// Scenarios A06, A22, B07, C02 and D07: silence takes nothing that is younger than the grace, a proof takes it at once.
func TestReclaimGrace(t *testing.T) {
	const s = time.Second
	proof := func(c *fsm.Reclaim, h *fsm.Held) {
		c.Evidence.Reason = events.ReasonProcessGone
		h.Beats = beating(s)
	}
	noBeat := func(_ *fsm.Reclaim, h *fsm.Held) { h.Beats = nil }
	noGrace := func(c *fsm.Reclaim, _ *fsm.Held) { c.Evidence.Grace = 0 }
	silent := func(*fsm.Reclaim, *fsm.Held) {}
	tests := []struct {
		name   string
		age    time.Duration
		given  func(*fsm.Reclaim, *fsm.Held)
		reason events.Reason
		spared int
	}{
		{"59 s", 59 * s, silent, events.ReasonSilent, 3},
		{"a microsecond short", 60*s - time.Microsecond, silent, events.ReasonSilent, 3},
		{"60 s", 60 * s, silent, events.ReasonSilent, 0},
		{"claimed by a clock that was ahead", -time.Hour, silent, events.ReasonSilent, 3},
		{"59 s, by one who never beat", 59 * s, noBeat, events.ReasonNoHeartbeat, 3},
		{"60 s, by one who never beat", 60 * s, noBeat, events.ReasonNoHeartbeat, 0},
		{"2 s and proof", 2 * s, proof, events.ReasonProcessGone, 0},
		{"at once and no grace", 0, noGrace, events.ReasonSilent, 0},
	}
	for _, tt := range tests {
		c, held := sweeping(), estate(tt.age)
		tt.given(&c, &held)
		outcome, seen, err := c.Decide(held)
		want := all()
		if tt.spared > 0 {
			want = map[string]string{"wa": "lost"}
		}
		if diff := cmp.Diff(want, told(outcome)); err != nil || seen != (fsm.Reclaimed{Spared: tt.spared}) || diff != "" {
			t.Errorf("%s: %v, %+v (-want +got):\n%s", tt.name, err, seen, diff)
		}
		lost, ok := append(facts(outcome), nil)[0].(*events.WorkerLost)
		if !ok {
			continue // which was told above
		}
		evidence := lost.Evidence
		if evidence.Reason != tt.reason || (evidence.Age != 0) != (tt.reason == events.ReasonSilent) {
			t.Errorf("%s: evidence %+v", tt.name, evidence)
		}
	}
}

// Scenario B07: each claim and each permit is judged by its own age.
func TestReclaimSparesWhatIsYoung(t *testing.T) {
	held := estate(time.Hour)
	young, permit := running(3, workerA, now.Add(-5*time.Second), 6)
	held.Claims[workerA] = append(held.Claims[workerA], young)
	held.Permits = append(held.Permits, permit, session(workerA, now.Add(-59*time.Second), 7))
	held.Locks = heldLock(9, 4)
	outcome, seen, err := sweeping().Decide(held)
	if diff := cmp.Diff(all(), told(outcome)); err != nil || seen.Spared != 2 || diff != "" {
		t.Errorf("%v, %+v (-want +got):\n%s", err, seen, diff)
	}
}

// A sweep that was held up does not act on what it knew: the next one goes on. A proof does not age.
func TestReclaimStale(t *testing.T) {
	const half = fsm.DefaultReclaimAfter / 2
	step := func(at time.Time) fsm.Clock { return fsm.Clock{Version: 1, State: events.Active, StepAt: at} }
	tests := []struct {
		name  string
		began time.Duration // before the commit
		clock fsm.Clock
		gone  bool
		stale bool
		alive bool // as yet: it is owed its bound from the step on
	}{
		{name: "just now"},
		{name: "half of the bound", began: half},
		{name: "a microsecond more", began: half + time.Microsecond, stale: true},
		{name: "a day, with proof", began: 24 * time.Hour, gone: true},
		{name: "the clock stepped long before it began", began: time.Second, clock: step(now.Add(-2*half - time.Microsecond))},
		{name: "the clock stepped before it began", began: time.Second, clock: step(now.Add(-time.Second)), alive: true},
		{name: "the clock stepped since", began: time.Second, clock: step(now.Add(-time.Second + time.Microsecond)), stale: true, alive: true},
		{name: "the clock stepped this moment", began: time.Second, clock: step(now), stale: true, alive: true},
		{name: "a step that lies ahead", began: time.Second, clock: step(now.Add(time.Microsecond))},
		{name: "the clock stepped since, with proof", began: time.Second, clock: step(now), gone: true},
	}
	for _, tt := range tests {
		c, held := sweeping(), estate(time.Hour)
		c.BeganAt, held.Clock = now.Add(-tt.began), tt.clock
		if tt.gone {
			c.Evidence.Reason = events.ReasonProcessGone
		}
		outcome, seen, err := c.Decide(held)
		want := all()
		if tt.stale || tt.alive {
			want = map[string]string{}
		}
		if diff := cmp.Diff(want, told(outcome)); err != nil || seen != (fsm.Reclaimed{Stale: tt.stale, Alive: tt.alive}) || diff != "" {
			t.Errorf("%s: %v, %+v (-want +got):\n%s", tt.name, err, seen, diff)
		}
	}
}

// Scenarios A09, A11, C09 and D07: the last orphaning dead-letters, and gives slot and permit back all the same.
func TestReclaimOrphanLimit(t *testing.T) {
	claimed := func(n int) func(*fsm.Message) { return func(m *fsm.Message) { m.Attempts = n } }
	tests := []struct {
		name  string
		given func(*fsm.Message)
		limit int
		count events.OrphanCount
		dead  bool
	}{
		{"4 claims of 5", claimed(4), 5, events.CountClaims, false},
		{"5 claims of 5", claimed(5), 5, events.CountClaims, true},
		{"5 claims, one of them released", func(m *fsm.Message) { m.Attempts, m.Releases = 5, 1 }, 5, events.CountClaims, false},
		{"the first claim of 1", claimed(1), 1, events.CountClaims, true},
		{"100 claims, no limit", claimed(100), 0, events.CountClaims, false},
		{"orphaned 3 times before, of 5", func(m *fsm.Message) { m.Attempts, m.Orphanings = 9, 3 }, 5, events.CountOrphanings, false},
		{"orphaned 4 times before, of 5", func(m *fsm.Message) { m.Attempts, m.Orphanings = 9, 4 }, 5, events.CountOrphanings, true},
		{"its own limit is higher", func(m *fsm.Message) { m.Attempts, m.Limits.OrphanMaxAttempts = 5, 6 }, 5, events.CountClaims, false},
		{"its own limit is lower", func(m *fsm.Message) { m.Attempts, m.Limits.OrphanMaxAttempts = 2, 2 }, 5, events.CountClaims, true},
		{"its own limit where the sweeper has none", func(m *fsm.Message) { m.Attempts, m.Limits.OrphanMaxAttempts = 2, 2 }, 0, events.CountClaims, true},
	}
	for _, tt := range tests {
		c, held := sweeping(), estate(time.Hour)
		c.Evidence.Limit, c.Evidence.Count = tt.limit, tt.count
		m := held.Claims[workerA][0]
		tt.given(&m)
		held.Claims[workerA][0] = m
		outcome, _, err := c.Decide(held)
		want := map[string]string{"m1": "orphaned requeued", "permits": "-l/4 -l/5"}
		if tt.dead {
			want["m1"] = "orphaned dead_lettered"
		}
		got := told(outcome)
		if diff := cmp.Diff(want, map[string]string{"m1": got["m1"], "permits": got["permits"]}); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
		if diff := cmp.Diff([]fsm.Count{{Topic: "mail", Delta: -1}}, outcome.Counts); diff != "" {
			t.Errorf("%s: counts (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A permit that somebody else holds, or that is back already, is no part of a dead worker's estate.
func TestReclaimTakesOnlyWhatIsHis(t *testing.T) {
	held := estate(time.Hour)
	m := held.Claims[workerA][0]
	m.LockToken = 3 // which was forced from it meanwhile
	held.Claims[workerA] = []fsm.Message{m}
	held.Permits = []fsm.Permit{session(workerB, now.Add(-time.Hour), 4)}
	held.Locks = heldLock(1, 1)
	outcome, _, err := sweeping().Decide(held)
	want := map[string]string{"wa": "lost", "m1": "orphaned requeued"}
	if diff := cmp.Diff(want, told(outcome)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// What a dead worker held of a lock is offered to whoever waits for it, in the same commit.
func TestReclaimUnblocks(t *testing.T) {
	held := estate(time.Hour)
	held.Waiting = map[string][]fsm.Message{"l": {waiting(7, "mail"), waiting(8, "post")}}
	outcome, _, err := sweeping().Decide(held)
	want := all()
	want["m7"], want["m8"] = "unblocked", "unblocked"
	if diff := cmp.Diff(want, told(outcome)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A reclaim that finds nothing left changes nothing, so it may be repeated by anybody, any time.
func TestReclaimAgain(t *testing.T) {
	claims, _ := mailIn(events.Running, 2)
	tests := []struct {
		name    string
		state   events.State
		claims  []fsm.Message
		changes int
	}{
		{"first page", events.Live, claims, 3},
		{"next page", events.Lost, claims, 2},
		{"nothing left", events.Lost, nil, 0},
		{"it stopped, and holds something all the same", events.Stopped, claims, 2},
		{"it stopped", events.Stopped, nil, 0},
		{"nobody knows it", events.Absent, claims, 2},
		{"nobody knows it, and it holds nothing", events.Absent, nil, 0},
		{"it held nothing", events.Live, nil, 1},
	}
	for _, tt := range tests {
		held := fsm.Held{
			Now: now, Workers: map[events.ID]fsm.Worker{}, Claims: map[events.ID][]fsm.Message{workerA: tt.claims}, Beats: beating(time.Hour),
		}
		for i := range tt.claims {
			tt.claims[i].ClaimedAt = now.Add(-time.Hour)
		}
		if tt.state != events.Absent {
			held.Workers[workerA] = workerIn(tt.state)
		}
		outcome, _, err := sweeping().Decide(held)
		if err != nil || len(outcome.Changes) != tt.changes || len(outcome.Counts) != 0 {
			t.Errorf("%s: %v, %d changes and counts %v, want %d changes", tt.name, err, len(outcome.Changes), outcome.Counts, tt.changes)
		}
	}
}

func TestReclaimIsRecordedWhole(t *testing.T) {
	want := fsm.Reclaim{BeganAt: now, Page: 7}
	var got fsm.Reclaim
	if err := events.ReadFields(events.AppendFields(nil, &want), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" { // its evidence stands in its events
		t.Errorf("(-recorded +read):\n%s", diff)
	}
}
