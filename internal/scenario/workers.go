package scenario

import (
	"context"
	"errors"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// prepareWorker makes a command on a worker's incarnation.
func prepareWorker(ctx context.Context, w *World, l *line, _ string) (*step, error) {
	o, err := w.origin()
	if err != nil {
		return nil, err
	}
	id, err := w.workerID(l)
	if err != nil {
		return nil, err
	}
	c := fsm.OperateWorker{Worker: id}
	s := &step{}
	switch l.verb {
	case "worker-start":
		started := w.started(l)
		if c.Command = (fsm.StartWorker{Started: started}); started.Proof {
			err = w.attest(ctx, w.process(id))
		}
		s.done = func(ctx context.Context, _ store.Receipt) error { return w.begin(ctx, id, started) }
	case "worker-stop":
		c.Command = fsm.StopWorker{Released: l.number("released", 0)}
		s.done = func(ctx context.Context, r store.Receipt) error { return w.end(ctx, id, r) }
	case "worker-lose":
		c.Command = fsm.LoseWorker{Evidence: events.Evidence{Reason: events.ReasonProcessGone, Claimer: id}}
	case "worker-return":
		c.Command = fsm.ReturnWorker{}
	case "worker-gap":
		c.Command = fsm.GapWorker{FromAt: l.instant("from"), ToAt: l.instant("to")}
	case "worker-purge":
		c.Command = fsm.PurgeWorker{TTL: l.length("ttl")}
	}
	s.call = calls.OperateWorker(o, c)
	return s, err
}

// workerID is the id of the worker that a line names; one that starts without a name gets a new one.
func (w *World) workerID(l *line) (events.ID, error) {
	if l.verb == "worker-start" && len(l.words) == 0 {
		return w.mint()
	}
	return w.names.id(l.word("worker"))
}

func (w *World) started(l *line) events.WorkerStarted {
	return events.WorkerStarted{
		Host: l.text("host"), Topics: l.values("topics"), Concurrency: l.number("concurrency", 0), Proof: l.yes("proof"),
		HeartbeatInterval: l.length("interval"), FenceAfter: l.length("fence"),
	}
}

// begin lets the process of a worker that has started beat, where it has an interval.
func (w *World) begin(ctx context.Context, id events.ID, started events.WorkerStarted) error {
	p := w.process(id)
	if p.interval, p.fence = started.HeartbeatInterval, started.FenceAfter; p.interval == 0 {
		return nil
	}
	return w.beat(ctx, p)
}

// end lets the process of a worker that has stopped end.
func (w *World) end(ctx context.Context, id events.ID, r store.Receipt) error {
	stopped := false
	for _, e := range r.Events {
		stopped = stopped || e.Event.Type() == events.TypeWorkerStopped
	}
	heart, ok := store.As[store.Heart](w.engine)
	if !stopped || !ok {
		return nil
	}
	return errors.Join(heart.Still(ctx, id), w.process(id).end())
}

// prepareReclaim gives back what a worker held, as the commits of a sweep do that has proof of its end.
func prepareReclaim(_ context.Context, w *World, l *line, _ string) (*step, error) {
	o, err := w.origin()
	claimer, unknown := w.names.id(l.word("worker"))
	evidence := events.Evidence{
		Reason: events.ReasonProcessGone, Claimer: claimer, Limit: l.number("limit", fsm.DefaultOrphanMaxAttempts),
	}
	if by := l.text("by"); by != "" {
		var stranger error
		evidence.Decider, stranger = w.names.id(by)
		unknown = errors.Join(unknown, stranger)
	}
	call, _ := calls.Reclaim(o, fsm.Reclaim{Evidence: evidence, Page: l.number("page", 100)})
	return &step{call: call}, errors.Join(err, unknown)
}

// prepareClock records that a worker saw the store's clock step.
func prepareClock(_ context.Context, w *World, l *line, _ string) (*step, error) {
	o, err := w.origin()
	worker, unknown := w.names.id(l.word("worker"))
	c := fsm.StepClock{FromAt: l.instant("from"), ToAt: l.instant("to"), Worker: worker, Tolerance: l.length("tolerance")}
	return &step{call: calls.OperateClock(o, fsm.OperateClock{StepClock: c})}, errors.Join(err, unknown)
}
