package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/faulty"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/goleak"
)

// putting is the call that makes a topic known, whatever it sees.
func putting(topic string) store.Call {
	id, err := uuid.NewV7()
	if err != nil {
		panic(err)
	}
	change := store.Change{
		Row:         store.Row{Entity: events.TopicEntity(topic), Version: 1, State: events.Active, Fields: []byte("{}")},
		Transitions: []events.Transition{{Event: &events.TopicConfigured{}, Version: 1, To: events.Active}},
	}
	return store.Call{ID: id, Command: events.Command{Name: "put"}, Fn: func(store.View) (store.Changes, error) {
		return store.Changes{Rows: []store.Change{change}}, nil
	}}
}

// topics is the topics of a log, in order.
func topics(t *testing.T, s store.Store) []string {
	t.Helper()
	var list []string
	for r, err := range s.Read(t.Context(), "", store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r.Entity.Name)
	}
	return list
}

func wantTopics(t *testing.T, s store.Store, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, topics(t, s)); diff != "" {
		t.Errorf("topics in the log: (-want +got)\n%s", diff)
	}
}

func put(t *testing.T, s store.Store, topic string) {
	t.Helper()
	if receipts, err := s.Decide(t.Context(), putting(topic)); err != nil || receipts[0].Err != nil {
		t.Fatalf("put %s: %+v, %v", topic, receipts, err)
	}
}

// hold has n permits of a lock taken.
func hold(t *testing.T, s store.Store, n int) {
	t.Helper()
	call := putting("holders")
	fn := call.Fn
	call.Fn = func(view store.View) (store.Changes, error) {
		changes, err := fn(view)
		for i := range n {
			changes.Permits = append(changes.Permits, store.PermitChange{Permit: store.Permit{
				PermitKey: store.PermitKey{Lock: "lock", Token: events.Token(i + 1)}, Worker: uuid.New(), AcquiredAt: view.Now,
			}})
		}
		return changes, err
	}
	if receipts, err := s.Decide(t.Context(), call); err != nil || receipts[0].Err != nil {
		t.Fatalf("hold: %+v, %v", receipts, err)
	}
}

func TestFaultsOfDecide(t *testing.T) {
	for _, test := range []struct {
		fault     faulty.Fault
		errs      []error
		not       error
		committed bool
	}{
		{faulty.Fail, []error{faulty.ErrPlanned}, store.ErrUnknown, false},
		{faulty.LostBefore, []error{faulty.ErrPlanned, store.ErrUnknown}, store.ErrClosed, false},
		{faulty.LostAfter, []error{faulty.ErrPlanned, store.ErrUnknown}, store.ErrClosed, true},
		{faulty.Late, []error{faulty.ErrPlanned, store.ErrUnknown}, store.ErrClosed, false},
		{faulty.StopBefore, []error{faulty.ErrStopped, store.ErrClosed}, store.ErrUnknown, false},
		{faulty.StopAfter, []error{faulty.ErrStopped, store.ErrClosed, store.ErrUnknown}, faulty.ErrPlanned, true},
	} {
		t.Run(test.fault.String(), func(t *testing.T) {
			inner := memory.New(memory.Options{})
			s := faulty.New(inner, faulty.At(2, test.fault))
			put(t, s, "first")
			receipts, err := s.Decide(t.Context(), putting("a"), putting("b"))
			for _, want := range test.errs {
				if !errors.Is(err, want) || receipts != nil {
					t.Errorf("receipts %v, error %v, want %v", receipts, err, want)
				}
			}
			if errors.Is(err, test.not) {
				t.Errorf("error %v is %v", err, test.not)
			}
			want := []string{"first", "a", "b"}
			if !test.committed {
				want = want[:1]
			}
			wantTopics(t, inner, want...)
			if s.Calls() != 2 || s.CallsOf(faulty.Decide) != 2 {
				t.Errorf("%d calls were counted, %d of them Decide, want 2", s.Calls(), s.CallsOf(faulty.Decide))
			}
		})
	}
}

