package sim

import "time"

// action is something that can happen, and whether it did.
type action struct {
	word  string
	often int // how often it is drawn, beside the others
	do    func(*simulation, step) bool
}

// actions are the faults, and what operators want.
var actions = []action{
	{"crash", 4, func(s *simulation, st step) bool { return s.who(st).crash(st.For) }},
	{"pause", 4, func(s *simulation, st step) bool { return s.who(st).pause(st.For) }},
	{"restart", 2, func(s *simulation, st step) bool { return s.who(st).restart(st.For / 4) }},
	{"lost answers", 3, func(s *simulation, st step) bool { return s.trouble(st, trouble{losses: 25}) }},
	{"most answers lost", 3, func(s *simulation, st step) bool { return s.trouble(st, trouble{losses: 75}) }},
	{"heartbeats lost", 3, func(s *simulation, st step) bool { return s.trouble(st, trouble{mute: true}) }},
	{"slow store", 2, func(s *simulation, st step) bool { return s.trouble(st, trouble{delay: 2 * s.plan.Unit}) }},
	{"outage: calls fail", 2, func(s *simulation, st step) bool { return s.cutOff(st, callsFail) }},
	{"outage: calls hang", 2, func(s *simulation, st step) bool { return s.cutOff(st, callsHang) }},
	{"clock forward", 2, func(s *simulation, st step) bool { return s.stepClock(far(st)) }},
	{"clock back", 2, func(s *simulation, st step) bool { return s.stepClock(-far(st)) }},
	{"cancel", 2, func(s *simulation, st step) bool { return s.office.cancel(st) }},
	{"requeue", 2, func(s *simulation, st step) bool { return s.office.requeue(st, 0) }},
	{"requeue forced", 2, func(s *simulation, st step) bool { return s.office.requeue(st, 1) }},
	{"redrive", 2, func(s *simulation, st step) bool { return s.office.redrive(st) }},
	{"release lock", 1, func(s *simulation, st step) bool { return s.office.releaseLock(st) }},
	{"configure lock", 2, func(s *simulation, st step) bool { return s.office.configureLock(st) }},
	{"configure topic", 2, func(s *simulation, st step) bool { return s.office.configureTopic(st) }},
	{"sweep", 2, func(s *simulation, st step) bool { return s.office.sweep(st) }},
}

// do carries out the step, and counts it where it had an effect.
func (st step) do(s *simulation) {
	for _, a := range actions {
		if a.word == st.What && a.do(s, st) {
			s.count("step: " + st.What)
		}
	}
}

// who is the process that a step is of.
func (s *simulation) who(st step) *process { return s.processes[st.Who%len(s.processes)] }

// trouble is between one process, or the office, and the store for a while.
func (s *simulation) trouble(st step, t trouble) bool {
	p := s.office.port
	if i := st.Who % (len(s.processes) + 1); i < len(s.processes) {
		p = s.processes[i].port()
	}
	p.suffer(t)
	s.after(st.For, p.heal)
	return true
}

// cutOff takes the store out of everybody's reach for a while.
func (s *simulation) cutOff(st step, hangs hanging) bool {
	s.outage.begin(hangs)
	s.after(st.For, s.outage.end)
	return true
}

// far is by how much a step sets the clock: a little, or much more than every bound.
func far(st step) time.Duration {
	if st.Who%3 == 0 {
		return 2*time.Hour + st.For
	}
	return st.For
}

func (s *simulation) stepClock(by time.Duration) bool {
	s.mu.Lock()
	s.steps++
	s.mu.Unlock()
	s.clock.step(by)
	return true
}

// after does something after a while, if the run is not over by then.
func (s *simulation) after(d time.Duration, do func()) {
	s.background.Go(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			do()
		case <-s.ended:
		}
	})
}
