package fsm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// The defaults of the sweep's settings.
const (
	// DefaultReclaimAfter is orphan_reclaim_after: how old a heartbeat may be before its worker counts as dead.
	DefaultReclaimAfter = 120 * time.Second
	// DefaultReclaimInterval is orphan_reclaim_interval: how often the leader sweeps.
	DefaultReclaimInterval = 300 * time.Second
	// DefaultClaimGrace is orphan_claim_grace: how old a claim must be before it is taken back on the evidence of silence.
	DefaultClaimGrace = 60 * time.Second
	// DefaultHeartbeatInterval is heartbeat_interval.
	DefaultHeartbeatInterval = 15 * time.Second
	// DefaultWorkerTTL is worker_ttl: how long a lost worker that holds nothing is remembered.
	DefaultWorkerTTL = 24 * time.Hour
)

// FenceAfter is when a worker with these settings ends its handlers' contexts by itself, where nothing else was set: two heartbeats before
// others may take it for dead.
func FenceAfter(after, interval time.Duration) time.Duration { return after - 2*interval }

// Member is an incarnation by its heartbeat row.
type Member struct {
	Worker     events.ID
	LastBeatAt time.Time // zero where it has no row
	Interval   time.Duration
	FenceAfter time.Duration
	Gone       bool // its process is proven to have ended
}

// Census is what the one who sweeps knows of who lives, at one time of the store.
type Census struct {
	Now        time.Time
	Caller     events.ID
	Unreadable string // why the members could not be read; empty where they could
	Members    []Member
	Clock      Clock
	Own        []time.Time // the caller's own confirmed heartbeats by the store's time, in the order of their confirmation: those since Now − After, and one before
}

// Doubt is why a census is not trusted.
type Doubt struct {
	Reason events.Reason
	Detail string
}

// Judge says whether an incarnation is held to be dead at a time, and by which evidence; empty is alive. Of the sweeper's bound and the
// claimer's own the slower wins, so that fencing comes first. A proof needs no bound.
func Judge(m Member, t events.Thresholds, clock Clock, now time.Time) events.Reason {
	if m.Gone {
		return events.ReasonProcessGone
	}
	if m.LastBeatAt.IsZero() {
		return events.ReasonNoHeartbeat
	}
	if m.Silence(clock, now) > m.Bound(t.After) {
		return events.ReasonSilent
	}
	return ""
}

// Bound is how old the member's heartbeat may be where the one who judges allows after.
func (m Member) Bound(after time.Duration) time.Duration { return max(after, m.FenceAfter+m.Interval) }

// Silence is how old a member's heartbeat is. What was confirmed before the last step of the clock ages from that step, whichever way it went:
// nobody knows how much of the time between the two went by, and the member is owed its whole bound, which may be longer than the caller's window.
// One that lies ahead by no more than two of its intervals is young: a clock that is set back by an interval or less is not seen to step, and
// what was confirmed just before must not be as old as the last step that was. It lies behind soon.
func (m Member) Silence(clock Clock, now time.Time) time.Duration {
	if ahead := m.LastBeatAt.Sub(now); ahead > 0 && ahead <= 2*m.Interval {
		return 0
	}
	since := m.LastBeatAt
	if step := clock.StepAt; !since.IsZero() && step.After(since) && !step.After(now) {
		since = step
	}
	return clock.Age(now, since)
}

// Live is the members of the live set: whose heartbeat is at most After old, and who are not proven to have ended.
func (c Census) Live(t events.Thresholds) []Member {
	var list []Member
	for _, m := range c.Members {
		if !m.Gone && m.Silence(c.Clock, c.Now) <= t.After {
			list = append(list, m)
		}
	}
	return list
}

// GuardProof says why nobody may act on this census even where a process is proven to have ended; nil where he may.
func (c Census) GuardProof(t events.Thresholds) *Doubt {
	if c.Unreadable != "" {
		return &Doubt{events.ReasonLivenessUnreadable, c.Unreadable}
	}
	live := c.Live(t)
	if len(live) == 0 {
		return &Doubt{events.ReasonLivenessEmpty, fmt.Sprintf("of %d heartbeats none is younger than %s", len(c.Members), t.After)}
	}
	if !slices.ContainsFunc(live, func(m Member) bool { return m.Worker == c.Caller }) {
		return &Doubt{events.ReasonCallerMissing, fmt.Sprintf("%d live, the caller is not among them", len(live))}
	}
	return nil
}

