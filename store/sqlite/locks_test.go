package sqlite_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/google/uuid"
)

// locking is the call that enqueues n messages of a topic which all take one lock.
func locking(topic, lock string, n int) store.Call {
	return lockingEach(topic, slices.Repeat([]string{lock}, n))
}

// lockingEach is the call that enqueues a message of a topic for each of some locks.
func lockingEach(topic string, locks []string) store.Call {
	c := fsm.Enqueue{Topics: map[string]fsm.TopicStart{topic: {}}}
	for _, lock := range locks {
		c.Drafts = append(c.Drafts, fsm.Draft{ID: uuid.Must(uuid.NewV7()), EnqueueMessage: fsm.EnqueueMessage{
			Topic: topic, Lock: lock, Payload: events.Facts{Commitment: events.Commitment([16]byte{}, nil)},
		}})
	}
	call, _ := calls.Enqueue(origin(), c, make([]store.Payload, len(locks)))
	return call
}

func claimingBy(worker events.ID, topic string, n int) store.Call {
	return calls.Claim(origin(), fsm.Claim{Worker: worker, Asks: []fsm.Ask{{Topic: topic, N: n}}})
}

// settling is the call that completes the messages of a worker's claimed rows and gives their permits back.
func settling(t testing.TB, worker events.ID, rows []store.Row) store.Call {
	t.Helper()
	call, err := settlingAll(worker, rows)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

func settlingAll(worker events.ID, rows []store.Row) (store.Call, error) {
	c := fsm.Settle{Sender: worker, Recordable: len(rows)}
	for _, row := range rows {
		m, err := calls.Message(row)
		if err != nil {
			return store.Call{}, err
		}
		c.Items = append(c.Items, fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: m.Token}, Permit: m.Permit()})
	}
	call, _ := calls.Settle(origin(), c, rows)
	return call, nil
}

// running is the rows of a receipt that are claimed.
func running(r store.Receipt) (rows []store.Row) {
	for _, row := range r.Rows {
		if row.Worker != (events.ID{}) {
			rows = append(rows, row)
		}
	}
	return rows
}

// permitsOf is the permits that pass a filter, and what could not be read.
func permitsOf(t *testing.T, s store.Store, f store.PermitFilter) (list []store.Permit, errs []error) {
	t.Helper()
	for p, err := range s.Permits(t.Context(), f) {
		if err != nil {
			errs = append(errs, err)
		} else {
			list = append(list, p)
		}
	}
	return list, errs
}

// rowsOf is the rows that pass a filter, and what could not be read.
func rowsOf(t *testing.T, s store.Store, f store.RowFilter) (list []store.Row, errs []error) {
	t.Helper()
	for row, err := range s.Rows(t.Context(), f) {
		if err != nil {
			errs = append(errs, err)
		} else {
			list = append(list, row)
		}
	}
	return list, errs
}

// One holder after the other has the lock, within one transaction and over many, whatever the transaction has written by then.
func TestLockGoesFromHandToHand(t *testing.T) {
	for _, together := range []int{1, 7} {
		s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
		const all = 20
		commit(t, s, locking("mail", "door", all))
		rows := running(commit(t, s, claimingBy(worker, "mail", all)))
		done := 0
		for len(rows) > 0 {
			if len(rows) != 1 {
				t.Fatalf("%d have the lock at once", len(rows))
			}
			// Nobody knows whom the next claim of the same transaction gives it to, so it is settled in the one after.
			list := []store.Call{settling(t, worker, rows), claimingBy(worker, "mail", all)}
			for range together {
				list = append(list, claimingBy(worker, "mail", all), enqueueing("other", 1))
			}
			receipts, err := s.Decide(t.Context(), list...)
			if err != nil {
				t.Fatal(err)
			}
			done += len(rows)
			rows = nil
			for _, r := range receipts {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
				if len(r.Rows) > 0 && r.Rows[0].Topic != "other" {
					rows = append(rows, running(r)...)
				}
			}
		}
		if done != all {
			t.Errorf("%d of %d had the lock", done, all)
		}
		if list, errs := rowsOf(t, s, store.RowFilter{Kind: events.KindLock}); len(list) > 0 || len(errs) > 0 {
			t.Errorf("the free lock has the rows %v, %v", list, errs)
		}
		clean(t, s)
	}
}