func TestTwiceThrowsTheFirstResultAway(t *testing.T) {
	s := faulty.New(memory.New(memory.Options{}), faulty.At(2, faulty.Twice))
	put(t, s, "there")
	call := putting("a")
	fn, rows := call.Fn, []int{}
	call.Need.Held = []events.Entity{events.TopicEntity("there")}
	call.Fn = func(view store.View) (store.Changes, error) {
		if rows = append(rows, len(view.Rows)); len(view.Rows) == 0 {
			return store.Changes{}, errors.New("the first result")
		}
		return fn(view)
	}
	receipts, err := s.Decide(t.Context(), call)
	if err != nil || receipts[0].Err != nil {
		t.Fatalf("receipts %+v, error %v", receipts, err)
	}
	if diff := cmp.Diff([]int{0, 1}, rows); diff != "" {
		t.Errorf("rows that Fn saw: (-want +got)\n%s", diff)
	}
	wantTopics(t, s, "there", "a")
}

func TestTwiceRunsATurnOverNoLeaseFirst(t *testing.T) {
	leaser, ok := store.As[store.Leaser](faulty.New(memory.New(memory.Options{}), faulty.At(2, faulty.Twice)))
	if !ok {
		t.Fatal("the leaser is out of reach")
	}
	worker := uuid.New()
	if _, err := leaser.Lease(t.Context(), "beat", taking(uuid.New())); err != nil {
		t.Fatal(err)
	}
	var terms []int
	lease, err := leaser.Lease(t.Context(), "beat", func(l store.Lease, now time.Time) store.Lease {
		terms = append(terms, l.Term)
		return taking(worker)(l, now)
	})
	if err != nil || lease.Holder != worker || lease.Term != 2 {
		t.Errorf("lease %+v, error %v, want the second term of %s", lease, err, worker)
	}
	if diff := cmp.Diff([]int{0, 1}, terms); diff != "" {
		t.Errorf("terms that the turn saw: (-want +got)\n%s", diff)
	}
}

// Whoever lost the answer may hold the lease all the same: the next one to look knows.
func TestLostAnswerOfALease(t *testing.T) {
	for _, test := range []struct {
		fault faulty.Fault
		term  int
	}{{faulty.Fail, 0}, {faulty.LostBefore, 0}, {faulty.StopBefore, 0}, {faulty.LostAfter, 1}, {faulty.StopAfter, 1}} {
		inner := memory.New(memory.Options{})
		leaser, _ := store.As[store.Leaser](faulty.New(inner, faulty.At(1, test.fault)))
		if lease, err := leaser.Lease(t.Context(), "beat", taking(uuid.New())); err == nil || lease != (store.Lease{}) {
			t.Errorf("%s: lease %+v, error %v", test.fault, lease, err)
		}
		kept, err := inner.Lease(t.Context(), "beat", func(l store.Lease, _ time.Time) store.Lease { return l })
		if err != nil || kept.Term != test.term {
			t.Errorf("%s: kept %+v, error %v, want term %d", test.fault, kept, err, test.term)
		}
	}
}

// Whoever lost the answer may have saved the checkpoint all the same: who saves it again is told that it has moved.
func TestLostAnswerOfASave(t *testing.T) {
	c := store.Checkpoint{CheckpointKey: store.CheckpointKey{Name: "totals", Version: 1, Sequence: 1}, View: []byte("view")}
	for _, test := range []struct {
		fault faulty.Fault
		kept  int
		again error
	}{
		{faulty.Fail, 0, nil}, {faulty.LostBefore, 0, nil}, {faulty.StopBefore, 0, faulty.ErrStopped},
		{faulty.LostAfter, 1, store.ErrMoved}, {faulty.StopAfter, 1, faulty.ErrStopped},
	} {
		inner := memory.New(memory.Options{})
		shelf, ok := store.As[store.Shelf](faulty.New(inner, faulty.At(1, test.fault)))
		if !ok {
			t.Fatal("the shelf is out of reach")
		}
		if _, err := shelf.Save(t.Context(), c); err == nil {
			t.Errorf("%s: no error", test.fault)
		}
		if list, err := inner.Checkpoints(t.Context(), store.CheckpointFilter{}); err != nil || len(list) != test.kept {
			t.Errorf("%s: kept %v, error %v, want %d", test.fault, list, err, test.kept)
		}
		if _, err := shelf.Save(t.Context(), c); !errors.Is(err, test.again) {
			t.Errorf("%s: saved again: error %v, want %v", test.fault, err, test.again)
		}
	}
}

