package fsm

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// Operate carries out one command on each of some messages, at an operator's wish.
//
// A claim that is ended from outside gives its slot back at once. Its permit stays with a worker that lives, until the worker says that the
// handler has ended: what the lock protects must not be touched by two. That of a dead worker comes back with the claim.
type Operate struct {
	IDs     []events.ID
	Command MessageCommand // CancelMessage, TakeBackMessage or RedriveMessage
	Force   Force          // whether a claim is taken from a worker that lives
	After   time.Duration  // orphan_reclaim_after, by which workers are judged; 0 is the default
	Gone    []events.ID    // workers that are proven to have ended
	Judged  []events.ID    // workers whose heartbeats were asked for; who claimed since is not among them, and lives
}

// Force says whether an operator insists.
type Force uint8

// The zero does not.
const (
	Unforced Force = iota
	Forced
)

// Name is the command's.
func (c Operate) Name() string { return c.Command.Name() }

// VisitFields names the parameters that the events do not carry: by what workers were judged.
func (c *Operate) VisitFields(f *events.Fields) {
	force := int(c.Force)
	f.Int("force", &force)
	f.Duration("after", &c.After)
	f.IDs("judged", &c.Judged)
	f.IDs("gone", &c.Gone)
	c.Force = Force(force)
}

// Decide gives what the store must keep, and per message nil or its *Refusal. Refusals are the operator's to read; they are not
// recorded.
func (c Operate) Decide(held Held) (Outcome, []*Refusal, error) {
	l := newLedger(held)
	refusals := make([]*Refusal, len(c.IDs))
	for i, id := range c.IDs {
		err := l.operate(c, l.message(id))
		if err != nil && !errors.As(err, &refusals[i]) {
			return Outcome{}, nil, err
		}
	}
	outcome, err := l.close()
	return outcome, refusals, err
}

// operate carries out the command on a message.
func (l *ledger) operate(c Operate, m Message) error {
	worker, permit := m.Worker, m.Permit()
	dead := l.dead(c, worker)
	if _, takes := c.Command.(TakeBackMessage); takes && m.State == events.Running && !dead && c.Force != Forced {
		r := m.refusal(c.Name(), events.ReasonAlive)
		r.Detail = "its worker " + worker.String() + " lives; force it to take the claim away all the same"
		return r
	}
	if _, err := l.move(m, c.Command); err != nil {
		return err
	}
	p, out := l.permit(permit)
	if !out || !dead {
		return nil
	}
	by, detail := wish(c.Command)
	return l.giveBack(p, ForceReleaseLock{Token: p.Token, By: by, Detail: detail})
}

// dead judges a worker as a sweep does.
func (l *ledger) dead(c Operate, worker events.ID) bool {
	if !slices.Contains(c.Judged, worker) {
		return false
	}
	m := l.held.Beats[worker]
	m.Gone = slices.Contains(c.Gone, worker)
	return Judge(m, events.Thresholds{After: cmp.Or(c.After, DefaultReclaimAfter)}, l.held.Clock, l.held.Now) != ""
}

// wish is whose wish a command is, in his words.
func wish(c MessageCommand) (by, detail string) {
	switch c := c.(type) {
	case CancelMessage:
		return c.By, c.Detail
	case TakeBackMessage:
		return c.By, c.Detail
	}
	return "", ""
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

// Decide gives what the store must keep. A stop gives back what the worker holds, claims and permits, a page at a time; only the commit that
// finds the last of it says that the worker has stopped. A purge of one that holds something, or was heard of within its TTL, does nothing.
func (c OperateWorker) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	w, ok := held.Workers[c.Worker]
	if !ok {
		w = Worker{ID: c.Worker}
	}
	switch command := c.Command.(type) {
	case StopWorker:
		return l.stop(w, command)
	case PurgeWorker:
		if held.holds(w, command.TTL) {
			return Outcome{}, nil
		}
	case ReturnWorker:
		if beat, beats := held.Beats[w.ID]; beats && held.Clock.Age(held.Now, beat.LastBeatAt) >= held.Clock.Age(held.Now, w.LostAt) {
			return Outcome{}, nil // it has not been heard of since: it would be lost again at once
		}
	}
	if err := l.worker(w, c.Command); err != nil {
		return Outcome{}, err
	}
	return l.outcome, nil
}

// holds reports whether there is still a reason to remember a lost worker: it holds something, was lost or has beaten within the time.
func (h Held) holds(w Worker, within time.Duration) bool {
	beat, beats := h.Beats[w.ID]
	return len(h.Claims[w.ID])+h.Spoilt[w.ID] > 0 || len(h.Permits) > 0 || h.Clock.Age(h.Now, w.LostAt) < within ||
		beats && h.Clock.Age(h.Now, beat.LastBeatAt) < within
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
	permits := 0
	for _, p := range l.held.Permits {
		if p.Worker != w.ID {
			continue
		}
		permits++
		if err := l.giveBack(p, ReleaseLock{Token: p.Token}); err != nil {
			return Outcome{}, err
		}
	}
	if len(page) > 0 && len(page)+l.held.Spoilt[w.ID] == StopPage || permits >= StopPage {
		return l.close() // there may be more
	}
	c.Released += len(page)
	if err := l.worker(w, c); err != nil {
		return Outcome{}, err
	}
	return l.close()
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
