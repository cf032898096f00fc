package sim

import (
	"errors"
	"fmt"

	"github.com/foundling-go/foundling/events"
)

// alarm holds who is said to be lost against who lives. What befalls all at once, such as a store out of reach, must not look like the death of
// some: for that the guards are there. Whoever stood still or was cut off alone may be held to be lost. So may one who beats more slowly than the
// others: after an outage they wait for as long as their own settings say, in which he may have had but one heartbeat. The mutex is held.
func (s *simulation) alarm(r events.Recorded) error {
	switch r.Event.(type) {
	case *events.WorkerStarted:
		var n int
		if _, err := fmt.Sscanf(r.Commit.Command.Actor, "process-%d", &n); err != nil {
			return nil // the office, which sweeps
		}
		l := s.processes[n-1].life()
		s.lives[r.Entity.ID] = l
	case *events.WorkerLost:
		l := s.lives[r.Entity.ID]
		slow := l != nil && l.process.settings.HeartbeatInterval > s.plan.Unit
		if l != nil && !slow && s.steps == 0 && l.runs() && !l.port.isMarked() {
			return errors.New("law 8: it lives, and was not kept from saying so more than all others")
		}
	}
	return nil
}

func (p *port) isMarked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.marked
}
