package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/mint"
	"github.com/foundling-go/foundling/store"
)

// office is where messages and operators' commands come from. It is never killed; the store is out of its reach as it is of others'.
type office struct {
	sim    *simulation
	port   *port
	client *foundling.Client
	ids    *mint.Source
	ctx    context.Context // ends with the run
	close  context.CancelFunc
	acked  map[foundling.ID]bool // messages that somebody was told are durable; the simulation's mutex guards it, and the next
	busy   int                   // how many of its wishes are on their way
}

func newOffice(s *simulation) *office {
	o := &office{sim: s, port: newPort(s, 0), acked: map[foundling.ID]bool{}}
	o.ctx, o.close = context.WithCancel(context.Background())
	o.ids = mint.New(randomBytes{o.port})
	return o
}

// randomBytes are those of a port.
type randomBytes struct{ port *port }

func (r randomBytes) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r.port.roll(256))
	}
	return len(b), nil
}

// open gives the locks their permits.
func (o *office) open(ctx context.Context) (err error) {
	if o.client, err = o.sim.client("office", o.port); err != nil {
		return err
	}
	for i, permits := range o.sim.plan.Locks {
		if permits == 0 {
			continue
		}
		if err := o.client.ConfigureLock(ctx, lockName(i), foundling.LockSettings{Permits: permits}); err != nil {
			return err
		}
	}
	return nil
}

// submit enqueues a task until that is acknowledged. Every other task has an id of its own, so that it can be sent again where nobody knows what
// became of it; of the others such a one is given up.
func (o *office) submit(t task) {
	o.goes(func() {
		opts := t.Opts
		if t.N%2 == 0 {
			id, err := o.ids.ID(o.sim.clock.now())
			if err != nil {
				return
			}
			opts.ID = id
		}
		topic := foundling.NewTopic[payload](topicName(t.Topic), o.sim.plan.Topics[t.Topic])
		for o.ctx.Err() == nil {
			id, err := topic.Enqueue(o.ctx, o.client, payload{t.N}, opts)
			if err == nil {
				o.sim.mu.Lock()
				o.acked[id] = true
				o.sim.mu.Unlock()
				return
			}
			if errors.Is(err, &foundling.Refusal{Reason: events.ReasonPruned}) {
				o.sim.count("office: enqueue refused: pruned")
				return // it took so long that the id tells nobody any more whether it was there
			}
			if errors.Is(err, store.ErrUnknown) {
				o.sim.count("office: enqueue unknown")
				if opts.ID == (foundling.ID{}) {
					return
				}
			}
			time.Sleep(o.sim.plan.Unit / 4)
		}
	})
}

// goes is something of the office's that goes on beside the run.
func (o *office) goes(do func()) {
	o.add(1)
	o.sim.background.Go(func() {
		defer o.add(-1)
		do()
	})
}

func (o *office) add(n int) {
	o.sim.mu.Lock()
	defer o.sim.mu.Unlock()
	o.busy += n
}

// wish carries out an operator's command beside the run, with what may be refused of it.
func (o *office) wish(do func(ctx context.Context) error) bool {
	o.goes(func() {
		err := do(o.ctx)
		for _, r := range refusals(err) {
			o.sim.count(fmt.Sprintf("office: %s refused: %s", r.Command, r.Reason))
		}
	})
	return true
}

func refusals(err error) []*foundling.Refusal {
	var one *foundling.Refusal
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var list []*foundling.Refusal
		for _, err := range many.Unwrap() {
			list = append(list, refusals(err)...)
		}
		return list
	}
	if errors.As(err, &one) {
		return []*foundling.Refusal{one}
	}
	return nil
}

// message is one of those in a state; zero where there is none.
func (o *office) message(who int, states ...events.State) foundling.ID {
	o.sim.mu.Lock()
	defer o.sim.mu.Unlock()
	var list []foundling.ID
	for id, m := range o.sim.laws.messages {
		if slices.Contains(states, m.state) {
			list = append(list, id)
		}
	}
	if len(list) == 0 {
		return foundling.ID{}
	}
	slices.SortFunc(list, func(a, b foundling.ID) int { return cmp.Compare(a.String(), b.String()) })
	return list[who%len(list)]
}

// sweepOptions are those of a sweep that an operator asks for.
func (o *office) sweepOptions() foundling.SweepOptions {
	w := o.sim.plan.Processes[0]
	return foundling.SweepOptions{ReclaimAfter: w.ReclaimAfter, ClaimGrace: w.ClaimGrace, OrphanMaxAttempts: w.OrphanMaxAttempts, Wait: foundling.None}
}

// on does something to a message that is in a state.
func (o *office) on(st step, do func(context.Context, foundling.ID) error, states ...events.State) bool {
	id := o.message(st.Who, states...)
	if id == (foundling.ID{}) {
		return false
	}
	return o.wish(func(ctx context.Context) error { return do(ctx, id) })
}

func (o *office) requeue(st step, force foundling.Force) bool {
	return o.on(st, func(ctx context.Context, id foundling.ID) error {
		after := o.sim.plan.Processes[0].ReclaimAfter
		return o.client.Requeue(ctx, foundling.RequeueOptions{Reason: "sim", Force: force, ReclaimAfter: after}, id)
	}, events.Running)
}

func (o *office) cancel(st step) bool {
	return o.on(st, func(ctx context.Context, id foundling.ID) error { return o.client.Cancel(ctx, "sim", id) },
		events.Running, events.Queued, events.Blocked)
}

func (o *office) redrive(st step) bool {
	return o.on(st, func(ctx context.Context, id foundling.ID) error { return o.client.Redrive(ctx, "sim", id) }, events.DeadLettered)
}

func (o *office) releaseLock(st step) bool {
	return o.wish(func(ctx context.Context) error {
		_, err := o.client.ReleaseLock(ctx, "sim", lockName(st.Who%len(o.sim.plan.Locks)), 0)
		return err
	})
}

func (o *office) configureLock(st step) bool {
	return o.wish(func(ctx context.Context) error {
		n := len(o.sim.plan.Locks)
		return o.client.ConfigureLock(ctx, lockName(st.Who%n), foundling.LockSettings{Permits: 1 + st.Who/n%3})
	})
}

func (o *office) configureTopic(st step) bool {
	return o.wish(func(ctx context.Context) error {
		n := len(o.sim.plan.Topics)
		return o.client.ConfigureTopic(ctx, topicName(st.Who%n), foundling.TopicSettings{Limit: st.Who / n % 4})
	})
}

func (o *office) sweep(step) bool {
	return o.wish(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := o.client.Sweep(ctx, o.sweepOptions())
		return err
	})
}
