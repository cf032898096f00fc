// Package findings says what is wrong, by which evidence: one list that status, alerts and diagnose all render, so that they cannot
// disagree.
//
// [List] is a pure function of projections and of [Facts], which its caller has asked of the store: the time, the newest heartbeats,
// and who is proven to be gone. It reads no clock and asks nobody.
package findings

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
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
	Refusals            Code = "refusals"              // late results of a worker were refused
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
	// Recent is for how long refusals and gaps that are over are still told.
	Recent = time.Hour

	// shown is how many claims, refusals or dead letters are told one by one; those beyond are counted.
	shown = 10
)

// State is what the log adds up to, all of it up to the same event.
type State struct {
	Topics   *projections.Topics
	Workers  *projections.Workers
	Refusals *projections.Refusals
}

// Facts are what the log does not hold.
type Facts struct {
	Now   time.Time   // the store's
	Heart bool        // the store keeps heartbeats, and Beats lists the newest of every incarnation that has one
	Beats []Beat      // in any order
	Gone  []events.ID // incarnations that are proven to have ended

	Names *events.Names // how ids and times are shown; nil is in full
	Batch string        // the batch that the store is, which commands then name; empty where it is none
	Store string        // the store's URL for commands, where it must be said and is no batch
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
	list := slices.Concat(l.topics(), l.workers(), l.deadLetters(), l.refusals())
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
}

func newLook(s State, f Facts) *look {
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
	return l
}

// ago is how long ago it was, as people are told.
func (l *look) ago(t time.Time) string { return Span(l.age(t)) + " ago" }

func (l *look) age(t time.Time) time.Duration { return max(0, l.Now.Sub(t)) }

// command is a command with the words that name this store.
func (l *look) command(words string) string {
	switch {
	case l.Batch != "":
		return "foundling " + words + " --batch " + shellWord(l.Batch)
	case l.Store != "":
		return "foundling " + words + " --store " + shellWord(l.Store)
	}
	return "foundling " + words
}

// trace is the command that shows a message's life.
func (l *look) trace(id events.ID) string { return l.command("trace " + l.Names.ID(id)) }
