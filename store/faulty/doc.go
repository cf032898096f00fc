// Package faulty makes any store lose answers, fail, stall or vanish on purpose, by a plan that can be repeated.
//
//	s := faulty.New(inner, faulty.At(7, faulty.LostAfter)) // the seventh call is done, and nobody is told
//
// A test wraps the store of one process. With [At] and [StopAfter] it kills that process at its nth call of the store; the store behind
// it goes on, for the process that comes next. So a loop over n kills a worker at each call that it makes.
//
// A plan sees each [Call] with its number and operation, and names its [Fault]. It is a function of these alone, so that the same test has the same
// faults. What a call cannot have leaves it alone. The powers of the store behind it (heartbeats, leases, pruning, checkpoints) are offered where it has
// them, and have faults as well.
//
// It is for tests. It changes no bytes: how damage is found is a test of the engine's own.
package faulty
