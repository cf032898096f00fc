package fsm

import (
	"errors"
	"slices"

	"github.com/foundling-go/foundling/events"
)

// Erase lets the contents of messages go, their payloads and results, at somebody's wish. Only of messages that have ended for good: what is still
// open needs them, and a dead letter may come back. What the log says of them stays.
type Erase struct {
	IDs    []events.ID
	By     string
	Detail string
}

// Name is "erase".
func (Erase) Name() string { return "erase" }

// Decide gives what the store must keep and let go, and per message nil or its *Refusal, which is not recorded. One whose contents were erased
// before is left as it is.
func (c Erase) Decide(held Held) (Outcome, []*Refusal, error) {
	l := newLedger(held)
	refusals := make([]*Refusal, len(c.IDs))
	for i, id := range c.IDs {
		if err := l.erase(c, l.message(id)); err != nil && !errors.As(err, &refusals[i]) {
			return Outcome{}, nil, err
		}
	}
	return l.outcome, refusals, nil
}

func (l *ledger) erase(c Erase, m Message) error {
	switch {
	case m.State == events.Absent:
		r := m.refusal(c.Name(), events.ReasonNotFound)
		r.Detail = "it was never there, or its history and its contents were let go"
		return r
	case m.Live():
		r := m.refusal(c.Name(), events.ReasonWrongState)
		r.Detail = "only what has ended for good is erased; cancel it first"
		return r
	case l.held.Erased[m.ID] || slices.Contains(l.outcome.Erase, m.ID):
		return nil
	}
	l.note(m, &events.MessageErased{By: c.By, Detail: c.Detail})
	l.outcome.Erase = append(l.outcome.Erase, m.ID)
	return nil
}
