package sim

import (
	"maps"
	"slices"
	"testing"
)

// tally counts what runs have met.
type tally map[string]int

func (t tally) add(met map[string]int) {
	for what, n := range met {
		t[what] += n
	}
}

// complete fails where something was never met that should be.
func (t tally) complete(tb testing.TB, want []string) {
	tb.Helper()
	for _, what := range slices.Sorted(maps.Keys(t)) {
		tb.Logf("%7d %s", t[what], what)
	}
	for _, what := range want {
		if t[what] == 0 {
			tb.Errorf("never met: %s", what)
		}
	}
}

// often is what a few hundred runs meet.
var often = []string{
	"step: crash", "step: pause", "step: restart", "step: lost answers", "step: most answers lost", "step: heartbeats lost", "step: slow store", "step: outage: calls fail",
	"step: outage: calls hang", "step: clock forward", "step: clock back", "step: cancel", "step: requeue", "step: requeue forced",
	"step: redrive", "step: release lock", "step: configure lock", "step: configure topic", "step: sweep",

	"store: decide fail", "store: decide late", "store: decide lost after", "store: decide lost before", "store: outcome lost",
	"worker did not come up", "office: take-back refused: alive",

	"handler: undisturbed", "handler: fenced", "handler: claim lost", "handler: stopping", "handler: timed out",

	"message.enqueued", "message.claimed", "message.completed", "message.blocked", "message.unblocked", "message.discarded",
	"message.orphaned: silent", "message.orphaned: process_gone", "message.redriven",
	"message.requeued: retry", "message.requeued: released", "message.requeued: snoozed", "message.requeued: taken_back", "message.requeued: orphan",
	"message.dead_lettered: exhausted", "message.dead_lettered: handler", "message.dead_lettered: orphan_limit",
	"message.cancelled: handler", "message.cancelled: operator", "message.refused: stale_token", "message.refused: wrong_state",

	"lock.configured", "lock.acquired", "lock.released", "lock.orphaned: silent", "lock.orphaned: process_gone", "lock.reclaimed", "lock.force_released",
	"topic.configured", "topic.counted", "clock.stepped",
	"worker.started", "worker.stopped", "worker.lost: silent", "worker.lost: process_gone", "worker.returned", "worker.gap", "worker.purged",
	"leader.elected", "leader.resigned", "leader.lost",
	"log.pruned", "message.snapshotted", "topic.snapshotted", "worker.snapshotted", "leader.snapshotted", "clock.snapshotted", "lock.snapshotted",
	"sweep.finished", "sweep.finished: spared", "sweep.refused: liveness_unproven", "sweep.refused: clock_stepped",
}

// seldom is what it takes thousands to meet.
var seldom = []string{
	"message.requeued: unclaimed", "message.counted",
	"sweep.refused: liveness_unreadable", "sweep.refused: liveness_empty", "sweep.refused: caller_missing",
	"store: decide answered into an outage", "store: decide delivered late", "office: enqueue unknown", "office: enqueue refused: pruned", "office: cancel refused: wrong_state",
}
