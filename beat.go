package foundling

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/reaper"
	"github.com/foundling-go/foundling/store"
)

// heartLoop says that the incarnation lives, at a fixed pace and whatever else goes on, until ctx ends. It returns an error when the store
// says that the incarnation is over.
func (inc *incarnation) heartLoop(ctx context.Context, last time.Time) error {
	heart, ok := store.As[store.Heart](inc.client.store)
	if !ok {
		return nil
	}
	ticker := time.NewTicker(inc.opts.HeartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		bounded, cancel := inc.client.within(ctx)
		at, err := heart.Beat(bounded, store.Beat{Worker: inc.id, Interval: inc.opts.HeartbeatInterval})
		cancel()
		switch {
		case errors.Is(err, store.ErrNotBeating):
			return err
		case err != nil && ctx.Err() == nil:
			inc.log.ErrorContext(ctx, "heartbeat failed", "error", err)
		}
		if err != nil {
			continue
		}
		if at.Sub(last) > 2*inc.opts.HeartbeatInterval {
			if _, err := inc.operate(ctx, fsm.GapWorker{FromAt: last, ToAt: at}); err != nil && ctx.Err() == nil {
				inc.log.ErrorContext(ctx, "a gap in the heartbeats was not recorded", "from", last, "to", at, "error", err)
			}
		}
		last = at
	}
}

// upkeepLoop does what is due once an interval besides the heartbeat: it compares claims, and gives back what the dead held.
func (inc *incarnation) upkeepLoop(ctx context.Context) {
	inc.sweep(ctx)
	ticker := time.NewTicker(inc.opts.HeartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := errors.Join(inc.reconcile(ctx), inc.finishCounting(ctx)); err != nil && ctx.Err() == nil {
			inc.log.ErrorContext(ctx, "upkeep failed", "error", err)
		}
		inc.sweep(ctx)
	}
}

// sweep gives back what the dead held.
func (inc *incarnation) sweep(ctx context.Context) {
	if !inc.provable || inc.opts.Sweeps == SweepsOff {
		return
	}
	report, err := reaper.Sweep{
		Store: inc.client.store, Decide: inc.client.decide, Caller: inc.id, Limit: inc.opts.OrphanMaxAttempts,
	}.Run(ctx)
	if len(report.Workers) > 0 {
		inc.log.WarnContext(ctx, "messages of workers that are gone were given back",
			"workers", len(report.Workers), "requeued", report.Requeued, "dead_lettered", report.DeadLettered)
	}
	if err != nil && ctx.Err() == nil {
		inc.log.ErrorContext(ctx, "sweep failed", "error", err)
	}
}

// finishCounting goes on with a new limit's counting that whoever set it did not end.
func (inc *incarnation) finishCounting(ctx context.Context) error {
	var errs []error
	for _, topic := range inc.topics() {
		errs = append(errs, inc.client.countClaims(ctx, topic))
	}
	return errors.Join(errs...)
}

// reconcile compares the claims that the store has under this incarnation with the handlers it runs. A live worker can hold what it
// does not know of (a claim whose answer was lost), and run what it no longer holds.
func (inc *incarnation) reconcile(ctx context.Context) error {
	before := inc.holding()
	bounded, cancel := inc.client.within(ctx)
	defer cancel()
	held := map[ID]Token{}
	var bad error // a row that cannot be read is nobody's claim here; the others are compared all the same
	for row, err := range inc.client.store.Rows(bounded, store.RowFilter{Worker: inc.id, Kind: events.KindMessage}) {
		if err == nil {
			var m fsm.Message
			if m, err = calls.Message(row); err == nil {
				held[m.ID] = m.Token
				continue
			}
		}
		bad = errors.Join(bad, err)
		if row.Entity == (events.Entity{}) {
			return bad // the reading itself failed
		}
		delete(before, row.Entity.ID)
	}
	return errors.Join(bad, inc.giveBack(ctx, inc.compare(before, held)))
}

// holding is what this worker knows that it holds.
func (inc *incarnation) holding() map[ID]Token {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	known := make(map[ID]Token, len(inc.claims))
	for id, c := range inc.claims {
		known[id] = c.delivery.message.Token
	}
	return known
}

// compare cancels the handlers of claims that this worker knew of before the reading and that the store no longer has, and names the
// claims that nobody runs: those need two readings in a row that say so, since one may fall between a commit and its answer.
func (inc *incarnation) compare(before, held map[ID]Token) []fsm.Settlement {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	for id, token := range before {
		if c, runs := inc.claims[id]; runs && c.delivery.message.Token == token && held[id] != token {
			c.cancel(ErrClaimLost)
		}
	}
	unknown := map[ID]int{}
	var list []fsm.Settlement
	for id, token := range held {
		if _, runs := inc.claims[id]; runs {
			continue
		}
		if unknown[id] = inc.unknown[id] + 1; unknown[id] >= 2 {
			list = append(list, fsm.Settlement{ID: id, Command: fsm.ReleaseMessage{Token: token, Reason: events.ReasonUnclaimed}})
		}
	}
	slices.SortFunc(list, func(a, b fsm.Settlement) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	inc.unknown = unknown
	return list
}

// giveBack requeues claims that this incarnation holds and does not run.
func (inc *incarnation) giveBack(ctx context.Context, list []fsm.Settlement) error {
	if len(list) == 0 {
		return nil
	}
	inc.log.WarnContext(ctx, "claims that this worker does not know of are given back", "claims", len(list))
	_, err := inc.client.decide(ctx, func(o calls.Origin) (call store.Call) {
		call, _ = calls.Settle(o, fsm.Settle{Sender: inc.id, Items: list}, nil)
		return call
	})
	return err
}
