package history

import (
	"context"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// thresholds are those of every sweep: short, as the steps of a history are.
var thresholds = events.Thresholds{After: 30 * time.Second, Grace: 3 * time.Second, Limit: 2}

// worker is one of the fleet, which begins with nobody.
func (h *History) worker() events.ID {
	i := h.draw(workers)
	if h.fleet[i] == (events.ID{}) {
		h.fleet[i] = h.ID()
	}
	return h.fleet[i]
}

func (h *History) work() error {
	id := h.worker()
	commands := []fsm.WorkerCommand{
		fsm.StartWorker{Started: events.WorkerStarted{Host: "host-a", PID: 4711, Topics: Topics, HeartbeatInterval: time.Second, Limits: []int{2, 0, 1}}},
		fsm.StartWorker{Started: events.WorkerStarted{Host: "host-b", PID: 4712, Topics: Topics, Proof: true, FenceAfter: 20 * time.Second}},
		fsm.GapWorker{FromAt: h.Now().Add(-time.Minute), ToAt: h.Now()},
		fsm.ReturnWorker{},
		fsm.StopWorker{},
	}
	return h.Worker(id, commands[h.draw(len(commands))])
}

// beat is a heartbeat of one of the fleet. Most are silent.
func (h *History) beat() error {
	_, err := h.Store.Beat(context.Background(), store.Beat{
		Worker: h.worker(), First: true, Interval: time.Second, FenceAfter: 20 * time.Second,
	})
	return err
}

// Reclaim gives back a page of what a worker holds, where it is dead.
func (h *History) Reclaim(e events.Evidence, page int) (store.Receipt, *fsm.Reclaimed, error) {
	e.After, e.Grace, e.Limit, e.Count = thresholds.After, thresholds.Grace, thresholds.Limit, thresholds.Count
	call, seen := calls.Reclaim(h.origin(), fsm.Reclaim{Evidence: e, BeganAt: h.Now(), Page: page})
	receipt, err := h.Do(call)
	return receipt, seen, err
}

// evidence is what is said of a worker: proof now and then, else nothing but its heartbeat.
func (h *History) evidence(worker events.ID) events.Evidence {
	e := events.Evidence{Claimer: worker}
	if h.draw(4) == 0 {
		e.Reason = events.ReasonProcessGone
	}
	return e
}

// reclaim gives back some of what a worker holds, and sometimes puts another in its place.
func (h *History) reclaim() error {
	i := h.draw(workers)
	if h.fleet[i] == (events.ID{}) {
		return nil
	}
	_, _, err := h.Reclaim(h.evidence(h.fleet[i]), 1+h.draw(4))
	if h.draw(2) == 0 {
		h.left = append(h.left, h.fleet[i])
		h.fleet[i] = events.ID{}
	}
	return err
}

// sweep gives back everything of everybody who is dead, and records what it did.
func (h *History) sweep() error {
	id, decider := h.ID(), h.worker()
	finished := &events.SweepFinished{Decider: decider, Term: h.term, Thresholds: thresholds, Liveness: alone(decider)}
	for _, worker := range slices.Concat(h.left, h.fleet[:]) {
		if worker == decider || worker == (events.ID{}) {
			continue
		}
		e := h.evidence(worker)
		e.Sweep, e.Decider, e.Term = id, decider, h.term
		receipt, seen, err := h.Reclaim(e, 100)
		if err != nil {
			return err
		}
		tally(finished, receipt)
		if finished.Spared += seen.Spared; len(receipt.Events) > 0 {
			finished.Dead = append(finished.Dead, worker)
			finished.Pages++
		}
	}
	if finished.Pages+finished.Spared == 0 {
		return nil
	}
	return h.Record(id, finished)
}

// tally counts what a commit of a sweep gave back.
func tally(finished *events.SweepFinished, receipt store.Receipt) {
	for _, r := range receipt.Events {
		switch r.Event.Type() {
		case events.TypeMessageRequeued:
			finished.Requeued++
		case events.TypeMessageDeadLettered:
			finished.DeadLettered++
		case events.TypeLockReclaimed:
			finished.LocksReleased++
		}
	}
}

// Record records what came of a sweep.
func (h *History) Record(sweep events.ID, event events.Event) error {
	_, err := h.Do(calls.RecordSweep(h.origin(), fsm.RecordSweep{Sweep: sweep, Event: event}))
	return err
}

// alone is a live set of one.
func alone(worker events.ID) events.Liveness {
	return events.Liveness{Live: 1, Hash: [32]byte{1}, IDs: []events.ID{worker}, Ages: []int{40}}
}

// refuse records a sweep that was refused.
func (h *History) refuse() error {
	reasons := events.SweepRefusals()
	decider := h.worker()
	return h.Record(h.ID(), &events.SweepRefused{
		Reason: reasons[h.draw(len(reasons))], Detail: "in words", Decider: decider, Term: h.term, Thresholds: thresholds, Liveness: alone(decider),
	})
}

// purge forgets a worker that was lost long ago.
func (h *History) purge() error {
	if len(h.left) == 0 {
		return nil
	}
	return h.Worker(h.left[h.draw(len(h.left))], fsm.PurgeWorker{TTL: 4 * time.Second})
}

// lead elects somebody, or lets him resign.
func (h *History) lead() error {
	var command fsm.LeaderCommand = fsm.ResignLeader{Worker: h.worker(), Term: h.term}
	if h.draw(2) == 0 {
		h.term++
		command = fsm.ElectLeader{Worker: h.worker(), Term: h.term}
	}
	_, err := h.Do(calls.OperateLeader(h.origin(), fsm.OperateLeader{Leadership: fsm.Beat, Command: command}))
	return err
}

// stepClock records a step of the clock as somebody saw it. The virtual time goes on.
func (h *History) stepClock() error {
	_, err := h.Do(calls.OperateClock(h.origin(), fsm.OperateClock{StepClock: fsm.StepClock{
		FromAt: h.Now(), ToAt: h.Now().Add(time.Duration(h.draw(100)-50) * time.Minute), Worker: h.worker(), Tolerance: time.Second,
	}}))
	return err
}
