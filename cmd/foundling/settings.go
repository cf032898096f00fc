package main

import (
	"strings"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// settings are those by which a worker beats and judges others, as flags. In Go zero is the default; on the command line 0 is 0.
type settings struct {
	after       time.Duration
	grace       time.Duration
	maxAttempts int
	orphanCount string
	heartbeat   time.Duration

	// Of workers alone.
	enabled  bool
	interval time.Duration
	fence    time.Duration
	ttl      time.Duration
	retain   age

	given func(name string) bool // whether the command line has the flag
}

// judging has the flags that say whom a command holds to be dead and what becomes of what they held, under DESIGN's names.
func (s *settings) judging(cmd *cobra.Command) {
	flags := cmd.Flags()
	s.given = flags.Changed
	flags.DurationVar(&s.after, "orphan-reclaim-after", fsm.DefaultReclaimAfter, "how old a heartbeat may be before its worker counts as dead")
	flags.DurationVar(&s.grace, "orphan-claim-grace", fsm.DefaultClaimGrace, "how old a claim must be before it is taken from a silent worker")
	flags.IntVar(&s.maxAttempts, "orphan-max-attempts", fsm.DefaultOrphanMaxAttempts, "how many attempts may be spent before an orphan is dead-lettered instead of requeued")
	flags.StringVar(&s.orphanCount, "orphan-count", "claims", "what that limit reads: claims, or orphanings alone")
	flags.DurationVar(&s.heartbeat, "heartbeat-interval", fsm.DefaultHeartbeatInterval, "how often this process says that it lives; at most a third of --orphan-reclaim-after")
}

// working has the flags of a worker besides.
func (s *settings) working(cmd *cobra.Command) {
	s.judging(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&s.enabled, "orphan-reclaim-enabled", true, "take part in giving back what the dead held")
	flags.DurationVar(&s.interval, "orphan-reclaim-interval", fsm.DefaultReclaimInterval, "how often that is done on the evidence of silence")
	flags.DurationVar(&s.fence, "fence-after", 0, "how long after its last heartbeat that came through this process ends what it runs (default --orphan-reclaim-after less two heartbeats)")
	s.retain = age(foundling.DefaultRetention)
	flags.Var(&s.retain, "retention", "how old events must be to be let go, as in 90d, 36h or forever")
	flags.DurationVar(&s.ttl, "worker-ttl", fsm.DefaultWorkerTTL, "how long a worker that was lost is remembered")
}

// short lets a command have --after and --grace beside the long names.
func short(cmd *cobra.Command) {
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name {
		case "after":
			name = "orphan-reclaim-after"
		case "grace":
			name = "orphan-claim-grace"
		}
		return pflag.NormalizedName(name)
	})
}

// check refuses what no rule could mean.
func (s *settings) check() error {
	switch {
	case s.after <= 0:
		return usage("--orphan-reclaim-after %s: want more than 0", s.after)
	case s.grace < 0:
		return usage("--orphan-claim-grace %s: want 0 or more", s.grace)
	case s.maxAttempts < 0:
		return usage("--orphan-max-attempts %d: want 0 or more", s.maxAttempts)
	case s.heartbeat <= 0 || s.heartbeat > s.after/3 && s.given("heartbeat-interval"):
		return usage("--heartbeat-interval %s: want more than 0, and at most a third of --orphan-reclaim-after %s", s.heartbeat, s.after)
	}
	if _, err := s.count(); err != nil {
		return err
	}
	return nil
}

// checkWorker refuses what no worker could mean.
func (s *settings) checkWorker() error {
	if err := s.check(); err != nil {
		return err
	}
	switch {
	case s.heartbeat > s.after/3:
		return usage("--orphan-reclaim-after %s: want at least three times --heartbeat-interval %s", s.after, s.heartbeat)
	case s.interval < 0:
		return usage("--orphan-reclaim-interval %s: want 0 or more", s.interval)
	case s.retain != age(foundling.Forever) && s.retain < age(time.Second):
		return usage("--retention %s: want 1s or more, or forever", &s.retain)
	case s.ttl < 0:
		return usage("--worker-ttl %s: want 0 or more", s.ttl)
	case s.given("fence-after") && s.fence < s.heartbeat:
		return usage("--fence-after %s: want at least --heartbeat-interval %s", s.fence, s.heartbeat)
	}
	return nil
}

func (s *settings) count() (foundling.OrphanCount, error) {
	for _, c := range []events.OrphanCount{foundling.CountClaims, foundling.CountOrphanings} {
		if s.orphanCount == c.String() {
			return c, nil
		}
	}
	return 0, usage("--orphan-count %q: want claims or orphanings", s.orphanCount)
}

// limit is orphan_max_attempts as the library takes it. An orphan has spent one attempt and was orphaned once, so 0 is as much as 1.
func (s *settings) limit() int { return max(s.maxAttempts, 1) }

// graceOrNone is orphan_claim_grace as the library takes it.
func (s *settings) graceOrNone() time.Duration {
	if s.grace == 0 {
		return foundling.None
	}
	return s.grace
}

// atOnce is a time after which something is due, as the library takes it: its shortest is as good as none.
func atOnce(d time.Duration) time.Duration { return max(d, time.Nanosecond) }

// worker is the settings of a worker.
func (s *settings) worker(o foundling.WorkerOptions) (foundling.WorkerOptions, error) {
	count, err := s.count()
	o.ReclaimAfter, o.ClaimGrace, o.OrphanMaxAttempts, o.OrphanCount = s.after, s.graceOrNone(), s.limit(), count
	o.HeartbeatInterval, o.FenceAfter = s.heartbeat, s.fence
	o.Retention = time.Duration(s.retain)
	o.ReclaimInterval, o.WorkerTTL = atOnce(s.interval), atOnce(s.ttl)
	if !s.enabled {
		o.Sweeps = foundling.SweepsOff
	}
	return o, err
}

// sweep is the settings of a sweep. Unless it is told otherwise it beats often enough for its proof.
func (s *settings) sweep() (foundling.SweepOptions, error) {
	count, err := s.count()
	o := foundling.SweepOptions{ReclaimAfter: s.after, ClaimGrace: s.graceOrNone(), OrphanMaxAttempts: s.limit(), OrphanCount: count}
	if s.given("heartbeat-interval") {
		o.HeartbeatInterval = s.heartbeat
	}
	return o, err
}

// settingName is a flag as the design names the setting.
func settingName(flag string) string { return strings.ReplaceAll(flag, "-", "_") }
