// Package projections says what recorded events add up to: how deep each topic is, who holds what, what became of one message.
//
// A projection is a plain value. Its Apply takes one recorded event after the other, fails at nothing and asks nothing of the world: an
// event of an unknown type, or of something whose beginning was never seen, is passed over, and so is one that was applied before.
// Its readers give copies. The same numbers stand behind the progress of a run, the status page and the metrics, so that these cannot
// disagree.
//
//	var topics projections.Topics
//	oldest, err := store.Oldest(ctx, s)
//	err = projections.Follow(s.Read(ctx, oldest, store.Filter{}), &topics)
//
// Memory is proportional to what is open, not to history: a message that has ended leaves the maps, a dead letter stays since it can be
// redriven, a worker leaves when it has stopped or was purged and holds nothing, and a lock when it is free and nobody configured it.
// What is told of what is over (late results, sweeps, false alarms, ends of permits, steps of the clock) is the last so many of each.
//
// # Durable ones
//
// A [Durable] projection can also say all of its state in bytes and take it back, so that it need not begin again at each start, nor forget what
// retention has let go. Package projections/runner keeps them, each event counted once. [Totals] is the one that Foundling keeps of itself.
//
// # Duties and caveats
//
// A projection is not safe for concurrent use; its caller serializes Apply and the readers. Events come to it in the order of the log, each once or
// more. It tells what the log says up to the last event that it has taken, which may be a while ago. Of what was let go before it began it knows
// what snapshots say: an open message is counted, one that ended before is not.
package projections
