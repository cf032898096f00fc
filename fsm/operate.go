package fsm

import (
	"errors"

	"github.com/foundling-go/foundling/events"
)

// Operate carries out one command on each of some messages, at an operator's wish.
type Operate struct {
	IDs     []events.ID
	Command MessageCommand // CancelMessage, TakeBackMessage or RedriveMessage
}

// Name is the command's.
func (c Operate) Name() string { return c.Command.Name() }

// Decide gives what the store must keep, and per message nil or its *Refusal. Refusals are the operator's to read; they are not
// recorded.
func (c Operate) Decide(held Held) (Outcome, []*Refusal, error) {
	l := newLedger(held)
	refusals := make([]*Refusal, len(c.IDs))
	for i, id := range c.IDs {
		_, err := l.move(l.message(id), c.Command)
		if err != nil && !errors.As(err, &refusals[i]) {
			return Outcome{}, nil, err
		}
	}
	return l.outcome, refusals, nil
}

// OperateTopic carries out one command on a topic.
type OperateTopic struct {
	Topic   string
	Command TopicCommand
}

// Name is the command's.
func (c OperateTopic) Name() string { return c.Command.Name() }

// Decide gives what the store must keep.
func (c OperateTopic) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	t, ok := held.Topics[c.Topic]
	if !ok {
		t = Topic{Name: c.Topic}
	}
	if _, err := l.topic(t, c.Command); err != nil {
		return Outcome{}, err
	}
	return l.outcome, nil
}

// OperateWorker carries out one command on a worker incarnation.
type OperateWorker struct {
	Worker  events.ID
	Command WorkerCommand
}

// Name is the command's.
func (c OperateWorker) Name() string { return c.Command.Name() }

// Decide gives what the store must keep. A stop gives back what the worker holds, a page at a time; only the commit that finds the last of it
// says that the worker has stopped.
func (c OperateWorker) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	w, ok := held.Workers[c.Worker]
	if !ok {
		w = Worker{ID: c.Worker}
	}
	if stop, ok := c.Command.(StopWorker); ok {
		return l.stop(w, stop)
	}
	if err := l.worker(w, c.Command); err != nil {
		return Outcome{}, err
	}
	return l.outcome, nil
}

func (l *ledger) stop(w Worker, c StopWorker) (Outcome, error) {
	if _, err := w.Decide(c, l.held.Now); err != nil {
		return Outcome{}, err
	}
	page := l.held.Claims[w.ID]
	for _, m := range page {
		if _, err := l.move(m, ReleaseMessage{Token: m.Token, Reason: events.ReasonReleased}); err != nil {
			return Outcome{}, err
		}
	}
	if len(page) == StopPage {
		return l.outcome, nil // there may be more
	}
	c.Released += len(page)
	if err := l.worker(w, c); err != nil {
		return Outcome{}, err
	}
	return l.outcome, nil
}

// CountClaims counts the claims that were open before their topic had a limit. Until all of them count, none is granted. It goes on
// page by page; the page that is not full is the last.
type CountClaims struct {
	Topic string
	Page  int // how many were asked for
}

// Name is "count-claims".
func (CountClaims) Name() string { return "count-claims" }

// VisitFields names the parameters that the events do not carry.
func (c *CountClaims) VisitFields(f *events.Fields) { f.Int("page", &c.Page) }

// Decide counts the held claims, and ends the counting where they are all there are.
func (c CountClaims) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	topic, ok := held.Topics[c.Topic]
	if !ok {
		topic = Topic{Name: c.Topic}
	}
	if !topic.Counting {
		return Outcome{}, topic.refusal(c.Name())
	}
	page := held.Uncounted[c.Topic]
	for _, m := range page {
		if _, err := l.move(m, CountMessage{}); err != nil {
			return Outcome{}, err
		}
	}
	if len(page) < c.Page {
		if _, err := l.topic(topic, CountTopic{}); err != nil {
			return Outcome{}, err
		}
	}
	return l.outcome, nil
}
