package fsm

import (
	"errors"
	"slices"

	"github.com/foundling-go/foundling/events"
)

// Settle brings the results of handlers: each item ends one claim, or is refused without touching the others.
type Settle struct {
	Sender     events.ID // the incarnation whose claims they were
	Items      []Settlement
	Recordable int // refusals that may be recorded; what is beyond is only counted
	Unrecorded int // refusals of this sender that were left out before
}

// Settlement is the result of one claim: a command that carries the claim's token. It also says that the claim's handler has ended: the permit
// that the claim took goes back, even where the claim was ended from outside before.
type Settlement struct {
	ID      events.ID
	Command MessageCommand
	Permit  PermitKey // its token is 0 where the claim took none
}

// Name is "settle".
func (Settle) Name() string { return "settle" }

// VisitFields names the parameters that the events do not carry.
func (c *Settle) VisitFields(f *events.Fields) {
	f.ID("sender", &c.Sender)
	f.Int("recordable", &c.Recordable)
	f.Int("unrecorded", &c.Unrecorded)
}

// Decide gives what the store must keep, and per item nil or its *Refusal. A refusal is recorded under the message it met; one for a
// message that the store never knew leaves nothing.
func (c Settle) Decide(held Held) (Outcome, []*Refusal, error) {
	l := newLedger(held)
	refusals := make([]*Refusal, len(c.Items))
	for i, item := range c.Items {
		m := l.message(item.ID)
		_, err := l.move(m, item.Command)
		if p, out := l.permit(item.Permit); out && c.frees(p, m, err == nil) {
			if err := l.giveBack(p, ReleaseLock{Token: p.Token}); err != nil {
				return Outcome{}, nil, err
			}
		}
		if err == nil {
			continue
		}
		if !errors.As(err, &refusals[i]) {
			return Outcome{}, nil, err
		}
		if m.State == events.Absent {
			continue
		}
		r := refusals[i]
		if c.Recordable <= 0 || l.recorded(r) {
			c.Unrecorded++
			continue
		}
		c.Recordable--
		l.note(m, &events.MessageRefused{
			Command: r.Command, Reason: r.Reason, Sender: c.Sender, Sent: r.Sent, Found: r.Found, Unrecorded: c.Unrecorded,
		})
		c.Unrecorded = 0
	}
	outcome, err := l.close()
	return outcome, refusals, err
}

// frees reports whether a result ends a permit that is out: that of the message's open claim where the result was accepted, that of an earlier
// claim of the sender where it came too late. So nobody frees what another handler holds.
func (c Settle) frees(p Permit, m Message, accepted bool) bool {
	if p.Message != m.ID {
		return false
	}
	if p.PermitKey == m.Permit() {
		return accepted
	}
	return !accepted && p.Worker == c.Sender
}

// recorded reports whether the outcome holds such a refusal already: one for an entity, a token and a command says it all.
func (l *ledger) recorded(r *Refusal) bool {
	i, ok := l.place[r.Entity]
	return ok && slices.ContainsFunc(l.outcome.Changes[i].Transitions, func(t events.Transition) bool {
		switch e := t.Event.(type) {
		case *events.MessageRefused:
			return e.Command == r.Command && e.Sent == r.Sent
		case *events.LockRefused:
			return e.Command == r.Command && e.Sent == r.Sent
		}
		return false
	})
}
