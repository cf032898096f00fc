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

// step is a call that is ready to be sent.
type step struct {
	call store.Call
	// notes says what was answered beside the events, and what was refused of a call that was not. It is asked after the commit.
	notes func() ([]string, []*fsm.Refusal)
	// done is what else happens once the commit is there, and was not refused. nil is nothing.
	done func(context.Context, store.Receipt) error
}

// told is everything that is to be told of a step beside its events. An error is what no story can mean.
func (s *step) told(receipt store.Receipt) ([]string, []*fsm.Refusal, error) {
	var refusal *fsm.Refusal
	switch {
	case errors.As(receipt.Err, &refusal):
		return nil, []*fsm.Refusal{refusal}, nil
	case errors.Is(receipt.Err, store.ErrTooLarge):
		return []string{receipt.Err.Error()}, nil, nil
	case receipt.Err != nil:
		return nil, nil, receipt.Err
	case s.notes == nil:
		return nil, nil, nil
	}
	notes, refusals := s.notes()
	return notes, refusals, nil
}

// prepare makes the call of a step of a story.
type prepare func(ctx context.Context, w *World, l *line, input string) (*step, error)

// commands are the steps that commit something.
var commands = map[string]prepare{
	"topic":         prepareTopic,
	"pause":         prepareTopic,
	"resume":        prepareTopic,
	"count":         prepareCount,
	"enqueue":       prepareEnqueue,
	"claim":         prepareClaim,
	"settle":        prepareSettle,
	"complete":      prepareItems,
	"fail":          prepareItems,
	"release":       prepareItems,
	"dead-letter":   prepareItems,
	"cancel":        prepareCancel,
	"erase":         prepareErase,
	"take-back":     prepareOperate,
	"redrive":       prepareOperate,
	"worker-start":  prepareWorker,
	"worker-stop":   prepareWorker,
	"worker-lose":   prepareWorker,
	"worker-return": prepareWorker,
	"worker-gap":    prepareWorker,
	"worker-purge":  prepareWorker,
	"reclaim":       prepareReclaim,
	"step-clock":    prepareClock,
	"lock":          prepareLock,
	"force-release": prepareLock,
	"expire":        prepareLock,
	"repair":        prepareLock,
	"acquire":       prepareAcquire,
	"unlock":        prepareUnlock,
}

func (w *World) origin() (calls.Origin, error) {
	id, err := w.mint()
	return calls.Origin{ID: id, Actor: "story"}, err
}

func prepareTopic(_ context.Context, w *World, l *line, _ string) (*step, error) {
	o, err := w.origin()
	c := fsm.OperateTopic{Topic: l.word("topic")}
	by, detail := l.text("by"), l.text("detail")
	switch l.verb {
	case "topic":
		c.Command = fsm.ConfigureTopic{Limit: l.number("limit", 0), By: by, Detail: detail}
	case "pause":
		c.Command = fsm.PauseTopic{By: by, Detail: detail}
	case "resume":
		c.Command = fsm.ResumeTopic{By: by, Detail: detail}
	}
	return &step{call: calls.OperateTopic(o, c)}, err
}

func prepareCount(_ context.Context, w *World, l *line, _ string) (*step, error) {
	o, err := w.origin()
	return &step{call: calls.CountClaims(o, fsm.CountClaims{Topic: l.word("topic"), Page: l.number("page", 500)})}, err
}

func prepareClaim(_ context.Context, w *World, l *line, _ string) (*step, error) {
	o, err := w.origin()
	worker, unknown := w.names.id(l.word("worker"))
	c := fsm.Claim{Worker: worker, Most: l.number("most", 0)}
	for _, topic := range l.rest() {
		c.Asks = append(c.Asks, fsm.Ask{Topic: topic, N: 1})
	}
	for len(l.named) > 0 {
		topic := l.named[0].Key
		c.Asks = append(c.Asks, fsm.Ask{Topic: topic, N: l.number(topic, 1)})
	}
	return &step{call: calls.Claim(o, c)}, errors.Join(err, unknown)
}

// prepareOperate makes one command on some messages at an operator's wish.
func prepareOperate(ctx context.Context, w *World, l *line, _ string) (*step, error) {
	o, err := w.origin()
	if err != nil {
		return nil, err
	}
	by, detail := l.text("by"), l.text("detail")
	c := fsm.Operate{After: l.length("after")}
	if c.After == 0 {
		c.After = fsm.DefaultReclaimAfter
	}
	switch l.verb {
	case "cancel":
		c.Command = fsm.CancelMessage{By: by, Detail: detail}
	case "take-back":
		c.Command = fsm.TakeBackMessage{By: by, Detail: detail}
		if l.yes("force") {
			c.Force = fsm.Forced
		}
	case "redrive":
		c.Command = fsm.RedriveMessage{By: by, Detail: detail}
	}
	f := store.RowFilter{}
	for _, word := range l.rest() {
		id, err := w.names.id(word)
		if err != nil {
			return nil, err
		}
		c.IDs = append(c.IDs, id)
		f.Entities = append(f.Entities, events.MessageEntity(id))
	}
	if len(c.IDs) == 0 {
		return nil, fmt.Errorf("%s: of which message?", l.verb)
	}
	var rows []store.Row
	var workers []events.ID
	for row, err := range w.engine.Rows(ctx, f) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
		if row.Worker != (events.ID{}) {
			workers = append(workers, row.Worker)
		}
	}
	if c.Gone, err = w.gone(ctx, workers); err != nil {
		return nil, err
	}
	call, refusals, err := calls.Operate(o, c, rows)
	return &step{call: call, notes: refused(refusals)}, err
}

// prepareCancel is a handler's cancel where a token is given, else an operator's.
func prepareCancel(ctx context.Context, w *World, l *line, input string) (*step, error) {
	for _, arg := range l.named {
		if arg.Key == "token" {
			return prepareItems(ctx, w, l, input)
		}
	}
	return prepareOperate(ctx, w, l, input)
}

func refused(list *[]*fsm.Refusal) func() ([]string, []*fsm.Refusal) {
	return func() ([]string, []*fsm.Refusal) {
		var refusals []*fsm.Refusal
		for _, r := range *list {
			if r != nil {
				refusals = append(refusals, r)
			}
		}
		return nil, refusals
	}
}
