package findings_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 11, 18, 3, 0, 0, 0, time.UTC)

// names shows ids by their last byte.
var names = &events.Names{
	Short: func(id events.ID) string { return fmt.Sprintf("…%02x", id[15]) },
	Clock: func(t time.Time) string { return "+" + t.Sub(epoch).String() },
}

// scene is a log under construction with the projections over it.
type scene struct {
	at       time.Duration
	position int64
	state    findings.State
	facts    findings.Facts
}

func (s *scene) add(entity events.Entity, event events.Event, from, to events.State) {
	s.position++
	r := events.Recorded{
		Transition: events.Transition{Event: event, Version: 1, From: from, To: to},
		Position:   s.position, Entity: entity, Commit: &events.Commit{At: epoch.Add(s.at), Count: 1},
	}
	if s.state == (findings.State{}) {
		s.state = findings.NewState()
	}
	s.state.Apply(r)
}

func (s *scene) list() []findings.Finding {
	s.facts.Now, s.facts.Names = epoch.Add(s.at), names
	return findings.List(s.state, s.facts)
}

func id(n byte) events.ID { return events.ID{15: n} }

func (s *scene) topic(name string, event events.Event) {
	s.add(events.TopicEntity(name), event, events.Active, events.Active)
}

func (s *scene) worker(n byte, event events.Event, to events.State) {
	s.add(events.WorkerEntity(id(n)), event, events.Live, to)
}

func (s *scene) enqueue(n byte, topic string) {
	s.add(events.MessageEntity(id(n)), &events.MessageEnqueued{Topic: topic}, events.Absent, events.Queued)
}

func (s *scene) claim(n, worker byte, limit int) {
	claimed := &events.MessageClaimed{Worker: id(worker), Token: 2, Attempt: 1, Limit: limit}
	s.add(events.MessageEntity(id(n)), claimed, events.Queued, events.Running)
}

func (s *scene) beat(worker byte, at time.Duration) {
	s.facts.Heart = true
	s.facts.Beats = append(s.facts.Beats, findings.Beat{Worker: id(worker), Interval: 10 * time.Second, At: epoch.Add(at)})
}

func (s *scene) start(n byte) {
	s.worker(n, &events.WorkerStarted{Host: "host-a", PID: 4711, HeartbeatInterval: 10 * time.Second}, events.Live)
}

// situation is a log with facts and the whole text of its findings.
type situation struct {
	do   func(*scene)
	want string
}