// Guard says why nobody may take silence for death on this census; nil where he may. After an outage everybody looks dead. So each peer
// must have had the whole bound to say otherwise, which the caller knows by his own heartbeats: they must have come through all the while.
func (c Census) Guard(t events.Thresholds) *Doubt {
	if d := c.GuardProof(t); d != nil {
		return d
	}
	from := c.Now.Add(-t.After)
	// A step explains what else is wrong with the ages, so it is said first.
	if step := c.stepped(); step.After(from) {
		return &Doubt{events.ReasonClockStepped, fmt.Sprintf("%s ago, from %s to %s", c.Now.Sub(step), instant(c.Clock.FromAt), instant(c.Clock.ToAt))}
	}
	own := c.own()
	if skipped := len(c.Own) - len(own); skipped > 0 && (len(own) == 0 || own[0].After(from)) {
		return &Doubt{events.ReasonClockStepped, fmt.Sprintf("the caller's own heartbeat of %s was confirmed before the clock was set back", instant(c.Own[skipped-1]))}
	}
	return c.unproven(own, t, from)
}

// stepped is when the clock stepped last; zero where it never did. A step that lies ahead was recorded before somebody set the clock back, and
// says nothing about now.
func (c Census) stepped() time.Time {
	if c.Clock.StepAt.After(c.Now) {
		return time.Time{}
	}
	return c.Clock.StepAt
}

// own is the caller's heartbeats since the clock was last set back under them: one that lies behind what came after it, or in the future,
// was confirmed by another time.
func (c Census) own() []time.Time {
	next := c.Now
	for i := len(c.Own) - 1; i >= 0; i-- {
		if c.Own[i].After(next) {
			return c.Own[i+1:]
		}
		next = c.Own[i]
	}
	return c.Own
}

// unproven is the doubt about the window of the caller's own heartbeats.
func (c Census) unproven(own []time.Time, t events.Thresholds, from time.Time) *Doubt {
	if len(own) == 0 || own[0].After(from) {
		since := c.Now
		if len(own) > 0 {
			since = own[0]
		}
		return &Doubt{events.ReasonLivenessUnproven, fmt.Sprintf("the caller has beaten for %s, it must have for %s", c.Now.Sub(since), t.After)}
	}
	last := own[0]
	for _, at := range append(slices.Clone(own[1:]), c.Now) {
		// The gap that reaches into the window counts as it is; one that ended before it is over.
		if gap := at.Sub(last); gap > t.After/2 && at.After(from) {
			return &Doubt{events.ReasonLivenessUnproven, fmt.Sprintf("the caller's heartbeats have a gap of %s since %s, at most %s", gap, instant(last), t.After/2)}
		}
		last = at
	}
	return nil
}

// Proven is how long the caller still has to wait, and go on beating, until Guard has no doubt that time alone takes away; 0 where it has none.
func (c Census) Proven(t events.Thresholds) time.Duration {
	clean := c.Now // since when nothing speaks against the window
	if own := c.own(); len(own) > 0 {
		clean = own[0]
		for i, at := range append(slices.Clone(own[1:]), c.Now) {
			if at.Sub(own[i]) > t.After/2 {
				clean = at
			}
		}
	}
	if step := c.stepped(); step.After(clean) {
		clean = step
	}
	return max(0, t.After-c.Now.Sub(clean))
}

// Liveness is the live set as the log keeps it.
func (c Census) Liveness(t events.Thresholds) events.Liveness {
	live := c.Live(t)
	l := events.Liveness{Live: len(live)}
	for _, m := range c.Members {
		if !m.LastBeatAt.IsZero() {
			l.Silent++
		}
	}
	l.Silent -= len(live)
	slices.SortFunc(live, func(a, b Member) int {
		if d := a.LastBeatAt.Compare(b.LastBeatAt); d != 0 {
			return d
		}
		return bytes.Compare(a.Worker[:], b.Worker[:])
	})
	hash := sha256.New()
	for i, m := range live {
		hash.Write(m.Worker[:])
		_ = binary.Write(hash, binary.BigEndian, m.LastBeatAt.UnixMicro()) // a hash takes everything
		if i < events.Members {
			l.IDs = append(l.IDs, m.Worker)
			l.Ages = append(l.Ages, int(m.Silence(c.Clock, c.Now).Milliseconds()))
		}
	}
	if len(live) > 0 {
		l.Hash = [32]byte(hash.Sum(nil))
	}
	return l
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
