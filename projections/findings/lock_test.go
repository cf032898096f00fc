package findings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/findings"
)

func (s *scene) lock(name string, event events.Event) {
	s.add(events.LockEntity(name), event, events.Held, events.Held)
}

func (s *scene) acquire(lock string, token events.Token, worker, message byte) {
	acquired := &events.LockAcquired{Token: token, Worker: id(worker)}
	if message > 0 {
		acquired.Message = id(message)
	}
	s.lock(lock, acquired)
}

// locked enqueues a message with a lock.
func (s *scene) locked(n byte, topic, lock string) {
	s.add(events.MessageEntity(id(n)), &events.MessageEnqueued{Topic: topic, Lock: lock}, events.Absent, events.Queued)
}

// take claims a message with its lock.
func (s *scene) take(n, worker byte, lock string, token events.Token) {
	s.acquire(lock, token, worker, n)
	claimed := &events.MessageClaimed{Worker: id(worker), Token: 2, Attempt: 1, LockToken: token}
	s.add(events.MessageEntity(id(n)), claimed, events.Queued, events.Running)
}

func (s *scene) block(n byte, lock string) {
	s.add(events.MessageEntity(id(n)), &events.MessageBlocked{Lock: lock}, events.Queued, events.Blocked)
}

func (s *scene) unblock(n byte, event events.MessageUnblocked) {
	s.add(events.MessageEntity(id(n)), &event, events.Blocked, events.Queued)
}

func (s *scene) end(n byte, event events.Event, to events.State) {
	s.add(events.MessageEntity(id(n)), event, events.Running, to)
}