// A call that comes late finds its id given up. Where Outcome said that it was not committed, that stays so.
func TestLateComesAfterItWasSettled(t *testing.T) {
	inner := memory.New(memory.Options{})
	s := faulty.New(inner, faulty.At(1, faulty.Late))
	call, ran := putting("late"), 0
	fn := call.Fn
	call.Fn = func(view store.View) (store.Changes, error) {
		ran++
		return fn(view)
	}
	if _, err := s.Decide(t.Context(), call); !errors.Is(err, store.ErrUnknown) {
		t.Fatal(err)
	}
	for range 2 {
		if _, committed, err := s.Outcome(t.Context(), call.ID); committed || err != nil {
			t.Fatalf("outcome: committed %t, error %v", committed, err)
		}
	}
	receipts, err := s.Decide(t.Context(), call)
	if err != nil || !errors.Is(receipts[0].Err, store.ErrVoid) || ran > 0 {
		t.Errorf("receipts %+v, error %v, Fn ran %d times", receipts, err, ran)
	}
	wantTopics(t, inner)
}

func TestLateReachesAStoreThatForgotToVoid(t *testing.T) {
	inner := memory.New(memory.Options{})
	s := faulty.New(forgetful{inner}, faulty.At(1, faulty.Late))
	call := putting("late")
	if _, err := s.Decide(t.Context(), call); !errors.Is(err, store.ErrUnknown) {
		t.Fatal(err)
	}
	if _, committed, err := s.Outcome(t.Context(), call.ID); committed || err != nil {
		t.Fatalf("outcome: committed %t, error %v", committed, err)
	}
	wantTopics(t, inner, "late")
}

// forgetful is a store whose Outcome is not final.
type forgetful struct{ store.Store }

func (forgetful) Outcome(_ context.Context, id store.CommitID) (store.Receipt, bool, error) {
	return store.Receipt{ID: id}, false, nil
}

