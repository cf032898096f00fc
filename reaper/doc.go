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
// Nothing in this package waits, reads a clock or starts a goroutine: whoever calls it drives it. Its time is the store's.
package reaper
