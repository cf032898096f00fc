package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
)

// plan is everything that is drawn before a run: who there is, with which settings, what is asked of them and what befalls them.
type plan struct {
	Seed      uint64 // of how long each call takes, whose answer is lost and what handlers do
	Unit      time.Duration
	Length    time.Duration // of the time in which faults happen
	Proof     bool          // a kernel proves deaths
	Processes []foundling.WorkerOptions
	Starts    []time.Duration // of the processes: they do not all beat at once
	Topics    []foundling.TopicOptions
	Locks     []int // permits by lock; 0 is left as it is
	Tasks     []task
	Steps     []step
}

// task is a message to be.
type task struct {
	N     int
	Topic int
	At    time.Duration
	Opts  foundling.EnqueueOptions
}

// step is something that happens at its time: a fault, or what an operator wants.
type step struct {
	At   time.Duration
	What string // a key of actions
	Who  int    // a process, a task, a topic or a lock
	For  time.Duration
}

// draw draws one of n.
type draw func(n int) int

func pick[T any](d draw, list ...T) T { return list[d(len(list))] }

// between draws a time.
func (d draw) between(from, to time.Duration) time.Duration {
	const steps = 1000
	return from + (to-from)/steps*time.Duration(d(steps))
}

// drawPlan draws a plan. The steps are drawn last, so that a failing plan gets shorter by itself when it is made simpler.
func drawPlan(d draw) plan {
	p := plan{Unit: pick(d, time.Second, 2*time.Second, 5*time.Second), Proof: d(4) == 3}
	for range 4 {
		p.Seed = p.Seed<<10 | uint64(d(1<<10))
	}
	base := p.Unit * time.Duration(pick(d, 4, 3, 6, 8)) // orphan_reclaim_after
	p.Length = base * time.Duration(4+d(6))
	for range 2 + d(4) {
		p.Processes = append(p.Processes, p.drawWorker(d, base))
		p.Starts = append(p.Starts, d.between(0, p.Unit))
	}
	p.Processes[0].Sweeps = foundling.SweepsOn
	for range 1 + d(3) {
		p.Topics = append(p.Topics, p.drawTopic(d))
	}
	for range 1 + d(3) {
		p.Locks = append(p.Locks, d(4))
	}
	for n := range 8 + d(13) {
		p.Tasks = append(p.Tasks, p.drawTask(d, n))
	}
	swarm := drawSwarm(d)
	for range d(17) {
		p.Steps = append(p.Steps, p.drawStep(d, swarm, base))
	}
	slices.SortStableFunc(p.Steps, func(a, b step) int { return cmp.Compare(a.At, b.At) })
	return p
}

func (p *plan) drawWorker(d draw, base time.Duration) foundling.WorkerOptions {
	o := foundling.WorkerOptions{
		Concurrency: 1 + d(4), HeartbeatInterval: p.Unit, ReclaimAfter: base, PollInterval: p.Unit, Program: "sim",
		DrainTimeout: pick(d, p.Unit, base, foundling.None), SettleTimeout: pick(d, base, 3*base),
		FenceAfter: pick(d, 0, 0, 0, 0, 0, 0, 2*base, foundling.None), ReclaimInterval: pick(d, base, base/2, 2*base),
		ClaimGrace: pick(d, base/2, foundling.None, 2*base, 3*base), OrphanMaxAttempts: 1 + d(5),
		OrphanCount: pick(d, foundling.CountClaims, foundling.CountOrphanings), WorkerTTL: pick(d, 24*time.Hour, 2*base, 4*base),
		Sweeps: pick(d, foundling.SweepsOn, foundling.SweepsOn, foundling.SweepsOn, foundling.SweepsOn, foundling.SweepsOff),
	}
	o.Retention = pick(d, 0, base, 2*base, 4*base)
	if d(5) == 4 { // one of those whose settings are slower than the others'
		o.HeartbeatInterval, o.ReclaimAfter = 2*o.HeartbeatInterval, 2*o.ReclaimAfter
	}
	return o
}

func (p *plan) drawTopic(d draw) foundling.TopicOptions {
	return foundling.TopicOptions{
		Limit: d(4), MaxAttempts: 2 + d(5), BackoffBase: p.Unit / 2, BackoffMax: 4 * p.Unit,
		Timeout: pick(d, 0, 0, 3*p.Unit), OrphanMaxAttempts: pick(d, 0, 0, 0, 2), Fence: pick(d, foundling.FenceCancels, foundling.FenceCancels, foundling.FenceCancels, foundling.FenceWarns),
	}
}

