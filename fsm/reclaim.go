package fsm

import "github.com/foundling-go/foundling/events"

// Reclaim gives back what a dead worker holds, a page at a time: its messages and their slots in one commit. The first page also says
// that the worker is lost; one that finds nothing left changes nothing.
type Reclaim struct {
	Evidence events.Evidence
}

// Name is "reclaim".
func (Reclaim) Name() string { return "reclaim" }

// Decide orphans every held claim of the dead worker, and requeues or dead-letters each in the same commit.
func (c Reclaim) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	w, known := held.Workers[c.Evidence.Claimer]
	if known && w.State == events.Live {
		if err := l.worker(w, LoseWorker(c)); err != nil {
			return Outcome{}, err
		}
	}
	for _, m := range held.Claims[c.Evidence.Claimer] {
		if _, err := l.move(m, OrphanMessage(c)); err != nil {
			return Outcome{}, err
		}
	}
	return l.outcome, nil
}
