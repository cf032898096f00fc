// Package store is the contract for keeping events and the states they lead to. It knows no rule.
//
// # Prepare, fetch, commit
//
// A caller prepares a [Call]: what its rule must see ([Need]) and the rule itself, a pure function from a [View] to [Changes]. The
// engine holds exactly what was named, hands it over with its own time, runs the function (perhaps more than once, with fresher
// values), and commits events and new rows as one unit. Package internal/calls makes the calls of all commands, package fsm decides
// in them; an engine only selects, orders and keeps.
//
// # What an engine interprets
//
// A [Row] has a few plain columns to select and order by. Its state word is for people who read the tables; its fields are opaque. No
// engine computes a next state, compares a limit or judges who is alive.
//
// # Engines
//
// store/memory keeps everything in this process, store/sqlite in a file that several processes may share. [Batch] makes concurrent
// callers share commits on any of them; store/faulty loses answers on purpose; store/storetest is this contract as a test suite that
// any engine can run.
package store
