package foundling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// countPage is how many claims one commit counts after a limit was set.
const countPage = 500

// Cancel ends messages that are no longer wanted, also one that is being handled: its handler's context ends and its result is refused. Its lock
// stays taken until that handler has ended. A dead letter that is cancelled cannot be redriven any more, and can be erased. One that is
// staged is moved into the log first. The reason goes into the log. Messages that have ended for good are refused, joined into the error; the others
// are done.
func (c *Client) Cancel(ctx context.Context, reason string, ids ...ID) error {
	return c.operate(ctx, fsm.Operate{IDs: ids, Command: fsm.CancelMessage{By: c.opts.Actor, Detail: errorText(reason)}})
}

// RequeueOptions say how Requeue takes messages from their workers.
type RequeueOptions struct {
	// Reason goes into the log.
	Reason string
	// Force takes a message also from a worker that lives: its handler's context ends and its result is refused, and its lock stays taken
	// until that handler has ended. The message may be handled twice at once for a while.
	Force Force
	// ReclaimAfter is how old a worker's heartbeat may be before it counts as dead; 0 is 120 s. A proof of death waits for nothing.
	ReclaimAfter time.Duration
}

// Force says whether a command insists.
type Force = fsm.Force

// The zero does not.
const (
	Unforced = fsm.Unforced
	Forced   = fsm.Forced
)

// Requeue takes messages that are being handled from their workers: they wait at their old places, the attempt stays spent. The slot and the
// lock of a dead worker's message come back with it. Messages of workers that live are refused unless it is forced, and so are those that nobody
// handles, joined into the error; the others are done.
func (c *Client) Requeue(ctx context.Context, o RequeueOptions, ids ...ID) error {
	if o.ReclaimAfter < 0 || o.Force > Forced {
		return fmt.Errorf("requeue: ReclaimAfter %s, Force %d, want 0 or more and a constant: %w", o.ReclaimAfter, o.Force, ErrInvalid)
	}
	return c.operate(ctx, fsm.Operate{
		IDs: ids, Command: fsm.TakeBackMessage{By: c.opts.Actor, Detail: errorText(o.Reason)}, Force: o.Force, After: o.ReclaimAfter,
	})
}

// Redrive gives dead letters a new series of attempts. The reason goes into the log, with what the old series spent. Messages that are
// no dead letters, or whose key was taken meanwhile, are refused, joined into the error; the others are done.
func (c *Client) Redrive(ctx context.Context, reason string, ids ...ID) error {
	return c.operate(ctx, fsm.Operate{IDs: ids, Command: fsm.RedriveMessage{By: c.opts.Actor, Detail: errorText(reason)}})
}

func (c *Client) operate(ctx context.Context, command fsm.Operate) error {
	if len(command.IDs) == 0 {
		return nil
	}
	if command.After == 0 {
		command.After = fsm.DefaultReclaimAfter
	}
	if err := c.unstageThese(ctx, command.IDs...); err != nil {
		return fmt.Errorf("%s: %w", command.Name(), err)
	}
	entities := make([]events.Entity, len(command.IDs))
	for i, id := range command.IDs {
		entities[i] = events.MessageEntity(id)
	}
	rows, err := c.rows(ctx, entities...)
	if err != nil {
		return fmt.Errorf("%s: %w", command.Name(), err)
	}
	if command.Gone, err = c.gone(ctx, rows); err != nil {
		return fmt.Errorf("%s: %w", command.Name(), err)
	}
	var all []*fsm.Refusal
	for _, ids := range apart(command.IDs, rows) {
		refused, err := c.operateOn(ctx, command, ids, rows)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", command.Name(), err), joinRefusals(all))
		}
		all = append(all, refused...)
	}
	return joinRefusals(all)
}

// operateOn carries out a command on messages of which no two have one lock.
func (c *Client) operateOn(ctx context.Context, command fsm.Operate, ids []ID, rows []store.Row) ([]*fsm.Refusal, error) {
	command.IDs = ids
	var refusals *[]*fsm.Refusal
	var unreadable error
	_, err := c.decide(ctx, func(o calls.Origin) (call store.Call) {
		call, refusals, unreadable = calls.Operate(o, command, rows)
		return call
	})
	if err = errors.Join(unreadable, err); err != nil {
		return nil, err
	}
	return *refusals, nil
}

