package foundling

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
)

// Sweeps says whether a worker gives back what the dead held.
type Sweeps uint8

// The zero is on.
const (
	SweepsOn  Sweeps = iota
	SweepsOff        // orphan_reclaim_enabled=false: it never leads the beat. Who asks for a sweep gets one all the same
)

// OrphanCount says what OrphanMaxAttempts reads.
type OrphanCount = events.OrphanCount

// The zero counts every claim.
const (
	CountClaims     = events.CountClaims
	CountOrphanings = events.CountOrphanings // only the times that a message was orphaned: for those meant to be retried often
)

// WorkerOptions are a worker's settings. The zero value works.
type WorkerOptions struct {
	// Concurrency is how many handlers run at once in this worker; 0 is 10.
	Concurrency int
	// PerTopic bounds how many handlers of a topic run at once in this worker, within Concurrency; a topic that is not in it has no
	// bound of its own.
	PerTopic map[string]int
	// HeartbeatInterval is how often the worker says that it lives and compares its claims with the store's; 0 is 15 s. It must be at most a
	// third of ReclaimAfter.
	HeartbeatInterval time.Duration
	// PollInterval is the longest time between two looks for work while nothing hints at any; 0 is 500 ms.
	PollInterval time.Duration
	// DrainTimeout is how long a stop waits for running handlers before it ends their contexts; 0 is 30 s, None waits for as long as
	// they take.
	DrainTimeout time.Duration
	// SettleTimeout is how long a stop then tries to bring results to a store out of reach; 0 is 30 s.
	SettleTimeout time.Duration
	// FenceAfter is how long after it sent the last heartbeat that came through the worker ends its handlers' contexts by itself, so that it
	// does so before others take it for dead; 0 is ReclaimAfter less two heartbeats, two heartbeats at least; None never does. It must be one and a
	// half heartbeats or more, since one that is in time is confirmed a moment after its interval.
	FenceAfter time.Duration

	// Sweeps says whether the worker takes part in the beat, which gives back what the dead held; the zero is on.
	Sweeps Sweeps
	// ReclaimAfter is orphan_reclaim_after: how old a worker's heartbeat may be before it counts as dead; 0 is 120 s. A proof of death
	// (see store.ProcessWatcher) waits for nothing.
	ReclaimAfter time.Duration
	// ReclaimInterval is orphan_reclaim_interval: how often the leader of the beat sweeps; 0 is 300 s.
	ReclaimInterval time.Duration
	// ClaimGrace is orphan_claim_grace: how old a claim must be before it is taken from a silent worker; 0 is 60 s, None is no grace.
	ClaimGrace time.Duration
	// OrphanMaxAttempts is orphan_max_attempts: how many attempts may be spent before a message whose worker is gone is dead-lettered instead
	// of requeued; 0 is 5.
	OrphanMaxAttempts int
	// OrphanCount is orphan_count: what that limit reads; the zero is every claim.
	OrphanCount OrphanCount
	// WorkerTTL is worker_ttl: how long a worker that was lost and holds nothing is remembered; 0 is 24 h.
	WorkerTTL time.Duration

	// Retention is how old events must be before the leader of the beat lets them go, with the payloads and results of the messages that ended with
	// them; 0 is DefaultRetention, Forever lets nothing go, and the least is 1 s. What is open, or a dead letter, stays whatever its age. Where
	// workers of one store have several, the longest counts, as long as the worker that has it is known (see WorkerTTL).
	Retention time.Duration

	// OnError is told of each attempt that failed in this process, once its result is stored, or is known not to be: of errors, panics and
	// time-outs of handlers, and of payloads that cannot be decoded, but not of Snooze, Cancel and of what a stop gives back. Its context
	// carries the trace of the message's, and no deadline. It is called from many goroutines, and takes the slot of the handler that failed until
	// it returns; Run waits for it. A panic in it is logged. nil is told nothing.
	OnError func(ctx context.Context, e HandlerError)

	// Program is the version that the log shows for the worker; empty is that of the main module.
	Program string
}

