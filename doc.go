// Package foundling keeps work that must not get lost and must be accounted for: messages on topics with limits, handled at least
// once by any number of processes, on a store that keeps every step as an event.
//
// A [Topic] is a queue with one payload type. A [Client] over a store enqueues messages, durable when [Topic.Enqueue] returns, looks at them and
// acts on them. A [Worker] claims them, runs their handlers and brings the results back; [Worker.Run] blocks until its context ends and then
// drains. Engines are packages of their own: store/memory and store/sqlite.
//
//	var receipts = foundling.NewTopic[Receipt]("receipts", foundling.TopicOptions{Limit: 2})
//
//	client, err := foundling.NewClient(store, foundling.ClientOptions{})
//	_, err = receipts.Enqueue(ctx, client, Receipt{"4411", "A-17"}, foundling.EnqueueOptions{Key: "order:A-17"})
//
//	worker, err := foundling.NewWorker(client, foundling.WorkerOptions{})
//	receipts.Handle(worker, func(ctx context.Context, m foundling.Message[Receipt]) error { return send(ctx, m.Payload, m.Token) })
//	err = worker.Run(ctx)
//
// # What is promised
//
// What was acknowledged is not lost: a message ends completed, dead-lettered, cancelled or discarded, or it is still there. It is handled at
// least once. Every claim carries a fencing [Token]; a result that comes too late is refused and recorded. A topic's limit holds over
// all processes, whoever dies, and so does a lock. What a dead worker held comes back: at once where the store's engine can prove that a process has
// ended (SQLite on a local disk), else after two minutes of silence that cannot be a broken signal. docs/guarantees.md says what each promise
// means and where it ends.
//
// # The caller's duties
//
// A handler may run more than once for one message, and two runs may overlap when a process was thought dead: make its effects
// repeatable, or pass the token on to what it writes to and refuse a lower one there. A handler returns when its context ends;
// context.Cause says why it did. The store is closed after everything that uses it has ended.
//
// # Looking
//
// [Client.Get] reads one message, [Client.List] many, by pages. [Client.Wait] blocks until one has ended, and gives what its handler set with
// [Message.SetResult]. [Client.Events] yields the log and goes on with what is still to come, over all processes: the log is the subscription, and
// whoever keeps a [Cursor] misses nothing.
//
// # Acting
//
// [Client.Cancel], [Client.Requeue] and [Client.Redrive] act on messages, [Client.PauseTopic], [Client.ResumeTopic] and [Client.ConfigureTopic] on
// topics, [Client.ConfigureLock] and [Client.ReleaseLock] on locks, [Client.Sweep] on what the dead held. Each takes a reason for the log. What
// the rules do not allow is a [Refusal], and nothing has moved.
//
// # What is kept, and for how long
//
// The log is kept for 90 days, or [WorkerOptions].Retention; the leader among the workers lets go of what is older, with the payloads and results of
// the messages that ended there. What is open, or a dead letter, stays whole whatever its age. [Client.Erase] lets go of one message's payload and
// result at once. [Client.Prune] is for who does not want to wait.
//
// # Zero values
//
// Zero means the default everywhere; where "none" is wanted it is said: [None], [NoRetry], [Forever], [SweepsOff]. Settings out of their bounds are
// refused with their name, value and bound, as an [ErrInvalid].
//
// # Testing
//
// Package foundlingtest gives tests a client on a time that they move. In a bubble of testing/synctest clients and workers over store/memory run as they
// are.
package foundling
