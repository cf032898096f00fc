package events

import "fmt"

// State is the named phase of an entity. The numbers are stored beside each event; they are never used twice. Numbers left out belong
// to lifecycles that are still to come.
type State uint8

// The states of all lifecycles. Lifecycles that have a phase of the same name share its number.
const (
	Absent State = 0 // not there yet

	Queued       State = 1
	Blocked      State = 2 // waits for a lock that was taken at its turn
	Running      State = 3
	Orphaned     State = 4 // never rests: what follows it is in the same commit
	Completed    State = 6
	DeadLettered State = 7
	Cancelled    State = 10
	Discarded    State = 11
	Staged       State = 12 // in a table beside the log, until it enters the log

	Live    State = 20
	Lost    State = 21
	Stopped State = 22
	Purged  State = 23

	Active State = 30
	Paused State = 31

	Free State = 40
	Held State = 41 // at least one permit is out

	Led    State = 80
	Vacant State = 81

	Finished State = 85
	Refused  State = 86
)

var stateWords = map[State]string{
	Absent: "none",
	Queued: "queued", Blocked: "blocked", Running: "running", Orphaned: "orphaned",
	Completed: "completed", DeadLettered: "dead_lettered", Cancelled: "cancelled",
	Discarded: "discarded", Staged: "staged",
	Live: "live", Lost: "lost", Stopped: "stopped", Purged: "purged",
	Active: "active", Paused: "paused",
	Free: "free", Held: "held",
	Led: "led", Vacant: "vacant",
	Finished: "finished", Refused: "refused",
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

// Token is a fencing token: whoever shows a lower one than is current comes too late. That of a claim rises with every claim of its message:
// it is the message's version at the claim. That of a permit rises with every permit of its lock: it is drawn from one sequence of the
// store while the lock's row is held, so that it rises although a free lock has no row.
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
	ReasonKnown      Reason = "known"       // the id is known, with the same topic and payload: it was enqueued before
	ReasonAlive      Reason = "alive"       // the worker that holds it lives
	ReasonLockTaken  Reason = "lock_taken"  // no permit of the lock is free
	ReasonNotHeld    Reason = "not_held"    // the permit is not out any more, or is another holder's
	ReasonPruned     Reason = "pruned"      // the id that was given is so old that its history may have been let go

	// Why a worker is held to be gone.
	ReasonProcessGone Reason = "process_gone" // the kernel let go of its lock: its process has ended
	ReasonSilent      Reason = "silent"       // its last heartbeat is older than every bound on it
	ReasonNoHeartbeat Reason = "no_heartbeat" // the store has no heartbeat of it at all

	// Why a sweep was refused.
	ReasonLivenessUnreadable Reason = "liveness_unreadable" // who lives could not be read
	ReasonLivenessEmpty      Reason = "liveness_empty"      // nobody lives, by what was read
	ReasonCallerMissing      Reason = "caller_missing"      // the one who sweeps does not live, by what was read
	ReasonLivenessUnproven   Reason = "liveness_unproven"   // its own heartbeats have a gap that others may have had too
	ReasonClockStepped       Reason = "clock_stepped"       // the store's clock was set meanwhile, so that ages mean nothing

	// Why a sweep left a dead worker's claim or permit alone.
	ReasonClaimGrace Reason = "claim_grace" // it is younger than the grace
)

// LockPolicy says what becomes of a message that finds its lock taken at its turn.
type LockPolicy uint8

// The policies. The zero waits.
const (
	WaitForLock  LockPolicy = 0
	SkipIfLocked LockPolicy = 1 // discarded, unless it was claimed before
)

// String is the policy's word.
func (p LockPolicy) String() string {
	switch p {
	case WaitForLock:
		return "wait"
	case SkipIfLocked:
		return "skip"
	}
	return fmt.Sprintf("policy(%d)", uint8(p))
}

// ParseLockPolicy reads wait or skip; empty is wait.
func ParseLockPolicy(word string) (LockPolicy, error) {
	switch word {
	case "", WaitForLock.String():
		return WaitForLock, nil
	case SkipIfLocked.String():
		return SkipIfLocked, nil
	}
	return 0, fmt.Errorf("lock policy %q: want wait or skip", word)
}

var reasons = []Reason{
	ReasonRetry, ReasonReleased, ReasonSnoozed, ReasonUnclaimed, ReasonTakenBack, ReasonOrphan,
	ReasonExhausted, ReasonHandler, ReasonOperator, ReasonOrphanLimit,
	ReasonStaleToken, ReasonWrongState, ReasonNotFound, ReasonKeyTaken, ReasonMismatch, ReasonKnown, ReasonAlive, ReasonLockTaken, ReasonNotHeld,
	ReasonPruned,
	ReasonProcessGone, ReasonSilent, ReasonNoHeartbeat,
	ReasonLivenessUnreadable, ReasonLivenessEmpty, ReasonCallerMissing, ReasonLivenessUnproven, ReasonClockStepped, ReasonClaimGrace,
}

// SweepRefusals are the reasons for which a sweep is refused, in the order of their labels in metrics.
func SweepRefusals() []Reason {
	return []Reason{ReasonLivenessUnreadable, ReasonLivenessEmpty, ReasonCallerMissing, ReasonLivenessUnproven, ReasonClockStepped}
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

// visit names the policy as a field, kept as its word; wait is left out.
func (p *LockPolicy) visit(f *Fields) {
	var word string
	if f.walk != reading && *p != WaitForLock {
		word = p.String()
	}
	f.Text("on_locked", &word)
	if f.walk == reading {
		policy, err := ParseLockPolicy(word)
		if err != nil || policy == WaitForLock && word != "" {
			f.fail("field on_locked: %q is not a canonical lock policy", cut([]byte(word)))
		}
		*p = policy
	}
}

// VisitFields names the policy as a field.
func (p *LockPolicy) VisitFields(f *Fields) { p.visit(f) }