func TestListOfLocks(t *testing.T) {
	check(t, map[string]situation{
		"a lock whose holder lives is no finding, however many wait": {func(s *scene) {
			s.start(0xa)
			s.acquire("press", 2, 0xa, 0)
			s.locked(1, "mail", "press")
			s.block(1, "press")
			s.at = 11 * 24 * time.Hour
		}, ""},
		"a lock is held by a worker that is lost": {func(s *scene) {
			s.start(0xa)
			s.acquire("the press", 2, 0xa, 0)
			for n := byte(1); n <= 3; n++ {
				s.locked(n, "mail", "the press")
				s.block(n, "the press")
			}
			s.locked(4, "scan", "the press")
			s.at = time.Minute
			s.block(4, "the press")
			s.worker(0xa, &events.WorkerLost{Evidence: events.Evidence{Reason: events.ReasonSilent}}, events.Lost)
			s.at += time.Second
		}, `
✖ critical lock_holder_gone: lock "the press" is held by worker …0a, which is gone
  because permit 2 of lock "the press", taken 1m01s ago (position 2), worker …0a: it was found gone (silent) (position 11)
  because 4 messages wait: 3 of topic mail since 1m01s ago and 1 of topic scan since 1s ago
  next    foundling sweep --dry-run
  next    foundling release-lock 'the press' --reason "its holder is gone"
✖ critical worker_gone: worker …0a is gone and still holds 1 permit
  because it was found gone (silent) (position 11)
  because permit 2 of lock "the press", taken 1m01s ago (position 2)
  next    foundling sweep --dry-run
`},
		"a stopped worker holds one of three permits, with a claim": {func(s *scene) {
			s.lock("press", &events.LockConfigured{Permits: 3})
			s.start(0xa)
			s.start(0xb)
			s.locked(1, "mail", "press")
			s.take(1, 0xa, "press", 5)
			s.acquire("press", 7, 0xb, 0)
			s.worker(0xa, &events.WorkerStopped{}, events.Stopped)
		}, `
✖ critical worker_gone: worker …0a is gone and still holds 1 claim and 1 permit
  because it has stopped
  because message …01, attempt 1, claimed 0s ago (position 6)
  because permit 5 of lock press, taken 0s ago (position 5) for message …01
  next    foundling sweep --dry-run
  next    foundling trace …01
✖ critical lock_holder_gone: lock press: 1 of 3 permits held by workers that are gone
  because permit 5 of lock press, taken 0s ago (position 5) for message …01, worker …0a: it has stopped
  next    foundling sweep --dry-run
  next    foundling release-lock press --token 5 --reason "its holder is gone"
`},
		"a purged worker holds a lock, and the last sweep spared it": {func(s *scene) {
			s.acquire("press", 2, 0xa, 0)
			s.worker(0xa, &events.WorkerLost{}, events.Lost)
			s.worker(0xa, &events.WorkerPurged{}, events.Purged)
			s.add(events.SweepEntity(id(7)), &events.SweepFinished{Spared: 1, Thresholds: events.Thresholds{Grace: time.Minute}}, events.Absent, events.Finished)
			s.facts.Batch = "nightly"
		}, `
✖ critical worker_gone: worker …0a is gone and still holds 1 permit
  because it was lost long ago and is forgotten
  because permit 2 of lock press, taken 0s ago (position 1)
  because the last sweep that did something spared 1 younger than 1m00s, 0s ago (position 4)
  next    foundling run --resume nightly
✖ critical lock_holder_gone: lock press is held by worker …0a, which is gone
  because permit 2 of lock press, taken 0s ago (position 1), worker …0a: it was lost long ago and is forgotten
  because the last sweep that did something spared 1 younger than 1m00s, 0s ago (position 4)
  next    foundling run --resume nightly
  next    foundling release-lock press --reason "its holder is gone" --batch nightly
`},
		"a silent worker holds nothing but a lock": {func(s *scene) {
			s.start(0xa)
			s.acquire("press", 2, 0xa, 0)
			s.beat(0xa, 0)
			s.at = time.Minute
		}, `
▲ warning worker_silent: worker …0a holds 1 permit and has not been heard of for 1m00s
  because last heartbeat 1m00s ago, it intends one every 10s
  because permit 2 of lock press, taken 1m00s ago (position 2)
  next    foundling workers …0a
`},
		"a handler does not end although its message was cancelled": {func(s *scene) {
			s.start(0xa)
			s.locked(1, "mail", "press")
			s.locked(2, "mail", "press")
			s.take(1, 0xa, "press", 4)
			s.block(2, "press")
			s.at = time.Minute
			s.end(1, &events.MessageCancelled{Reason: events.ReasonOperator, By: "ann", Detail: "wrong\tfile"}, events.Cancelled)
			s.at = 2 * time.Minute
			s.beat(0xa, 2*time.Minute)
		}, `
▲ warning handler_running: the handler of message …01 has not ended 1m00s after its claim was, and keeps lock press
  because its claim was ended by message.cancelled 1m00s ago by ann (position 7): "wrong\tfile"
  because permit 4 of lock press, taken 2m00s ago (position 4) for message …01, worker …0a: last heartbeat 0s ago, it intends one every 10s
  because 1 message waits: 1 of topic mail since 2m00s ago
  next    foundling locks press
  next    foundling release-lock press --token 4 --reason "its handler has ended"
`},
		"a handler is given three heartbeats to end": {func(s *scene) {
			s.start(0xa)
			s.locked(1, "mail", "press")
			s.take(1, 0xa, "press", 4)
			s.end(1, &events.MessageRequeued{Reason: events.ReasonTakenBack}, events.Queued)
			s.at = 30 * time.Second
			s.beat(0xa, 30*time.Second)
		}, ""},
		"messages wait for a free lock, and of another topic one tries": {func(s *scene) {
			s.lock("press", &events.LockConfigured{Permits: 2})
			s.start(0xa)
			s.acquire("press", 3, 0xa, 0)
			for n, topic := range map[byte]string{1: "mail", 2: "scan", 3: "scan"} {
				s.locked(n, topic, "press")
			}
			for n := byte(1); n <= 3; n++ {
				s.block(n, "press")
			}
			s.unblock(3, events.MessageUnblocked{Lock: "press"})
			s.at = 5 * time.Second
		}, `
✖ critical lock_idle: lock press is free, and who waits for it was not told: a fault of Foundling
  because 1 of 2 permits out
  because 3 messages wait: 1 of topic mail since 5s ago and 2 of topic scan since 5s ago
  next    foundling verify
  next    foundling locks press
  next    foundling trace …01
`},
		"messages that waited for a free lock were told late, one of them long ago": {func(s *scene) {
			for n := byte(1); n <= 3; n++ {
				s.locked(n, "mail", "press")
				s.block(n, "press")
				s.unblock(n, events.MessageUnblocked{Lock: "press", Repair: true})
				s.at += 31 * time.Minute
			}
		}, `
▲ warning lock_repaired: lock press was free while 1 message waited for it, until a repair: a fault of Foundling
  because message …03 of topic mail, 31m00s ago (position 9)
  next    foundling verify
  next    foundling trace …03
`},
		"late releases and results": {func(s *scene) {
			late := &events.MessageRefused{Command: "complete", Reason: events.ReasonStaleToken, Sender: id(0xa), Sent: 2, Found: 4}
			s.add(events.MessageEntity(id(1)), late, events.Running, events.Running)
			release := &events.LockRefused{Command: "unlock", Reason: events.ReasonNotHeld, Sender: id(0xa), Sent: 5}
			s.add(events.LockEntity("press"), release, events.Free, events.Free)
		}, `
● info refusals: 1 result and 1 release of worker …0a came too late and changed nothing
  because message …01: complete with token 2, 4 was current, stale_token 0s ago (position 1)
  because lock press: unlock of permit 5, the lock was free, not_held 0s ago (position 2)
  next    foundling locks press
`},
		"a full topic says how many are blocked": {func(s *scene) {
			s.topic("brain", &events.TopicConfigured{Limit: 1})
			s.locked(1, "brain", "press")
			s.locked(2, "brain", "press")
			s.block(2, "press")
			s.claim(1, 0xa, 1)
			s.facts.Batch = "b"
		}, `
✖ critical topic_at_limit: topic brain is at its limit (1 of 1), and no holder of a slot lives
  because message …01, attempt 1, claimed 0s ago (position 5), worker …0a: it was never made known to the store
  because 0 queued, 1 blocked by their locks
  next    foundling run --resume b
  next    foundling requeue …01 --reason "its worker is gone" --batch b
  next    foundling trace …01 --batch b
✖ critical worker_gone: worker …0a is gone and still holds 1 claim
  because it was never made known to the store
  because message …01, attempt 1, claimed 0s ago (position 5)
  next    foundling run --resume b
  next    foundling trace …01 --batch b
✖ critical lock_idle: lock press is free, and who waits for it was not told: a fault of Foundling
  because 0 of 1 permit out
  because 1 message waits: 1 of topic brain since 0s ago
  next    foundling verify --batch b
  next    foundling locks press --batch b
  next    foundling trace …02 --batch b
`},
	})
}

// Many permits and waiters stay a short list.
func TestListOfLocksIsBounded(t *testing.T) {
	var s scene
	s.lock("press", &events.LockConfigured{Permits: 100})
	for n := range byte(40) {
		s.acquire("press", events.Token(n)+1, 0xa0+n%2, 0)
		topic := strings.Repeat("t", int(n)+1)
		s.locked(n, topic, "press")
		s.block(n, "press")
	}
	for _, f := range s.list() {
		if len(f.Evidence) > 20 || len(f.Positions) > 10 || len(f.Next) > 11 {
			t.Errorf("%s has %d lines of evidence, %d positions, %d commands", f.Code, len(f.Evidence), len(f.Positions), len(f.Next))
		}
		for _, line := range f.Evidence {
			if len(line) > 1000 {
				t.Errorf("a line of %d bytes: %s", len(line), line)
			}
		}
	}
	if text := findings.Text(s.list()); !strings.Contains(text, "and 30 more topics") {
		t.Errorf("the topics beyond are not counted:\n%s", text)
	}
}
