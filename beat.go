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
	"github.com/foundling-go/foundling/store"
)

// beatLoop says that the incarnation lives, at a fixed pace, until ctx ends; what else has to be done once an interval hangs on it. It
// returns an error when the store says that the incarnation is over.
func (inc *incarnation) beatLoop(ctx context.Context) error {
	inc.sweep(ctx)
	ticker := time.NewTicker(inc.opts.HeartbeatInterval)
	defer ticker.Stop()
	heart, beating := store.As[store.Heart](inc.client.store)
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if beating {
			at, err := inc.beat(ctx, heart, last)
			if errors.Is(err, store.ErrNotBeating) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				inc.log.ErrorContext(ctx, "heartbeat failed", "error", err)
			}
			if err == nil {
				last = at
			}
		}
		if err := inc.reconcile(ctx); err != nil && ctx.Err() == nil {
			inc.log.ErrorContext(ctx, "claims could not be compared with the store's", "error", err)
		}
		inc.sweep(ctx)
	}
}

// beat sends one heartbeat and records a gap that it ends.
func (inc *incarnation) beat(ctx context.Context, heart store.Heart, last time.Time) (time.Time, error) {
	bounded, cancel := inc.client.within(ctx)
	defer cancel()
	at, err := heart.Beat(bounded, store.Beat{Worker: inc.id, Interval: inc.opts.HeartbeatInterval})
	if err != nil {
		return at, err
	}
	if !last.IsZero() && at.Sub(last) > 2*inc.opts.HeartbeatInterval {
		return at, inc.operate(ctx, fsm.GapWorker{FromAt: last, ToAt: at})
	}
	return at, nil
}

// reconcile compares the claims that the store has under this incarnation with the handlers it runs. A live worker can hold what it
// does not know of (a claim whose answer was lost), and run what it no longer holds.
func (inc *incarnation) reconcile(ctx context.Context) error {
	for _, topic := range inc.topics() {
		if err := inc.client.countClaims(ctx, topic); err != nil { // whoever set the limit may have ended before
			return err
		}
	}
	bounded, cancel := inc.client.within(ctx)
	defer cancel()
	held := map[ID]Token{}
	for row, err := range inc.client.store.Rows(bounded, store.RowFilter{Worker: inc.id, Kind: events.KindMessage}) {
		if err != nil {
			return err
		}
		m, err := calls.Message(row)
		if err != nil {
			return err
		}
		held[m.ID] = m.Token
	}
	return inc.giveBack(ctx, inc.compare(held))
}

// compare cancels handlers whose claims the store no longer has, and names the claims that nobody runs. Both need two readings in a row
// that say so: one may fall between a commit and its answer.
func (inc *incarnation) compare(held map[ID]Token) []fsm.Settlement {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	for id, c := range inc.claims {
		if held[id] == c.delivery.message.Token {
			c.strange = 0
			continue
		}
		if c.strange++; c.strange >= 2 {
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
