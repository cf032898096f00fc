package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/foundling-go/foundling"
)

// process is one of those who work: a program that is started again when it has ended.
type process struct {
	sim      *simulation
	n        int
	settings foundling.WorkerOptions

	mu    sync.Mutex
	lives []*life // the newest last
}

// life is a process from its start to its end.
type life struct {
	process *process
	port    *port
	stop    context.CancelFunc
	done    chan struct{} // closed when its worker's Run has returned
	err     error         // of Run, for who has seen done
	stopped bool          // it was asked to stop
}

// start starts the process, unless it runs.
func (p *process) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.lives); p.sim.ending() || n > 0 && p.lives[n-1].runs() {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &life{process: p, stop: stop, done: make(chan struct{}), port: newPort(p.sim, uint64(p.n+1)<<16|uint64(len(p.lives)))}
	p.lives = append(p.lives, l)
	p.sim.background.Go(func() {
		defer close(l.done)
		l.err = l.run(ctx)
	})
}

// run is the program. Where its worker does not come up, it is started again after a while, as somebody who looks after it would.
func (l *life) run(ctx context.Context) error {
	for {
		w, err := l.worker()
		if err != nil {
			return err
		}
		if err = w.Run(ctx); err == nil || ctx.Err() != nil || l.port.isKilled() {
			return err
		}
		l.process.sim.count("worker did not come up")
		l.port.mark()
		time.Sleep(l.process.sim.plan.Unit / 2)
	}
}

func (l *life) worker() (*foundling.Worker, error) {
	p := l.process
	c, err := p.sim.client(fmt.Sprintf("process-%d", p.n+1), l.port)
	if err != nil {
		return nil, err
	}
	w, err := foundling.NewWorker(c, p.settings)
	if err != nil {
		return nil, err
	}
	for i, o := range p.sim.plan.Topics {
		foundling.NewTopic[payload](topicName(i), o).Handle(w, l.handle)
	}
	return w, nil
}

// client is a client of the store as somebody sees it, whose random choices are the port's.
func (s *simulation) client(actor string, p *port) (*foundling.Client, error) {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(p.roll(256))
	}
	return foundling.NewClient(p.store(), foundling.ClientOptions{
		Actor: actor, Rand: rand.NewChaCha8(seed), Logger: slog.New(slog.DiscardHandler), Timeout: 3 * s.plan.Unit,
	})
}

// runs reports whether the life goes on, or is about to end as it should.
func (l *life) runs() bool {
	select {
	case <-l.done:
		return false
	default:
		return !l.port.isKilled()
	}
}

func (p *port) isKilled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// life is the newest; nil before the first start.
func (p *process) life() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lives) == 0 {
		return nil
	}
	return p.lives[len(p.lives)-1]
}

// port is the way to the store of the newest life.
func (p *process) port() *port { return p.life().port }

// alive reports whether the process runs.
func (p *process) alive() bool {
	l := p.life()
	return l != nil && l.runs()
}

// kill ends the process as kill -9 does: nothing of it reaches the store any more. It is false where it does not run.
func (p *process) kill() bool {
	l := p.life()
	if l == nil || !l.port.kill() {
		return false
	}
	l.stop()
	return true
}

// crash kills the process and starts it again after a while.
func (p *process) crash(after time.Duration) bool {
	if !p.kill() {
		return false
	}
	p.later(after)
	return true
}

// later starts the process after a while, if the run is not over by then.
func (p *process) later(after time.Duration) {
	p.sim.background.Go(func() {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
			p.start()
		case <-p.sim.ended:
		}
	})
}

// pause makes the process stand still for a while.
func (p *process) pause(d time.Duration) bool {
	l := p.life()
	if !l.runs() || !l.port.stop() {
		return false
	}
	p.sim.background.Go(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			l.goOn()
		case <-l.port.dead:
		}
	})
	return true
}

// resume lets the process go on where it stands still.
func (p *process) resume() { p.life().goOn() }

// restart stops the process as it should be and starts it again, as a deploy does.
func (p *process) restart(after time.Duration) bool {
	p.mu.Lock()
	l := p.lives[len(p.lives)-1]
	if !l.runs() || l.stopped {
		p.mu.Unlock()
		return false
	}
	l.stopped = true
	p.mu.Unlock()
	l.port.mark()
	l.stop()
	p.sim.background.Go(func() {
		<-l.done
		p.later(after)
	})
	return true
}

// wait waits until all that the process was has ended.
func (p *process) wait() {
	p.mu.Lock()
	lives := p.lives
	p.mu.Unlock()
	for _, l := range lives {
		<-l.done
	}
}