// apart gives the messages in groups in which no two have one lock, in their order: see fsm.Operate.
func apart(ids []ID, rows []store.Row) [][]ID {
	locks := map[ID]string{}
	for _, row := range rows {
		locks[row.Entity.ID] = row.Lock
	}
	var groups [][]ID
	behind := map[string]int{} // how many groups a lock is in by now
	for _, id := range ids {
		at := 0
		if lock := locks[id]; lock != "" {
			at = behind[lock]
			behind[lock]++
		}
		if at == len(groups) {
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], id)
	}
	return groups
}

// gone is those of the workers that hold these messages who are proven to have ended.
func (c *Client) gone(ctx context.Context, rows []store.Row) ([]ID, error) {
	watcher, ok := store.As[store.ProcessWatcher](c.store)
	if !ok {
		return nil, nil
	}
	var workers []ID
	for _, row := range rows {
		if row.Worker != (ID{}) && !slices.Contains(workers, row.Worker) {
			workers = append(workers, row.Worker)
		}
	}
	if len(workers) == 0 {
		return nil, nil
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	return watcher.Gone(ctx, workers...)
}

// joinRefusals is one error of all refusals; nil where there are none.
func joinRefusals(list []*fsm.Refusal) error {
	var all refusals
	for _, r := range list {
		if r != nil {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func isRefusal(err error) bool {
	var r *fsm.Refusal
	return errors.As(err, &r)
}

// refusals is the error of a command that some of its messages refused.
type refusals []*fsm.Refusal

func (r refusals) Error() string {
	text := r[0].Error()
	if len(r) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(r)-1)
	}
	return text
}

func (r refusals) Unwrap() []error {
	list := make([]error, len(r))
	for i := range r {
		list[i] = r[i]
	}
	return list
}

// TopicSettings are what ConfigureTopic sets.
type TopicSettings struct {
	Limit  int // 0 is no limit
	Reason string
}

// ConfigureTopic changes a topic's settings for all processes, from the next claim on. Where a limit is set that was not there before,
// nothing is granted until the claims that were open then are counted, which it does before it returns.
func (c *Client) ConfigureTopic(ctx context.Context, topic string, s TopicSettings) error {
	if err := (TopicOptions{Limit: s.Limit}).validate(topic); err != nil {
		return fmt.Errorf("configure topic: %w", err)
	}
	_, err := c.decide(ctx, func(o calls.Origin) store.Call {
		return calls.OperateTopic(o, fsm.OperateTopic{Topic: topic, Command: fsm.ConfigureTopic{
			Limit: s.Limit, By: c.opts.Actor, Detail: errorText(s.Reason),
		}})
	})
	if err != nil {
		return fmt.Errorf("configure topic %s: %w", topic, err)
	}
	c.topics.learn(topic)
	return c.countClaims(ctx, topic)
}

// countClaims ends the counting of a topic whose limit is new. Whoever finds it unfinished goes on with it.
func (c *Client) countClaims(ctx context.Context, topic string) error {
	for {
		counting, err := c.counting(ctx, topic)
		if err != nil || !counting {
			return err
		}
		_, err = c.decide(ctx, func(o calls.Origin) store.Call {
			return calls.CountClaims(o, fsm.CountClaims{Topic: topic, Page: countPage})
		})
		if err != nil && !isRefusal(err) { // refused: another process has ended it
			return fmt.Errorf("count the claims of topic %s: %w", topic, err)
		}
	}
}

// counting reports whether a topic waits for its claims to be counted.
func (c *Client) counting(ctx context.Context, topic string) (bool, error) {
	t, err := c.topic(ctx, topic)
	return t.Counting, err
}

// topic is a topic as the store has it; zero where nobody has seen it.
func (c *Client) topic(ctx context.Context, name string) (fsm.Topic, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	v, known, err := calls.Kept(ctx, c.store, events.TopicEntity(name))
	if err != nil || !known {
		return fsm.Topic{}, err
	}
	t, ok := v.(*fsm.Topic)
	if !ok {
		return fsm.Topic{}, fmt.Errorf("%s: want a topic", v.Entity())
	}
	return *t, nil
}

// rows is the kept rows of some entities.
func (c *Client) rows(ctx context.Context, entities ...events.Entity) ([]store.Row, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	var rows []store.Row
	for row, err := range c.store.Rows(ctx, store.RowFilter{Entities: entities}) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}