// A refusal has no version, so it is not what is left of a lock that rests.
func TestRefusedReleaseLeavesTheLockAsItWas(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	call, permit := calls.Acquire(origin(), fsm.Acquire{Lock: "door", Worker: worker})
	commit(t, s, call)
	commit(t, s, locking("mail", "door", 1))
	release := func() store.Call {
		call, _ := calls.Unlock(origin(), fsm.Unlock{Worker: worker, Permits: []fsm.PermitKey{permit.PermitKey}, Recordable: 1})
		return call
	}
	receipts, err := s.Decide(t.Context(), release(), release(), claiming("mail", 1), release())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []events.Type{events.TypeLockReleased, events.TypeLockRefused, events.TypeLockAcquired, events.TypeLockRefused} {
		if r := receipts[i]; r.Err != nil || len(r.Events) == 0 || r.Events[0].Event.Type() != want {
			t.Fatalf("call %d: %v, %v, want %s", i, r.Events, r.Err, want)
		}
	}
	commit(t, s, settling(t, worker, running(receipts[2])))
	commit(t, s, release())
	commit(t, s, locking("mail", "door", 1))
	if n := len(running(commit(t, s, claiming("mail", 1)))); n != 1 {
		t.Errorf("%d were granted", n)
	}
	clean(t, s)
}

// Who waits is seen by later calls of the transaction, whatever moved since.
func TestWaitersOfOneTransactionAreSeenInIt(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	commit(t, s, locking("mail", "door", 3))
	need := store.Need{Locks: []string{"door"}}
	var blocked, trying store.View
	receipts, err := s.Decide(t.Context(), claiming("mail", 2), enqueueing("other", 1), looking(need, &blocked))
	if err != nil {
		t.Fatal(err)
	}
	rows := running(receipts[0])
	if _, err = s.Decide(t.Context(), settling(t, worker, rows), enqueueing("other", 1), looking(need, &trying)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		view store.View
		want store.Waiting
	}{{blocked, store.Blocked}, {trying, store.Trying}} {
		if list := c.view.Waiting["door"]; len(list) != 1 || list[0].Waiting != c.want {
			t.Errorf("waiting: %v, want one that is %d", list, c.want)
		}
	}
}

