package scenario

import (
	"context"
	"errors"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// ending is what became of a claim.
type ending struct {
	hold
	command fsm.MessageCommand
	result  *store.Payload // of a handler that gave something back; nil of others
}

// prepareSettle brings the results of several handlers, one per line.
func prepareSettle(_ context.Context, w *World, l *line, input string) (*step, error) {
	items, err := lines(input)
	if err != nil {
		return nil, err
	}
	return w.settlement(l, items)
}

// prepareItems brings results of one sort.
func prepareItems(_ context.Context, w *World, l *line, _ string) (*step, error) {
	return w.settlement(l, []*line{l})
}

// settlement is the call that settles the items. Their sender is the worker of the first one's claim, where none is named.
func (w *World) settlement(l *line, items []*line) (*step, error) {
	c := fsm.Settle{Recordable: l.number("recordable", 60), Unrecorded: l.number("unrecorded", 0)}
	held, from := l.flag("held"), l.text("from")
	var results []ending
	for _, item := range items {
		list, err := w.items(item)
		if item != l {
			err = errors.Join(err, item.end())
		}
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			c.Items = append(c.Items, fsm.Settlement{ID: r.message, Command: r.command, Permit: w.permit(r.hold)})
		}
		results = append(results, list...)
	}
	if len(c.Items) == 0 {
		return nil, fmt.Errorf("%s: of which message?", l.verb)
	}
	c.Sender = w.laws.claimOf(c.Items[0].ID).worker
	o, err := w.origin()
	if from != "" {
		var unknown error
		c.Sender, unknown = w.names.id(from)
		err = errors.Join(err, unknown)
	}
	var known []store.Row
	if !held {
		known = w.known(results)
	}
	payloads := make([]*store.Payload, len(results))
	for i, r := range results {
		payloads[i] = r.result
	}
	call, refusals := calls.Settle(o, c, known, payloads...)
	return &step{call: call, notes: refused(refusals)}, err
}

// permit is the permit that a claim took; its token is 0 where it took none.
func (w *World) permit(h hold) fsm.PermitKey {
	token := w.laws.permitOf(h)
	if token == 0 {
		return fsm.PermitKey{}
	}
	return fsm.PermitKey{Lock: w.laws.messages[h.message].lock, Token: token}
}

// known is the rows that the workers got with their claims; they may be old by now.
func (w *World) known(results []ending) []store.Row {
	var known []store.Row
	met := map[events.ID]bool{}
	for _, r := range results {
		if row, kept := w.rows[r.hold]; kept && !met[r.message] {
			met[r.message] = true
			known = append(known, row)
		}
	}
	return known
}

// items reads a result and the messages it is of.
func (w *World) items(l *line) ([]ending, error) {
	var list []ending
	token := l.number("token", 0)
	given := resultOf(l)
	end, err := result(l)
	if err != nil {
		return nil, err
	}
	for _, word := range l.rest() {
		id, err := w.names.id(word)
		if err != nil {
			return nil, err
		}
		claimed := events.Token(token)
		if token == 0 {
			claimed = max(w.laws.claimOf(id).token, 1) // nobody's, where it never was claimed
		}
		e := ending{hold: hold{id, claimed}, command: end(claimed)}
		if c, completes := e.command.(fsm.CompleteMessage); completes && given != nil {
			c.Result = events.Facts{Size: len(given.Bytes), Commitment: events.Commitment(given.Salt, given.Bytes)}
			e.command, e.result = c, given
		}
		list = append(list, e)
	}
	return list, nil
}

// resultOf takes what a handler gave back; nil where it gave nothing.
func resultOf(l *line) *store.Payload {
	if text := l.text("result"); text != "" {
		return &store.Payload{Bytes: []byte(text)} // without a salt, as payloads
	}
	return nil
}

// result is how a handler's claim ends, but for its token.
func result(l *line) (func(events.Token) fsm.MessageCommand, error) {
	text := l.text("error")
	switch l.verb {
	case "complete":
		return func(token events.Token) fsm.MessageCommand { return fsm.CompleteMessage{Token: token} }, nil
	case "fail":
		c := fsm.FailMessage{Error: text, Jitter: l.number("jitter", 0)}
		return func(token events.Token) fsm.MessageCommand { c.Token = token; return c }, nil
	case "release":
		c := fsm.ReleaseMessage{Reason: events.Reason(l.text("reason")), Delay: l.length("delay")}
		if c.Reason == "" {
			c.Reason = events.ReasonReleased
		}
		return func(token events.Token) fsm.MessageCommand { c.Token = token; return c }, nil
	case "dead-letter":
		return func(token events.Token) fsm.MessageCommand { return fsm.DeadLetterMessage{Token: token, Error: text} }, nil
	case "cancel":
		c := fsm.CancelMessage{Detail: l.text("detail")}
		return func(token events.Token) fsm.MessageCommand { c.Token = token; return c }, nil
	}
	return nil, fmt.Errorf("%q does not end a claim", l.verb)
}
