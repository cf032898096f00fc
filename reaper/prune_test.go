package reaper_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/reaper"
	"github.com/foundling-go/foundling/store"
)

const day = 24 * time.Hour

// newOldStage is a stage that was left alone for 91 days after the first of three claims had ended well: two claims are open, one message waits.
func newOldStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, 3, 4)
	s.complete(s.held[0])
	s.now = s.now.Add(91 * day)
	return s
}

func (s *stage) complete(id events.ID) {
	s.t.Helper()
	s.do(func(o calls.Origin) store.Call {
		item := fsm.Settlement{ID: id, Command: fsm.CompleteMessage{Token: 2}}
		call, _ := calls.Settle(o, fsm.Settle{Sender: s.holder, Items: []fsm.Settlement{item}}, nil)
		return call
	})
}

func (s *stage) prune() reaper.Prune {
	return reaper.Prune{Store: s.store, Decide: s.decide, Caller: s.sweeper, Retention: 90 * day, By: "ops"}
}

func pruned(s *stage, p reaper.Prune) reaper.Pruned {
	s.t.Helper()
	report, err := p.Run(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

// kept is what is left of the log.
func (s *stage) kept() []events.Recorded {
	s.t.Helper()
	oldest, err := store.Oldest(s.t.Context(), s.store)
	if err != nil {
		s.t.Fatal(err)
	}
	var list []events.Recorded
	for r, err := range s.store.Read(s.t.Context(), oldest, store.Filter{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// types counts events by type.
func types(list []events.Recorded) map[events.Type]int {
	n := map[events.Type]int{}
	for _, r := range list {
		n[r.Event.Type()]++
	}
	return n
}

func TestWhatIsOldEnoughGoes(t *testing.T) {
	s := newOldStage(t)
	before := s.events()
	report := pruned(s, s.prune())
	// Told are the topic, two workers, two claims and the message that waits.
	want := reaper.Pruned{Commits: 1, Told: 6, Events: before, Through: int64(before), Done: true}
	want.UntilAt = report.UntilAt
	if report != want || s.now.Sub(report.UntilAt).Round(time.Hour) != 91*day {
		t.Fatalf("%+v, want %+v", report, want)
	}
	list := s.kept()
	if n := types(list); len(list) != 7 || n[events.TypeMessageSnapshotted] != 3 || n[events.TypeLogPruned] != 1 {
		t.Fatalf("left are %v", n)
	}
	told, _ := list[6].Event.(*events.LogPruned)
	if told == nil || told.Events != before || told.Total != before || told.Retention != 90*day || told.Decider != s.sweeper || told.By != "ops" {
		t.Errorf("log.pruned says %+v", told)
	}
	s.complete(s.held[1]) // as if nothing had been
	if again := pruned(s, s.prune()); again != (reaper.Pruned{Done: true}) {
		t.Errorf("a second run: %+v", again)
	}
	if err := s.readAll(""); !errors.Is(err, store.ErrPruned) {
		t.Errorf("who reads from the beginning is told %v", err)
	}
}

func (s *stage) readAll(after store.Cursor) error {
	for _, err := range s.store.Read(s.t.Context(), after, store.Filter{}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestWhatIsYoungStays(t *testing.T) {
	s := newStage(t, 2, 2)
	s.now = s.now.Add(90*day - time.Minute)
	before := s.events()
	if report := pruned(s, s.prune()); report != (reaper.Pruned{Done: true}) || s.events() != before {
		t.Errorf("%+v, and %d events are left of %d", report, s.events(), before)
	}
	p := s.prune()
	p.Retention, p.Before = 0, s.now.Add(-89*day)
	if report := pruned(s, p); report.Events != before {
		t.Errorf("before a time: %+v, want all %d to go", report, before)
	}
}

// A page has few events or few rows; whatever they are, and wherever a run is broken off, the end is the same.
func TestPagesOfAPrune(t *testing.T) {
	for _, page := range [][2]int{{1, 1}, {3, 2}, {100, 1}, {1, 100}, {100, 100}} {
		s := newOldStage(t)
		before := s.events()
		p := s.prune()
		p.Events, p.Rows, p.Commits = page[0], page[1], 1
		sum := reaper.Pruned{}
		for range 1000 {
			report := pruned(s, p)
			if report.Commits > 1 {
				t.Fatalf("%v: %d commits in a run of one", page, report.Commits)
			}
			sum.Commits, sum.Events, sum.Done = sum.Commits+report.Commits, sum.Events+report.Events, report.Done
			if report.Done {
				break
			}
		}
		list := s.kept()
		if !sum.Done || sum.Events != before || types(list)[events.TypeMessageSnapshotted] < 3 {
			t.Errorf("%v: %+v of %d events, left are %v", page, sum, before, types(list))
		}
		if last, _ := list[len(list)-1].Event.(*events.LogPruned); last == nil || last.Total != before {
			t.Errorf("%v: the last word is %+v", page, list[len(list)-1])
		}
		s.complete(s.held[1])
	}
}

func TestAPruneGoesOnOnlyWhileItMay(t *testing.T) {
	s := newOldStage(t)
	p, asked := s.prune(), 0
	p.Events, p.Enough = 1, func() bool { asked++; return asked == 3 }
	if report := pruned(s, p); report.Commits != 3 || report.Done {
		t.Errorf("%+v, want three commits and more to do", report)
	}
}

func TestAPlanOfAPruneWritesNothing(t *testing.T) {
	s := newOldStage(t)
	before := s.events()
	plan, err := s.prune().Plan(t.Context())
	if err != nil || s.events() != before {
		t.Fatalf("%v, %d events of %d", err, s.events(), before)
	}
	done := pruned(s, s.prune())
	done.Commits = 0
	if plan != done {
		t.Errorf("planned %+v, done %+v", plan, done)
	}
}

// The permits of a lock stand beside its row. Its snapshot tells them, so that who holds it is not forgotten.
func TestPruneTellsWhoHoldsALock(t *testing.T) {
	s := newStage(t, 1, 1)
	for _, worker := range []events.ID{s.holder, s.sweeper} {
		s.do(func(o calls.Origin) store.Call {
			return calls.OperateLock(o, fsm.OperateLock{Lock: "l", ConfigureLock: fsm.ConfigureLock{Permits: 3}})
		})
		s.do(func(o calls.Origin) store.Call {
			call, _ := calls.Acquire(o, fsm.Acquire{Lock: "l", Worker: worker})
			return call
		})
	}
	s.now = s.now.Add(91 * day)
	if report := pruned(s, s.prune()); report.Commits != 1 || report.Told != 5 {
		t.Fatalf("%+v", report)
	}
	for _, r := range s.kept() {
		e, ok := r.Event.(*events.LockSnapshotted)
		if !ok {
			continue
		}
		if len(e.Out) != 2 || e.Out[0].Worker != s.holder || e.Out[1].Worker != s.sweeper || e.Out[0].Token >= e.Out[1].Token {
			t.Errorf("told are %+v", e.Out)
		}
		return
	}
	t.Error("the lock has told nothing")
}

func (s *stage) save(name string, version, sequence int, at store.Cursor) {
	s.t.Helper()
	_, err := s.heart.Save(s.t.Context(), store.Checkpoint{
		CheckpointKey: store.CheckpointKey{Name: name, Version: version, Sequence: sequence}, Cursor: at, View: []byte("{}"),
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// A projection that has not seen an event yet keeps it, and the report says which one does. Of each it is the newest version that counts, and of that
// its newest checkpoint.
func TestProjectionsHoldAPruneBack(t *testing.T) {
	s := newStage(t, 3, 4)
	s.now = s.now.Add(91 * day)
	list := s.kept()
	at := func(n int) store.Cursor { return s.store.After(list[n-1]) }
	commit := func(n int) int { // the last event of the commit that n is in
		for n < len(list) && list[n].Commit == list[n-1].Commit {
			n++
		}
		return n
	}
	few := commit(3)
	s.save("old", 1, 1, "")
	s.save("old", 2, 1, at(len(list)))
	s.save("slow", 1, 1, "")
	s.save("slow", 1, 2, at(few))
	s.save("other", 7, 1, at(len(list)))
	plan, err := s.prune().Plan(t.Context())
	if err != nil || plan.Events != few || plan.Held.Name != "slow" {
		t.Fatalf("plan: %v, %+v, want %d events, and slow to hold the rest", err, plan, few)
	}
	if report := pruned(s, s.prune()); report.Events != few || report.Held.Name != "slow" || report.Held.Sequence != 2 || !report.Done {
		t.Fatalf("%+v, want %d events, and slow to hold the rest", report, few)
	}
	s.save("slow", 1, 3, at(len(list)))
	if report := pruned(s, s.prune()); report.Events != len(list)-few || report.Held.Name != "" {
		t.Errorf("once it has gone on: %+v", report)
	}
	s.now = s.now.Add(91 * day)
	s.save("new", 1, 1, "")
	left := len(s.kept())
	if report := pruned(s, s.prune()); report.Events != 0 || report.Held.Name != "new" || !report.Done || len(s.kept()) != left {
		t.Errorf("one that has seen nothing yet: %+v", report)
	}
}

// A plan looked through all that may go while every writer waited: it ends somewhere, and says that there is more.
func TestAPlanOfAPruneIsBounded(t *testing.T) {
	s := newOldStage(t)
	whole, err := s.prune().Plan(t.Context())
	if err != nil || whole.More || !whole.Done || whole.Events != len(s.kept()) {
		t.Fatalf("whole: %v, %+v", err, whole)
	}
	p := s.prune()
	p.Events = 5
	if plan, err := p.Plan(t.Context()); err != nil || !plan.More || plan.Done || plan.Events == 0 || plan.Events > 5 || plan.Through >= whole.Through {
		t.Errorf("bounded: %v, %+v", err, plan)
	}
	p.Events = whole.Events
	if plan, err := p.Plan(t.Context()); err != nil || plan != whole {
		t.Errorf("as many as there are: %v, %+v, want %+v", err, plan, whole)
	}
	asked := 0
	p = s.prune()
	p.Decide = func(ctx context.Context, prepare func(calls.Origin) store.Call) (store.Receipt, error) {
		return s.decide(ctx, func(o calls.Origin) store.Call {
			call := prepare(o)
			asked = call.Need.Prune.Events
			return call
		})
	}
	if _, err := p.Plan(t.Context()); err != nil || asked != reaper.PlanEvents {
		t.Errorf("%v: it looks through %d events, want %d", err, asked, reaper.PlanEvents)
	}
}

// keepsAll is an engine that keeps its whole log.
type keepsAll struct{ store.Store }

func TestAnEngineThatKeepsItsWholeLog(t *testing.T) {
	s := newOldStage(t)
	p := s.prune()
	p.Store = keepsAll{s.store}
	if _, err := p.Run(t.Context()); !errors.Is(err, store.ErrNoPruner) {
		t.Errorf("run: %v", err)
	}
	if _, err := p.Plan(t.Context()); !errors.Is(err, store.ErrNoPruner) {
		t.Errorf("plan: %v", err)
	}
}

func TestTwoPrunesAtOnceHaveTheEffectOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOldStage(t)
		before := s.events()
		gone := make(chan int, 2)
		for range 2 {
			go func() {
				p := s.prune()
				p.Events, p.Rows = 2, 2
				report, err := p.Run(t.Context())
				if err != nil {
					t.Error(err)
				}
				gone <- report.Events
			}()
		}
		if n := <-gone + <-gone; n != before {
			t.Errorf("%d events went, there were %d", n, before)
		}
		s.complete(s.held[1])
	})
}

// keeping is the stage's beat with a retention, on an engine that can prune.
func (s *stage) keeping(caller events.ID, retention time.Duration) *reaper.Beat {
	b := s.beatBy(caller)
	b.Store, b.Retention = s.store, retention
	return b
}

func TestTheLeaderPrunes(t *testing.T) {
	s := newOldStage(t)
	before := s.events()
	s.own = nil
	s.pass(45*time.Second, s.sweeper, s.holder)
	if got := step(s, s.keeping(s.sweeper, 0)); got.Pruned != (reaper.Pruned{}) {
		t.Fatalf("without a retention: %+v", got.Pruned)
	}
	leader := s.keeping(s.sweeper, 90*day)
	s.pass(time.Minute, s.sweeper, s.holder)
	got := step(s, leader)
	if !got.Leads || got.Pruned.Events != before || !got.Pruned.Done {
		t.Fatalf("%+v, want %d events to go", got, before)
	}
	for _, r := range s.kept() {
		if e, ok := r.Event.(*events.LogPruned); ok && (e.Term != got.Term || e.Decider != s.sweeper || e.By != "" || e.Retention != 90*day) {
			t.Errorf("recorded as %+v, under term %d", e, got.Term)
		}
	}
	s.pass(15*time.Second, s.sweeper, s.holder)
	if again := step(s, leader); again.Pruned != (reaper.Pruned{}) {
		t.Errorf("the next step: %+v", again.Pruned)
	}
}

// Whoever leads must not let go of what another worker of the store needs for longer.
func TestTheLongestRetentionOfTheWorkersCounts(t *testing.T) {
	for _, longer := range []time.Duration{100 * day, -time.Microsecond} {
		s := newOldStage(t)
		other := newID(t)
		operate := func(command fsm.WorkerCommand) {
			s.do(func(o calls.Origin) store.Call {
				return calls.OperateWorker(o, fsm.OperateWorker{Worker: other, Command: command})
			})
		}
		operate(fsm.StartWorker{Started: events.WorkerStarted{Retention: longer}})
		leader := s.keeping(s.sweeper, 90*day)
		s.own = nil
		s.pass(time.Minute, s.sweeper, s.holder, other)
		if got := step(s, leader); !got.Leads || got.Pruned.Events != 0 {
			t.Errorf("beside a worker that keeps %s: %+v", longer, got.Pruned)
		}
		operate(fsm.StopWorker{})
		s.pass(15*time.Second, s.sweeper, s.holder)
		if got := step(s, leader); got.Pruned.Events == 0 {
			t.Errorf("after it has stopped: %+v", got.Pruned)
		}
	}
}

// The beat waits until there is a day's worth of it, so that it does not tell of it at every step.
func TestTheBeatPrunesOnceADay(t *testing.T) {
	s := newStage(t, 1, 1)
	leader, began := s.keeping(s.sweeper, 90*day), s.now
	for s.now = s.now.Add(90 * day); s.now.Sub(began) < 91*day; s.now = s.now.Add(time.Hour) {
		s.own = nil
		s.pass(30*time.Second, s.sweeper, s.holder)
		got := step(s, leader)
		if due := s.now.Sub(began) > 90*day+90*day/100; due || got.Pruned.Events > 0 {
			if !due || got.Pruned.Events == 0 {
				t.Fatalf("%s after the first event: %+v", s.now.Sub(began), got.Pruned)
			}
			return
		}
	}
	t.Error("nothing went")
}

func TestWhoDoesNotLeadDoesNotPrune(t *testing.T) {
	s := newOldStage(t)
	s.own = nil
	s.pass(time.Minute, s.sweeper, s.holder)
	step(s, s.keeping(s.holder, 0)) // takes the lease
	before := s.events()
	if got := step(s, s.keeping(s.sweeper, 90*day)); got.Leads || got.Pruned != (reaper.Pruned{}) || s.events() != before {
		t.Errorf("%+v", got)
	}
}

// A clock that was set a year ahead makes a whole log look old. Before the process whose heartbeats show it has said so, nothing goes; after it, what
// is truly old.
func TestAClockSetAheadPrunesNothing(t *testing.T) {
	s := newStage(t, 3, 4)
	s.pass(2*time.Minute, s.sweeper, s.holder)
	leader := s.keeping(s.sweeper, 90*day)
	step(s, leader)
	before := s.events()
	from := s.now
	s.now = s.now.Add(365 * day)
	if got := step(s, leader); got.Pruned != (reaper.Pruned{}) {
		t.Fatalf("before its next heartbeat: %+v", got.Pruned)
	}
	s.beat(s.sweeper, s.holder)
	if got := step(s, leader); got.Pruned != (reaper.Pruned{}) {
		t.Fatalf("with its next heartbeat: %+v", got.Pruned)
	}
	s.do(func(o calls.Origin) store.Call {
		return calls.OperateClock(o, fsm.OperateClock{StepClock: fsm.StepClock{FromAt: from, ToAt: s.now, Worker: s.sweeper, Tolerance: time.Second}})
	})
	s.pass(time.Minute, s.sweeper, s.holder)
	if got := step(s, leader); got.Pruned.Events != 0 || !got.Pruned.Done || s.events() < before {
		t.Fatalf("once the step is known: %+v, %d events of %d", got.Pruned, s.events(), before)
	}
	s.now = s.now.Add(90 * day)
	s.own = nil
	s.pass(time.Minute, s.sweeper, s.holder)
	if got := step(s, leader); got.Pruned.Events < before {
		t.Errorf("90 days after the step: %+v, want the %d events before it to go", got.Pruned, before)
	}
}

// One step leaves the rest to the next, so that nothing else waits for it.
func TestOneStepPrunesSoMuchAndNoMore(t *testing.T) {
	s := newOldStage(t)
	for range 60 { // a commit each, too many for one page
		enqueue := fsm.Enqueue{Topics: map[string]fsm.TopicStart{"mail": {}}}
		for range 100 {
			enqueue.Drafts = append(enqueue.Drafts, fsm.Draft{ID: newID(t), EnqueueMessage: fsm.EnqueueMessage{Topic: "bulk"}})
		}
		s.do(func(o calls.Origin) store.Call {
			call, _ := calls.Enqueue(o, enqueue, make([]store.Payload, 100))
			return call
		})
	}
	s.now = s.now.Add(91 * day)
	s.own = nil
	s.pass(time.Minute, s.sweeper, s.holder)
	before, gone := s.events(), 0
	leader := s.keeping(s.sweeper, 90*day)
	leader.Life = time.Nanosecond // which leaves time for one commit
	for n := 1; ; n++ {
		got := step(s, leader)
		if gone += got.Pruned.Events; got.Pruned.Commits > 1 {
			t.Fatalf("step %d: %+v", n, got.Pruned)
		}
		if gone >= before {
			break
		}
		if n > 20 {
			t.Fatalf("%d of %d events are gone after %d steps", gone, before, n)
		}
	}
}
