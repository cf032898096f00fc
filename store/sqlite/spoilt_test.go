package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/google/uuid"
)

// spoilLock is what may befall a lock so that it cannot be read any more: that of a held one befalls its row, that of one that rests its
// newest event.
func spoilLock(lock string) map[string][]string {
	event := "UPDATE events SET %s WHERE position = (SELECT max(position) FROM events WHERE stream = 'lock/" + lock + "')"
	return map[string][]string{
		"held": {
			"UPDATE locks SET state = 300 WHERE name = '" + lock + "'", "UPDATE locks SET version = 0 WHERE name = '" + lock + "'",
		},
		"resting": {fmt.Sprintf(event, "checksum = checksum + 1"), fmt.Sprintf(event, "body = x'00'"), fmt.Sprintf(event, "type = 70000")},
	}
}

func TestIllegibleLockStopsNothingBesideIt(t *testing.T) {
	for state, statements := range spoilLock("bad") {
		for _, statement := range statements {
			t.Run(state+" "+statement, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "store.db")
				s := open(t, path, sqlite.Options{})
				holder := uuid.Must(uuid.NewV7())
				for _, lock := range []string{"bad", "good"} {
					commit(t, s, locking("first", lock, 1))
				}
				rows := running(commit(t, s, claimingBy(holder, "first", 2)))
				if state == "resting" {
					commit(t, s, settling(t, holder, rows))
				}
				commit(t, s, locking("mail", "bad", 100))
				commit(t, s, enqueueing("mail", 2))
				commit(t, s, locking("mail", "fine", 1))
				tamper(t, path, statement)

				if got := running(commit(t, s, claiming("mail", 3))); len(got) != 3 {
					t.Errorf("%d were granted behind those of the bad lock, want 3", len(got))
				}
				var view store.View
				receipts, err := s.Decide(t.Context(), looking(store.Need{Locks: []string{"good", "bad"}}, &view), looking(store.Need{Locks: []string{"good"}}, &view))
				if err != nil || receipts[1].Err != nil {
					t.Fatalf("%v, %v", err, receipts)
				}
				if c := corrupt(t, receipts[0].Err); c.Entity != events.LockEntity("bad") {
					t.Errorf("%v, want one that names the lock", c)
				}
				if state == "held" {
					leavesTheRest(t, s, holder)
				}
				report, err := replay.Verify(t.Context(), s, replay.Options{Violations: 1000})
				if err != nil || report.Clean() {
					t.Errorf("verify: %v, %v", report, err)
				}
			})
		}
	}
}

// leavesTheRest ends the test unless the holder of a bad and of a good lock gives back what can be read.
func leavesTheRest(t *testing.T, s store.Store, holder events.ID) {
	t.Helper()
	view := seen(t, s, store.Need{Claims: []store.Holder{{Worker: holder, N: 9}}})
	if len(view.Claims[holder]) != 2 || len(view.Permits) != 1 || view.Permits[0].Lock != "good" {
		t.Errorf("claims %v, permits %v: want both claims, and the permit of the good lock", view.Claims, view.Permits)
	}
	bad := 0
	rows, errs := rowsOf(t, s, store.RowFilter{Kind: events.KindLock})
	for _, err := range errs {
		if corrupt(t, err).Entity == events.LockEntity("bad") {
			bad++
		}
	}
	if bad != 1 || len(rows) != 2 || len(errs) != 1 {
		t.Errorf("rows %v, errors %v", rows, errs)
	}
	stop := fsm.StopWorker{}
	commit(t, s, calls.OperateWorker(origin(), fsm.OperateWorker{Worker: holder, Command: fsm.StartWorker{}}))
	commit(t, s, calls.OperateWorker(origin(), fsm.OperateWorker{Worker: holder, Command: stop}))
	list, _ := permitsOf(t, s, store.PermitFilter{Worker: holder})
	if len(list) != 1 || list[0].Lock != "bad" {
		t.Errorf("permits %v, want that of the bad lock alone", list)
	}
}

