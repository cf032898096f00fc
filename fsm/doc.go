// Package fsm says what may happen: every rule of every lifecycle, as functions over values.
//
// A machine is a value ([Message], [Topic], [Lock], [Worker], [Leader], [Sweep], [Clock]) with two functions. Decide takes a command and the
// store's time and gives the events that follow, or a [*Refusal]. Evolve takes a recorded event and gives the next value; it refuses nothing
// and knows no clock but the time that was recorded with the event. Both are pure: no context, no lock, no clock, no randomness, no I/O. What
// is chosen at random (ids, jitter) comes in with the command and goes out with the event it shaped, so that recorded history can be decided
// again.
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
// The caller's duties: hand over what the command names, all of it, at one time; commit all changes or none; and never change a value
// that was handed over.
package fsm
