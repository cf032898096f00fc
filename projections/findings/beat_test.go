package findings_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
)

func (s *scene) refuse(n byte, reason events.Reason, detail string) {
	s.add(events.SweepEntity(id(n)), &events.SweepRefused{
		Reason: reason, Detail: detail, Decider: id(0xb), Term: 3,
		Thresholds: events.Thresholds{After: 2 * time.Minute}, Liveness: events.Liveness{Live: 2, Silent: 1},
	}, events.Absent, events.Refused)
}

func (s *scene) finish(n byte) {
	s.add(events.SweepEntity(id(n)), &events.SweepFinished{Requeued: 1}, events.Absent, events.Finished)
}

func (s *scene) lead(event events.Event, to events.State) {
	s.add(events.LeaderEntity("beat"), event, events.Vacant, to)
}

func TestListOfSweeps(t *testing.T) {
	check(t, map[string]situation{
		"a refused sweep is over when one finishes": {func(s *scene) {
			s.refuse(1, events.ReasonClockStepped, "")
			s.finish(2)
		}, ""},
		"or when the lease says that one was carried out since": {func(s *scene) {
			s.refuse(1, events.ReasonClockStepped, "")
			s.at = 10 * time.Minute
			s.facts.Leases, s.facts.Lease.SweptAt, s.facts.Lease.UntilAt = true, epoch.Add(5*time.Minute), epoch.Add(time.Hour)
		}, ""},
		"or when it is long ago": {func(s *scene) {
			s.refuse(1, events.ReasonClockStepped, "")
			s.at = time.Hour + time.Second
		}, ""},
		"sweeps are refused in a row, and nobody waits for one": {func(s *scene) {
			s.refuse(1, events.ReasonCallerMissing, "")
			s.finish(2)
			s.at = time.Minute
			s.refuse(3, events.ReasonClockStepped, "4m ago")
			s.at = 6 * time.Minute
			s.refuse(4, events.ReasonLivenessUnproven, "a gap of 1m10s\n")
			s.at = 7 * time.Minute
			s.facts.Leases, s.facts.Lease.SweptAt, s.facts.Lease.UntilAt = true, epoch.Add(6*time.Minute), epoch.Add(time.Hour)
		}, `
▲ warning sweep_refused: the last 2 sweeps were refused, since 6m00s ago: liveness_unproven
  because the last one 1m00s ago (liveness_unproven): "a gap of 1m10s\n" (position 4)
  because swept by worker …0b, who sees 2 alive and 1 silent, by a bound of 2m00s
  because the first one 6m00s ago (clock_stepped): 4m ago (position 3)
  next    foundling sweep --dry-run
  next    foundling workers
`},
		"a sweep is refused while a dead worker's claim waits for it": {func(s *scene) {
			s.start(0xa)
			s.enqueue(1, "run")
			s.claim(1, 0xa, 0)
			s.facts.Gone = append(s.facts.Gone, id(0xa))
			s.refuse(1, events.ReasonCallerMissing, "2 live, the caller is not among them")
		}, `
✖ critical worker_gone: worker …0a is gone and still holds 1 claim
  because its process 4711 on host-a has ended: the kernel let go of its lock
  because message …01, attempt 1, claimed 0s ago (position 3)
  because the last sweep was refused 0s ago (caller_missing): 2 live, the caller is not among them (position 4)
  next    foundling sweep --dry-run
  next    foundling trace …01
✖ critical sweep_refused: the last sweep was refused, 0s ago: caller_missing
  because the last one 0s ago (caller_missing): 2 live, the caller is not among them (position 4)
  because swept by worker …0b, who sees 2 alive and 1 silent, by a bound of 2m00s
  because worker …0a is gone and holds 1 claim
  next    foundling sweep --dry-run
  next    foundling workers
`},
		"the last sweep did something, and still a dead worker holds a claim": {func(s *scene) {
			s.enqueue(1, "run")
			s.claim(1, 0xa, 0)
			s.finish(1)
			s.at = 5 * time.Minute
		}, `
✖ critical worker_gone: worker …0a is gone and still holds 1 claim
  because it was never made known to the store
  because message …01, attempt 1, claimed 5m00s ago (position 2)
  because the last sweep that did something was 5m00s ago (position 3)
  next    foundling sweep --dry-run
  next    foundling trace …01
`},
		"the clock was set, and set right again": {func(s *scene) {
			for _, to := range []time.Duration{-3*time.Minute - 20*time.Second, time.Hour} {
				s.add(events.ClockEntity(), &events.ClockStepped{FromAt: epoch, ToAt: epoch.Add(to), Worker: id(0xa)}, events.Active, events.Active)
				s.at += 40 * time.Minute
			}
		}, `
▲ warning clock_stepped: the store's clock was set forward by 1h00m, 40m00s ago
  because from +0s to +1h0m0s, seen by worker …0a (position 2)
  because while a step is younger than orphan_reclaim_after, silence is not taken for death
  next    foundling sweep --dry-run
`},
		"a heartbeat from before the clock was set forward ages from the step": {func(s *scene) {
			s.start(0xa)
			s.enqueue(1, "run")
			s.claim(1, 0xa, 0)
			s.beat(0xa, 0)
			s.at = 10 * time.Hour
			s.add(events.ClockEntity(), &events.ClockStepped{FromAt: epoch.Add(time.Second), ToAt: epoch.Add(s.at), Worker: id(0xb)}, events.Active, events.Active)
			s.at += 20 * time.Second
		}, `
▲ warning clock_stepped: the store's clock was set forward by 9h59m, 20s ago
  because from +1s to +10h0m0s, seen by worker …0b (position 4)
  because while a step is younger than orphan_reclaim_after, silence is not taken for death
  next    foundling sweep --dry-run
`},
		"what was stored before the clock was set back ages from the step": {func(s *scene) {
			s.at = 10 * time.Hour
			s.start(0xa)
			s.enqueue(1, "run")
			s.claim(1, 0xa, 0)
			s.beat(0xa, 10*time.Hour)
			s.at = time.Minute
			s.add(events.ClockEntity(), &events.ClockStepped{FromAt: epoch.Add(10 * time.Hour), ToAt: epoch.Add(s.at), Worker: id(0xb)}, events.Active, events.Active)
			s.at += 2 * time.Hour
		}, `
▲ warning worker_silent: worker …0a holds 1 claim and has not been heard of for 2h00m
  because last heartbeat 2h00m ago, it intends one every 10s
  because message …01, attempt 1, claimed 2h00m ago (position 3)
  next    foundling workers …0a
  next    foundling trace …01
`},
	})
}

