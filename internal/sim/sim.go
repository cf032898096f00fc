// Package sim is several simulated processes on one store in memory, on virtual time: each a client and a worker as users have them, behind a
// store of its own that can be stopped, killed, held up and cut off. What befalls them is drawn beforehand; then everything must settle, and
// the log must obey the laws after each of its events.
//
// It runs in a bubble of testing/synctest, where hours pass in milliseconds.
package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store/memory"
)

// simulation is one run. Everything in it lives in one bubble.
type simulation struct {
	plan      plan
	began     time.Time
	clock     *clock
	engine    *engine // the one store of all
	outage    *outage
	kernel    *kernel // nil where no death can be proven
	office    *office
	processes []*process
	background
	ended chan struct{} // closed when nothing is begun any more

	mu    sync.Mutex // guards what follows; it is taken while the engine's own is held, never the other way round
	laws  *laws
	stage *stage
	log   []events.Recorded
	met   map[string]int
	fault error               // the first law that was broken
	over  chan struct{}       // closed with it
	calm  bool                // no fault happens any more
	steps int                 // of the clock
	lives map[events.ID]*life // whose incarnations they are
}

// background is what goes on beside the run and must have ended with it.
type background struct{ sync.WaitGroup }

// newSimulation makes a run of a plan. It must be made within the bubble.
func newSimulation(p plan) *simulation {
	s := &simulation{
		plan: p, began: time.Now(), clock: &clock{}, outage: &outage{}, laws: newLaws(), stage: newStage(),
		met: map[string]int{}, lives: map[events.ID]*life{}, over: make(chan struct{}), ended: make(chan struct{}),
	}
	s.engine = &engine{Store: memory.New(memory.Options{Clock: s.clock.now}), note: s.note}
	if p.Proof {
		s.kernel = &kernel{ended: map[events.ID]bool{}}
	}
	s.office = newOffice(s)
	for i := range p.Processes {
		s.processes = append(s.processes, &process{sim: s, n: i, settings: p.Processes[i]})
	}
	return s
}

// run carries out the plan, waits until everything has settled, and checks what is left. An error says which law was broken, or what has not
// settled.
func (s *simulation) run(ctx context.Context) error {
	err := s.live(ctx)
	s.end()
	return errors.Join(s.broken(), err)
}

// live is the run up to its end.
func (s *simulation) live(ctx context.Context) error {
	if err := s.office.open(ctx); err != nil {
		return err
	}
	for i, p := range s.processes {
		s.after(s.plan.Starts[i], p.start)
	}
	for _, step := range s.plan.steps() {
		if !s.until(step.At) {
			return nil
		}
		step.do(s)
	}
	if !s.until(s.plan.Length) {
		return nil
	}
	s.calmDown()
	if err := s.settle(); err != nil {
		return err
	}
	return s.inspect(ctx)
}

// until waits for a time of the run. It is false where a law was broken meanwhile.
func (s *simulation) until(at time.Duration) bool {
	timer := time.NewTimer(at - time.Since(s.began))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.over:
		return false
	}
}

// calmDown ends all faults: whoever stands still goes on, and whoever is dead is started again.
func (s *simulation) calmDown() {
	s.mu.Lock()
	s.calm = true
	s.mu.Unlock()
	s.outage.end()
	for _, p := range s.processes {
		p.resume()
		p.port().heal()
		if !p.alive() {
			p.start()
		}
	}
	s.office.port.heal()
}

// end takes everybody from the store and waits until all that they began has ended.
func (s *simulation) end() {
	close(s.ended)
	s.outage.end()
	for _, p := range s.processes {
		p.kill()
	}
	s.office.close()
	for _, p := range s.processes {
		p.wait()
	}
	s.background.Wait()
}

func (s *simulation) ending() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// count notes that something was met.
func (s *simulation) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.met[what]++
}

// violate ends the run with a law that was broken. The mutex is held.
func (s *simulation) violate(err error) {
	if err == nil || s.fault != nil {
		return
	}
	s.fault = err
	close(s.over)
}

func (s *simulation) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// note takes in the events of a commit, in their order.
func (s *simulation) note(list []events.Recorded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range list {
		s.log = append(s.log, r)
		for _, word := range words(r) {
			s.met[word]++
		}
		err := s.laws.event(r)
		if err == nil {
			err = s.alarm(r)
		}
		if err != nil {
			s.violate(fmt.Errorf("%s: %w", s.line(r), err))
		}
	}
	s.violate(s.laws.settled())
	for _, r := range list {
		if _, ok := r.Event.(*events.LockAcquired); ok {
			s.violate(s.beside(r.Entity.Name))
		}
	}
}

// all is how often everything was met that this run can meet.
func (s *simulation) all() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.met
}
