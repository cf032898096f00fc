// Package calls makes the store.Call of every command: what its rule must see, and the rule of package fsm run over it.
package calls

import (
	"fmt"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// Origin is who asks: recorded with the commit. ID is its id, minted by the caller.
type Origin struct {
	ID    store.CommitID
	Actor string
	Trace string // W3C traceparent of whoever asks; what is none is not kept
}

func (o Origin) call(name string, params events.Visitor, need store.Need) store.Call {
	command := events.Command{Name: name, Actor: o.Actor, Trace: events.Traceparent(o.Trace)}
	if params != nil {
		command.Params = events.AppendFields(nil, params)
	}
	return store.Call{ID: o.ID, Command: command, Need: need}
}

// Enqueue is the call of fsm.Enqueue. The payloads go with the drafts, one each. The answers are those of the last run of its Fn: read
// them when Decide has returned a receipt without error whose commit this process saw happen.
func Enqueue(o Origin, c fsm.Enqueue, payloads []store.Payload) (store.Call, *[]fsm.Answer) {
	answers := new([]fsm.Answer)
	var need store.Need
	for _, d := range c.Drafts {
		if d.Given {
			need.Held = append(need.Held, events.MessageEntity(d.ID))
		}
		if d.Key != "" {
			need.Keys = append(need.Keys, store.Key{Topic: d.Topic, Name: d.Key})
		}
	}
	for topic := range c.Topics {
		need.Held = append(need.Held, events.TopicEntity(topic))
	}
	call := o.call(c.Name(), nil, need)
	call.Fn = func(view store.View) (store.Changes, error) {
		held, err := Hold(view)
		if err != nil {
			return store.Changes{}, err
		}
		outcome, list, err := c.Decide(held)
		if err != nil {
			return store.Changes{}, err
		}
		*answers = list
		made := make(map[events.Entity]int, len(list)) // which draft is the message: of two under one id, the one that was not known
		for i, answer := range list {
			if !answer.Known {
				made[events.MessageEntity(answer.ID)] = i
			}
		}
		changes := Changes(outcome)
		for i, change := range changes.Rows {
			if at, ok := made[change.Row.Entity]; ok {
				changes.Rows[i].Payload = &payloads[at]
			}
		}
		return changes, nil
	}
	return call, answers
}

// Claim is the call of fsm.Claim. What it granted are the rows of its receipt.
func Claim(o Origin, c fsm.Claim) store.Call {
	var need store.Need
	for _, ask := range c.Asks {
		need.Claim = append(need.Claim, store.Page{Topic: ask.Topic, N: ask.N})
	}
	call := o.call(c.Name(), &c, need)
	call.Fn = decide(c.Decide)
	return call
}

// Settle is the call of fsm.Settle, with the refusals of its items as of the last run of its Fn. known are the rows that the claims'
// receipts gave, where the caller still has them. The results of handlers go with the items, one each, nil where there is none; they may be
// left out where no item has one.
func Settle(o Origin, c fsm.Settle, known []store.Row, results ...*store.Payload) (store.Call, *[]*fsm.Refusal) {
	need := store.Need{Known: known}
	for _, item := range c.Items {
		if item.Permit.Token != 0 {
			need.Locks = append(need.Locks, item.Permit.Lock)
			need.Permits = append(need.Permits, store.PermitKey(item.Permit))
		}
	}
	skip := make(map[events.Entity]bool, len(known))
	for _, row := range known {
		skip[row.Entity] = true
	}
	for _, item := range c.Items {
		if entity := events.MessageEntity(item.ID); !skip[entity] {
			need.Held = append(need.Held, entity)
		}
	}
	call, refusals := refusing(o.call(c.Name(), &c, need), c.Decide)
	if len(results) > 0 {
		call.Fn = withResults(call.Fn, c, refusals, results)
	}
	return call, refusals
}

// withResults keeps the result of each message that an item has completed.
func withResults(fn func(store.View) (store.Changes, error), c fsm.Settle, refusals *[]*fsm.Refusal, results []*store.Payload) func(store.View) (store.Changes, error) {
	return func(view store.View) (store.Changes, error) {
		changes, err := fn(view)
		if err != nil {
			return store.Changes{}, err
		}
		completed := make(map[events.Entity]*store.Payload, len(results))
		for i, item := range c.Items {
			if _, completes := item.Command.(fsm.CompleteMessage); completes && (*refusals)[i] == nil && i < len(results) {
				completed[events.MessageEntity(item.ID)] = results[i]
			}
		}
		for i, change := range changes.Rows {
			changes.Rows[i].Result = completed[change.Row.Entity]
		}
		return changes, nil
	}
}

// Operate is the call of fsm.Operate, with the refusals of its messages as of the last run of its Fn. rows are those of the messages, read
// before the command holds them: they say which keys, locks, permits and heartbeats it must see. A claim that began since is refused, as one of a
// worker that lives.
//
// Of each lock it takes at most one message: an engine tells who is the first to wait, and who is to try next is known only once that one has
// been dealt with.
func Operate(o Origin, c fsm.Operate, rows []store.Row) (store.Call, *[]*fsm.Refusal, error) {
	need := store.Need{Held: []events.Entity{events.ClockEntity()}}
	for _, id := range c.IDs {
		need.Held = append(need.Held, events.MessageEntity(id))
	}
	for _, row := range rows {
		if !slices.Contains(c.IDs, row.Entity.ID) {
			continue
		}
		m, err := Message(row)
		if err != nil {
			return store.Call{}, nil, err
		}
		if m.Key != "" {
			need.Keys = append(need.Keys, store.Key{Topic: m.Topic, Name: m.Key})
		}
		if slices.Contains(need.Locks, m.Lock) {
			return store.Call{}, nil, fmt.Errorf("%s: two of the messages have one lock, %q: one command for each", c.Name(), m.Lock)
		}
		if m.Lock != "" {
			need.Locks = append(need.Locks, m.Lock)
		}
		if m.LockToken != 0 {
			need.Permits = append(need.Permits, store.PermitKey(m.Permit()))
		}
		if m.Worker != (events.ID{}) {
			need.Beats = append(need.Beats, m.Worker)
		}
	}
	c.Judged = need.Beats
	var params events.Visitor
	if len(c.Judged) > 0 { // else nobody was judged
		params = &c
	}
	call, refusals := refusing(o.call(c.Name(), params, need), func(held fsm.Held) (fsm.Outcome, []*fsm.Refusal, error) {
		for _, worker := range need.Beats { // one without a heartbeat was looked for all the same
			if _, beats := held.Beats[worker]; !beats {
				held.Beats[worker] = fsm.Member{Worker: worker}
			}
		}
		return c.Decide(held)
	})
	return call, refusals, nil
}

// OperateTopic is the call of fsm.OperateTopic.
func OperateTopic(o Origin, c fsm.OperateTopic) store.Call {
	call := o.call(c.Name(), nil, store.Need{Held: []events.Entity{events.TopicEntity(c.Topic)}})
	call.Fn = decide(c.Decide)
	return call
}

// CountClaims is the call of fsm.CountClaims.
func CountClaims(o Origin, c fsm.CountClaims) store.Call {
	call := o.call(c.Name(), &c, store.Need{Uncounted: []store.Page{{Topic: c.Topic, N: c.Page}}})
	call.Fn = decide(c.Decide)
	return call
}

// OperateWorker is the call of fsm.OperateWorker. A stop is complete when a receipt has the event that says so.
func OperateWorker(o Origin, c fsm.OperateWorker) store.Call {
	need := store.Need{Held: []events.Entity{events.WorkerEntity(c.Worker)}}
	switch c.Command.(type) {
	case fsm.StopWorker:
		need.Claims = []store.Holder{{Worker: c.Worker, N: fsm.StopPage}}
	case fsm.PurgeWorker:
		need.Claims = []store.Holder{{Worker: c.Worker, N: 1}}
		need.Held = append(need.Held, events.ClockEntity())
	case fsm.ReturnWorker:
		need.Beats = []events.ID{c.Worker}
		need.Held = append(need.Held, events.ClockEntity())
	}
	call := o.call(c.Name(), nil, need)
	call.Fn = decide(c.Decide)
	return call
}

// Reclaim is the call of fsm.Reclaim, with what it saw as of the last run of its Fn.
func Reclaim(o Origin, c fsm.Reclaim) (store.Call, *fsm.Reclaimed) {
	call := o.call(c.Name(), &c, store.Need{
		Held:   []events.Entity{events.WorkerEntity(c.Evidence.Claimer), events.ClockEntity()},
		Claims: []store.Holder{{Worker: c.Evidence.Claimer, N: c.Page}},
	})
	seen := new(fsm.Reclaimed)
	call.Fn = decide(func(held fsm.Held) (fsm.Outcome, error) {
		outcome, s, err := c.Decide(held)
		*seen = s
		return outcome, err
	})
	return call, seen
}

func decide(rule func(fsm.Held) (fsm.Outcome, error)) func(store.View) (store.Changes, error) {
	return func(view store.View) (store.Changes, error) {
		held, err := Hold(view)
		if err != nil {
			return store.Changes{}, err
		}
		outcome, err := rule(held)
		if err != nil {
			return store.Changes{}, err
		}
		return Changes(outcome), nil
	}
}

func refusing(call store.Call, rule func(fsm.Held) (fsm.Outcome, []*fsm.Refusal, error)) (store.Call, *[]*fsm.Refusal) {
	refusals := new([]*fsm.Refusal)
	call.Fn = decide(func(held fsm.Held) (fsm.Outcome, error) {
		outcome, list, err := rule(held)
		*refusals = list
		return outcome, err
	})
	return call, refusals
}
