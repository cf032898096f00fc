// Package findings says what is wrong, by which evidence: one list that status, alerts and diagnose all render, so that they cannot
// disagree.
//
//	state := findings.NewState()
//	err := projections.Follow(s.Read(ctx, oldest, store.Filter{}), state)
//	fmt.Print(findings.Text(findings.List(state, facts)))
//
// [List] is a pure function of projections and of [Facts], which its caller has asked of the store: the time, the newest heartbeats,
// and who is proven to be gone. It reads no clock and asks nobody.
//
// A finding has a [Code] that keeps its meaning, a [Severity], what it is about, and the evidence: positions in the log, ages, holders. The worst comes
// first, and equal ones in an order that does not change from one look to the next.
//
// The caller's duties: ask for the facts after the log was read, so that they are not older than what they are compared with, and say what could not be
// had: without Facts.Heart nobody is found silent, and without Facts.Leases nobody is missed as a leader. Names, Batch and Store shape the commands that a
// finding proposes.
package findings
