package foundling

import (
	"context"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// MaxPermits is how many permits a lock may have.
const MaxPermits = 100_000

// LockSettings are what ConfigureLock sets.
type LockSettings struct {
	Permits int // how many may hold the lock at once, 1 to MaxPermits
	Reason  string
}

// ConfigureLock sets how many permits a lock has, for all processes. A lock that nobody configured has one. Where fewer are left than are out,
// none is granted until enough have come back.
func (c *Client) ConfigureLock(ctx context.Context, lock string, s LockSettings) error {
	if err := checkName("lock", lock); err != nil {
		return fmt.Errorf("configure lock: %w", err)
	}
	if s.Permits < 1 || s.Permits > MaxPermits {
		return fmt.Errorf("configure lock %s: Permits %d, want 1 to %d: %w", lock, s.Permits, MaxPermits, ErrInvalid)
	}
	_, err := c.decide(ctx, func(o calls.Origin) store.Call {
		return calls.OperateLock(o, fsm.OperateLock{Lock: lock, ConfigureLock: fsm.ConfigureLock{
			Permits: s.Permits, By: c.opts.Actor, Detail: errorText(s.Reason),
		}})
	})
	if err != nil {
		return fmt.Errorf("configure lock %s: %w", lock, err)
	}
	return nil
}

// ReleaseLock takes a lock from whoever holds it, living or dead, and says how many permits came free. A holder that lives may still believe that it
// has the lock: what it protects must refuse lower tokens. token names one permit; 0 is all of them. The reason goes into the log. A lock
// that is free is left as it is. It blocks for a commit for each hundred permits.
func (c *Client) ReleaseLock(ctx context.Context, reason, lock string, token Token) (int, error) {
	if err := checkName("lock", lock); err != nil {
		return 0, fmt.Errorf("release lock: %w", err)
	}
	released := 0
	for {
		receipt, err := c.decide(ctx, func(o calls.Origin) store.Call {
			return calls.ForceRelease(o, fsm.ForceRelease{Lock: lock, Token: token, By: c.opts.Actor, Detail: errorText(reason)})
		})
		if err != nil {
			return released, fmt.Errorf("release lock %s: %w", lock, err)
		}
		freed := 0
		for _, r := range receipt.Events {
			if r.Event.Type() == events.TypeLockForceReleased {
				freed++
			}
		}
		if released += freed; freed < fsm.LockPage {
			return released, nil
		}
	}
}
