// Package reaper lets time pass: it gives back what the dead held, and does what else is due without anybody asking.
//
// A [Sweep] looks who lives, judges each worker that holds something, and gives a dead one's messages, slots and permits back, a page to a
// commit. It trusts two kinds of evidence. Proof of death: where all workers of a store live on one machine, the kernel tells whether the
// process of an incarnation has ended (see store.ProcessWatcher). And silence: a heartbeat older than every bound on it, which is weaker,
// so that a sweep refuses to act on it where its own view is in doubt (see fsm.Census). Who is dead is judged again in each commit.
//
// A [Beat] is what the leader does: it holds the lease, sweeps in the rhythm that stands on it, ends permits whose time is over, and makes good
// what nobody told a waiter. Everything here is safe when two believe that they lead, since each effect is a commit that decides by itself.
//
// A [Prune] lets go of the beginning of the log by pages, as far as retention and the durable projections allow. What is open tells its state
// once more in the same commit or one before.
//
//	beat := &reaper.Beat{Store: s, Decide: decide, Mint: mint, Caller: worker, Thresholds: t, Interval: 5 * time.Minute, Life: 45 * time.Second}
//	step, err := beat.Step(ctx, ownHeartbeats) // at each heartbeat; err leaves the step as far as it came
//
// The caller's duties: beat before you sweep, since nobody who is not seen to live may judge others; pass on the times of your own heartbeats as they
// were confirmed; end a step before its lease ends. A report that was refused is not an error.
//
// Nothing in this package waits, reads a clock or starts a goroutine: whoever calls it drives it. Its time is the store's.
package reaper
