package corpus

import (
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
)

// history leads an entity from nothing to the state that an edge begins in: a full one sets every field that the state can have set, a
// minimal one as few as it can.
func history(edge fsm.Edge, size string) []events.Event {
	if edge.From == events.Absent {
		return nil
	}
	switch edge.Event.Kind() {
	case events.KindMessage:
		return messageHistory(edge, size)
	case events.KindLock:
		return lockHistory(edge, size)
	case events.KindTopic:
		if size == "full" {
			return until(edge.From, configured(), &events.TopicPaused{By: "ops@example"})
		}
		return until(edge.From, &events.TopicConfigured{}, &events.TopicPaused{})
	case events.KindWorker:
		if size == "full" {
			return until(edge.From, started(), &events.WorkerLost{Evidence: evidence()})
		}
		return until(edge.From, &events.WorkerStarted{}, &events.WorkerLost{})
	case events.KindLeader:
		return leaderHistory(edge, size)
	case events.KindSweep:
		return []events.Event{&events.SweepFinished{Requeued: 1}}
	case events.KindLog:
		return []events.Event{&events.LogPruned{Through: 4000, UntilAt: at.Add(-92 * 24 * time.Hour), Events: 3989, Total: 3989}}
	}
	return []events.Event{&events.ClockStepped{FromAt: at.Add(-time.Hour), ToAt: at.Add(-2 * time.Hour), Worker: other}}
}

// until is a life of two events, or its first one where that leads to the state already.
func until(state events.State, first, second events.Event) []events.Event {
	switch state {
	case events.Active, events.Live:
		return []events.Event{first}
	}
	return []events.Event{first, second}
}

// leaderHistory has the one lead who resigns or is lost, or another one before who is elected.
func leaderHistory(edge fsm.Edge, size string) []events.Event {
	switch {
	case edge.From == events.Vacant:
		return []events.Event{&events.LeaderElected{Worker: other, Term: 5}, &events.LeaderResigned{Worker: other, Term: 5}}
	case size == "full":
		return []events.Event{&events.LeaderElected{Worker: holder, Term: 6}}
	}
	return []events.Event{&events.LeaderElected{Worker: holder, Term: 1}}
}

func messageHistory(edge fsm.Edge, size string) []events.Event {
	if size != "full" {
		return shortMessageHistory(edge)
	}
	list := longMessageHistory(edge.From)
	if edge.Event == events.TypeMessageCounted {
		list = list[:len(list)-1] // it ends with the same event
	}
	return list
}

// longMessageHistory leaves no count at zero.
func longMessageHistory(to events.State) []events.Event {
	list := []events.Event{
		enqueued(),
		&events.MessageClaimed{Worker: other, Token: 2, Attempt: 1, LockToken: 31},
		&events.MessageRequeued{Reason: events.ReasonReleased, Token: 2},
		&events.MessageClaimed{Worker: other, Token: 4, Attempt: 2, LockToken: 33},
		&events.MessageRequeued{Reason: events.ReasonRetry, Token: 4, DueAt: at.Add(3 * time.Second), Error: "no"},
		&events.MessageClaimed{Worker: other, Token: 6, Attempt: 3, LockToken: 35},
		&events.MessageOrphaned{Token: 6, Evidence: evidence()},
		&events.MessageRequeued{Reason: events.ReasonOrphan, Token: 6},
		&events.MessageClaimed{Worker: other, Token: 9, Attempt: 4, LockToken: 37},
		&events.MessageDeadLettered{Reason: events.ReasonHandler, Token: 9, Error: "never"},
		&events.MessageRedriven{Spent: 3, Orphanings: 1},
		&events.MessageBlocked{Lock: theLock},
		&events.MessageUnblocked{Lock: theLock},
	}
	switch to {
	case events.Blocked:
		return list[:len(list)-1]
	case events.Queued:
		return list
	}
	list = append(list, &events.MessageClaimed{Worker: holder, Token: 14, Attempt: 5, LockToken: 40}, &events.MessageCounted{})
	switch to {
	case events.Completed:
		list = append(list, &events.MessageCompleted{Token: 14})
	case events.Orphaned:
		list = append(list, &events.MessageOrphaned{Token: 14, Evidence: evidence()})
	case events.DeadLettered:
		list = append(list, &events.MessageDeadLettered{Reason: events.ReasonExhausted, Token: 14})
	}
	return list
}

func shortMessageHistory(edge fsm.Edge) []events.Event {
	list := []events.Event{&events.MessageEnqueued{Topic: "t"}}
	switch edge.Event {
	case events.TypeMessageBlocked, events.TypeMessageUnblocked, events.TypeMessageDiscarded:
		list = []events.Event{&events.MessageEnqueued{Topic: "t", Lock: "l"}}
	}
	switch edge.From {
	case events.Queued:
		return list
	case events.Blocked:
		return append(list, &events.MessageBlocked{Lock: "l"})
	}
	list = append(list, &events.MessageClaimed{Worker: holder, Token: 2, Attempt: 1})
	switch edge.From {
	case events.Completed:
		list = append(list, &events.MessageCompleted{Token: 2})
	case events.Orphaned:
		list = append(list, &events.MessageOrphaned{Token: 2})
	case events.DeadLettered:
		list = append(list, &events.MessageDeadLettered{Reason: events.ReasonHandler, Token: 2})
	}
	return list
}

// lockHistory has as many permits out as the edge needs: one, or two where one stays.
func lockHistory(edge fsm.Edge, size string) []events.Event {
	switch {
	case size != "full" && edge.From == events.Free: // the one sample of it that is minimal is of a lock that somebody configured
		return []events.Event{&events.LockConfigured{Permits: 1}}
	case size != "full":
		return []events.Event{&events.LockAcquired{Token: 1, Worker: holder, Held: 1}}
	}
	list := []events.Event{&events.LockConfigured{Permits: 3, By: "ops@example", Detail: "why"}}
	switch {
	case edge.From == events.Free:
		return list
	case othersHold(edge):
		list = append(list, &events.LockAcquired{Token: 40, Worker: other, Held: 1})
	}
	if edge.Event == events.TypeLockSnapshotted {
		list = counted(list, &events.LockAcquired{Token: 40, Worker: other, ExpiresAt: at.Add(time.Hour)})
	}
	return counted(list, &events.LockAcquired{Token: 41, Worker: holder, Message: id(0, 3, 1)})
}
