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
// A [Row] has a few plain columns to select and order by. Its state word is for people who read the tables, and for [RowFilter] to select by; its
// fields are opaque. No engine computes a next state, compares a limit or judges who is alive. Of an event it looks at its entity, its version, and
// whether its type says all of the entity's state ([events.Type.Snapshots]).
//
// # Engines
//
// store/memory keeps everything in this process, store/sqlite in a file that several processes may share. [Batch] makes concurrent
// callers share commits on any of them; store/faulty loses answers on purpose; store/storetest is this contract as a test suite that
// any engine can run.
//
// # Writing an engine
//
// Begin with a test that runs storetest over an engine that does nothing, and read store/memory beside it: it is the shortest engine there is. The
// comments of [Store] are what the suite holds an engine to. For each call of [Store.Decide], in order:
//
//  1. Where the call's id was used, give the receipt of that commit, made from its events, and run nothing. Else [CheckID].
//  2. Where the engine is no [Pruner], refuse what [Call.NoPruner] refuses.
//  3. Hold what the Need names: nobody else may change it before the commit. Read the store's time after the last row is held.
//  4. Run the rule with [Call.Run], never by calling Fn, and refuse the call by its error. Keep nothing where the changes are [Changes.Empty].
//  5. Refuse what [Changes.Check] refuses. Refuse a change that does not begin from the version that its entity has (by its row, else by its
//     newest event that moved it, else 0), a count of a topic without a row, and a permit that is out already or is not.
//  6. Keep the commit and its events in the form that [Record] gives them, at positions that rise and are never used twice, the rows or their
//     absence, payloads and results, counts, permits and keys; then erase, then prune. All of it or nothing.
//
// What refuses a call is its receipt's Err and touches no other call of the same Decide. An error of Decide itself says that nothing was kept, or
// is [ErrUnknown] where that cannot be told; [Store.Outcome] then makes the answer final.
//
// # What it selects by
//
//   - claimable messages (Need.Claim): of a topic, those with a DueAt that is not after the store's time, by priority, due time and place. The place of
//     a message is the position of its first event, for as long as it has a row and whether or not that event is still kept.
//   - open claims: of a worker by the time of the claim, then id (Need.Claims); of a topic those that are not Counted (Need.Uncounted).
//   - who waits (with each lock): of each topic the first Blocked and the first Trying message, by priority and place.
//   - permits: by key; of a lock by expiry, age and token; of a worker by age, lock and token.
//   - histories: the events of an entity that has no row. Of a kind that rests ([events.Kind.Rests]) the newest one that moved it, alone.
//
// A row that is kept is given as its newest version. Running, on a topic's row, is the engine's own sum of the counts.
//
// # What it reads back
//
// Events come back byte for byte. Each has a checksum, and each commit has one over those of its events: whole commits are read with
// [events.DecodeCommit], single events with [events.Stored.Decode]. What is not as it was written is an [*events.Corrupt], never a silent gap.
// Cursors are the engine's own; [CursorAt] and [Cursor.Within] are one way to make and to read them, with the errors that [Store.Read] promises.
//
// # Optional powers
//
// An engine offers a power by implementing its interface, and callers find it with [As], through any decorator that has an Unwrap:
//
//   - [Waiter] says early that there may be something to claim; without it callers poll.
//   - [Heart] and [Leaser] keep heartbeats and leases, small rows that are written past the queue of commits; without them nobody sweeps.
//   - [ProcessWatcher] proves that a process has ended; without it only silence tells.
//   - [Pruner] lets go of the beginning of the log; without it the log grows for ever.
//   - [Shelf] keeps checkpoints of projections; without it they are folded from the beginning at each start.
//   - [Stager] lets a transaction of a user's own stage messages; without it they are enqueued beside it.
//
// # Staging
//
// Messages that a [Stager] has are rows beside the log, put there by transactions that the engine knows nothing of, until they commit. A call that
// names their places in Need.Staged is given, in [View].Staged, those that are still there, and holds them; who else holds one is not waited for, and
// it is not given. What Changes.Unstage names goes in the transaction that keeps the events of the call, all of it or nothing. So two that move the
// same have the effect of one, and one that is killed has none.
//
// # Pruning
//
// A prune is a commit like any other, so that nothing slips in between what is told once more and what goes. [Need].Prune asks, [View].Pruning says how
// far the engine may go and which rows need a snapshot before; Call.Run refuses Changes.Prune where it is anything else. The engine then
//
//   - lets go of all events up to there and of their commits, which are always whole ones. Of a message that has ended behind the cursor of the
//     one who asks nothing may go yet: it has no row, so that no snapshot would tell what it was;
//   - lets go of the contents of messages that have no row and whose newest event that moved them is among those. A message that has a row keeps
//     its contents and its place, whatever its age;
//   - lets go of keys whose message is not open and whose time is over;
//   - keeps the topic of a message whose first event goes while one is left that moved it, and gives it with its [Contents];
//   - remembers how far it went and, as [View].PrunedAt, the latest time at which one of those commits was decided. One that was decided while the
//     clock was ahead counts there as of the prune: else ids that are given later would be taken for pruned ones for as long as it was ahead;
//   - keeps the ids of the commits for the [Horizon], so that none of them runs again: they answer with [ErrPruned].
//
// An entity without a row and without any event is not known any more, and begins again from version 0. One of which only the later events are left is
// given as it is; who folds begins with the first event that says all of its state. Reading before the beginning is a [*PrunedError], whose First is what
// [Pruner.First] says; a reader that wants whatever there is begins at [Oldest].
package store
