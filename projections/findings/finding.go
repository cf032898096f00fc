package findings

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections"
)

// Code is the kind of a finding. The set is closed; a code keeps its meaning.
type Code string

// The codes.
const (
	TopicAtLimit        Code = "topic_at_limit"        // every slot is taken and none has come free for long, or none can
	WorkerGone          Code = "worker_gone"           // claims of a worker that is no more have not been given back
	WorkerSilent        Code = "worker_silent"         // a worker holds claims and its heartbeats do not come
	MessageDeadLettered Code = "message_dead_lettered" // a message will not be tried again
	TopicPaused         Code = "topic_paused"          // a topic is paused and messages wait
	TopicCounting       Code = "topic_counting"        // a topic grants nothing until older claims are counted
	WorkerGap           Code = "worker_gap"            // a worker's heartbeats had a gap
	Refusals            Code = "refusals"              // late results or releases of a worker were refused

	LimitDiffers        Code = "limit_differs"         // the code of live workers declares another limit than the topic has
	WorkerReturned      Code = "worker_returned"       // a worker that was held to be lost beat again: a false alarm
	WorkerFenced        Code = "worker_fenced"         // a worker's heartbeats had a gap in which it ended its handlers' contexts by itself
	OrphansDeadLettered Code = "orphans_dead_lettered" // messages whose workers died again and again will not be tried again
	LockHolderGone      Code = "lock_holder_gone"      // a lock is held by a worker that is no more
	LockIdle            Code = "lock_idle"             // messages wait for a lock that is free, which is a fault
	LockRepaired        Code = "lock_repaired"         // messages waited for a lock that was free, and were sent to try
	HandlerRunning      Code = "handler_running"       // a handler has not ended although its claim was ended from outside
	SweepRefused        Code = "sweep_refused"         // the sweep does not trust what it knows of who lives, and gives nothing back
	ClockStepped        Code = "clock_stepped"         // the store's clock was set
	LeaderMissing       Code = "leader_missing"        // workers live, and nobody lets time pass
	ProjectionHolds     Code = "projection_holds"      // a durable projection stands still, and keeps the log from being pruned
	MessagesStaged      Code = "messages_staged"       // messages of users' own transactions wait beside the log, and nobody moves them into it
)

// Severity is how bad a finding is. A lower number is worse.
type Severity uint8

// The severities.
const (
	Critical Severity = iota + 1 // work stands still and will not go on by itself
	Warning                      // somebody should look
	Info                         // it explains something, and nothing has to be done
)

// String is the severity's word.
func (s Severity) String() string {
	switch s {
	case Critical:
		return "critical"
	case Warning:
		return "warning"
	case Info:
		return "info"
	}
	return fmt.Sprintf("severity(%d)", uint8(s))
}

// Finding is one thing that is wrong. Its texts are single lines without control characters, whatever was stored.
type Finding struct {
	Code      Code
	Severity  Severity
	Subject   events.Entity
	Since     time.Time
	Positions []int64  // the events that show it, rising
	Text      string   // one sentence without a full stop
	Evidence  []string // one thing each
	Next      []string // commands to look closer or to mend it, ready to paste; none where this version has none
}

// The bounds that the list judges by.
const (
	// SilentAfter is how many heartbeat intervals a worker may let pass before it counts as silent.
	SilentAfter = 3
	// LongClaim is for how long a full topic may go without an end of any claim. The alert FoundlingTopicWedged uses the same bound.
	LongClaim = time.Hour
	// Recent is for how long what is over is still told: refusals, gaps, steps of the clock, repairs.
	Recent = time.Hour
	// AlarmsFor is for how long false alarms are told.
	AlarmsFor = 24 * time.Hour
	// LeaderlessFor is for how long nobody may lead while workers live.
	LeaderlessFor = time.Minute
	// StagedFor is how long a message may be staged.
	StagedFor = time.Minute
	// UncountedFor is for how long a durable projection may leave an event uncounted.
	UncountedFor = 24 * time.Hour

	// shown is how many claims, refusals or dead letters are told one by one; those beyond are counted.
	shown = 10
)

// State is what the log adds up to, all of it up to the same event. Make it with [NewState]. Of what is left nil nothing is found.
type State struct {
	Topics   *projections.Topics
	Workers  *projections.Workers
	Refusals *projections.Refusals
	Locks    *projections.Locks
	Sweeps   *projections.Sweeps
	Leaders  *projections.Leaders
	Clock    *projections.Clock
}

