package foundling

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

const (
	// settlePage is how many results one commit settles.
	settlePage = 500
	// settleBytes is how many bytes handlers may have given back in them, if there is more than one.
	settleBytes = 4 << 20
	// refusalsPerMinute is how many refusals of one worker the log takes; what is beyond is counted on the next one.
	refusalsPerMinute = 60
)

// result is the end of a claim on its way to the store.
type result struct {
	hold
	row     store.Row // the message as it was claimed
	command fsm.MessageCommand
	payload *store.Payload // what the handler gave back, if it completes
	failure *failure       // nil where it is none
}

// settleLoop brings results to the store until ctx ends: whatever came in while the last commit was in flight goes into the next one.
// A result is sent again until it is accepted or refused.
func (inc *incarnation) settleLoop(ctx context.Context) {
	pace := retryPace()
	quota := refusalQuota{left: refusalsPerMinute}
	for {
		page := inc.page()
		if len(page) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-inc.arrived:
			}
			continue
		}
		left, err := inc.bring(ctx, page, &quota)
		inc.settled(page, left)
		if err == nil {
			pace.Reset()
			continue
		}
		if ctx.Err() != nil {
			return
		}
		inc.log.ErrorContext(ctx, "results could not be stored yet", keyResults, len(left), keyError, err)
		if !sleep(ctx, pace.NextBackOff()) {
			return
		}
	}
}

// bring settles a page, and gives those that the store did not take. Where something that one of them is of is damaged, each is brought by itself:
// the others must not wait for it.
func (inc *incarnation) bring(ctx context.Context, page []result, quota *refusalQuota) ([]result, error) {
	err := inc.settle(ctx, page, quota)
	if err == nil {
		return nil, nil
	}
	if len(page) == 1 || !isCorrupt(err) {
		return page, err
	}
	var left []result
	var errs error
	for _, r := range page {
		if err := inc.settle(ctx, []result{r}, quota); err != nil {
			left, errs = append(left, r), errors.Join(errs, err)
		}
	}
	return left, errs
}

func isCorrupt(err error) bool {
	var corrupt *events.Corrupt
	return errors.As(err, &corrupt)
}

// page is the oldest results, which stay where they are until they are settled.
func (inc *incarnation) page() []result {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	n, bytes := 0, 0
	for n < min(len(inc.results), settlePage) {
		if p := inc.results[n].payload; p != nil {
			bytes += len(p.Bytes)
		}
		if n > 0 && bytes > settleBytes {
			break
		}
		n++
	}
	return inc.results[:n:n]
}

// settled lets go of the results of a page that the store has taken. Those that are left go behind the others.
func (inc *incarnation) settled(page, left []result) {
	left = slices.Clone(left) // it may be the page itself
	kept := map[hold]bool{}
	for _, r := range left {
		kept[r.hold] = true
	}
	inc.mu.Lock()
	for _, r := range page {
		if kept[r.hold] {
			continue
		}
		delete(inc.claims, r.hold)
		if release, ok := r.command.(fsm.ReleaseMessage); ok && release.Reason == events.ReasonReleased {
			inc.released++
		}
	}
	inc.results = append(slices.Delete(inc.results, 0, len(page)), left...)
	inc.mu.Unlock()
	hint(inc.freed)
}

func (inc *incarnation) settle(ctx context.Context, page []result, quota *refusalQuota) error {
	quota.renew(time.Now())
	command := fsm.Settle{Sender: inc.id, Recordable: quota.left, Unrecorded: quota.unrecorded}
	known := make([]store.Row, len(page))
	var payloads []*store.Payload // one for each, where there is any
	for i, r := range page {
		known[i] = r.row
		known[i].Payload = nil // it stays where it is
		if r.payload != nil && payloads == nil {
			payloads = make([]*store.Payload, len(page))
		}
		if r.payload != nil {
			payloads[i] = r.payload
		}
		command.Items = append(command.Items, fsm.Settlement{
			ID: r.message, Command: r.command, Permit: fsm.PermitKey{Lock: r.row.Lock, Token: r.row.LockToken},
		})
	}
	var refusals *[]*fsm.Refusal
	receipt, err := inc.client.decide(ctx, func(o calls.Origin) (call store.Call) {
		call, refusals = calls.Settle(o, command, known, payloads...)
		return call
	})
	if err != nil {
		return err
	}
	inc.outcomes(ctx, page, receipt)
	for _, r := range receipt.Events {
		if refused, ok := r.Event.(*events.MessageRefused); ok {
			quota.left--
			quota.unrecorded -= 1 + refused.Unrecorded
		}
	}
	for _, r := range *refusals {
		if r != nil {
			quota.unrecorded++
			inc.log.WarnContext(ctx, "result was refused", keyMessage, r.Entity.ID, keyCommand, r.Command, keyState, r.State,
				keyReason, r.Reason, keySent, r.Sent, keyFound, r.Found)
		}
	}
	return nil
}

// refusalQuota bounds what a storm of refusals writes to the log.
type refusalQuota struct {
	left       int // recordable until the minute is over
	unrecorded int // refused, and not told by any event yet
	since      time.Time
}

func (q *refusalQuota) renew(now time.Time) {
	if now.Sub(q.since) >= time.Minute {
		q.left, q.since = refusalsPerMinute, now
	}
}

// sleep waits, and reports whether the context was still going on at the end of it.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
