package fsm_test

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
)

// lockIn is a lock in each state of its table, with the one permit that a lock has. Its free one was taken with token 7 and given back.
func lockIn(state events.State) fsm.Lock {
	l := fsm.Lock{Name: "l"}
	if state != events.Absent {
		l = l.Evolve(&events.LockAcquired{Token: 7, Worker: workerA, Held: 1}, now)
	}
	if state == events.Free {
		l = l.Evolve(&events.LockReleased{Token: 7}, now)
	}
	return l
}

type lockCase struct {
	label   string
	command fsm.LockCommand
	given   func(*fsm.Lock)
}

func lockCases() []lockCase {
	// two of three permits are out, where any is
	two := func(l *fsm.Lock) {
		l.Permits = 3
		if l.State == events.Held {
			l.Held = 2
		}
	}
	evidence := events.Evidence{Reason: events.ReasonSilent, Claimer: workerA}
	return []lockCase{
		{"configure-lock", fsm.ConfigureLock{Permits: 3}, nil},
		{"configure-lock, as it is", fsm.ConfigureLock{Permits: 1}, nil},
		{"acquire", fsm.AcquireLock{Token: 9, Worker: workerB}, nil},
		{"acquire one of three", fsm.AcquireLock{Token: 9, Worker: workerB}, two},
		{"release", fsm.ReleaseLock{Token: 7}, nil},
		{"release one of two", fsm.ReleaseLock{Token: 7}, two},
		{"reclaim", fsm.ReclaimLock{Token: 7, Evidence: evidence}, nil},
		{"reclaim one of two", fsm.ReclaimLock{Token: 7, Evidence: evidence}, two},
		{"force-release", fsm.ForceReleaseLock{Token: 7, By: "ops"}, nil},
		{"force-release one of two", fsm.ForceReleaseLock{Token: 7, By: "ops"}, two},
		{"expire", fsm.ExpireLock{Token: 7}, nil},
		{"expire one of two", fsm.ExpireLock{Token: 7}, two},
		{"snapshot", fsm.SnapshotLock{Out: []events.PermitOut{{Token: 7, Worker: workerA, AcquiredAt: now}}}, nil},
		{"snapshot of one that somebody configured", fsm.SnapshotLock{}, two},
	}
}

// leaderIn is a leadership in each state of its table: worker a has term 4.
func leaderIn(state events.State) fsm.Leader {
	l := fsm.Leader{Name: fsm.Beat}
	if state != events.Absent {
		l = l.Evolve(&events.LeaderElected{Worker: workerA, Term: 4}, now)
	}
	if state == events.Vacant {
		l = l.Evolve(&events.LeaderResigned{Worker: workerA, Term: 4}, now)
	}
	return l
}

type leaderCase struct {
	label   string
	command fsm.LeaderCommand
}

func leaderCases() []leaderCase {
	return []leaderCase{
		{"elect", fsm.ElectLeader{Worker: workerB, Term: 5}},
		{"elect, term over", fsm.ElectLeader{Worker: workerB, Term: 4}},
		{"resign", fsm.ResignLeader{Worker: workerA, Term: 4}},
		{"resign, another's term", fsm.ResignLeader{Worker: workerB, Term: 4}},
		{"resign, term over", fsm.ResignLeader{Worker: workerA, Term: 3}},
		{"snapshot", fsm.Snapshot{}},
	}
}

// sweepIn is a sweep in each state of its table.
func sweepIn(state events.State) fsm.Sweep {
	s := fsm.Sweep{ID: thisID}
	switch state {
	case events.Finished:
		s = s.Evolve(&events.SweepFinished{}, now)
	case events.Refused:
		s = s.Evolve(&events.SweepRefused{}, now)
	}
	return s
}

// clockIn is a clock in each state of its table: it was set ten minutes ahead.
func clockIn(state events.State) fsm.Clock {
	if state == events.Absent {
		return fsm.Clock{}
	}
	return fsm.Clock{}.Evolve(&events.ClockStepped{FromAt: now, ToAt: now.Add(10 * time.Minute)}, now.Add(10*time.Minute))
}

// logIn is a log in each state of its table: ten events of it are gone.
func logIn(state events.State) fsm.Log {
	if state == events.Absent {
		return fsm.Log{}
	}
	return fsm.Log{}.Evolve(&events.LogPruned{Through: 12, UntilAt: now.Add(-time.Hour), Events: 10, Total: 10}, now)
}

type clockCase struct {
	label   string
	command fsm.ClockCommand
}

func clockCases() []clockCase {
	step := func(from, to time.Time) fsm.ClockCommand {
		return fsm.StepClock{FromAt: from, ToAt: to, Worker: workerA, Tolerance: 15 * time.Second}
	}
	return []clockCase{
		{"step-clock", step(now.Add(time.Hour), now)},
		{"step-clock, known", step(now.Add(15*time.Second), now.Add(10*time.Minute+15*time.Second))},
		{"step-clock, from elsewhere", step(now.Add(15*time.Second+1), now.Add(10*time.Minute))},
		{"step-clock, to elsewhere", step(now, now.Add(10*time.Minute-15*time.Second-1))},
		{"snapshot", fsm.Snapshot{}},
	}
}

