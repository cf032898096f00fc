// Package foundling keeps work that must not get lost and must be accounted for: messages on topics with limits, handled at least
// once by any number of processes, on a store that keeps every step as an event.
//
// A [Topic] is a queue with one payload type. A [Client] over a store enqueues messages, durable when [Topic.Enqueue] returns. A
// [Worker] claims them, runs their handlers and brings the results back; [Worker.Run] blocks until its context ends and then drains.
// Engines are packages of their own: store/memory and store/sqlite.
//
// # What is promised
//
// What was acknowledged is not lost: a message ends completed, dead-lettered or cancelled, or it is still there. It is handled at
// least once. Every claim carries a fencing [Token]; a result that comes too late is refused and recorded. A topic's limit holds over
// all processes, whoever dies. Where the store's engine can prove that a process has ended (SQLite on a local disk), what the dead
// process held is given back at once.
//
// # The caller's duties
//
// A handler may run more than once for one message, and two runs may overlap when a process was thought dead: make its effects
// repeatable, or pass the token on to what it writes to and refuse a lower one there. A handler returns when its context ends.
package foundling
