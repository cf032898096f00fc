package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/google/uuid"
)

func removeAll(paths ...string) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(errs...)
}

// campaign is the turn of a candidate for a minute's lease.
func campaign(worker events.ID, term int) func(store.Lease, time.Time) store.Lease {
	return func(l store.Lease, now time.Time) store.Lease {
		return store.Lease(fsm.Lease(l).Campaign(fsm.Candidate{Worker: worker, Term: term, Life: time.Minute}, now))
	}
}

func TestOneOfManyProcessesHasTheLease(t *testing.T) {
	path := made(t)
	const each = 30
	stores := make([]*sqlite.Store, 4)
	terms := make([][]int, len(stores))
	var racing sync.WaitGroup
	for i := range stores {
		stores[i] = open(t, path, sqlite.Options{})
		racing.Go(func() {
			for range each { // each turn ends the lease of whoever has it, so every one is a new term
				lease, err := stores[i].Lease(t.Context(), fsm.Beat, func(l store.Lease, now time.Time) store.Lease {
					l.UntilAt = now
					return campaign(worker, 0)(l, now)
				})
				if err != nil {
					t.Error(err)
				}
				terms[i] = append(terms[i], lease.Term)
			}
		})
	}
	racing.Wait()
	seen := map[int]bool{}
	for _, list := range terms {
		for _, term := range list {
			if seen[term] {
				t.Fatalf("term %d was given twice", term)
			}
			seen[term] = true
		}
	}
	if len(seen) != each*len(stores) || !seen[1] || !seen[each*len(stores)] {
		t.Errorf("%d terms, want 1 to %d", len(seen), each*len(stores))
	}
}

func TestLeaseIsReadAsItWasGiven(t *testing.T) {
	path := made(t)
	s, other := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	look := func(l store.Lease, _ time.Time) store.Lease { return l }
	if lease, err := s.Lease(t.Context(), fsm.Beat, look); err != nil || lease != (store.Lease{}) {
		t.Errorf("lease %+v, %v before anybody had it", lease, err)
	}
	given, err := s.Lease(t.Context(), fsm.Beat, func(store.Lease, time.Time) store.Lease {
		at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600))
		return store.Lease{Holder: worker, Term: 7, UntilAt: at, Life: 1500*time.Nanosecond + time.Second, SweptAt: at.Add(time.Hour)}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []*sqlite.Store{s, other} {
		if read, err := by.Lease(t.Context(), fsm.Beat, look); err != nil || read != given || read.Term != 7 || read.Holder != worker {
			t.Errorf("read %+v, %v, want %+v", read, err, given)
		}
	}
	if lease, err := s.Lease(t.Context(), "another", look); err != nil || lease != (store.Lease{}) {
		t.Errorf("another lease %+v, %v", lease, err)
	}
}