func (p *plan) drawTask(d draw, n int) task {
	t := task{N: n, Topic: d(len(p.Topics)), At: d.between(0, p.Length)}
	t.Opts.Priority = pick(d, events.Normal, events.High, events.Low)
	if d(6) == 5 {
		t.Opts.Delay = p.Unit * time.Duration(1+d(8))
	}
	if d(4) > 0 {
		t.Opts.Lock = lockName(d(len(p.Locks)))
		t.Opts.OnLocked = pick(d, foundling.WaitForLock, foundling.WaitForLock, foundling.WaitForLock, foundling.SkipIfLocked)
	}
	return t
}

// drawSwarm draws what can happen in a run: a few things that then happen often find more than all of them now and then.
func drawSwarm(d draw) []string {
	var all, swarm []string
	for _, a := range actions {
		for range a.often {
			all = append(all, a.word)
		}
	}
	for range 1 + d(6) {
		swarm = append(swarm, pick(d, all...))
	}
	return swarm
}

func (p *plan) drawStep(d draw, swarm []string, base time.Duration) step {
	return step{
		At: d.between(p.Unit, p.Length), What: pick(d, swarm...), Who: d(1 << 10),
		For: pick(d, base/2, p.Unit, base, base+p.Unit, 2*base, 4*base),
	}
}

// steps is the steps with the tasks among them, in the order of their times.
func (p *plan) steps() []moment {
	var list []moment
	for _, t := range p.Tasks {
		list = append(list, moment{t.At, func(s *simulation) { s.office.submit(t) }})
	}
	for _, st := range p.Steps {
		list = append(list, moment{st.At, st.do})
	}
	slices.SortStableFunc(list, func(a, b moment) int { return cmp.Compare(a.At, b.At) })
	return list
}

// moment is something to be done at its time.
type moment struct {
	At time.Duration
	do func(*simulation)
}

func lockName(i int) string { return fmt.Sprintf("lock-%d", i+1) }

func topicName(i int) string { return fmt.Sprintf("topic-%d", i+1) }

// slowest is the longest time that a worker with any of the settings may be silent before everybody holds it to be dead.
func (p *plan) slowest() time.Duration {
	var slowest time.Duration
	for _, o := range p.Processes {
		slowest = max(slowest, o.ReclaimAfter, o.FenceAfter+o.HeartbeatInterval)
	}
	return slowest
}

// bound is within which time everything must have settled once the faults are over: the handlers that still run, a lease that ends, the proof
// of who lives, a sweep that was refused and the next one, a claim that was spared and the sweep behind that, and the work that is left.
func (p *plan) bound() time.Duration {
	var interval, grace time.Duration
	for _, o := range p.Processes {
		interval, grace = max(interval, o.ReclaimInterval), max(grace, o.ClaimGrace)
	}
	return p.longest() + 2*(p.slowest()+interval)*2 + grace + interval + time.Duration(len(p.Tasks))*6*p.Unit
}

// memory is for how long a heartbeat row may stay that nobody renews.
func (p *plan) memory() time.Duration {
	var ttl time.Duration
	for _, o := range p.Processes {
		ttl = max(ttl, o.WorkerTTL)
	}
	return ttl + p.slowest()
}

// longest is for how long a handler runs at most.
func (p *plan) longest() time.Duration { return 3 * p.slowest() }

// String tells the plan as one may want to repeat it.
func (p plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, unit %s, faults for %s, proof of death %t\n", p.Seed, p.Unit, p.Length, p.Proof)
	for i, o := range p.Processes {
		fmt.Fprintf(&b, "process %d: start=%s concurrency=%d heartbeat=%s after=%s fence=%s interval=%s grace=%s limit=%d count=%s ttl=%s drain=%s settle=%s sweeps=%t retention=%s\n",
			i+1, p.Starts[i], o.Concurrency, o.HeartbeatInterval, o.ReclaimAfter, o.FenceAfter, o.ReclaimInterval, o.ClaimGrace, o.OrphanMaxAttempts,
			o.OrphanCount, o.WorkerTTL, o.DrainTimeout, o.SettleTimeout, o.Sweeps == foundling.SweepsOn, o.Retention)
	}
	for i, o := range p.Topics {
		fmt.Fprintf(&b, "%s: limit=%d attempts=%d timeout=%s orphan-attempts=%d fence=%d\n", topicName(i), o.Limit, o.MaxAttempts, o.Timeout, o.OrphanMaxAttempts, o.Fence)
	}
	for i, permits := range p.Locks {
		fmt.Fprintf(&b, "%s: permits=%d\n", lockName(i), permits)
	}
	for _, t := range p.Tasks {
		fmt.Fprintf(&b, "+%s task %d: %s lock=%s on-locked=%s priority=%s delay=%s\n", t.At, t.N, topicName(t.Topic), t.Opts.Lock, t.Opts.OnLocked, t.Opts.Priority, t.Opts.Delay)
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "+%s %s %d for %s\n", s.At, s.What, s.Who, s.For)
	}
	return b.String()
}
