package scenario

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// expectHeld is how many permits of a lock are out, by its row. A lock without a row has none out.
func expectHeld(ctx context.Context, w *World, name string) (string, error) {
	row, err := w.row(ctx, events.LockEntity(name))
	if err != nil || row.Version == 0 {
		return "0", err
	}
	v, err := calls.Value(row)
	if err != nil {
		return "", err
	}
	return strconv.Itoa(v.(*fsm.Lock).Held), nil
}

func expectKeeper(ctx context.Context, w *World, name string) (string, error) {
	var list []string
	for p, err := range w.engine.Permits(ctx, store.PermitFilter{Lock: name}) {
		if err != nil {
			return "", err
		}
		list = append(list, w.names.word(p.Worker))
	}
	if len(list) == 0 {
		return "nobody", nil
	}
	return strings.Join(list, ","), nil
}

func expectWaiting(waiting store.Waiting) expectation {
	return func(ctx context.Context, w *World, name string) (string, error) {
		n := 0
		for row, err := range w.engine.Rows(ctx, store.RowFilter{Kind: events.KindMessage}) {
			if err != nil {
				return "", err
			}
			if row.Lock == name && row.Waiting == waiting {
				n++
			}
		}
		return strconv.Itoa(n), nil
	}
}

// expectOldest is the age of a topic's oldest open claim, which tells a wedged topic from a busy one.
func expectOldest(ctx context.Context, w *World, name string) (string, error) {
	var oldest time.Duration
	for row, err := range w.engine.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Topic: name}) {
		if err != nil {
			return "", err
		}
		if row.State == events.Running {
			oldest = max(oldest, w.time().Sub(row.ClaimedAt))
		}
	}
	return oldest.String(), nil
}

func expectSwept(_ context.Context, w *World, name string) (string, error) {
	numbers := map[string]int{
		"requeued": w.swept.requeued, "dead-lettered": w.swept.deadLettered, "locks-released": w.swept.locksReleased,
		"spared": w.swept.spared, "dead": w.swept.dead, "sweeps": w.sweeps,
	}
	switch n, ok := numbers[name]; {
	case ok:
		return strconv.Itoa(n), nil
	case name == "refused" && w.swept.refused == "":
		return "no", nil
	case name == "refused":
		return string(w.swept.refused), nil
	}
	return "", fmt.Errorf("swept %s: not known", name)
}

// expectSkipped is what the counter of skipped sweeps says.
func expectSkipped(_ context.Context, w *World, name string) (string, error) {
	reason := events.Reason(name)
	switch {
	case reason == events.ReasonClaimGrace:
		return strconv.Itoa(w.laws.spared), nil
	case name != "any":
		if !reason.Known() {
			return "", fmt.Errorf("skipped %s: not known", name)
		}
		return strconv.Itoa(w.laws.refused[reason]), nil
	}
	n := 0
	for _, refused := range w.laws.refused {
		n += refused
	}
	return strconv.Itoa(n), nil
}

func expectLeader(ctx context.Context, w *World, name string) (string, error) {
	if name != fsm.Beat {
		return "", fmt.Errorf("leader %s: not known", name)
	}
	lease, err := w.lease(ctx)
	if err != nil || lease.Holder == (events.ID{}) || !lease.UntilAt.After(w.time()) {
		return "nobody", err
	}
	return w.names.word(lease.Holder), nil
}