// blockedBehind is a store in which workers hold one lock each and others wait for it: locks l0, l1, ... and topics t0, t1, ...
func blockedBehind(t *testing.T, locks, topics int) (s *sqlite.Store, path string, holders []events.ID) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	s = open(t, path, sqlite.Options{Synchronous: sqlite.SynchronousNormal})
	for l := range locks {
		lock := fmt.Sprintf("l%d", l)
		holder := uuid.Must(uuid.NewV7())
		holders = append(holders, holder)
		list := []store.Call{locking("first", lock, 1), claimingBy(holder, "first", 1)}
		for i := range topics {
			topic := fmt.Sprintf("t%d", i)
			list = append(list, locking(topic, lock, 3), claimingBy(holder, topic, 9))
		}
		receipts, err := s.Decide(t.Context(), list...)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range receipts {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	return s, path, holders
}

func TestSelectionsAcrossPages(t *testing.T) {
	const locks, topics = 300, 2
	s, _, holders := blockedBehind(t, locks, topics)
	waits, errs := rowsOf(t, s, store.RowFilter{Select: store.FirstWaits})
	if len(errs) > 0 || len(waits) != locks*topics {
		t.Fatalf("%d waits and errors %v, want %d", len(waits), errs, locks*topics)
	}
	seen := map[string]bool{}
	for i, row := range waits {
		seen[row.Lock+" "+row.Topic] = true
		if i > 0 && waits[i-1].Entity.Compare(row.Entity) >= 0 {
			t.Fatalf("%s follows %s", row.Entity, waits[i-1].Entity)
		}
		first := seenWaiting(t, s, row.Lock, row.Topic)
		if row.Waiting != store.Blocked || first != row.Entity {
			t.Fatalf("%s waits for %s in %s: %d, the first is %s", row.Entity, row.Lock, row.Topic, row.Waiting, first)
		}
	}
	if len(seen) != locks*topics {
		t.Errorf("%d locks and topics, want %d", len(seen), locks*topics)
	}
	claims, errs := rowsOf(t, s, store.RowFilter{Select: store.FirstClaims, Payloads: true})
	if len(errs) > 0 || len(claims) != locks {
		t.Fatalf("%d claims and errors %v, want %d", len(claims), errs, locks)
	}
	for _, row := range claims {
		if !slices.Contains(holders, row.Worker) || row.Payload == nil {
			t.Errorf("row %+v", row)
		}
	}
	if list, _ := rowsOf(t, s, store.RowFilter{Select: store.FirstClaims, Entities: []events.Entity{claims[3].Entity, waits[0].Entity}}); len(list) != 1 {
		t.Errorf("%d of one that is named, and one that has no claim", len(list))
	}
	if list, errs := rowsOf(t, s, store.RowFilter{Select: store.FirstClaims, Kind: events.KindTopic}); len(list)+len(errs) > 0 {
		t.Errorf("topics %v, %v", list, errs)
	}
	permits, errs := permitsOf(t, s, store.PermitFilter{})
	if len(errs) > 0 || len(permits) != locks || !slices.IsSortedFunc(permits, func(a, b store.Permit) int { return strings.Compare(a.Lock, b.Lock) }) {
		t.Errorf("%d permits and errors %v, want %d by their locks", len(permits), errs, locks)
	}
	if _, errs := rowsOf(t, s, store.RowFilter{Select: 9}); len(errs) != 1 {
		t.Errorf("errors %v of a selection that nobody knows", errs)
	}
}

// seenWaiting is the first blocked message of a topic as a call sees it.
func seenWaiting(t *testing.T, s store.Store, lock, topic string) (first events.Entity) {
	t.Helper()
	for _, row := range seen(t, s, store.Need{Locks: []string{lock}}).Waiting[lock] {
		if row.Topic == topic && row.Waiting == store.Blocked {
			first = row.Entity
		}
	}
	return first
}

func TestManyPermitsOfALockAcrossPages(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{Synchronous: sqlite.SynchronousNormal})
	const n = 700
	commit(t, s, calls.OperateLock(origin(), fsm.OperateLock{Lock: "big", ConfigureLock: fsm.ConfigureLock{Permits: n}}))
	var acquiring []store.Call
	for i := range n {
		call, _ := calls.Acquire(origin(), fsm.Acquire{Lock: "big", Worker: worker, TTL: time.Duration(i%3) * time.Hour})
		acquiring = append(acquiring, call)
	}
	receipts, err := s.Decide(t.Context(), acquiring...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range receipts {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	soon := time.Now().Add(90 * time.Minute)
	for _, c := range []struct {
		filter store.PermitFilter
		want   int
	}{
		{store.PermitFilter{}, n},
		{store.PermitFilter{Lock: "big"}, n},
		{store.PermitFilter{Worker: worker}, n},
		{store.PermitFilter{Worker: worker, Lock: "big", ExpiredAt: soon}, 233},
		{store.PermitFilter{ExpiredAt: soon}, 233},
		{store.PermitFilter{ExpiredAt: soon, Lock: "small"}, 0},
	} {
		list, errs := permitsOf(t, s, c.filter)
		if len(errs) > 0 || len(list) != c.want {
			t.Errorf("%+v: %d permits and errors %v, want %d", c.filter, len(list), errs, c.want)
		}
		for i := 1; i < len(list); i++ {
			if list[i].Token <= list[i-1].Token {
				t.Fatalf("%+v: permit %d follows %d", c.filter, list[i].Token, list[i-1].Token)
			}
		}
	}
	view := seen(t, s, store.Need{Holders: []store.LockPage{{Lock: "big", N: 500}}})
	expiring := 0
	for _, p := range view.Permits {
		if !p.ExpiresAt.IsZero() {
			expiring++
		}
	}
	if len(view.Permits) != 500 || expiring != 466 {
		t.Errorf("%d permits, %d of which expire: want 500 and all 466", len(view.Permits), expiring)
	}
}

func TestFreedLockWakesOtherProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, other := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	commit(t, other, locking("mail", "door", 1))
	rows := running(commit(t, other, claimingBy(worker, "mail", 1)))
	commit(t, other, locking("press", "door", 1))
	commit(t, other, claimingBy(worker, "press", 1)) // is blocked
	woken := map[string]<-chan struct{}{}
	for name, watching := range map[string]*sqlite.Store{"the process that freed it": other, "another": s} {
		hints, stop := watching.Watch([]string{"press"})
		defer stop()
		woken[name] = hints
	}
	commit(t, other, settling(t, worker, rows))
	for name, hints := range woken {
		select {
		case <-hints:
		case <-time.After(patience):
			t.Errorf("no hint for %s", name)
		}
	}
	if got := running(commit(t, s, claimingBy(worker, "press", 1))); len(got) != 1 {
		t.Errorf("%d were granted", len(got))
	}
}

// wholeLocks ends the test unless log, rows and permits agree, every claim has its permit, and no lock that is free has waiters who do not
// try.
func wholeLocks(t *testing.T, s store.Store) {
	t.Helper()
	clean(t, s)
	permits, errs := permitsOf(t, s, store.PermitFilter{})
	out := map[string]int{}
	for _, p := range permits {
		out[p.Lock]++
	}
	rows, more := rowsOf(t, s, store.RowFilter{Kind: events.KindMessage})
	if errs = append(errs, more...); len(errs) > 0 {
		t.Fatal(errs)
	}
	trying := map[string]bool{}
	for _, row := range rows {
		if row.LockToken != 0 {
			out[row.Lock]--
		}
		if row.Waiting == store.Trying {
			trying[row.Lock+" "+row.Topic] = true
		}
	}
	for lock, n := range out {
		if n != 0 {
			t.Fatalf("lock %s: %d more permits than claims", lock, n)
		}
	}
	for _, row := range rows {
		if _, held := out[row.Lock]; row.Waiting == store.Blocked && !held && !trying[row.Lock+" "+row.Topic] {
			t.Fatalf("%s waits for %s, which is free, and nobody of its topic is sent to try", row.Entity, row.Lock)
		}
	}
}
