package corpus

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// lockPairs speak of a permit with token 41, or the next one. How many are out after it counted says.
func lockPairs() []pair {
	return []pair{
		{
			&events.LockConfigured{Permits: 4, By: "ops@example", Detail: nasty},
			&events.LockConfigured{Permits: 2},
		},
		{
			&events.LockAcquired{Token: 42, Worker: holder, Message: id(0, 3, 1), ExpiresAt: at.Add(time.Minute)},
			&events.LockAcquired{Token: 1, Worker: holder, Held: 1},
		},
		{&events.LockReleased{Token: 41}, &events.LockReleased{Token: 1}},
		{
			&events.LockOrphaned{Token: 41, Evidence: evidence()},
			&events.LockOrphaned{Token: 1, Evidence: events.Evidence{Reason: events.ReasonProcessGone, Claimer: holder}},
		},
		{&events.LockReclaimed{Token: 41}, &events.LockReclaimed{Token: 1}},
		{&events.LockForceReleased{Token: 41, By: "ops@example", Detail: nasty}, &events.LockForceReleased{Token: 1}},
		{&events.LockExpired{Token: 41}, &events.LockExpired{Token: 1}},
		{
			&events.LockRefused{Command: "unlock", Reason: events.ReasonNotHeld, Sender: other, Sent: 40},
			&events.LockRefused{Command: "unlock", Reason: events.ReasonNotHeld},
		},
		{&events.LockSnapshotted{}, &events.LockSnapshotted{}},
	}
}

// permit is how many permits more are out after an event: 1, 0 or -1.
func permit(event events.Event) int {
	switch event.Type() {
	case events.TypeLockAcquired:
		return 1
	case events.TypeLockReleased, events.TypeLockReclaimed, events.TypeLockForceReleased, events.TypeLockExpired:
		return -1
	}
	return 0
}

// counted is the events before and then this one, with what it tells of those before: the permits that are out, the events that ever went.
func counted(before []events.Event, event events.Event) []events.Event {
	held := permit(event)
	for _, e := range before {
		held += permit(e)
	}
	switch e := event.(type) {
	case *events.LockAcquired:
		acquired := *e
		acquired.Held = held
		event = &acquired
	case *events.LockReleased:
		event = &events.LockReleased{Token: e.Token, Held: held}
	case *events.LockReclaimed:
		event = &events.LockReclaimed{Token: e.Token, Held: held}
	case *events.LockForceReleased:
		event = &events.LockForceReleased{Token: e.Token, Held: held, By: e.By, Detail: e.Detail}
	case *events.LockExpired:
		event = &events.LockExpired{Token: e.Token, Held: held}
	case *events.LogPruned:
		pruned := *e
		pruned.Total = pruned.Events
		for _, b := range before {
			if earlier, ok := b.(*events.LogPruned); ok {
				pruned.Total += earlier.Events
			}
		}
		event = &pruned
	}
	return append(before, event)
}

// beatPairs speak of what the beat does: the leader's, the sweep's and the clock's.
func beatPairs() []pair {
	return []pair{
		{&events.LeaderElected{Worker: holder, Term: 6}, &events.LeaderElected{Worker: holder, Term: 1}},
		{&events.LeaderResigned{Worker: holder, Term: 6}, &events.LeaderResigned{Worker: holder, Term: 1}},
		{&events.LeaderLost{Worker: holder, Term: 6}, &events.LeaderLost{Worker: holder, Term: 1}},
		{&events.LeaderSnapshotted{}, &events.LeaderSnapshotted{}},
		{
			&events.SweepFinished{
				Decider: other, Term: 6, Thresholds: thresholds(), Liveness: liveness(), Dead: []events.ID{holder, id(0, 1, 3)},
				Pages: 2, Requeued: 101, DeadLettered: 3, LocksReleased: 4, Spared: 5, Skipped: 1,
			},
			&events.SweepFinished{Requeued: 1},
		},
		{
			&events.SweepRefused{
				Reason: events.ReasonLivenessUnproven, Detail: nasty, Decider: other, Term: 6, Thresholds: thresholds(), Liveness: liveness(),
			},
			&events.SweepRefused{Reason: events.ReasonLivenessUnreadable},
		},
		{
			&events.ClockStepped{FromAt: at.Add(time.Hour), ToAt: at.Add(-time.Microsecond), Worker: holder},
			&events.ClockStepped{FromAt: at.Add(time.Hour), ToAt: at},
		},
		{&events.ClockSnapshotted{}, &events.ClockSnapshotted{}},
		{
			&events.LogPruned{
				Through: 4711, UntilAt: at.Add(-91 * 24 * time.Hour), Events: 711, Total: 4700, Retention: 90 * 24 * time.Hour,
				Decider: other, Term: 6, By: "ops@example", Detail: nasty,
			},
			&events.LogPruned{Through: 1, UntilAt: at.Add(-time.Hour), Events: 1, Total: 1},
		},
	}
}

func thresholds() events.Thresholds {
	return events.Thresholds{After: 120 * time.Second, Grace: time.Minute, Limit: 5, Count: events.CountOrphanings}
}

func liveness() events.Liveness {
	return events.Liveness{
		Live: 2, Silent: 1, Hash: events.Commitment([16]byte{2}, []byte("who lives")), IDs: []events.ID{other, id(0, 1, 4)}, Ages: []int{14_999, 7},
	}
}
