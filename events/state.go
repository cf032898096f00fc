package events

import "fmt"

// State is the named phase of an entity. The numbers are stored beside each event; they are never used twice. Numbers left out belong
// to lifecycles that are still to come.
type State uint8

// The states of all lifecycles. Lifecycles that have a phase of the same name share its number.
const (
	Absent State = 0 // not there yet

	Queued       State = 1
	Running      State = 3
	Orphaned     State = 4 // never rests: what follows it is in the same commit
	Completed    State = 6
	DeadLettered State = 7
	Cancelled    State = 10

	Live    State = 20
	Lost    State = 21
	Stopped State = 22

	Active State = 30
	Paused State = 31
)

var stateWords = map[State]string{
	Absent: "none",
	Queued: "queued", Running: "running", Orphaned: "orphaned",
	Completed: "completed", DeadLettered: "dead_lettered", Cancelled: "cancelled",
	Live: "live", Lost: "lost", Stopped: "stopped",
	Active: "active", Paused: "paused",
}

// String is the state's word, as in "queued".
func (s State) String() string {
	if word, ok := stateWords[s]; ok {
		return word
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Known reports whether this version of Foundling has the state.
func (s State) Known() bool { _, ok := stateWords[s]; return ok }

// Priority orders messages of one topic. Its zero is normal; a lower number is claimed first.
type Priority int8

// The priorities.
const (
	High   Priority = -1
	Normal Priority = 0
	Low    Priority = 1
)

// Priorities lists them, first claimed first: a claim walks one range per level.
func Priorities() []Priority { return []Priority{High, Normal, Low} }

// String is the priority's word.
func (p Priority) String() string {
	switch p {
	case High:
		return "high"
	case Normal:
		return "normal"
	case Low:
		return "low"
	}
	return fmt.Sprintf("priority(%d)", int8(p))
}

// ParsePriority reads high, normal or low; empty is normal.
func ParsePriority(word string) (Priority, error) {
	for _, p := range Priorities() {
		if word == p.String() {
			return p, nil
		}
	}
	if word == "" {
		return Normal, nil
	}
	return 0, fmt.Errorf("priority %q: want high, normal or low", word)
}

// Token is a fencing token: it rises with every claim of a message, and whoever shows a lower one comes too late. It is the
// message's version at the claim.
type Token uint64

// Reason says why something happened where its type alone does not. The set is closed: a word outside it does not decode.
type Reason string

// The reasons.
const (
	// Why a message went back to its queue.
	ReasonRetry     Reason = "retry"      // its handler failed and may try again
	ReasonReleased  Reason = "released"   // its worker stopped before the handler had begun or ended
	ReasonSnoozed   Reason = "snoozed"    // its handler asked for it later
	ReasonUnclaimed Reason = "unclaimed"  // its worker does not know the claim: the answer was lost
	ReasonTakenBack Reason = "taken_back" // an operator took it from its worker
	ReasonOrphan    Reason = "orphan"     // its worker is gone

	// Why a message was dead-lettered or cancelled.
	ReasonExhausted   Reason = "exhausted"    // every attempt it had has failed
	ReasonHandler     Reason = "handler"      // its handler asked for it
	ReasonOperator    Reason = "operator"     // an operator asked for it
	ReasonOrphanLimit Reason = "orphan_limit" // its worker is gone once too often

	// Why a command was refused.
	ReasonStaleToken Reason = "stale_token" // the claim it speaks of has ended
	ReasonWrongState Reason = "wrong_state" // the entity is in a state that has no such transition
	ReasonNotFound   Reason = "not_found"   // the store does not know the entity
	ReasonKeyTaken   Reason = "key_taken"   // another message of the topic has the key meanwhile
	ReasonMismatch   Reason = "mismatch"    // the id is known, but with another topic or payload
	ReasonAlive      Reason = "alive"       // the worker that holds it lives

	// Why a worker is held to be gone.
	ReasonProcessGone Reason = "process_gone" // the kernel let go of its lock: its process has ended
)

var reasons = []Reason{
	ReasonRetry, ReasonReleased, ReasonSnoozed, ReasonUnclaimed, ReasonTakenBack, ReasonOrphan,
	ReasonExhausted, ReasonHandler, ReasonOperator, ReasonOrphanLimit,
	ReasonStaleToken, ReasonWrongState, ReasonNotFound, ReasonKeyTaken, ReasonMismatch, ReasonAlive, ReasonProcessGone,
}

// Known reports whether the reason is of the closed set, or empty.
func (r Reason) Known() bool {
	if r == "" {
		return true
	}
	for _, known := range reasons {
		if r == known {
			return true
		}
	}
	return false
}