func TestListOfLeaders(t *testing.T) {
	live := func(s *scene) {
		s.start(0xa)
		s.start(0xb)
		s.at = 10 * time.Minute
		s.beat(0xa, s.at)
		s.beat(0xb, s.at)
	}
	led := func(s *scene) {
		s.lead(&events.LeaderElected{Worker: id(0xa), Term: 4}, events.Led)
		live(s)
		s.facts.Leases = true
	}
	check(t, map[string]situation{
		"a leader whose lease holds": {func(s *scene) {
			led(s)
			s.facts.Lease.Holder, s.facts.Lease.UntilAt = id(0xa), epoch.Add(s.at+time.Second)
		}, ""},
		"a lease ended a moment ago": {func(s *scene) {
			led(s)
			s.facts.Lease.Holder, s.facts.Lease.UntilAt = id(0xa), epoch.Add(s.at-time.Minute)
		}, ""},
		"a lease ended and nobody took it": {func(s *scene) {
			led(s)
			s.facts.Lease.Holder, s.facts.Lease.UntilAt = id(0xa), epoch.Add(5*time.Minute)
		}, `
▲ warning leader_missing: nobody has led for 5m00s, while 2 workers live: nothing that the dead hold is given back
  because the lease of worker …0a ended 5m00s ago and was not renewed
  next    foundling workers
  next    foundling sweep --dry-run
`},
		"a lease was given back": {func(s *scene) {
			led(s)
			s.lead(&events.LeaderResigned{Worker: id(0xa), Term: 4}, events.Vacant)
			s.at += 2 * time.Minute
			s.beat(0xa, s.at)
			s.beat(0xb, s.at)
		}, `
▲ warning leader_missing: nobody has led for 2m00s, while 2 workers live: nothing that the dead hold is given back
  because the lease was given back (position 4)
  next    foundling workers
  next    foundling sweep --dry-run
`},
		"nobody ever led": {func(s *scene) {
			live(s)
			s.facts.Leases = true
		}, `
● info leader_missing: nobody has led for 10m00s, while 2 workers live: nothing that the dead hold is given back
  because nobody ever led
  because where the sweeps of all workers are switched off, that is as it should be
  next    foundling workers
  next    foundling sweep --dry-run
`},
		"nobody leads where nobody lives, and that is well": {func(s *scene) {
			s.facts.Leases = true
			s.lead(&events.LeaderElected{Worker: id(0xa), Term: 4}, events.Led)
			s.lead(&events.LeaderResigned{Worker: id(0xa), Term: 4}, events.Vacant)
			s.at = time.Hour
		}, ""},
		"a fleet that has just come is given time": {func(s *scene) {
			s.facts.Leases = true
			s.at = time.Hour
			s.start(0xa)
			s.beat(0xa, s.at)
			s.at += 30 * time.Second
		}, ""},
		"without leases the log tells who leads": {func(s *scene) {
			live(s)
			s.lead(&events.LeaderElected{Worker: id(0xc), Term: 4}, events.Led)
			s.worker(0xc, &events.WorkerStarted{}, events.Live)
			s.worker(0xc, &events.WorkerLost{Evidence: events.Evidence{Reason: events.ReasonProcessGone}}, events.Lost)
			s.at += 20 * time.Second
			s.at += time.Minute
			s.beat(0xa, s.at)
			s.beat(0xb, s.at)
		}, `
▲ warning leader_missing: nobody has led for 1m20s, while 2 workers live: nothing that the dead hold is given back
  because the leader, worker …0c, does not live: it was found gone (process_gone) (position 5)
  next    foundling workers
  next    foundling sweep --dry-run
`},
		"and that it is vacant": {func(s *scene) {
			s.lead(&events.LeaderLost{Worker: id(0xc), Term: 4}, events.Vacant)
			live(s)
		}, `
▲ warning leader_missing: nobody has led for 10m00s, while 2 workers live: nothing that the dead hold is given back
  because the leader resigned or was lost, and nobody was elected since (position 1)
  next    foundling workers
  next    foundling sweep --dry-run
`},
		"without leases and leaders nobody is missed": {live, ""},
	})
}

