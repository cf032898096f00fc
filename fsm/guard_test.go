package fsm_test

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

var usual = events.Thresholds{After: fsm.DefaultReclaimAfter, Grace: fsm.DefaultClaimGrace, Limit: fsm.DefaultOrphanMaxAttempts}

// ago is instants before now, in seconds, in the order given.
func ago(seconds ...float64) []time.Time {
	list := make([]time.Time, len(seconds))
	for i, s := range seconds {
		list[i] = now.Add(-time.Duration(s * float64(time.Second)))
	}
	return list
}

// member is one whose last heartbeat is so many seconds old.
func member(id events.ID, seconds float64) fsm.Member {
	return fsm.Member{Worker: id, LastBeatAt: ago(seconds)[0], Interval: 15 * time.Second, FenceAfter: 90 * time.Second}
}

// trusted is a census of worker b, who has beaten every 15 s for more than the bound, beside worker a, who is silent.
func trusted() fsm.Census {
	return fsm.Census{
		Now: now, Caller: workerB, Members: []fsm.Member{member(workerB, 0), member(workerA, 121)},
		Own: ago(135, 120, 105, 90, 75, 60, 45, 30, 15, 0),
	}
}

func TestJudge(t *testing.T) {
	const us = 1e-6
	slow := func(m fsm.Member) fsm.Member { m.Interval, m.FenceAfter = time.Minute, 3*time.Minute; return m }
	unfenced := func(m fsm.Member) fsm.Member { m.FenceAfter = 0; return m }
	rare := func(m fsm.Member) fsm.Member { m.Interval = 5 * time.Minute; return m }
	gone := func(m fsm.Member) fsm.Member { m.Gone = true; return m }
	stepped := fsm.Clock{State: events.Active, StepAt: now.Add(-120*time.Second - time.Microsecond)}
	tests := []struct {
		name   string
		member fsm.Member
		clock  fsm.Clock
		want   events.Reason
	}{
		{"beats", member(workerA, 0), fsm.Clock{}, ""},
		{"silent for the bound", member(workerA, 120), fsm.Clock{}, ""},
		{"silent for longer", member(workerA, 120+us), fsm.Clock{}, events.ReasonSilent},
		{"its own bound is longer", slow(member(workerA, 240)), fsm.Clock{}, ""},
		{"its own bound is over", slow(member(workerA, 240+us)), fsm.Clock{}, events.ReasonSilent},
		{"it has no bound of its own", unfenced(member(workerA, 120+us)), fsm.Clock{}, events.ReasonSilent},
		{"it has no bound of its own, and beats only every five minutes", rare(unfenced(member(workerA, 299))), fsm.Clock{}, ""},
		{"it has no bound of its own and is not silent for long", unfenced(member(workerA, 120)), fsm.Clock{}, ""},
		{"its process is gone", gone(member(workerA, 0)), fsm.Clock{}, events.ReasonProcessGone},
		{"its process is gone and it is silent", gone(member(workerA, 999)), fsm.Clock{}, events.ReasonProcessGone},
		{"its process is gone and it never beat", fsm.Member{Gone: true}, fsm.Clock{}, events.ReasonProcessGone},
		{"it never beat", fsm.Member{Worker: workerA}, fsm.Clock{}, events.ReasonNoHeartbeat},
		{"it beat by a clock that is ahead", member(workerA, -600), fsm.Clock{}, ""},
		{"it beat by a clock that was set back longer ago", member(workerA, -600), stepped, events.ReasonSilent},
		{"it beat before the clock was set", slow(member(workerA, 7200)), stepped, ""},
		{"it beat before the clock was set, and its own bound is over since", member(workerA, 7200), stepped, events.ReasonSilent},
		{"it beat before the clock was set back by who is ahead", member(workerA, 7200), fsm.Clock{State: events.Active, StepAt: now.Add(time.Hour)}, events.ReasonSilent},
		{"it beat by a clock that was set back just now", member(workerA, -600), fsm.Clock{State: events.Active, StepAt: now}, ""},
	}
	for _, tt := range tests {
		if got := fsm.Judge(tt.member, usual, tt.clock, now); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Scenarios B01 to B06 and B10: a census that leaves any doubt lets nobody act.
func TestGuard(t *testing.T) {
	const us = 1e-6
	step := func(seconds float64) fsm.Clock {
		return fsm.Clock{Version: 1, State: events.Active, StepAt: ago(seconds)[0], FromAt: now, ToAt: now.Add(time.Hour)}
	}
	own := func(seconds ...float64) func(*fsm.Census) { return func(c *fsm.Census) { c.Own = ago(seconds...) } }
	tests := []struct {
		name  string
		given func(*fsm.Census)
		want  events.Reason // of Guard; empty is trusted
		proof events.Reason // of GuardProof
	}{
		{"B04 as it should be", func(*fsm.Census) {}, "", ""},
		{"B01 unreadable", func(c *fsm.Census) { c.Unreadable = "no" }, events.ReasonLivenessUnreadable, events.ReasonLivenessUnreadable},
		{"B02 nobody", func(c *fsm.Census) { c.Members = nil }, events.ReasonLivenessEmpty, events.ReasonLivenessEmpty},
		{"nobody with a heartbeat", func(c *fsm.Census) { c.Members = []fsm.Member{{Worker: workerB}} },
			events.ReasonLivenessEmpty, events.ReasonLivenessEmpty},
		{"B05 all have stopped beating", func(c *fsm.Census) { c.Members[0] = member(workerB, 120+us) },
			events.ReasonLivenessEmpty, events.ReasonLivenessEmpty},
		{"the caller's heartbeat is as old as it may be", func(c *fsm.Census) { c.Members[0] = member(workerB, 120) }, "", ""},
		{"B03 the caller is not there", func(c *fsm.Census) { c.Members = []fsm.Member{member(workerA, 1)} },
			events.ReasonCallerMissing, events.ReasonCallerMissing},
		{"B06 the caller beats ten minutes behind", func(c *fsm.Census) { c.Members = []fsm.Member{member(workerB, 600), member(workerA, 1)} },
			events.ReasonCallerMissing, events.ReasonCallerMissing},
		{"the caller's process is said to be gone", func(c *fsm.Census) { c.Members[0].Gone, c.Members[1] = true, member(workerA, 1) },
			events.ReasonCallerMissing, events.ReasonCallerMissing},
		{"everybody's process is gone", func(c *fsm.Census) { c.Members[0].Gone = true }, events.ReasonLivenessEmpty, events.ReasonLivenessEmpty},
		{"nobody is caller", func(c *fsm.Census) { c.Caller = events.ID{} }, events.ReasonCallerMissing, events.ReasonCallerMissing},

		{"never beaten", own(), events.ReasonLivenessUnproven, ""},
		{"since exactly the bound", own(120, 75, 30, 0), "", ""},
		{"for a microsecond less", own(120-us, 75, 30, 0), events.ReasonLivenessUnproven, ""},
		{"a gap of half the bound", own(120, 90, 30, 0), "", ""},
		{"a gap of a microsecond more", own(120, 90+us, 30, 0), events.ReasonLivenessUnproven, ""},
		{"a gap that reaches into the window", own(160, 99, 60, 30, 0), events.ReasonLivenessUnproven, ""},
		{"a gap of half the bound that reaches into the window", own(160, 100, 60, 30, 0), "", ""},
		{"a gap that ended as the window began", own(200, 120, 60, 30, 0), "", ""},
		{"a gap that ended within it by a microsecond", own(200, 120-us, 60, 30, 0), events.ReasonLivenessUnproven, ""},
		{"a gap before it", own(999, 130, 100, 60, 30, 0), "", ""},
		{"the caller is silent for half the bound", own(120, 90, 60), "", ""},
		{"the caller is silent for a microsecond more", own(120, 90, 60+us), events.ReasonLivenessUnproven, ""},

		{"B10 the clock stepped just now", func(c *fsm.Census) { c.Clock = step(0) }, events.ReasonClockStepped, ""},
		{"the clock stepped within the window", func(c *fsm.Census) { c.Clock = step(120 - us) }, events.ReasonClockStepped, ""},
		{"the clock stepped as the window began", func(c *fsm.Census) { c.Clock = step(120) }, "", ""},
		{"the clock stepped long ago", func(c *fsm.Census) { c.Clock = step(9999) }, "", ""},
		{"a step that lies ahead says nothing by itself", func(c *fsm.Census) { c.Clock = step(-600) }, "", ""},
		{"B10 the clock is ahead of what the caller saw", own(135, 120, 60, -600), events.ReasonClockStepped, ""},
		{"the clock was set back and the window is not clean yet", own(135, 120, -600, 119, 60, 0), events.ReasonClockStepped, ""},
		{"B10 the clock was set back and the window is clean again", own(999, 984, -600, 120, 60, 0), "", ""},
		{"the clock was set back, and time has passed what it had said", own(50, 35, 20, 119, 60, 0), events.ReasonClockStepped, ""},
		{"the same, and the window is clean again", own(50, 35, 20, 120, 60, 0), "", ""},
		{"a clean window behind a step, with a gap", own(999, -600, 120, 59, 0), events.ReasonLivenessUnproven, ""},
	}
	for _, tt := range tests {
		c := trusted()
		tt.given(&c)
		if got := reason(c.Guard(usual)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if got := reason(c.GuardProof(usual)); got != tt.proof {
			t.Errorf("%s, with proof of death: %q, want %q", tt.name, got, tt.proof)
		}
	}
}

func reason(d *fsm.Doubt) events.Reason {
	if d == nil {
		return ""
	}
	return d.Reason
}

// Of several doubts the first one is said: what explains the others.
func TestGuardPrecedence(t *testing.T) {
	c := fsm.Census{Now: now, Caller: workerB, Unreadable: "no", Clock: fsm.Clock{State: events.Active, StepAt: now}, Own: ago(-60)}
	cures := []struct {
		want events.Reason
		cure func()
	}{
		{events.ReasonLivenessUnreadable, func() { c.Unreadable = "" }},
		{events.ReasonLivenessEmpty, func() { c.Members = []fsm.Member{member(workerA, 0)} }},
		{events.ReasonCallerMissing, func() { c.Members = append(c.Members, member(workerB, 0)) }},
		{events.ReasonClockStepped, func() { c.Clock = fsm.Clock{} }},
		{events.ReasonClockStepped, func() { c.Own = ago(10) }},
		{events.ReasonLivenessUnproven, func() { c.Own = trusted().Own }},
	}
	for i, step := range cures {
		d := c.Guard(usual)
		if reason(d) != step.want || d.Detail == "" {
			t.Errorf("doubt %d: %+v, want %s", i, d, step.want)
		}
		step.cure()
	}
	if d := c.Guard(usual); d != nil {
		t.Errorf("without any: %+v", d)
	}
}

// Every guard says what it saw.
func TestDoubtsSayWhatTheySaw(t *testing.T) {
	tests := []struct {
		given func(*fsm.Census)
		want  string
	}{
		{func(c *fsm.Census) { c.Unreadable = "disk I/O error" }, "disk I/O error"},
		{func(c *fsm.Census) { c.Members[0] = member(workerB, 130) }, "of 2 heartbeats none is younger than 2m0s"},
		{func(c *fsm.Census) { c.Members = []fsm.Member{member(workerA, 1)} }, "1 live, the caller is not among them"},
		{func(c *fsm.Census) { c.Own = ago(30, 0) }, "the caller has beaten for 30s, it must have for 2m0s"},
		{func(c *fsm.Census) { c.Own = nil }, "the caller has beaten for 0s, it must have for 2m0s"},
		{func(c *fsm.Census) { c.Own = ago(130, 100, 30, 0) }, "a gap of 1m10s since 2026-01-02T03:02:25Z, at most 1m0s"},
		{func(c *fsm.Census) { c.Own = ago(-1) }, "own heartbeat of 2026-01-02T03:04:06Z was confirmed before the clock was set back"},
		{func(c *fsm.Census) { c.Clock = clockIn(events.Active); c.Clock.StepAt = now.Add(-time.Minute) },
			"1m0s ago, from 2026-01-02T03:04:05Z to 2026-01-02T03:14:05Z"},
	}
	for _, tt := range tests {
		c := trusted()
		tt.given(&c)
		if d := c.Guard(usual); d == nil || !strings.Contains(d.Detail, tt.want) {
			t.Errorf("%+v, want %q", d, tt.want)
		}
	}
}

// How long the caller still has to beat, and after that it may act.
func TestProven(t *testing.T) {
	const us = 1e-6
	step := func(seconds float64) func(*fsm.Census) {
		return func(c *fsm.Census) { c.Clock = fsm.Clock{State: events.Active, StepAt: ago(seconds)[0]} }
	}
	own := func(seconds ...float64) func(*fsm.Census) { return func(c *fsm.Census) { c.Own = ago(seconds...) } }
	tests := []struct {
		name  string
		given func(*fsm.Census)
		want  float64 // seconds
	}{
		{"nothing to wait for", func(*fsm.Census) {}, 0},
		{"never beaten", own(), 120},
		{"beaten for 50 s", own(50, 20, 0), 70},
		{"beaten for the bound", own(120, 75, 30, 0), 0},
		{"a gap that is half the bound", own(130, 100, 40, 0), 0},
		{"a gap that ended 30 s ago", own(130, 100, 30, 0), 90},
		{"two gaps", own(300, 200, 100, 30, 0), 90},
		{"a gap that ended before the window", own(999, 130, 100, 60, 0), 0},
		{"the gap goes on", own(130, 100, 60+us), 120},
		{"the clock stepped 20 s ago", step(20), 100},
		{"the clock stepped as the window began", step(120), 0},
		{"the clock stepped before a gap ended", func(c *fsm.Census) { own(130, 100, 30, 0)(c); step(50)(c) }, 90},
		{"a step that lies ahead", step(-600), 0},
		{"the clock was set back 40 s ago", own(135, 120, -600, 40, 0), 80},
		{"the clock was set back and nobody has beaten since", own(135, 120, -600), 120},
	}
	for _, tt := range tests {
		c := trusted()
		tt.given(&c)
		want := time.Duration(tt.want * float64(time.Second))
		if got := c.Proven(usual); got != want {
			t.Errorf("%s: %s, want %s", tt.name, got, want)
		}
		if d := c.Guard(usual); (d == nil) != (want == 0) {
			t.Errorf("%s: has to wait for %s, and the guard says %+v", tt.name, want, d)
		}
		c.Members[0].LastBeatAt = now.Add(want)
		if until := beatUntil(c, want); until.Guard(usual) != nil {
			t.Errorf("%s: after %s the guard still says %+v", tt.name, want, until.Guard(usual))
		} else if want > 0 && beatUntil(c, want-time.Microsecond).Guard(usual) == nil {
			t.Errorf("%s: a microsecond before %s the guard says nothing", tt.name, want)
		}
	}
}

// beatUntil is the census after some time in which the caller went on beating, at once and then every second.
func beatUntil(c fsm.Census, wait time.Duration) fsm.Census {
	c.Own = slices.Clone(c.Own)
	for at := time.Duration(0); at <= wait; at += time.Second {
		c.Own = append(c.Own, c.Now.Add(at))
	}
	c.Now = c.Now.Add(wait)
	return c
}

func TestLive(t *testing.T) {
	c := fsm.Census{Now: now, Members: []fsm.Member{
		member(events.ID{1}, 0), member(events.ID{2}, 120), member(events.ID{3}, 121), {Worker: events.ID{4}},
		{Worker: events.ID{5}, LastBeatAt: now, Gone: true}, member(events.ID{6}, -5),
	}}
	live := func() (ids []byte) {
		for _, m := range c.Live(usual) {
			ids = append(ids, m.Worker[0])
		}
		return ids
	}
	if diff := cmp.Diff([]byte{1, 2, 6}, live()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.Clock = fsm.Clock{State: events.Active, StepAt: now.Add(-time.Second)}
	if diff := cmp.Diff([]byte{1, 2, 3, 6}, live()); diff != "" {
		t.Errorf("the clock has just stepped (-want +got):\n%s", diff)
	}
}

// The log keeps who lived: the longest silent first, of a large set a hundred, and the hash of all.
func TestLiveness(t *testing.T) {
	for _, n := range []int{0, 1, 99, 100, 101, 250} {
		c := fsm.Census{Now: now}
		hash := sha256.New()
		for i := range n {
			id := events.ID{byte(i >> 8), byte(i)}
			m := member(id, 100-float64(i)/4)
			c.Members = append(c.Members, m)
			hash.Write(id[:])
			_ = binary.Write(hash, binary.BigEndian, m.LastBeatAt.UnixMicro())
		}
		want := events.Liveness{Live: n, Silent: 2}
		for i := range min(n, events.Members) {
			want.IDs = append(want.IDs, events.ID{byte(i >> 8), byte(i)})
			want.Ages = append(want.Ages, 100_000-250*i)
		}
		if n > 0 {
			want.Hash = [32]byte(hash.Sum(nil))
		}
		c.Members = append(c.Members, member(workerA, 121), member(workerB, 999), fsm.Member{Worker: events.ID{0xc}})
		slices.Reverse(c.Members) // the order in which they were read says nothing
		before := slices.Clone(c.Members)
		if diff := cmp.Diff(want, c.Liveness(usual)); diff != "" {
			t.Errorf("%d members (-want +got):\n%s", n, diff)
		}
		if diff := cmp.Diff(before, c.Members); diff != "" {
			t.Errorf("%d members were changed (-before +after):\n%s", n, diff)
		}
	}
}

// Who beat at the same instant stands by id; a census in another order is the same set.
func TestLivenessOfOneInstant(t *testing.T) {
	c := fsm.Census{Now: now, Members: []fsm.Member{member(workerB, 1), member(workerA, 1)}}
	l := c.Liveness(usual)
	if diff := cmp.Diff([]events.ID{workerA, workerB}, l.IDs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	slices.Reverse(c.Members)
	if diff := cmp.Diff(l, c.Liveness(usual)); diff != "" {
		t.Errorf("in another order (-before +after):\n%s", diff)
	}
	c.Members[0].LastBeatAt = now
	if c.Liveness(usual).Hash == l.Hash {
		t.Error("a later heartbeat leaves the hash as it was")
	}
}

// A worker ends its handlers' contexts two heartbeats before others may take it for dead.
func TestFenceAfter(t *testing.T) {
	if got := fsm.FenceAfter(fsm.DefaultReclaimAfter, fsm.DefaultHeartbeatInterval); got != 90*time.Second {
		t.Errorf("%s with the defaults", got)
	}
}
