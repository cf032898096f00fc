package foundling

import (
	"context"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// claimLoop claims while there are free slots and something to claim, until ctx ends. Hints make it fast; the poll makes it right.
func (inc *incarnation) claimLoop(ctx context.Context) {
	var hints <-chan struct{}
	if waiter, ok := store.As[store.Waiter](inc.client.store); ok {
		watched, stop := waiter.Watch(inc.names)
		defer stop()
		hints = watched
	}
	poll := time.NewTimer(inc.opts.PollInterval)
	defer poll.Stop()
	pace := retryPace() // of claims that fail
	for why := byHint; ctx.Err() == nil; {
		command, wait := inc.asks(), inc.opts.PollInterval
		var turn chan struct{} // who has no slot free leaves it to others
		if len(command.Asks) > 0 && inc.fresh() {
			turn, wait = inc.client.polls.turn, inc.client.polls.wait(command.Asks, why, wait)
		}
		if wait == 0 {
			more, err := inc.lookFor(ctx, command, why)
			if err != nil && ctx.Err() == nil {
				inc.log.ErrorContext(ctx, "claim failed", keyError, err)
				sleep(ctx, pace.NextBackOff())
				why = byHint
				continue
			}
			pace.Reset()
			if more && err == nil {
				continue
			}
			wait = inc.opts.PollInterval
		}
		poll.Reset(wait)
		select {
		case <-ctx.Done():
		case <-poll.C:
			why = byTime
		case <-turn:
			why = byTurn
		case <-inc.freed:
			why = byHint
		case <-hints:
			why = byHint
		}
	}
}

// lookFor claims, and lets the other workers of the client know what they may rely on.
func (inc *incarnation) lookFor(ctx context.Context, command fsm.Claim, why wakes) (more bool, err error) {
	more, left, err := inc.claim(ctx, command)
	if left || err != nil {
		inc.client.polls.leaves(command.Asks)
	}
	if left && why != byHint { // a hint has woken them all
		hint(inc.client.polls.turn)
	}
	return more, err
}

// asks is a claim of as much as there are free slots for. A slot is free again when its result is settled. Each topic is the first to be
// served in its turn.
func (inc *incarnation) asks() fsm.Claim {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	command := fsm.Claim{Worker: inc.id, Most: inc.opts.Concurrency - len(inc.claims) - inc.hooking}
	if command.Most <= 0 {
		return command
	}
	running := map[string]int{}
	for _, c := range inc.claims {
		running[c.delivery.message.Topic]++
	}
	for _, topic := range inc.names {
		n := command.Most
		if bound, ok := inc.opts.PerTopic[topic]; ok {
			n = min(n, bound-running[topic])
		}
		if n > 0 {
			command.Asks = append(command.Asks, fsm.Ask{Topic: topic, N: n})
		}
	}
	inc.names = append(inc.names[1:len(inc.names):len(inc.names)], inc.names[0])
	return command
}

// claim carries out a claim and begins the handlers of what it granted. There may be more where it granted as much as there were slots for,
// or looked at messages whose locks are taken; and there is something left for others, as far as anybody knows, where that is so of one topic.
func (inc *incarnation) claim(ctx context.Context, command fsm.Claim) (more, left bool, err error) {
	inc.underWay(&inc.asked)
	defer inc.underWay(&inc.answered)
	lapses := inc.lapses()
	// A claim that is under way when the worker stops is taken to its end, so that nobody has to find out what became of it.
	receipt, err := inc.client.decide(context.WithoutCancel(ctx), func(o calls.Origin) store.Call {
		return calls.Claim(o, command)
	})
	if err != nil {
		return false, false, err
	}
	rows, err := inc.claimedRows(ctx, receipt)
	if err != nil {
		return false, false, err // what it holds without knowing it, reconciling gives back
	}
	for _, row := range rows {
		inc.start(ctx, row, lapses)
	}
	for _, r := range receipt.Events {
		if t := r.Event.Type(); t == events.TypeMessageBlocked || t == events.TypeMessageDiscarded {
			return true, true, nil
		}
	}
	more = len(rows) == command.Most
	return more, more || exhausts(command.Asks, rows), nil
}

// exhausts reports whether as much of a topic was granted as was asked for.
func exhausts(asks []fsm.Ask, rows []store.Row) bool {
	granted := map[string]int{}
	for _, row := range rows {
		granted[row.Topic]++
	}
	return slices.ContainsFunc(asks, func(a fsm.Ask) bool { return granted[a.Topic] >= a.N })
}

// underWay counts a claim that is sent, or answered.
func (inc *incarnation) underWay(n *int) {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	*n++
}

// claimedRows is the messages that a claim granted. Those of a commit whose answer was lost are read again.
func (inc *incarnation) claimedRows(ctx context.Context, receipt store.Receipt) ([]store.Row, error) {
	if len(receipt.Rows) > 0 || len(receipt.Events) == 0 {
		return slices.DeleteFunc(receipt.Rows, func(row store.Row) bool { return row.Worker != inc.id }), nil
	}
	f := store.RowFilter{Payloads: true}
	tokens := map[events.Entity]Token{}
	for _, r := range receipt.Events {
		if claimed, ok := r.Event.(*events.MessageClaimed); ok {
			f.Entities = append(f.Entities, r.Entity)
			tokens[r.Entity] = claimed.Token
		}
	}
	if len(tokens) == 0 {
		return nil, nil
	}
	var rows []store.Row
	ctx, cancel := inc.client.within(context.WithoutCancel(ctx))
	defer cancel()
	for row, err := range inc.client.store.Rows(ctx, f) {
		if err != nil {
			return nil, err
		}
		m, err := calls.Message(row)
		if err != nil {
			return nil, err
		}
		if m.Worker == inc.id && m.Token == tokens[row.Entity] {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// start begins the handler of a claimed message, or gives the message back where the worker stops in between, or has lapsed since it asked: lapses is
// how often it had before.
func (inc *incarnation) start(ctx context.Context, row store.Row, lapses int) {
	d, err := newDelivery(row)
	if d.message.ID == (ID{}) {
		inc.log.ErrorContext(ctx, "claimed message cannot be read", keyMessage, row.Entity.ID, keyError, err)
		return
	}
	d.message.result = &resultSlot{codec: inc.client.opts.Codec}
	running, cancel := context.WithCancelCause(inc.client.extracted(context.WithoutCancel(ctx), d.trace))
	inc.mu.Lock()
	inc.claims[d.hold()] = &claim{delivery: d, cancel: cancel}
	inc.mu.Unlock()
	switch {
	case err != nil: // it can never be handled as it is
		command := fsm.DeadLetterMessage{Token: d.message.Token, Error: errorText(err.Error())}
		inc.finish(result{hold: d.hold(), row: d.row, command: command, failure: newFailure(d, command, err)})
		cancel(nil)
	case ctx.Err() != nil || inc.fenced() || inc.lapses() != lapses: // others may have held this worker to be dead since it asked
		inc.finish(result{hold: d.hold(), row: d.row, command: fsm.ReleaseMessage{Token: d.message.Token, Reason: events.ReasonReleased}})
		cancel(nil)
	default:
		inc.handling.Go(func() {
			defer cancel(nil)
			inc.handle(running, d)
		})
	}
}

// handle runs the handler of one message and hands its result on.
func (inc *incarnation) handle(ctx context.Context, d delivery) {
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d.timeout, ErrTimeout)
		defer cancel()
	}
	err := errGoexit // what it is if the handler ends its goroutine: deferred calls run all the same
	defer func() { inc.judge(ctx, d, err) }()
	err = inc.handlers[d.message.Topic].safely(ctx, d)
}

// judge turns what a handler returned into the result that is stored.
func (inc *incarnation) judge(ctx context.Context, d delivery, err error) {
	jitter, jitterErr := inc.client.source.Jitter(fsm.MaxJitter)
	if jitterErr != nil {
		inc.log.ErrorContext(ctx, "no randomness for a retry's delay", keyError, jitterErr)
	}
	payload, facts, unsealed := inc.client.sealResult(d.message.result.close())
	if err == nil {
		err = unsealed
	}
	err = d.explained(ctx, err)
	r := result{hold: d.hold(), row: d.row, command: verdict(ctx, d, err, jitter)}
	if completed, ok := r.command.(fsm.CompleteMessage); ok {
		completed.Result = facts
		r.command, r.payload = completed, payload
	}
	if r.failure = newFailure(d, r.command, err); r.failure != nil {
		inc.log.WarnContext(ctx, "handler failed", d.attrs(keyError, err)...)
	}
	inc.finish(r)
}

// finish queues a result to be settled.
func (inc *incarnation) finish(r result) {
	inc.mu.Lock()
	inc.results = append(inc.results, r)
	inc.mu.Unlock()
	hint(inc.arrived)
}
