// Package storetest is the contract of package store as a test suite that any engine can run. Each test is named for the sentence of
// the contract that it holds an engine to, and runs on a store of its own.
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return memory.New(memory.Options{}) })
//	}
//
// It drives the engine by the calls that Foundling itself makes, and where those cannot be bad enough by changes made by hand. It needs nothing
// beside Foundling and the standard library.
//
// # What it needs to know
//
// [Run] needs no more than a way to open a new, empty store. A [Suite] can say more, and then more is tested: OpenAt opens a store whose time is
// read from a clock, which the suite turns forward and back; Again opens what another store keeps once more, as a second process would, while the
// first is open or after it was closed. Give both where the engine can do both. Light spares a second run of the same engine what needs most memory.
//
// What an engine may leave out (store.Waiter, store.Heart, store.Leaser, store.ProcessWatcher, store.Pruner, store.Shelf) is found by store.As. What
// is not there is one skipped test per group of sentences, which says what was missing: look through them with -v before you believe that all is
// well. An engine that is no store.Pruner is tested for refusing to be one.
//
// # What to run it over
//
// Over the engine itself; over store.Batch of it, which has several callers share a commit, so that a mistake of one call must leave the others
// alone; and with the race detector. An engine behind a network is worth a third run with a proxy that loses answers: store/faulty does so for
// any store, and a caller that asks again under the same id must notice nothing.
//
// # When a sentence fails
//
// Run it alone. Its name is a regular expression with underscores for blanks:
//
//	go test -run 'TestContract/a_key_is_held' ./yourengine
//
// The message says what was asked for, what came and what should have come. Sentences do not build on each other, but the first that fails in the
// order of the suite is usually the one to mend first: commits come before views, views before locks, and pruning at the end.
//
// # What it does not test
//
// What lies below an engine: that a commit survives a power cut, what is said of a full disk or of damaged bytes, how a schema is migrated, how
// fast anything is. Those are tests of the engine's own.
package storetest