func (o WorkerOptions) validate() (WorkerOptions, error) {
	if err := o.durations(); err != nil {
		return o, err
	}
	if o.HeartbeatInterval < time.Millisecond {
		return o, fmt.Errorf("worker options: HeartbeatInterval %s, at least 1ms: %w", o.HeartbeatInterval, ErrInvalid)
	}
	if o.HeartbeatInterval > o.ReclaimAfter/3 {
		return o, fmt.Errorf("worker options: HeartbeatInterval %s, at most a third of ReclaimAfter %s: %w", o.HeartbeatInterval, o.ReclaimAfter, ErrInvalid)
	}
	if o.FenceAfter == 0 {
		o.FenceAfter = max(fsm.FenceAfter(o.ReclaimAfter, o.HeartbeatInterval), 2*o.HeartbeatInterval)
	}
	if o.FenceAfter > 0 && o.FenceAfter < o.HeartbeatInterval*3/2 {
		return o, fmt.Errorf("worker options: FenceAfter %s, at least one and a half times HeartbeatInterval %s: %w", o.FenceAfter, o.HeartbeatInterval, ErrInvalid)
	}
	if o.Concurrency == 0 {
		o.Concurrency = 10
	}
	if o.Concurrency < 0 || o.Concurrency > maxConcurrency {
		return o, fmt.Errorf("worker options: Concurrency %d, want 1 to %d: %w", o.Concurrency, maxConcurrency, ErrInvalid)
	}
	for topic, n := range o.PerTopic {
		if n < 1 {
			return o, fmt.Errorf("worker options: PerTopic %d for topic %s, want 1 or more: %w", n, topic, ErrInvalid)
		}
	}
	if o.OrphanMaxAttempts < 0 {
		return o, fmt.Errorf("worker options: OrphanMaxAttempts %d, want 0 or more: %w", o.OrphanMaxAttempts, ErrInvalid)
	}
	if o.OrphanMaxAttempts == 0 {
		o.OrphanMaxAttempts = fsm.DefaultOrphanMaxAttempts
	}
	if o.Retention == 0 {
		o.Retention = DefaultRetention
	}
	if o.Retention > 0 && o.Retention < minRetention {
		return o, fmt.Errorf("worker options: Retention %s, at least %s, or Forever: %w", o.Retention, minRetention, ErrInvalid)
	}
	if o.Sweeps > SweepsOff || o.OrphanCount > CountOrphanings {
		return o, fmt.Errorf("worker options: Sweeps %d, OrphanCount %d, want one of their constants: %w", o.Sweeps, o.OrphanCount, ErrInvalid)
	}
	if info, ok := debug.ReadBuildInfo(); ok && o.Program == "" {
		o.Program = info.Main.Version
	}
	return o, nil
}

// durations gives each of them its value where it is zero.
func (o *WorkerOptions) durations() error {
	for _, setting := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"HeartbeatInterval", &o.HeartbeatInterval, fsm.DefaultHeartbeatInterval},
		{"PollInterval", &o.PollInterval, 500 * time.Millisecond},
		{"SettleTimeout", &o.SettleTimeout, 30 * time.Second},
		{"ReclaimAfter", &o.ReclaimAfter, fsm.DefaultReclaimAfter},
		{"ReclaimInterval", &o.ReclaimInterval, fsm.DefaultReclaimInterval},
		{"WorkerTTL", &o.WorkerTTL, fsm.DefaultWorkerTTL},
	} {
		if *setting.value < 0 {
			return fmt.Errorf("worker options: %s %s, want 0 or more: %w", setting.name, *setting.value, ErrInvalid)
		}
		if *setting.value == 0 {
			*setting.value = setting.zero
		}
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 30 * time.Second
	}
	o.ClaimGrace = grace(o.ClaimGrace)
	return nil
}

// grace is the setting orphan_claim_grace: zero is the default, below it none.
func grace(d time.Duration) time.Duration {
	if d == 0 {
		return fsm.DefaultClaimGrace
	}
	return max(d, 0)
}

// thresholds are the settings by which the worker judges others.
func (o WorkerOptions) thresholds() events.Thresholds {
	return events.Thresholds{After: o.ReclaimAfter, Grace: o.ClaimGrace, Limit: o.OrphanMaxAttempts, Count: o.OrphanCount}
}
