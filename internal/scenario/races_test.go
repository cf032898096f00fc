package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/scenario"
)

// stage is a story that a test tells step by step.
type stage struct {
	*testing.T
	w *scenario.World
}

// stages runs a test on a new store of each engine.
func stages(t *testing.T, test func(*testing.T, stage)) {
	for _, engine := range scenario.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			w, err := scenario.New(t.Context(), engine, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}()
			test(t, stage{t, w})
			if err := w.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func (s stage) do(step string, input ...string) scenario.Result {
	s.Helper()
	result, err := s.w.Do(s.Context(), step, strings.Join(input, "\n"))
	if err != nil {
		s.Fatalf("%s: %v", step, err)
	}
	return result
}

// count is how many events of a type there are in a result.
func count(r scenario.Result, typ events.Type) (n int) {
	for _, e := range r.Events {
		if e.Event.Type() == typ {
			n++
		}
	}
	return n
}

// C13: fifty waiters on a serial lock over three topics, one of them paused. Every release unblocks at most one waiter of each topic; the lock is
// never idle while a topic that can be claimed from has a waiter; what a release costs is bounded by the number of topics, not of waiters. In
// the end all of them have run, one at a time, and those of the paused topic once it goes on.
func TestC13TheLockIsNeverIdle(t *testing.T) {
	stages(t, func(t *testing.T, s stage) {
		s.do("worker-start ann interval=15s fence=90s")
		for _, topic := range []string{"mail", "sms", "push"} {
			s.do("enqueue " + topic + " n=17 lock=boat")
		}
		s.do("claim ann mail=17 sms=17 push=17")
		s.do("expect", "blocked boat 50", "held boat 1")
		s.do("pause push")
		s.do("complete m1")
		drain(s, "mail sms", 33)
		s.do("expect", "held boat 0", "queued mail 0", "queued sms 0", "events message.completed 34")
		s.do("resume push")
		drain(s, "push", 17)
		s.do("expect", "held boat 0", "blocked boat 0", "trying boat 0", "events message.completed 51")
	})
}

// drain claims and completes so many messages, one at a time.
func drain(s stage, topics string, n int) {
	s.Helper()
	for left := n; left > 0; left-- {
		claimed := ""
		for _, e := range s.do("claim ann " + topics).Events {
			if e.Event.Type() == events.TypeMessageClaimed {
				claimed = named(s, e.Entity.ID)
			}
		}
		if claimed == "" {
			s.Fatalf("the lock is idle and %d messages wait", left)
		}
		if r := s.do("complete " + claimed); count(r, events.TypeMessageUnblocked) > 3 || len(r.Events) > 2+3 {
			s.Fatalf("a release costs\n%s", r.Text)
		}
	}
}

func named(s stage, id events.ID) string {
	for i := range 51 {
		m := fmt.Sprintf("m%d", i+1)
		if known, err := s.w.ID(m); err == nil && known == id {
			return m
		}
	}
	s.Fatalf("message %s has no name", id)
	return ""
}

// A17, A18 and D02, as they happen: two sweeps, acks of the worker that is not dead after all, and a claim, all at the same time. Whatever comes
// first, each message ends or is taken back exactly once, and no lock or slot is given back twice: the laws of the harness see to that.
func TestA17A18D02SweepsAcksAndClaimsAtOnce(t *testing.T) {
	stages(t, func(t *testing.T, s stage) {
		s.do("topic mail limit=10")
		s.do("lock boat permits=10")
		for _, name := range []string{"ann", "bob", "cleo"} {
			s.do("worker-start " + name + " interval=15s fence=90s")
		}
		for round := range 10 {
			s.do("enqueue mail n=10 lock=boat")
			s.do("claim ann mail=10")
			s.do("silence ann")
			s.do("advance 121s")
			var acks []string
			for i := range 5 {
				acks = append(acks, fmt.Sprintf("complete m%d", round*10+2*i+1))
			}
			s.do("parallel", append(acks, "sweep bob term=1", "sweep cleo term=2", "claim cleo mail=10")...)
			s.do("advance 1s")
			s.do("wake ann")
			s.do("worker-return ann")
			s.do("claim bob mail=10")
			for i := range 10 { // of whoever has it now; those of ann's acks that won are refused
				s.do(fmt.Sprintf("complete m%d", round*10+i+1))
			}
			s.do("expect", "running mail 0", "held boat 0", "queued mail 0", fmt.Sprintf("events message.completed %d", (round+1)*10))
		}
	})
}

// B11, at every commit of a sweep: what it was about to take from the dead is judged again each time, so that a worker that returns while others
// are being swept keeps what it holds.
func TestB11AReturningWorkerKeepsWhatItHolds(t *testing.T) {
	stages(t, func(t *testing.T, s stage) {
		for _, name := range []string{"ann", "bob", "cleo"} {
			s.do("worker-start " + name + " interval=15s fence=90s")
		}
		s.do("enqueue mail n=2 lock=boat")
		s.do("lock boat permits=2")
		s.do("claim ann mail")
		s.do("claim bob mail")
		s.do("silence ann bob")
		s.do("advance 121s")
		s.do("sweep cleo", "wake bob")
		s.do("expect", "swept requeued 1", "swept dead 1", "holder m2 bob", "worker bob live", "keeper boat bob", "worker ann lost", "state m1 queued")
	})
}

// Two prunes in small pages, claims, acks, enqueues, sessions and a sweep, all at the same time: whatever comes first, nothing that is open is
// forgotten, and nothing is told that is not so any more. The laws of the harness, verify and the check of the rows see to that.
func TestPrunesAmongEverythingElse(t *testing.T) {
	stages(t, func(t *testing.T, s stage) {
		s.do("topic mail limit=6")
		s.do("lock boat permits=4")
		for _, name := range []string{"ann", "bob"} {
			s.do("worker-start " + name + " interval=15s fence=90s")
		}
		for round := range 10 {
			s.do("enqueue mail n=6 lock=boat payload=p max-attempts=1")
			s.do("claim ann mail=3")
			s.do("advance 10m")
			s.do("parallel",
				"prune older=5m events=3 rows=2 by=ann", "prune older=5m events=7 rows=3 by=bob",
				fmt.Sprintf("complete m%d", 6*round+1), fmt.Sprintf("fail m%d error=boom", 6*round+2), fmt.Sprintf("cancel m%d", 6*round+4),
				"claim bob mail=3", "enqueue post n=2", "acquire ann car", "sweep bob term=1", fmt.Sprintf("erase m%d", 6*max(0, round-1)+1),
			)
			s.do("parallel", "unlock ann car", "prune older=1m events=5 rows=2 by=ann", "claim ann mail=2", "pause post", "resume post")
			s.do("prune older=5m events=20 rows=9 by=ann")
			if err := s.w.Check(t.Context()); err != nil {
				t.Fatalf("round %d: %v", round+1, err)
			}
		}
	})
}