func TestStoppedStoreAnswersNobody(t *testing.T) {
	for _, fault := range []faulty.Fault{faulty.StopBefore, faulty.StopAfter} {
		inner := memory.New(memory.Options{})
		s := faulty.New(inner, faulty.At(2, fault))
		put(t, s, "a")
		if s.Stopped() {
			t.Error("stopped before its time")
		}
		if _, err := s.Head(t.Context()); !errors.Is(err, faulty.ErrStopped) || !s.Stopped() {
			t.Errorf("%s: stopped %t, error %v", fault, s.Stopped(), err)
		}
		for op, err := range everyCall(t, s) {
			if !errors.Is(err, faulty.ErrStopped) || !errors.Is(err, store.ErrClosed) {
				t.Errorf("%s after %s: error %v, want %v", op, fault, err, faulty.ErrStopped)
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		put(t, inner, "b") // the next process goes on
		wantTopics(t, inner, "a", "b")
	}
}

// everyCall is the error of each operation.
func everyCall(t *testing.T, s store.Store) map[faulty.Op]error {
	ctx, all := t.Context(), map[faulty.Op]error{}
	heart, _ := store.As[store.Heart](s)
	leaser, _ := store.As[store.Leaser](s)
	pruner, _ := store.As[store.Pruner](s)
	shelf, _ := store.As[store.Shelf](s)
	key := store.CheckpointKey{Name: "totals", Version: 1, Sequence: 1}
	w := uuid.New()
	_, all[faulty.Decide] = s.Decide(ctx, putting("x"))
	_, _, all[faulty.Outcome] = s.Outcome(ctx, putting("x").ID)
	_, all[faulty.Head] = s.Head(ctx)
	_, all[faulty.Now] = s.Now(ctx)
	_, all[faulty.Beat] = heart.Beat(ctx, store.Beat{Worker: w, First: true, Interval: time.Second})
	_, all[faulty.Beats] = heart.Beats(ctx)
	all[faulty.Still] = heart.Still(ctx, w)
	_, all[faulty.Lease] = leaser.Lease(ctx, "beat", taking(w))
	_, all[faulty.Contents] = s.Contents(ctx, w)
	_, all[faulty.FirstKept] = pruner.First(ctx)
	_, all[faulty.Save] = shelf.Save(ctx, store.Checkpoint{CheckpointKey: key})
	_, all[faulty.Checkpoints] = shelf.Checkpoints(ctx, store.CheckpointFilter{})
	_, all[faulty.View] = shelf.View(ctx, key)
	all[faulty.Drop] = shelf.Drop(ctx, key)
	for _, err := range s.Read(ctx, "", store.Filter{}) {
		all[faulty.Read] = errors.Join(all[faulty.Read], err)
	}
	for _, err := range s.Rows(ctx, store.RowFilter{}) {
		all[faulty.Rows] = errors.Join(all[faulty.Rows], err)
	}
	for _, err := range s.Permits(ctx, store.PermitFilter{}) {
		all[faulty.Permits] = errors.Join(all[faulty.Permits], err)
	}
	return all
}

// taking is the turn by which a worker takes a lease, whoever had it.
func taking(worker events.ID) func(store.Lease, time.Time) store.Lease {
	return func(l store.Lease, now time.Time) store.Lease {
		return store.Lease{Holder: worker, Term: l.Term + 1, UntilAt: now.Add(time.Second), Life: time.Second}
	}
}

// Every call counts once, and each fault befalls what it says.
func TestFaultsOfEveryOperation(t *testing.T) {
	lasting := []faulty.Op{faulty.Decide, faulty.Outcome, faulty.Beat, faulty.Still, faulty.Lease, faulty.Save, faulty.Drop}
	pages := []faulty.Op{faulty.Read, faulty.Rows, faulty.Permits}
	for fault, befalls := range map[faulty.Fault]func(faulty.Op) bool{
		faulty.None:       func(faulty.Op) bool { return false },
		faulty.Fail:       func(faulty.Op) bool { return true },
		faulty.LostBefore: func(op faulty.Op) bool { return slices.Contains(lasting, op) },
		faulty.LostAfter:  func(op faulty.Op) bool { return slices.Contains(lasting, op) },
		faulty.Late:       func(op faulty.Op) bool { return op == faulty.Decide },
		faulty.Twice:      func(faulty.Op) bool { return false },
		faulty.BreakOff:   func(op faulty.Op) bool { return slices.Contains(pages, op) },
		faulty.LoseHint:   func(faulty.Op) bool { return false },
	} {
		inner := memory.New(memory.Options{})
		put(t, inner, "a")
		put(t, inner, "b")
		hold(t, inner, 2)
		s := faulty.New(inner, faulty.Every(1, fault))
		all := everyCall(t, s)
		for op, err := range all {
			if errors.Is(err, faulty.ErrPlanned) != befalls(op) {
				t.Errorf("%s: fault %q: error %v", op, fault, err)
			}
			if s.CallsOf(op) != 1 {
				t.Errorf("%s: fault %q: counted %d times", op, fault, s.CallsOf(op))
			}
		}
		if s.Calls() != len(all) {
			t.Errorf("fault %q: %d calls were counted, want %d", fault, s.Calls(), len(all))
		}
	}
}

func TestLostAnswerOfOutcomeIsFinalAllTheSame(t *testing.T) {
	s := faulty.New(memory.New(memory.Options{}), faulty.At(1, faulty.LostAfter))
	call := putting("a")
	if _, _, err := s.Outcome(t.Context(), call.ID); !errors.Is(err, faulty.ErrPlanned) {
		t.Fatal(err)
	}
	if receipts, err := s.Decide(t.Context(), call); err != nil || !errors.Is(receipts[0].Err, store.ErrVoid) {
		t.Errorf("receipts %+v, error %v", receipts, err)
	}
}

func TestReadBreaksOffInMidPage(t *testing.T) {
	inner := memory.New(memory.Options{})
	for _, topic := range []string{"a", "b", "c"} {
		put(t, inner, topic)
	}
	s := faulty.New(inner, faulty.Only(faulty.Read, faulty.First(2, faulty.BreakOff)))
	var read []string
	var after store.Cursor
	broken := 0
	for range 3 {
		for r, err := range s.Read(t.Context(), after, store.Filter{}) {
			if errors.Is(err, faulty.ErrPlanned) {
				broken++
				continue
			}
			read, after = append(read, r.Entity.Name), s.After(r)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, read); diff != "" || broken != 2 {
		t.Errorf("broke off %d times, want 2; read: (-want +got)\n%s", broken, diff)
	}
}

func TestReadEndsWithItsStore(t *testing.T) {
	inner := memory.New(memory.Options{})
	put(t, inner, "a")
	put(t, inner, "b")
	s := faulty.New(inner, faulty.Only(faulty.Head, faulty.At(1, faulty.StopBefore)))
	read := 0
	var last error
	for _, err := range s.Read(t.Context(), "", store.Filter{}) {
		if last = err; err == nil {
			read++
			_, _ = s.Head(t.Context()) // another goroutine's call
		}
	}
	if read != 1 || !errors.Is(last, faulty.ErrStopped) {
		t.Errorf("%d events were read, error %v", read, last)
	}
}

func TestReadThatIsLeftEarlyStopsTheStore(t *testing.T) {
	inner := memory.New(memory.Options{})
	put(t, inner, "a")
	put(t, inner, "b")
	s := faulty.New(inner, faulty.At(1, faulty.StopAfter))
	for _, err := range s.Read(t.Context(), "", store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if !s.Stopped() {
		t.Error("the store goes on")
	}
}

// A caller that settles what it cannot tell, and tries under a new id what was not committed, commits everything once.
func TestOutcomeSettlesEveryLostAnswer(t *testing.T) {
	const writers, each = 4, 60
	inner := memory.New(memory.Options{})
	s := faulty.New(inner, faulty.Random(7, faulty.Rates{
		faulty.LostBefore: .15, faulty.LostAfter: .15, faulty.Late: .15, faulty.Twice: .1, faulty.Fail: .1,
	}))
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := settle(t.Context(), s, fmt.Sprintf("%d/%d", w, i)); err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	list := topics(t, inner)
	slices.Sort(list)
	if n := len(slices.Compact(slices.Clone(list))); n != writers*each || n != len(list) {
		t.Errorf("%d commits of %d topics, want %d of each", len(list), n, writers*each)
	}
}

// settle puts a topic for good.
func settle(ctx context.Context, s store.Store, topic string) error {
	for range attempts {
		call := putting(topic)
		receipts, err := s.Decide(ctx, call)
		if err == nil {
			return receipts[0].Err
		}
		if !errors.Is(err, store.ErrUnknown) {
			continue
		}
		if _, committed, err := outcome(ctx, s, call.ID); committed || err != nil {
			return err
		}
	}
	return errors.New("no answer")
}

func TestPowersHaveTheSameFaults(t *testing.T) {
	inner := memory.New(memory.Options{})
	s := store.Batch(faulty.New(inner, faulty.Only(faulty.Beat, faulty.First(1, faulty.Fail))))
	heart, ok := store.As[store.Heart](s)
	if !ok {
		t.Fatal("the heart is out of reach")
	}
	beat := store.Beat{Worker: uuid.New(), First: true}
	if _, err := heart.Beat(t.Context(), beat); !errors.Is(err, faulty.ErrPlanned) {
		t.Errorf("first beat: error %v", err)
	}
	if _, err := heart.Beat(t.Context(), beat); err != nil {
		t.Errorf("second beat: %v", err)
	}
	if _, ok := store.As[store.ProcessWatcher](s); ok {
		t.Error("a power was found that the engine does not have")
	}
	if _, ok := store.As[store.Waiter](faulty.New(plain{inner}, faulty.Never)); ok {
		t.Error("a hint was promised for an engine that has none")
	}
	if engine, ok := store.As[*memory.Store](s); !ok || engine != inner {
		t.Error("the engine behind the faults is out of reach")
	}
}

// plain is a store without powers.
type plain struct{ store.Store }

func TestHintsAreLostOneByOne(t *testing.T) {
	defer goleak.VerifyNone(t)
	lost := make(chan faulty.Call, 1)
	s := faulty.New(memory.New(memory.Options{}), faulty.Only(faulty.Hint, func(c faulty.Call) faulty.Fault {
		if c.N == 1 {
			lost <- c
			return faulty.LoseHint
		}
		return faulty.None
	}))
	waiter, _ := store.As[store.Waiter](s)
	hints, stop := waiter.Watch([]string{"a"})
	put(t, s, "a")
	<-lost
	select {
	case <-hints:
		t.Error("a hint that was lost came through")
	default:
	}
	put(t, s, "b")
	<-hints
	stop()
	stop()
	if s.Calls() != 2 || s.CallsOf(faulty.Hint) != 2 {
		t.Errorf("%d calls and %d hints were counted, want 2 and 2", s.Calls(), s.CallsOf(faulty.Hint))
	}
}

// watched is a store that knows who attested.
type watched struct {
	store.Store
	meanwhile func() // what happens while it attests

	mu   sync.Mutex
	held map[events.ID]bool
}

func (w *watched) Attest(_ context.Context, worker events.ID) (func() error, error) {
	w.set(worker, true)
	if w.meanwhile != nil {
		w.meanwhile()
	}
	return func() error { w.set(worker, false); return nil }, nil
}

func (w *watched) set(worker events.ID, held bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[worker] = held
}

func (w *watched) Gone(_ context.Context, workers ...events.ID) (gone []events.ID, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, worker := range workers {
		if held, known := w.held[worker]; known && !held {
			gone = append(gone, worker)
		}
	}
	return gone, nil
}

// The kernel lets go of what a process held, however it ends.
func TestStopLetsGoOfProofs(t *testing.T) {
	inner := &watched{Store: memory.New(memory.Options{}), held: map[events.ID]bool{}}
	s := faulty.New(inner, faulty.At(4, faulty.StopBefore))
	watcher, ok := store.As[store.ProcessWatcher](s)
	if !ok {
		t.Fatal("the process watcher is out of reach")
	}
	left, held := uuid.New(), uuid.New()
	release, err := watcher.Attest(t.Context(), left)
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if gone, err := watcher.Gone(t.Context(), left); err != nil || !slices.Equal(gone, []events.ID{left}) {
		t.Errorf("gone: %v, error %v, want %s", gone, err, left)
	}
	inner.set(left, true) // taken up by somebody else, from whom a stop must not take it
	keep, err := watcher.Attest(t.Context(), held)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watcher.Gone(t.Context(), held); !errors.Is(err, faulty.ErrStopped) {
		t.Fatalf("gone: error %v", err)
	}
	if gone, _ := inner.Gone(t.Context(), left, held); !slices.Equal(gone, []events.ID{held}) {
		t.Errorf("gone after the stop: %v, want %s", gone, held)
	}
	inner.set(held, true)
	if err := keep(); err != nil || !inner.held[held] {
		t.Errorf("a release after the stop: held %t, error %v", inner.held[held], err)
	}
	if _, err := watcher.Attest(t.Context(), uuid.New()); !errors.Is(err, faulty.ErrStopped) {
		t.Errorf("attest after the stop: error %v", err)
	}
}

func TestStopLetsGoOfAProofThatIsOnItsWay(t *testing.T) {
	inner := &watched{Store: memory.New(memory.Options{}), held: map[events.ID]bool{}}
	s := faulty.New(inner, faulty.Only(faulty.Head, faulty.At(1, faulty.StopBefore)))
	inner.meanwhile = func() { _, _ = s.Head(t.Context()) }
	watcher, _ := store.As[store.ProcessWatcher](s)
	worker := uuid.New()
	release, err := watcher.Attest(t.Context(), worker)
	if release != nil || !errors.Is(err, faulty.ErrStopped) || inner.held[worker] {
		t.Errorf("held %t, error %v", inner.held[worker], err)
	}
}

// patchy is a store with a row that cannot be read before one that can.
type patchy struct{ store.Store }

func (patchy) Rows(context.Context, store.RowFilter) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		_ = yield(store.Row{}, &events.Corrupt{Entity: events.TopicEntity("a")}) && yield(store.Row{Entity: events.TopicEntity("b")}, nil)
	}
}

func TestErrorsOfTheStoreEndNoWalk(t *testing.T) {
	s := faulty.New(patchy{memory.New(memory.Options{})}, func(faulty.Call) faulty.Fault { return faulty.None })
	var rows, errs int
	for _, err := range s.Rows(t.Context(), store.RowFilter{}) {
		if rows++; err != nil {
			errs++
		}
	}
	if rows != 2 || errs != 1 {
		t.Errorf("yielded %d times with %d errors, want 2 and 1", rows, errs)
	}
}