func check(t *testing.T, situations map[string]situation) {
	for name, test := range situations {
		t.Run(name, func(t *testing.T) {
			var s scene
			test.do(&s)
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), findings.Text(s.list())); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

func TestList(t *testing.T) {
	check(t, map[string]situation{
		"nothing happened": {func(*scene) {}, ""},
		"busy is no finding: the topic is full, its claims end": {func(s *scene) {
			s.topic("mail", &events.TopicConfigured{Limit: 1})
			s.start(0xa)
			s.enqueue(1, "mail")
			s.enqueue(2, "mail")
			s.claim(1, 0xa, 1)
			s.at = 2 * time.Hour
			s.add(events.MessageEntity(id(1)), &events.MessageCompleted{}, events.Running, events.Completed)
			s.claim(2, 0xa, 1)
			s.at += 59 * time.Minute
		}, ""},
		"a process ended with its claims": {func(s *scene) {
			s.facts.Batch = "brisk otter"
			s.start(0xa)
			s.enqueue(1, "run")
			s.enqueue(2, "run")
			s.claim(1, 0xa, 0)
			s.at = 65 * time.Second
			s.claim(2, 0xa, 0)
			s.facts.Gone = []events.ID{id(0xa), id(0xb)}
		}, `
✖ critical worker_gone: worker …0a is gone and still holds 2 claims
  because its process 4711 on host-a has ended: the kernel let go of its lock
  because message …01, attempt 1, claimed 1m05s ago (position 4)
  because message …02, attempt 1, claimed 0s ago (position 5)
  next    foundling run --resume 'brisk otter'
  next    foundling trace …01 --batch 'brisk otter'
`},
		"a lost worker still holds a claim": {func(s *scene) {
			s.facts.Store = "sqlite:a.db"
			s.start(0xa)
			s.enqueue(1, "run")
			s.claim(1, 0xa, 0)
			s.worker(0xa, &events.WorkerLost{Evidence: events.Evidence{Reason: events.ReasonProcessGone}}, events.Lost)
			s.at = time.Second
		}, `
✖ critical worker_gone: worker …0a is gone and still holds 1 claim
  because it was found gone (process_gone) (position 4)
  because message …01, attempt 1, claimed 1s ago (position 3)
  next    foundling sweep --dry-run --store sqlite:a.db
  next    foundling trace …01 --store sqlite:a.db
`},
		"claims of workers that stopped or never were": {func(s *scene) {
			s.start(0xa)
			s.enqueue(1, "run")
			s.enqueue(2, "run")
			s.claim(1, 0xa, 0)
			s.claim(2, 0xb, 0)
			s.worker(0xa, &events.WorkerStopped{}, events.Stopped)
		}, `
✖ critical worker_gone: worker …0a is gone and still holds 1 claim
  because it has stopped
  because message …01, attempt 1, claimed 0s ago (position 4)
  next    foundling sweep --dry-run
  next    foundling trace …01
✖ critical worker_gone: worker …0b is gone and still holds 1 claim
  because it was never made known to the store
  because message …02, attempt 1, claimed 0s ago (position 5)
  next    foundling sweep --dry-run
  next    foundling trace …02
`},
		"a worker fell silent, another lives, a third is idle": {func(s *scene) {
			for n := byte(0xa); n <= 0xc; n++ {
				s.start(n)
			}
			s.enqueue(1, "run")
			s.enqueue(2, "run")
			s.claim(1, 0xa, 0)
			s.claim(2, 0xb, 0)
			s.beat(0xa, 5*time.Second)
			s.beat(0xb, 6*time.Second)
			s.at = 36 * time.Second
		}, `
▲ warning worker_silent: worker …0a holds 1 claim and has not been heard of for 31s
  because last heartbeat 31s ago, it intends one every 10s
  because message …01, attempt 1, claimed 36s ago (position 6)
  next    foundling workers …0a
  next    foundling trace …01
`},
		"a worker never beat": {func(s *scene) {
			s.start(0xa)
			s.enqueue(1, "run")
			s.claim(1, 0xa, 0)
			s.facts.Heart = true
			s.at = time.Minute
		}, `
▲ warning worker_silent: worker …0a holds 1 claim and has not been heard of for 1m00s
  because no heartbeat since it started 1m00s ago, it intends one every 10s
  because message …01, attempt 1, claimed 1m00s ago (position 3)
  next    foundling workers …0a
  next    foundling trace …01
`},
		"silence means nothing where no heartbeats are kept": {func(s *scene) {
			s.start(0xa)
			s.enqueue(1, "run")
			s.claim(1, 0xa, 0)
			s.at = 30 * time.Minute
		}, ""},
		"wedged: the only slot is held by nobody alive": {func(s *scene) {
			s.topic("brain", &events.TopicConfigured{Limit: 1})
			s.start(0xa)
			s.enqueue(1, "brain")
			s.enqueue(2, "brain")
			s.claim(1, 0xa, 1)
			s.beat(0xa, 0)
			s.at = 11*24*time.Hour + 4*time.Hour + 12*time.Minute
		}, `
✖ critical topic_at_limit: topic brain is at its limit (1 of 1), and no holder of a slot lives
  because message …01, attempt 1, claimed 11d04:12 ago (position 5), worker …0a: last heartbeat 11d04:12 ago, it intends one every 10s
  because 1 queued
  next    foundling sweep --dry-run
  next    foundling requeue …01 --reason "its worker is gone"
  next    foundling trace …01
▲ warning worker_silent: worker …0a holds 1 claim and has not been heard of for 11d04:12
  because last heartbeat 11d04:12 ago, it intends one every 10s
  because message …01, attempt 1, claimed 11d04:12 ago (position 5)
  next    foundling workers …0a
  next    foundling trace …01
`},
		"wedged or slow: the holder lives and its claim does not end": {func(s *scene) {
			s.topic("brain", &events.TopicConfigured{Limit: 1})
			s.start(0xa)
			s.enqueue(1, "brain")
			s.claim(1, 0xa, 1)
			s.at = 90 * time.Minute
			s.beat(0xa, 90*time.Minute)
		}, `
▲ warning topic_at_limit: topic brain is at its limit (1 of 1), and no claim has ended for 1h30m
  because message …01, attempt 1, claimed 1h30m ago (position 4), worker …0a: last heartbeat 0s ago, it intends one every 10s
  because 0 queued
  next    foundling topics brain
  next    foundling requeue …01 --force --reason "it does not end"
  next    foundling trace …01
`},
		"the limit was lowered below what runs: it stays full, but claims end": {func(s *scene) {
			s.topic("brain", &events.TopicConfigured{Limit: 2})
			s.start(0xa)
			for n := byte(1); n <= 2; n++ {
				s.enqueue(n, "brain")
				s.claim(n, 0xa, 2)
			}
			s.topic("brain", &events.TopicConfigured{Limit: 1})
			s.at = time.Hour
			s.add(events.MessageEntity(id(1)), &events.MessageCompleted{}, events.Running, events.Completed)
			s.at += 59 * time.Minute
		}, ""},
		"a claim that does not count keeps no slot": {func(s *scene) {
			s.topic("brain", &events.TopicConfigured{})
			s.start(0xa)
			for n := byte(1); n <= 2; n++ {
				s.enqueue(n, "brain")
			}
			s.claim(1, 0xa, 0)
			s.topic("brain", &events.TopicConfigured{Limit: 1})
			s.claim(2, 0xb, 1)
		}, `
✖ critical topic_at_limit: topic brain is at its limit (1 of 1), and no holder of a slot lives
  because message …02, attempt 1, claimed 0s ago (position 7), worker …0b: it was never made known to the store
  because 0 queued
  next    foundling sweep --dry-run
  next    foundling requeue …02 --reason "its worker is gone"
  next    foundling trace …02
✖ critical worker_gone: worker …0b is gone and still holds 1 claim
  because it was never made known to the store
  because message …02, attempt 1, claimed 0s ago (position 7)
  next    foundling sweep --dry-run
  next    foundling trace …02
`},
		"a pause is a finding only while something waits": {func(s *scene) {
			for _, topic := range []string{"mail", "scan"} {
				s.topic(topic, &events.TopicPaused{By: "ann", Detail: "INC-142\x1b[2J"})
			}
			s.enqueue(1, "mail")
			s.at = 3*time.Hour + 7*time.Minute
		}, `
▲ warning topic_paused: topic mail has been paused for 3h07m, 1 message waits
  because paused by ann (position 1): "INC-142\x1b[2J"
`},
		"a new limit waits for older claims to be counted": {func(s *scene) {
			s.start(0xa)
			s.beat(0xa, 0)
			s.enqueue(1, "mail")
			s.claim(1, 0xa, 0)
			s.topic("mail", &events.TopicConfigured{Limit: 3, Counting: true})
			s.topic("scan", &events.TopicConfigured{Limit: 3, Counting: true})
			s.enqueue(2, "scan")
			s.enqueue(3, "scan")
		}, `
▲ warning topic_counting: topic scan grants nothing until the claims from before its limit of 3 are counted
  because limit set (position 5)
  because 0 of 0 running are counted, 2 messages wait
● info topic_counting: topic mail grants nothing until the claims from before its limit of 3 are counted
  because limit set (position 4)
  because 0 of 1 running are counted, 0 messages wait
`},
		"a dead letter": {func(s *scene) {
			s.facts.Batch = "nightly"
			s.enqueue(0xc7, "run")
			s.claim(0xc7, 0xa, 0)
			dead := &events.MessageDeadLettered{Reason: events.ReasonExhausted, Error: "exit status 1\n\x1b[31m"}
			s.add(events.MessageEntity(id(0xc7)), dead, events.Running, events.DeadLettered)
			s.at = 1500 * time.Millisecond
		}, `
▲ warning message_dead_lettered: message …c7 was dead-lettered after 1 attempt (exhausted): "exit status 1\n\x1b[31m"
  because dead-lettered 1.5s ago on topic run (position 3)
  next    foundling trace …c7 --batch nightly
  next    foundling redrive …c7 --reason "fixed" --batch nightly
`},
		"late results, those of the last hour": {func(s *scene) {
			late := &events.MessageRefused{Command: "complete", Reason: events.ReasonStaleToken, Sender: id(0xa), Sent: 2, Found: 4}
			s.add(events.MessageEntity(id(1)), late, events.Running, events.Running)
			s.at = time.Hour
			s.add(events.MessageEntity(id(1)), late, events.Running, events.Running)
			over := &events.MessageRefused{Command: "fail", Reason: events.ReasonWrongState, Sender: id(0xa), Sent: 2}
			s.at += time.Second
			s.add(events.MessageEntity(id(2)), over, events.Completed, events.Completed)
		}, `
● info refusals: 2 results of worker …0a came too late and changed nothing
  because message …01: complete with token 2, 4 was current, stale_token 1s ago (position 2)
  because message …02: fail with token 2, the message was completed, wrong_state 0s ago (position 3)
  next    foundling trace …02
`},
		"heartbeats had a gap, and are back": {func(s *scene) {
			s.start(0xa)
			s.at = time.Hour
			s.worker(0xa, &events.WorkerGap{FromAt: epoch.Add(59 * time.Minute), ToAt: epoch.Add(time.Hour)}, events.Live)
			s.at += 5 * time.Minute
		}, `
● info worker_gap: worker …0a was not heard of for 1m00s, until 5m00s ago
  because heartbeats at +59m0s and +1h0m0s (position 2)
  because 1 gap since it started 1h05m ago
`},
		"a gap is told for an hour": {func(s *scene) {
			s.start(0xa)
			s.worker(0xa, &events.WorkerGap{FromAt: epoch, ToAt: epoch}, events.Live)
			s.at = time.Hour + time.Second
		}, ""},
	})
}

// Many dead letters and claims stay a short list.
func TestListIsBounded(t *testing.T) {
	var s scene
	s.start(0xff)
	for n := range byte(30) {
		s.enqueue(n, "run")
		s.claim(n, 0xff, 0)
	}
	for n := range byte(15) {
		s.add(events.MessageEntity(id(n)), &events.MessageDeadLettered{Reason: events.ReasonHandler}, events.Running, events.DeadLettered)
	}
	s.facts.Gone = []events.ID{id(0xff)}
	list := s.list()
	if len(list) != 1+1+10 {
		t.Fatalf("%d findings, want 12:\n%s", len(list), findings.Text(list))
	}
	if got := list[0]; len(got.Positions) != 10 || got.Evidence[len(got.Evidence)-1] != "and 5 more" {
		t.Errorf("the gone worker has positions %v and evidence %q", got.Positions, got.Evidence)
	}
	if want := "topic run has 5 older dead letters beside the newest 10"; list[11].Text != want && list[1].Text != want {
		t.Errorf("no %q in\n%s", want, findings.Text(list))
	}
}

// The order is severity, then time, then subject, and does not depend on that of maps.
func TestListIsInOrder(t *testing.T) {
	list := func() []findings.Finding {
		var s scene
		for n := range byte(5) {
			s.at += time.Second
			s.enqueue(5-n, "run")
			s.claim(5-n, 0xa0+n, 0)
			s.enqueue(20-n, fmt.Sprintf("topic-%d", n))
			s.add(events.MessageEntity(id(20-n)), &events.MessageDeadLettered{}, events.Queued, events.DeadLettered)
		}
		return s.list()
	}
	want := list()
	for i, f := range want[1:] {
		if before := want[i]; f.Severity < before.Severity || f.Severity == before.Severity && f.Since.Before(before.Since) {
			t.Errorf("%s since %s comes before %s since %s", before.Severity, before.Since, f.Severity, f.Since)
		}
	}
	for range 20 {
		if diff := cmp.Diff(want, list()); diff != "" {
			t.Fatalf("another order\n%s", diff)
		}
	}
}

func TestTextHasNoControlCharacters(t *testing.T) {
	const evil = "a\x1b[2J\n\tb\u202e\xff"
	var s scene
	s.facts.Batch = evil
	s.worker(0xa, &events.WorkerStarted{Host: evil, PID: 1}, events.Live)
	s.topic(evil, &events.TopicConfigured{Limit: 1, By: evil, Detail: evil, Counting: true})
	s.topic(evil, &events.TopicPaused{By: evil, Detail: evil})
	for n := range byte(3) {
		s.enqueue(n, evil)
	}
	s.claim(1, 0xa, 1)
	s.facts.Gone = []events.ID{id(0xa)}
	s.add(events.MessageEntity(id(2)), &events.MessageDeadLettered{Error: evil}, events.Running, events.DeadLettered)
	s.add(events.MessageEntity(id(2)), &events.MessageRefused{Command: evil}, events.DeadLettered, events.DeadLettered)
	s.add(events.LockEntity(evil), &events.LockRefused{Command: evil, Sender: id(0xc)}, events.Free, events.Free)
	s.worker(0xb, &events.WorkerStarted{Topics: []string{evil}, Limits: []int{7}}, events.Live)
	s.lock(evil, &events.LockConfigured{Permits: 3})
	s.acquire(evil, 1, 0xa, 0)
	s.locked(7, evil, evil)
	s.take(7, 0xb, evil, 2)
	s.end(7, &events.MessageCancelled{By: evil, Detail: evil}, events.Cancelled)
	for n := byte(8); n < 10; n++ {
		s.locked(n, evil, evil)
		s.block(n, evil)
	}
	s.unblock(9, events.MessageUnblocked{Lock: evil, Repair: true})
	s.block(9, evil)
	s.refuse(1, events.ReasonClockStepped, evil)
	s.at += time.Minute
	list := s.list()
	codes := map[findings.Code]bool{}
	for _, f := range list {
		codes[f.Code] = true
		for _, line := range append(append([]string{f.Text}, f.Evidence...), f.Next...) {
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%s: %q", f.Code, line)
			}
		}
	}
	if len(codes) != 12 {
		t.Errorf("findings of %d kinds, want 12: %v", len(codes), codes)
	}
}

// Whatever a damaged log holds, in whatever order, the folds and the list come to an end with it.
func TestAnyLogGivesAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s scene
		s.facts.Heart, s.facts.Leases = rapid.Bool().Draw(t, "heart"), rapid.Bool().Draw(t, "leases")
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			s.at += time.Duration(rapid.IntRange(-100, 3000).Draw(t, "seconds")) * time.Second
			n := byte(rapid.IntRange(1, 3).Draw(t, "id"))
			limit := rapid.IntRange(0, 2).Draw(t, "limit")
			topic := fmt.Sprintf("topic-%d", n)
			event := rapid.SampledFrom([]events.Event{
				&events.MessageEnqueued{Topic: topic}, &events.MessageClaimed{Worker: id(n), Limit: limit}, &events.MessageCounted{},
				&events.MessageCompleted{}, &events.MessageRequeued{}, &events.MessageOrphaned{}, &events.MessageDeadLettered{},
				&events.MessageRedriven{}, &events.MessageRefused{Sender: id(n)}, &events.TopicConfigured{Limit: limit}, &events.TopicPaused{},
				&events.TopicResumed{}, &events.WorkerStarted{Topics: []string{topic}, Limits: []int{limit}}, &events.WorkerLost{}, &events.WorkerGap{},
				&events.WorkerStopped{}, &events.WorkerReturned{}, &events.WorkerPurged{}, &events.MessageEnqueued{Topic: topic, Lock: topic},
				&events.MessageBlocked{}, &events.MessageUnblocked{Repair: limit == 0}, &events.MessageDiscarded{}, &events.MessageCancelled{},
				&events.MessageClaimed{Worker: id(n), LockToken: events.Token(limit)}, &events.LockConfigured{Permits: limit},
				&events.LockAcquired{Token: events.Token(limit), Worker: id(n), Message: id(n)}, &events.LockReleased{Token: events.Token(limit)},
				&events.LockOrphaned{Token: events.Token(limit)}, &events.LockReclaimed{Token: events.Token(limit)}, &events.LockExpired{},
				&events.LockForceReleased{Token: events.Token(limit)}, &events.LockRefused{Sender: id(n)}, &events.SweepFinished{},
				&events.SweepRefused{}, &events.LeaderElected{Worker: id(n)}, &events.LeaderLost{}, &events.LeaderResigned{}, &events.ClockStepped{},
			}).Draw(t, "event")
			entity := events.Entity{Kind: event.Type().Kind(), ID: id(n)}
			if entity.Kind.Named() {
				entity = events.Entity{Kind: entity.Kind, Name: topic}
				if entity.Kind == events.KindLeader {
					entity.Name = "beat"
				}
			}
			states := []events.State{
				events.Blocked, events.Discarded, events.Free, events.Held, events.Led, events.Vacant, events.Absent, events.Queued, events.Running, events.Orphaned, events.Completed, events.DeadLettered, events.Live, events.Lost,
			}
			s.add(entity, event, rapid.SampledFrom(states).Draw(t, "from"), rapid.SampledFrom(states).Draw(t, "to"))
		}
		if text := findings.Text(s.list()); strings.Contains(text, "\n\n") {
			t.Errorf("a blank line in\n%s", text)
		}
	})
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                      "0s",
		999 * time.Microsecond: "0s",
		350 * time.Millisecond: "350ms",
		12500*time.Millisecond + 99*time.Millisecond:        "12.5s",
		59999 * time.Millisecond:                            "59.9s",
		time.Minute:                                         "1m00s",
		59*time.Minute + 59*time.Second:                     "59m59s",
		3*time.Hour + 7*time.Minute:                         "3h07m",
		24 * time.Hour:                                      "1d00:00",
		11*24*time.Hour + 4*time.Hour + 12*time.Minute + 59: "11d04:12",
		-time.Minute:                                        "-1m00s",
	} {
		if got := findings.Span(d); got != want {
			t.Errorf("Span(%s) is %q, want %q", d, got, want)
		}
	}
}