// attempt is one row of a table made by running Decide.
type attempt struct {
	label   string
	command string // the Go type of the command
	before  fsm.Value
	events  []events.Event
	steps   []fsm.Value // after each event
	err     error
}

func attempts(kind events.Kind, state events.State) []attempt {
	list := decisions(kind, state)
	for i, a := range list {
		v := a.before
		for _, event := range a.events {
			v = evolve(v, event)
			list[i].steps = append(list[i].steps, v)
		}
	}
	return list
}

func decisions(kind events.Kind, state events.State) (list []attempt) {
	switch kind {
	case events.KindMessage:
		for _, c := range messageCases() {
			m := messageIn(state)
			if c.given != nil && state != events.Absent {
				c.given(&m)
			}
			decided, err := m.Decide(c.command, now)
			list = append(list, attempt{label: c.label, command: typeName(c.command), before: &m, events: decided, err: err})
		}
	case events.KindTopic:
		for _, c := range topicCases() {
			topic := topicIn(state)
			if c.given != nil && state != events.Absent {
				c.given(&topic)
			}
			decided, err := topic.Decide(c.command, now)
			list = append(list, attempt{label: c.label, command: typeName(c.command), before: &topic, events: decided, err: err})
		}
	case events.KindWorker:
		for _, c := range workerCases() {
			w := workerIn(state)
			decided, err := w.Decide(c, now)
			list = append(list, attempt{label: c.Name(), command: typeName(c), before: &w, events: decided, err: err})
		}
	case events.KindLock:
		for _, c := range lockCases() {
			l := lockIn(state)
			if c.given != nil && state != events.Absent {
				c.given(&l)
			}
			decided, err := l.Decide(c.command, now)
			list = append(list, attempt{label: c.label, command: typeName(c.command), before: &l, events: decided, err: err})
		}
	default:
		return beatDecisions(kind, state)
	}
	return list
}

// beatDecisions are those of what the beat keeps: leadership, sweeps and the clock.
func beatDecisions(kind events.Kind, state events.State) (list []attempt) {
	switch kind {
	case events.KindLeader:
		for _, c := range leaderCases() {
			l := leaderIn(state)
			held := fsm.Held{Now: now, Leaders: map[string]fsm.Leader{l.Name: l}}
			o, err := fsm.OperateLeader{Leadership: l.Name, Command: c.command}.Decide(held)
			list = append(list, attempt{label: c.label, command: typeName(c.command), before: &l, events: facts(o), err: err})
		}
	case events.KindSweep:
		for _, event := range []events.Event{&events.SweepFinished{}, &events.SweepRefused{}} {
			s := sweepIn(state)
			held := fsm.Held{Now: now, Sweeps: map[events.ID]fsm.Sweep{s.ID: s}}
			c := fsm.RecordSweep{Sweep: s.ID, Event: event}
			o, err := c.Decide(held)
			list = append(list, attempt{label: c.Name() + " " + event.Type().String(), command: typeName(c), before: &s, events: facts(o), err: err})
		}
	case events.KindClock:
		for _, c := range clockCases() {
			clock := clockIn(state)
			list = append(list, attempt{label: c.label, command: typeName(c.command), before: &clock, events: clock.Decide(c.command, now)})
		}
	case events.KindLog:
		log := logIn(state)
		c := fsm.Prune{Retention: 24 * time.Hour, Events: 5, Rows: 5}
		for label, at := range map[string]time.Time{"prune": now.Add(-48 * time.Hour), "prune, too young": now.Add(-24 * time.Hour)} {
			held := fsm.Held{Now: now, Log: log, Pruning: fsm.Pruning{Through: 20, At: at, Events: 5}}
			o, _, err := c.Decide(held)
			list = append(list, attempt{label: label, command: typeName(c), before: &log, events: facts(o), err: err})
		}
		slices.SortFunc(list, func(a, b attempt) int { return strings.Compare(a.label, b.label) })
	}
	return list
}

// facts are the events of an outcome, in order.
func facts(o fsm.Outcome) (list []events.Event) {
	for _, c := range o.Changes {
		for _, t := range c.Transitions {
			list = append(list, t.Event)
		}
	}
	return list
}

func typeName(command any) string { return reflect.TypeOf(command).Name() }

// evolve is Evolve of whatever v is.
func evolve(v fsm.Value, event events.Event) fsm.Value {
	switch v := v.(type) {
	case *fsm.Message:
		next := v.Evolve(event, now)
		return &next
	case *fsm.Topic:
		next := v.Evolve(event, now)
		return &next
	case *fsm.Worker:
		next := v.Evolve(event, now)
		return &next
	case *fsm.Lock:
		next := v.Evolve(event, now)
		return &next
	case *fsm.Leader:
		next := v.Evolve(event, now)
		return &next
	case *fsm.Sweep:
		next := v.Evolve(event, now)
		return &next
	case *fsm.Clock:
		next := v.Evolve(event, now)
		return &next
	case *fsm.Log:
		next := v.Evolve(event, now)
		return &next
	}
	return v
}
