package fsm

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// leaderLife is the table of a leadership: somebody leads, or nobody.
var leaderLife = newLifecycle(events.KindLeader,
	edge(events.TypeLeaderElected, events.Led, events.Absent, events.Vacant),
	edge(events.TypeLeaderResigned, events.Vacant, events.Led),
	edge(events.TypeLeaderLost, events.Vacant, events.Led),
	edge(events.TypeLeaderSnapshotted, events.Led, events.Led),
	edge(events.TypeLeaderSnapshotted, events.Vacant, events.Vacant),
)

// Beat is the name of the leadership that lets time pass.
const Beat = "beat"

// Leader is who leads, as the log has it. Whether that is still true the lease says, which is no event: it is renewed all the time.
type Leader struct {
	Name    string
	Version int
	State   events.State
	Worker  events.ID
	Term    int
}

// VisitFields names the fields as a store keeps them. The name and the version have columns of their own.
func (l *Leader) VisitFields(f *events.Fields) {
	f.State("state", &l.State)
	f.ID("worker", &l.Worker)
	f.Int("term", &l.Term)
}

// Lease is the right to lead until a time. Its zero value is one that nobody ever had.
type Lease struct {
	Holder  events.ID // zero once it was given back
	Term    int       // rises with every holder
	UntilAt time.Time
	Life    time.Duration // for how long it was given last
	SweptAt time.Time     // when the last sweep began, whoever led: a new leader keeps the rhythm of the one before
}

// Campaign takes the lease for a life where it is free, or renews the caller's own. Whoever holds it by owner and term renews it; one that
// ended, even a moment ago, is taken anew under the next term, so that nobody leads on a lease that another may have had meanwhile. gone
// names a holder that is proven to have ended. It gives the lease as it is afterwards, and the caller leads if he is its holder.
func (l Lease) Campaign(c Candidate, now time.Time) Lease {
	ended := l.Holder == events.ID{} || l.Holder == c.Gone || !now.Before(l.UntilAt) ||
		l.UntilAt.Sub(now) > l.Life // the clock was set back: it would lead for ever
	switch {
	case !ended && l.Holder == c.Worker && l.Term == c.Term:
		l.UntilAt, l.Life = now.Add(c.Life), c.Life
	case ended:
		l.Holder, l.Term, l.UntilAt, l.Life = c.Worker, max(l.Term, c.Above)+1, now.Add(c.Life), c.Life
	}
	return l
}

// Candidate is who asks for a lease.
type Candidate struct {
	Worker events.ID
	Term   int // that he holds it under; 0 where he does not
	Life   time.Duration
	Gone   events.ID // a holder that is proven to have ended; zero is nobody
	Above  int       // the last term in the log: where the leases were lost, terms rise all the same
}

// Resign gives the lease back.
func (l Lease) Resign(c Candidate) Lease {
	if l.Holder == c.Worker && l.Term == c.Term {
		l.Holder = events.ID{}
	}
	return l
}

// ElectLeader records that somebody took the lease. The one before, who did not give it back, is lost.
type ElectLeader struct {
	Worker events.ID
	Term   int
}

// ResignLeader records that the lease was given back.
type ResignLeader struct {
	Worker events.ID
	Term   int
}

// LeaderCommand is a command to a leadership.
type LeaderCommand interface {
	// Name is an imperative, as it is recorded with commits.
	Name() string
	decideLeader(Leader) []events.Event
}

// Name is "elect".
func (ElectLeader) Name() string { return "elect" }

func (c ElectLeader) decideLeader(l Leader) []events.Event {
	if c.Term <= l.Term {
		return nil // somebody else was elected meanwhile
	}
	elected := &events.LeaderElected{Worker: c.Worker, Term: c.Term}
	if l.State == events.Led {
		return []events.Event{&events.LeaderLost{Worker: l.Worker, Term: l.Term}, elected}
	}
	return []events.Event{elected}
}

// Name is "resign".
func (ResignLeader) Name() string { return "resign" }

func (c ResignLeader) decideLeader(l Leader) []events.Event {
	if l.State != events.Led || l.Worker != c.Worker || l.Term != c.Term {
		return nil
	}
	return []events.Event{&events.LeaderResigned{Worker: c.Worker, Term: c.Term}}
}

// Evolve is the leadership after a recorded event. An event of another lifecycle leaves it as it is.
func (l Leader) Evolve(event events.Event, _ time.Time) Leader {
	to, ok := leaderLife.Next(l.State, event.Type())
	if !ok {
		return l
	}
	l.State = to
	l.Version++
	if e, ok := event.(*events.LeaderElected); ok {
		l.Worker, l.Term = e.Worker, e.Term
	}
	return l
}

// OperateLeader carries out one command on a leadership.
type OperateLeader struct {
	Leadership string
	Command    LeaderCommand
}

// Name is the command's.
func (c OperateLeader) Name() string { return c.Command.Name() }

// Decide gives what the store must keep.
func (c OperateLeader) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	leader := held.Leaders[c.Leadership]
	leader.Name = c.Leadership
	l.leader(leader, c.Command)
	return l.outcome, nil
}

// Entity is the leadership's entity.
func (l *Leader) Entity() events.Entity { return events.LeaderEntity(l.Name) }

// At is the leadership's version and state.
func (l *Leader) At() (int, events.State) { return l.Version, l.State }

// Kept reports that a leadership is kept for ever.
func (l *Leader) Kept() bool { return l.State != events.Absent }

func (l *Leader) evolved(r events.Recorded) Value { next := l.Evolve(r.Event, r.At()); return &next }

func (l *Leader) versioned(e events.Entity, version int) Value {
	l.Name, l.Version = e.Name, version
	return l
}