// A turn that panics must not keep the file of heartbeats locked for everybody.
func TestLeaseOfATurnThatPanicsIsLetGo(t *testing.T) {
	s := open(t, made(t), sqlite.Options{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_, _ = s.Lease(t.Context(), fsm.Beat, func(store.Lease, time.Time) store.Lease { panic("turn") })
	}()
	if _, err := s.Lease(t.Context(), fsm.Beat, campaign(worker, 0)); err != nil {
		t.Error(err)
	}
	if _, err := s.Beat(t.Context(), store.Beat{Worker: worker, First: true, Interval: time.Second}); err != nil {
		t.Error(err)
	}
}

// A process that is stopped while it writes to the file of heartbeats keeps others from writing, not from reading, and nobody waits for it
// beyond his context.
func TestWhoCannotHaveTheLeaseDoesNotWaitForEver(t *testing.T) {
	path := made(t)
	s := open(t, path, sqlite.Options{})
	if _, err := s.Beat(t.Context(), store.Beat{Worker: worker, First: true, Interval: time.Second}); err != nil {
		t.Fatal(err)
	}
	stopped := raw(t, path+"-beats")
	do(t, stopped, "BEGIN IMMEDIATE")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if lease, err := s.Lease(ctx, fsm.Beat, campaign(worker, 0)); !errors.Is(err, context.DeadlineExceeded) || lease != (store.Lease{}) {
		t.Errorf("lease %+v, error %v, want %v", lease, err, context.DeadlineExceeded)
	}
	beating := make(chan error, 1)
	go func() {
		_, err := s.Beat(t.Context(), store.Beat{Worker: worker, Interval: time.Second})
		beating <- err
	}()
	if list, err := s.Beats(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("beats %v, %v", list, err)
	}
	if view := seen(t, s, store.Need{Beats: []events.ID{worker}}); len(view.Beats) != 1 {
		t.Errorf("a call sees the heartbeats %v", view.Beats)
	}
	do(t, stopped, "ROLLBACK")
	if err := <-beating; err != nil {
		t.Error(err)
	}
	if _, err := s.Lease(t.Context(), fsm.Beat, campaign(worker, 0)); err != nil {
		t.Error(err)
	}
}

// seen is what a call with this need sees.
func seen(t *testing.T, s store.Store, need store.Need) (view store.View) {
	t.Helper()
	commit(t, s, looking(need, &view))
	return view
}

// looking is a call that changes nothing.
func looking(need store.Need, view *store.View) store.Call {
	return store.Call{ID: origin().ID, Need: need, Fn: func(v store.View) (store.Changes, error) {
		*view = v
		return store.Changes{}, nil
	}}
}

func TestDamagedLeaseIsNobodys(t *testing.T) {
	for _, set := range []string{"term = -1", "holder = x'01'", "life = -1"} {
		path := made(t)
		s := open(t, path, sqlite.Options{})
		if _, err := s.Lease(t.Context(), fsm.Beat, campaign(worker, 0)); err != nil {
			t.Fatal(err)
		}
		tamper(t, path+"-beats", "UPDATE leases SET "+set)
		lease, err := s.Lease(t.Context(), fsm.Beat, campaign(worker, 1))
		if c := corrupt(t, err); c.Entity != events.LeaderEntity(fsm.Beat) || lease != (store.Lease{}) {
			t.Errorf("%s: lease %+v, error %v", set, lease, err)
		}
	}
}

func TestDamagedHeartbeatHidesNoOther(t *testing.T) {
	for _, set := range []string{"interval = -1", "fence_after = -5", "worker = x'01'"} {
		path := made(t)
		s := open(t, path, sqlite.Options{})
		bad, good := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
		for _, id := range []events.ID{bad, good} {
			if _, err := s.Beat(t.Context(), store.Beat{Worker: id, First: true, Interval: time.Second}); err != nil {
				t.Fatal(err)
			}
		}
		tamper(t, path+"-beats", fmt.Sprintf("UPDATE beats SET %s WHERE worker = x'%x'", set, bad[:]))
		list, err := s.Beats(t.Context())
		c := corrupt(t, err)
		if len(list) != 1 || list[0].Worker != good {
			t.Errorf("%s: beats %v, want that of %s", set, list, good)
		}
		if set == "worker = x'01'" {
			continue // nobody's name is left
		}
		if c.Entity != events.WorkerEntity(bad) {
			t.Errorf("%s: error %v, want one that names %s", set, err, bad)
		}
		var view store.View
		receipts, err := s.Decide(t.Context(), looking(store.Need{Beats: []events.ID{bad, good}}, &view),
			looking(store.Need{Claims: []store.Holder{{Worker: bad, N: 1}}}, &view), enqueueing("mail", 1),
			looking(store.Need{Beats: []events.ID{good}}, &view))
		if err != nil {
			t.Fatal(err)
		}
		for i, refused := range []bool{true, true, false, false} {
			if (receipts[i].Err != nil) != refused {
				t.Errorf("%s: call %d: error %v", set, i, receipts[i].Err)
			}
		}
		if corrupt(t, receipts[0].Err); len(view.Beats) != 1 || view.Beats[good].Worker != good {
			t.Errorf("%s: the last call sees %v", set, view.Beats)
		}
	}
}

// Who beats into a file that was set aside is seen by nobody, and must be told so that it ends what it does, and begins anew in the file that
// others look at.
func TestHeartbeatsThatOthersSetAsideConfirmNothing(t *testing.T) {
	path := made(t)
	s := open(t, path, sqlite.Options{})
	beat := store.Beat{Worker: worker, First: true, Interval: time.Second}
	if _, err := s.Beat(t.Context(), beat); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(path+"-beats", path+"-beats.damaged"), removeAll(path+"-beats-wal", path+"-beats-shm")); err != nil {
		t.Fatal(err)
	}
	other := open(t, path, sqlite.Options{})
	if list, err := other.Beats(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("beats %v, %v", list, err)
	}
	if list, err := s.Beats(t.Context()); err == nil {
		t.Errorf("beats %v of a file that nobody writes to", list)
	}
	if lease, err := s.Lease(t.Context(), fsm.Beat, campaign(worker, 0)); err == nil {
		t.Errorf("lease %+v of a file that nobody looks at", lease)
	}
	var view store.View
	receipts, err := s.Decide(t.Context(), looking(store.Need{Beats: []events.ID{worker}}, &view), enqueueing("mail", 1))
	if err != nil || receipts[0].Err == nil || receipts[1].Err != nil {
		t.Errorf("receipts %v, %v: want the one that asked for heartbeats refused", receipts, err)
	}
	if _, err := s.Beat(t.Context(), store.Beat{Worker: worker, Interval: time.Second}); !errors.Is(err, store.ErrNotBeating) {
		t.Errorf("a heartbeat of one whose row was set aside: %v", err)
	}
	if _, err := s.Beat(t.Context(), beat); err != nil {
		t.Errorf("its first heartbeat in the new file: %v", err)
	}
	if list, err := other.Beats(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("the other sees %v, %v", list, err)
	}
}

// A heartbeat that is newer than the time at which it is judged would be taken for one from before the clock was set back, and its worker
// for dead.
func TestHeartbeatsAreNoNewerThanTheTimeTheyAreSeenAt(t *testing.T) {
	path := made(t)
	other := open(t, path, sqlite.Options{})
	s := open(t, path, sqlite.Options{Clock: func() time.Time {
		now := time.Now()
		if _, err := other.Beat(context.Background(), store.Beat{Worker: worker, First: true, Interval: time.Second}); err != nil {
			t.Error(err)
		}
		return now
	}})
	for _, need := range []store.Need{{Beats: []events.ID{worker}}, {Claims: []store.Holder{{Worker: worker, N: 1}}}} {
		for range 10 {
			view := seen(t, s, need)
			if at := view.Beats[worker].At; at.IsZero() || at.After(view.Now) {
				t.Fatalf("a heartbeat of %s is seen at %s", at, view.Now)
			}
		}
	}
}
