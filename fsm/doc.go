// Package fsm says what may happen: every rule of every lifecycle, as functions over values.
//
// A machine is a value ([Message], [Topic], [Lock], [Worker], [Leader], [Sweep], [Clock], [Log]) with two functions. Decide takes a command and the
// store's time and gives the events that follow, or a [*Refusal]. Evolve takes a recorded event and gives the next value; it refuses nothing
// and knows no clock but the time that was recorded with the event. Both are pure: no context, no lock, no clock, no randomness, no I/O. What
// is chosen at random (ids, jitter) comes in with the command and goes out with the event it shaped, so that recorded history can be decided
// again.
//
//	emitted, err := message.Decide(fsm.CompleteMessage{Token: token}, now)
//	for _, e := range emitted {
//		message = message.Evolve(e, now)
//	}
//
// The table of a lifecycle is written once ([Lifecycle]); Decide looks every transition up in it before it gives an event, and a test
// compares table, array, Decide and Evolve for every state and every command. Its answers, and the tables drawn, are the files of
// testdata/machines.
//
// Rules that span entities (a claim is a message, a worker, a topic's limit and a lock) are composed of those deciders over one set of held
// values ([Held]): [Enqueue], [Claim], [Settle], [Reclaim] and [Operate], and of locks [Acquire], [Unlock], [ForceRelease], [ExpireLocks] and
// [OperateLock]. Each gives the [Change]s that a store commits as one unit.
//
// Who is dead is judged by [Judge], and whether a sweep may act on it by [Census.Guard]: one function over what it knows, for messages and locks
// alike. A [Lease] says who leads.
//
// # Letting go
//
// [Prune] decides how the beginning of the log goes: whatever is kept tells its state once more ([Snapshot]) in the commit that lets its older
// events go, or in one before, so that no fold begins with nothing. [Erase] lets go of what a message carried. Neither moves anything.
//
// # Duties
//
// The caller's duties: hand over what the command names, all of it, at one time; commit all changes or none; and never change a value
// that was handed over.
package fsm