func TestListOfWorkers(t *testing.T) {
	silent := events.Evidence{
		Reason: events.ReasonSilent, Claimer: id(0xa), Age: 130 * time.Second, Decider: id(0xb), Sweep: id(0x77), Term: 3, After: 2 * time.Minute,
		Interval: 15 * time.Second, FenceAfter: 90 * time.Second,
	}
	check(t, map[string]situation{
		"a false alarm, also of a worker that has stopped since": {func(s *scene) {
			s.start(0xa)
			s.enqueue(1, "run")
			s.claim(1, 0xa, 0)
			lostAt := time.Minute
			s.at = lostAt
			s.worker(0xa, &events.WorkerLost{Evidence: silent}, events.Lost)
			s.end(1, &events.MessageOrphaned{Evidence: silent}, events.Orphaned)
			s.add(events.MessageEntity(id(1)), &events.MessageRequeued{Reason: events.ReasonOrphan}, events.Orphaned, events.Queued)
			s.at = 2*time.Minute + 5*time.Second
			s.worker(0xa, &events.WorkerReturned{LostAt: epoch.Add(lostAt)}, events.Live)
			s.worker(0xa, &events.WorkerStopped{}, events.Stopped)
			s.at += 24 * time.Hour
		}, `
▲ warning worker_returned: worker …0a was held to be lost and beat again 1m05s later: a false alarm
  because held to be lost 1d00:01 ago, silent for 2m10s, more than 2m00s, decided by worker …0b in sweep …77 under term 3 (position 4)
  because it beat again 1d00:00 ago, after 1 claim and 0 permits had been taken from it (position 7)
  next    foundling workers …0a
`},
		"a false alarm is told for a day": {func(s *scene) {
			s.worker(0xa, &events.WorkerReturned{}, events.Live)
			s.at = 24*time.Hour + time.Second
		}, ""},
		"a false alarm on proof, by a command line": {func(s *scene) {
			s.start(0xa)
			s.worker(0xa, &events.WorkerLost{Evidence: events.Evidence{Reason: events.ReasonProcessGone}}, events.Lost)
			s.worker(0xa, &events.WorkerReturned{LostAt: epoch}, events.Live)
		}, `
▲ warning worker_returned: worker …0a was held to be lost and beat again 0s later: a false alarm
  because held to be lost 0s ago, process_gone, decided by a command line (position 2)
  because it beat again 0s ago, after 0 claims and 0 permits had been taken from it (position 3)
  next    foundling workers …0a
`},
		"a worker fenced itself": {func(s *scene) {
			s.worker(0xa, &events.WorkerStarted{FenceAfter: 90 * time.Second}, events.Live)
			s.at = time.Hour
			s.worker(0xa, &events.WorkerGap{FromAt: epoch.Add(58*time.Minute + 30*time.Second), ToAt: epoch.Add(time.Hour)}, events.Live)
		}, `
▲ warning worker_fenced: worker …0a was not heard of for 1m30s, until 0s ago, and ended its handlers' contexts by itself
  because heartbeats at +58m30s and +1h0m0s (position 2)
  because 1 gap since it started 1h00m ago
  because it does so 1m30s after its last heartbeat that came through
  next    foundling workers …0a
`},
		"code that declares another limit than the topic has": {func(s *scene) {
			s.topic("mail", &events.TopicConfigured{Limit: 5})
			s.topic("scan", &events.TopicConfigured{Limit: 3, By: "ann", Detail: "INC-142"})
			for n, limits := range [][]int{{5, 7}, {5, 2}, {5, 0}, {5}, {5, 3}, {9, 9}} {
				s.worker(byte(n)+1, &events.WorkerStarted{Topics: []string{"mail", "scan"}, Limits: limits}, events.Live)
			}
			s.worker(6, &events.WorkerLost{}, events.Lost)
			s.at = 5 * time.Minute
		}, `
▲ warning limit_differs: topic scan has a limit of 3, and the code of 2 live workers declares another
  because worker …01 declares 7, started 5m00s ago (position 3)
  because worker …02 declares 2, started 5m00s ago (position 4)
  because the topic's own was set by ann (position 2): INC-142
  next    foundling topics scan
`},
		"code that declares a limit of a topic that has none": {func(s *scene) {
			s.enqueue(1, "mail")
			s.worker(0xa, &events.WorkerStarted{Topics: []string{"mail"}, Limits: []int{2}}, events.Live)
		}, `
▲ warning limit_differs: topic mail has no limit, and the code of 1 live worker declares another
  because worker …0a declares 2, started 0s ago (position 2)
  next    foundling topics mail
`},
		"orphans that were given up": {func(s *scene) {
			for n := byte(1); n <= 2; n++ {
				s.enqueue(n, "mail")
				s.add(events.MessageEntity(id(n)), &events.MessageClaimed{Worker: id(0xa), Token: 10, Attempt: 5}, events.Queued, events.Running)
				s.add(events.MessageEntity(id(n)), &events.MessageDeadLettered{Reason: events.ReasonOrphanLimit}, events.Orphaned, events.DeadLettered)
				s.at += time.Minute
			}
		}, `
▲ warning orphans_dead_lettered: 2 messages of topic mail: dead-lettered since worker after worker died with them
  because message …01 after 5 attempts, last held by worker …0a, dead-lettered 2m00s ago (position 3)
  because message …02 after 5 attempts, last held by worker …0a, dead-lettered 1m00s ago (position 6)
  next    foundling trace …02
  next    foundling redrive …01 …02 --reason "fixed"
`},
	})
}
