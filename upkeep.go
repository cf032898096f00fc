package foundling

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// upkeepLoop does what is due once an interval besides the heartbeat: it records what the heartbeats have shown, compares claims and permits, and
// says that the worker lives where it was held to be lost. After a silence it does so at once.
func (inc *incarnation) upkeepLoop(ctx context.Context) {
	ticker := time.NewTicker(inc.opts.HeartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-inc.missed:
		}
		if err := errors.Join(inc.tell(ctx), inc.reconcile(ctx), inc.look(ctx)); err != nil && ctx.Err() == nil {
			inc.log.ErrorContext(ctx, "upkeep failed", keyError, err)
		}
	}
}

// look reads the worker's own row and those of its topics. Where somebody held the worker to be lost, it says that it lives, which is evidence of a
// false alarm; where a topic's new limit waits for its claims to be counted, since whoever set it did not end that, it goes on with it.
func (inc *incarnation) look(ctx context.Context) error {
	entities := []events.Entity{events.WorkerEntity(inc.id)}
	for _, topic := range inc.topics() {
		entities = append(entities, events.TopicEntity(topic))
	}
	rows, err := inc.client.rows(ctx, entities...)
	if err != nil {
		return err
	}
	var errs error
	for _, row := range rows {
		v, err := calls.Value(row)
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		switch v := v.(type) {
		case *fsm.Worker:
			errs = errors.Join(errs, inc.returned(ctx, *v))
		case *fsm.Topic:
			if v.Counting {
				errs = errors.Join(errs, inc.client.countClaims(ctx, v.Name))
			}
		}
	}
	return errs
}

func (inc *incarnation) returned(ctx context.Context, w fsm.Worker) error {
	if w.State != events.Lost {
		return nil
	}
	receipt, err := inc.operate(ctx, fsm.ReturnWorker{})
	if err == nil && len(receipt.Events) > 0 {
		inc.log.WarnContext(ctx, "this worker was held to be lost, and lives: what it held was given to others")
	}
	return err
}

// strays are what the store has under this incarnation and no handler of it goes with.
type strays struct {
	claims  map[ID]stray
	permits map[fsm.PermitKey]int // by how many readings in a row said so
}

// stray is a claim that nobody knows of.
type stray struct {
	token    Token
	readings int // in a row that said so
	asked    int // how many claims had been sent by the first of them
}

// reconcile compares the claims and permits that the store has under this incarnation with the handlers it runs. A live worker can hold what it
// does not know of (a claim whose answer was lost), and run what it no longer holds.
func (inc *incarnation) reconcile(ctx context.Context) error {
	before := inc.holding()
	bounded, cancel := inc.client.within(ctx)
	defer cancel()
	held := map[ID]fsm.Message{}
	var bad error // a row that cannot be read is nobody's claim here; the others are compared all the same
	for row, err := range inc.client.store.Rows(bounded, store.RowFilter{Worker: inc.id, Kind: events.KindMessage}) {
		if err == nil {
			var m fsm.Message
			if m, err = calls.Message(row); err == nil {
				held[m.ID] = m
				continue
			}
		}
		bad = errors.Join(bad, err)
		spoilt := cmp.Or(row.Entity, corruptOf(err))
		if spoilt == (events.Entity{}) {
			return bad // the reading itself failed: what is missing may be there
		}
		maps.DeleteFunc(before, func(h hold, _ bool) bool { return h.message == spoilt.ID })
	}
	var permits []store.Permit
	for p, err := range inc.client.store.Permits(bounded, store.PermitFilter{Worker: inc.id}) {
		if err != nil && corruptOf(err) == (events.Entity{}) {
			return errors.Join(bad, err)
		}
		if bad = errors.Join(bad, err); err == nil {
			permits = append(permits, p)
		}
	}
	claims, keys := inc.compare(before, held, permits)
	return errors.Join(bad, inc.giveBack(ctx, claims), inc.unlock(ctx, keys))
}

// corruptOf is the entity that an error says is not what was written; zero where it says something else.
func corruptOf(err error) events.Entity {
	var corrupt *events.Corrupt
	if errors.As(err, &corrupt) {
		return corrupt.Entity
	}
	return events.Entity{}
}

// holding is what this worker knows that it holds.
func (inc *incarnation) holding() map[hold]bool {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	known := make(map[hold]bool, len(inc.claims))
	for h := range inc.claims {
		known[h] = true
	}
	return known
}

// compare cancels the handlers of claims that this worker knew of before the reading and that the store no longer has, and names the
// claims that nobody runs, and permits whose handlers have ended: those need two readings in a row that say so, since one may fall between a
// commit and its answer. A claim whose answer takes longer than that is waited for.
func (inc *incarnation) compare(before map[hold]bool, held map[ID]fsm.Message, permits []store.Permit) ([]fsm.Settlement, []fsm.PermitKey) {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	running := map[fsm.PermitKey]bool{} // permits that a handler goes with
	for h, c := range inc.claims {
		running[fsm.PermitKey{Lock: c.delivery.message.Lock, Token: c.delivery.message.LockToken}] = true
		if before[h] && held[h.message].Token != h.token {
			c.cancel(ErrClaimLost)
		}
	}
	unknown := strays{claims: map[ID]stray{}, permits: map[fsm.PermitKey]int{}}
	var claims []fsm.Settlement
	for id, m := range held {
		if _, runs := inc.claims[hold{id, m.Token}]; runs {
			continue
		}
		s := inc.unknown.claims[id]
		if s.token != m.Token {
			s = stray{token: m.Token, asked: inc.asked}
		}
		s.readings++
		unknown.claims[id] = s
		if s.readings >= 2 && inc.answered >= s.asked { // whoever claimed it has his answer
			claims = append(claims, fsm.Settlement{
				ID: id, Command: fsm.ReleaseMessage{Token: m.Token, Reason: events.ReasonUnclaimed}, Permit: m.Permit(),
			})
		}
	}
	var keys []fsm.PermitKey
	for _, p := range permits {
		key := fsm.PermitKey(p.PermitKey)
		if m, open := held[p.Message]; running[key] || open && m.Permit() == key {
			continue // it goes as its claim does
		}
		if unknown.permits[key] = inc.unknown.permits[key] + 1; unknown.permits[key] >= 2 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(claims, func(a, b fsm.Settlement) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	inc.unknown = unknown
	return claims, keys
}

// giveBack requeues claims that this incarnation holds and does not run.
func (inc *incarnation) giveBack(ctx context.Context, list []fsm.Settlement) error {
	for page := range slices.Chunk(list, settlePage) {
		inc.log.WarnContext(ctx, "claims that this worker does not know of are given back", keyClaims, len(page))
		_, err := inc.client.decide(ctx, func(o calls.Origin) (call store.Call) {
			call, _ = calls.Settle(o, fsm.Settle{Sender: inc.id, Items: page}, nil)
			return call
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unlock gives back permits whose handlers have ended, although nobody has said so.
func (inc *incarnation) unlock(ctx context.Context, keys []fsm.PermitKey) error {
	for page := range slices.Chunk(keys, settlePage) {
		inc.log.WarnContext(ctx, "permits that no handler of this worker goes with are given back", keyPermits, len(page))
		_, err := inc.client.decide(ctx, func(o calls.Origin) (call store.Call) {
			call, _ = calls.Unlock(o, fsm.Unlock{Worker: inc.id, Permits: page})
			return call
		})
		if err != nil {
			return err
		}
	}
	return nil
}