// NewState is the beginning of the log.
func NewState() State { return State{}.whole() }

// whole is the state with nothing left nil.
func (s State) whole() State {
	return State{
		Topics: orNew(s.Topics), Workers: orNew(s.Workers), Refusals: orNew(s.Refusals), Locks: orNew(s.Locks),
		Sweeps: orNew(s.Sweeps), Leaders: orNew(s.Leaders), Clock: orNew(s.Clock),
	}
}

func orNew[P any](p *P) *P {
	if p == nil {
		return new(P)
	}
	return p
}

// Apply takes the next event, so that a State is a projection like its parts. None of them may be nil.
func (s State) Apply(r events.Recorded) {
	for _, p := range []projections.Projection{s.Topics, s.Workers, s.Refusals, s.Locks, s.Sweeps, s.Leaders, s.Clock} {
		p.Apply(r)
	}
}

// Facts are what the log does not hold.
type Facts struct {
	Now     time.Time   // the store's
	Heart   bool        // the store keeps heartbeats, and Beats lists the newest of every incarnation that has one
	Beats   []Beat      // in any order
	Gone    []events.ID // incarnations that are proven to have ended
	Leases  bool        // the store keeps leases, and Lease is that of the beat
	Lease   Lease
	Counted []Counted // the newest version of each durable projection, in any order
	Staged  Staged    // the message that is staged for the longest

	Names *events.Names // how ids and times are shown; nil is in full
	Batch string        // the batch that the store is, which commands then name; empty where it is none
	Store string        // the store's URL for commands, where it must be said and is no batch
}

// Lease is who may lead. Its zero is one that nobody ever had.
type Lease struct {
	Holder  events.ID // zero where it was given back
	UntilAt time.Time
	SweptAt time.Time // when the last sweep was due that somebody carried out, or refused
}

// Beat is the newest heartbeat of an incarnation.
type Beat struct {
	Worker   events.ID
	Interval time.Duration // what it intends
	At       time.Time
}

// List gives everything that is wrong: the worst first, then what began first, then by subject.
func List(s State, f Facts) []Finding {
	l := newLook(s, f)
	list := slices.Concat(l.topics(), l.workers(), l.deadLetters(), l.refusals(), l.locks(), l.alarms(), l.beat(), l.holding(), l.staged())
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), a.Since.Compare(b.Since), a.Subject.Compare(b.Subject), cmp.Compare(a.Code, b.Code))
	})
	return list
}

// look is one look at a state with the facts.
type look struct {
	State
	Facts
	beats  map[events.ID]Beat
	gone   map[events.ID]bool
	fleet  []projections.Worker
	member map[events.ID]projections.Worker
	clock  fsm.Clock
}

func newLook(s State, f Facts) *look {
	s = s.whole()
	l := &look{
		State: s, Facts: f, fleet: s.Workers.All(),
		beats: map[events.ID]Beat{}, gone: map[events.ID]bool{}, member: map[events.ID]projections.Worker{},
	}
	for _, w := range l.fleet {
		l.member[w.ID] = w
	}
	for _, b := range f.Beats {
		l.beats[b.Worker] = b
	}
	for _, id := range f.Gone {
		l.gone[id] = true
	}
	for _, step := range s.Clock.Steps() {
		l.clock.StepAt = step.At
	}
	return l
}

// ago is how long ago it was, as people are told.
func (l *look) ago(t time.Time) string { return Span(l.age(t)) + " ago" }

// age is how long ago something was stored. What lies in the future ages from the clock's last step.
func (l *look) age(t time.Time) time.Duration { return l.clock.Age(l.Now, t) }

func (l *look) worker(id events.ID) string { return l.Names.Entity(events.WorkerEntity(id)) }

func (l *look) message(id events.ID) string { return l.Names.Entity(events.MessageEntity(id)) }

// command is a command with the words that name this store.
func (l *look) command(words string) string {
	switch {
	case l.Batch != "":
		return "foundling " + words + " --batch " + ShellWord(l.Batch)
	case l.Store != "":
		return "foundling " + words + " --store " + ShellWord(l.Store)
	}
	return "foundling " + words
}

// trace is the command that shows a message's life.
func (l *look) trace(id events.ID) string { return l.command("trace " + l.Names.ID(id)) }