func TestIllegiblePermitStopsNothingBesideIt(t *testing.T) {
	for _, set := range []string{"worker = x'01'", "message = x''"} {
		t.Run(set, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			s := open(t, path, sqlite.Options{})
			commit(t, s, locking("mail", "bad", 1))
			commit(t, s, locking("mail", "good", 1))
			rows := running(commit(t, s, claiming("mail", 2)))
			keys := map[string]store.PermitKey{}
			for _, row := range rows {
				keys[row.Lock] = store.PermitKey{Lock: row.Lock, Token: row.LockToken}
			}
			tamper(t, path, "UPDATE permits SET "+set+" WHERE lock = 'bad'")

			var named, estate, holders store.View
			receipts, err := s.Decide(t.Context(), looking(store.Need{Permits: []store.PermitKey{keys["bad"], keys["good"]}}, &named),
				looking(store.Need{Claims: []store.Holder{{Worker: worker, N: 9}}}, &estate),
				looking(store.Need{Holders: []store.LockPage{{Lock: "bad", N: 1}, {Lock: "good", N: 1}}}, &holders))
			if err != nil || receipts[1].Err != nil || receipts[2].Err != nil {
				t.Fatalf("%v, %v", err, receipts)
			}
			if c := corrupt(t, receipts[0].Err); c.Entity != events.LockEntity("bad") {
				t.Errorf("%v, want one that names the lock", c)
			}
			for what, view := range map[string]store.View{"estate": estate, "holders": holders} {
				if len(view.Permits) != 1 || view.Permits[0].PermitKey != keys["good"] {
					t.Errorf("%s: permits %v, want the good one", what, view.Permits)
				}
			}
			list, errs := permitsOf(t, s, store.PermitFilter{})
			if len(list) != 1 || list[0].PermitKey != keys["good"] || len(errs) != 1 || corrupt(t, errs[0]).Entity != events.LockEntity("bad") {
				t.Errorf("permits %v, errors %v", list, errs)
			}
			back := store.PermitChange{Permit: store.Permit{PermitKey: keys["bad"], Worker: worker}, Back: true}
			receipts, err = s.Decide(t.Context(), store.Call{ID: origin().ID, Fn: func(store.View) (store.Changes, error) {
				change := store.Change{Row: store.Row{Entity: events.TopicEntity("t"), Version: 1, State: events.Active}}
				change.Transitions = []events.Transition{{Event: &events.TopicPaused{}, Version: 1, To: events.Active}}
				return store.Changes{Rows: []store.Change{change}, Permits: []store.PermitChange{back}}, nil
			}}, enqueueing("other", 1))
			if err != nil || receipts[1].Err != nil {
				t.Fatalf("%v, %v", err, receipts)
			}
			corrupt(t, receipts[0].Err)
		})
	}
}

// The first who waits may be illegible: the next one of its topic is sent to try, or nobody ever is.
func TestIllegibleWaiterHidesNobody(t *testing.T) {
	for _, set := range []string{"state = 300", "version = 0", "id = x'01'", "worker = x'01'"} {
		t.Run(set, func(t *testing.T) {
			s, path, _ := blockedBehind(t, 2, 2)
			first := seenWaiting(t, s, "l0", "t1")
			tamper(t, path, fmt.Sprintf("UPDATE messages SET %s WHERE id = x'%x'", set, first.ID[:]))
			next := seenWaiting(t, s, "l0", "t1")
			if next == first || next == (events.Entity{}) {
				t.Errorf("%s stands behind %s", next, first)
			}
			waits, errs := rowsOf(t, s, store.RowFilter{Select: store.FirstWaits})
			found := false
			for _, row := range waits {
				found = found || row.Entity == next
			}
			if len(waits) != 4 || !found || len(errs) != 1 {
				t.Errorf("waits %v, errors %v: want four with %s, and one error", waits, errs, next)
			}
			corrupt(t, errors.Join(errs...))
		})
	}
}

func TestIllegibleClaimHidesNoHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{})
	commit(t, s, enqueueing("mail", 30))
	holders := map[events.ID]bool{}
	for range 3 {
		holder := uuid.Must(uuid.NewV7())
		holders[holder] = true
		commit(t, s, claimingBy(holder, "mail", 10))
	}
	tamper(t, path, "UPDATE messages SET state = 300 WHERE place IN (SELECT m.place FROM messages m WHERE"+
		" (SELECT count(*) FROM messages o WHERE o.worker = m.worker AND o.id < m.id) < 4)") // the first four of each
	claims, errs := rowsOf(t, s, store.RowFilter{Select: store.FirstClaims})
	for _, row := range claims {
		delete(holders, row.Worker)
	}
	if len(claims) != 3 || len(holders) != 0 || len(errs) != 3 {
		t.Errorf("%d claims, errors %v, not found: %v", len(claims), errs, holders)
	}
	for _, err := range errs {
		if c := corrupt(t, err); c.Entity == (events.Entity{}) {
			t.Errorf("%v names nobody", err)
		}
	}
}

// The newest event of a lock that is held may be gone: its row tells whose it was.
func TestMissingEventIsThatOfItsLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{})
	call, _ := calls.Acquire(origin(), fsm.Acquire{Lock: "door", Worker: worker})
	at := commit(t, s, call).Events[0].Position
	commit(t, s, enqueueing("mail", 1))
	tamper(t, path, fmt.Sprintf("DELETE FROM events WHERE position = %d", at))
	var err error
	for _, err = range s.Read(t.Context(), "", store.Filter{}) {
		if err != nil {
			break
		}
	}
	if c := corrupt(t, err); c.Entity != events.LockEntity("door") || c.Version != 1 || c.Position != at {
		t.Errorf("%v, want one that names version 1 of the lock", c)
	}
}
