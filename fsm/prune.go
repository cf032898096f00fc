package fsm

import (
	"iter"
	"time"

	"github.com/foundling-go/foundling/events"
)

// logLife is the table of the log's own life: it is known once its beginning was let go.
var logLife = newLifecycle(events.KindLog,
	edge(events.TypeLogPruned, events.Active, events.Absent, events.Active),
)

// Log is what the log says of itself: how much of its beginning is gone. Its zero value is a log that has all of it.
type Log struct {
	Version  int
	State    events.State
	Through  int64     // the position of the last event that went
	PrunedAt time.Time // when the commit of that event was decided
	Total    int       // how many events ever went
}

// VisitFields names the fields as a store would keep them. The version has a column of its own.
func (l *Log) VisitFields(f *events.Fields) {
	f.State("state", &l.State)
	f.Int64("through", &l.Through)
	f.Time("until", &l.PrunedAt)
	f.Int("total", &l.Total)
}

// RestingLog is the log as its newest event of itself says, which is all there is of it.
func RestingLog(version int, e *events.LogPruned) Log {
	return Log{Version: version, State: events.Active, Through: e.Through, PrunedAt: e.UntilAt, Total: e.Total}
}

// Evolve is the log after a recorded event. An event of another lifecycle leaves it as it is.
func (l Log) Evolve(event events.Event, _ time.Time) Log {
	if e, ok := event.(*events.LogPruned); ok {
		return RestingLog(l.Version+1, e)
	}
	return l
}

// Pruning is how much of the beginning of the log may go, as a store answers a command that wants to know.
type Pruning struct {
	Through int64     // the position of the last event that may go, the last one of its commit; 0 where none may
	At      time.Time // when that commit was decided, which may be in the future
	Events  int
	Rows    []Value // kept entities whose state must be told once more before these events go, in the order of their entities; not necessarily all
}

// Prune lets the oldest events go, a page at a time: those that are older than the retention, or that were decided before a time. What is still
// open, or may come back, tells its state once more before its events go. So no fold ever begins with nothing, and since it is one commit
// that tells and lets go, nothing slips in between.
type Prune struct {
	Retention time.Duration // how old what goes must be
	Before    time.Time     // where Retention is 0: when it was decided at the latest
	Events    int           // how many events were asked for
	Rows      int           // how many rows were asked for: so many of them may not be all
	Decider   events.ID     // the worker that leads the beat, or that was asked
	Term      int           // under which it leads; 0 where somebody asked
	By        string        // who asked; empty where the beat did
	Detail    string
}

// Name is "prune".
func (Prune) Name() string { return "prune" }

// VisitFields names the parameters that the events do not carry, as long as nothing goes.
func (c *Prune) VisitFields(f *events.Fields) {
	f.Duration("retention", &c.Retention)
	f.Time("before", &c.Before)
	f.Int("events", &c.Events)
	f.Int("rows", &c.Rows)
	f.ID("decider", &c.Decider)
	f.Int("term", &c.Term)
	f.Text("by", &c.By)
	f.Text("detail", &c.Detail)
}

// Bound is the time before which a commit must have been decided to go.
func (c Prune) Bound(clock Clock, now time.Time) time.Time {
	if c.Retention > 0 {
		return clock.OlderThan(now, c.Retention)
	}
	return c.Before
}

// old reports whether what was decided at a time may go by its age. What lies in the future was decided before the clock was set back, and counts as
// of the last step that is known; where none is, it stays.
func (c Prune) old(clock Clock, at, now time.Time) bool {
	if at.After(now) {
		if at = clock.StepAt; at.IsZero() {
			return false
		}
	}
	return at.Before(c.Bound(clock, now))
}

// LongestRetention is the retention of a store whose workers have several: the longest that any of them names who may come back. It is below zero
// where one keeps all, and 0 where none says anything.
func LongestRetention(workers iter.Seq[Worker]) (longest time.Duration) {
	for w := range workers {
		switch {
		case !w.Kept():
		case w.Retention < 0:
			return w.Retention
		default:
			longest = max(longest, w.Retention)
		}
	}
	return longest
}

// Pruned is what a Prune saw beside what it changed.
type Pruned struct {
	Pruning
	Unseen []Lock // locks to be told of whose permits it was not given: it changes nothing, and is to be given again with them
}

// Decide gives what the store must keep and let go. A full page of rows is told, and nothing goes: there may be more of them.
func (c Prune) Decide(held Held) (Outcome, Pruned, error) {
	seen := Pruned{Pruning: held.Pruning}
	if seen.Through == 0 || !c.old(held.Clock, seen.At, held.Now) {
		return Outcome{}, Pruned{}, nil
	}
	if seen.At.After(held.Now) {
		seen.At = held.Now // what is told of the log says nothing of times that have not come
	}
	held.Pruning = seen.Pruning
	for _, v := range seen.Rows {
		if lock, ok := v.(*Lock); ok && lock.Held != len(held.out(lock.Name)) {
			seen.Unseen = append(seen.Unseen, *lock)
		}
	}
	if len(seen.Unseen) > 0 {
		return Outcome{}, seen, nil
	}
	l := newLedger(held)
	for _, v := range seen.Rows {
		if err := l.snapshot(v); err != nil {
			return Outcome{}, seen, err
		}
	}
	if len(seen.Rows) < c.Rows {
		l.prune(c)
	}
	return l.outcome, seen, nil
}

// prune lets go of what may go.
func (l *ledger) prune(c Prune) {
	p, log := l.held.Pruning, l.held.Log
	pruned := &events.LogPruned{
		Through: p.Through, UntilAt: p.At, Events: p.Events, Total: log.Total + p.Events,
		Retention: c.Retention, Decider: c.Decider, Term: c.Term, By: c.By, Detail: c.Detail,
	}
	after := log.Evolve(pruned, l.held.Now)
	l.change(&after, log.Version, []events.Transition{{Event: pruned, Version: after.Version, From: log.State, To: after.State}})
	l.outcome.Prune = p.Through
}

// Entity is the log's entity.
func (l *Log) Entity() events.Entity { return events.LogEntity() }

// At is the log's version and state.
func (l *Log) At() (int, events.State) { return l.Version, l.State }

// Kept reports that no row of the log is kept: its newest event says all of it.
func (l *Log) Kept() bool { return false }

func (l *Log) evolved(r events.Recorded) Value { next := l.Evolve(r.Event, r.At()); return &next }

func (l *Log) versioned(_ events.Entity, version int) Value {
	l.Version = version
	return l
}
