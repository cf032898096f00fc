package replay_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
)

// alter is an alteration of a copy of an event of one type; others are left alone.
func alter[E any, P interface {
	*E
	events.Event
}](change func(P)) func(*events.Recorded) bool {
	return func(r *events.Recorded) bool {
		e, ok := r.Event.(P)
		if !ok {
			return false
		}
		changed := *e
		change(&changed)
		r.Event = P(&changed)
		return true
	}
}

// become makes another event of one of a type.
func become[P events.Event](change func(P) events.Event) func(*events.Recorded) bool {
	return func(r *events.Recorded) bool {
		e, ok := r.Event.(P)
		if ok {
			r.Event = change(e)
		}
		return ok
	}
}

// Each fact that an event of a lock records, and each that others record of locks, is compared with what the rules lead to.
func TestVerifyFindsAlteredEventsOfLocks(t *testing.T) {
	const never = events.Token(1 << 40)
	h := busy(t, 14, 800)
	log := logOf(t, h.Store)
	for name, test := range map[string]struct {
		alter  func(*events.Recorded) bool
		detail string
	}{
		"acquired: token":         {alter(func(e *events.LockAcquired) { e.Token = 0 }), "its token is 0, an earlier permit"},
		"acquired: held":          {alter(func(e *events.LockAcquired) { e.Held++ }), "are recorded as out, it is number"},
		"released: token":         {alter(func(e *events.LockReleased) { e.Token = never }), "which is not out"},
		"released: held":          {alter(func(e *events.LockReleased) { e.Held++ }), "are recorded as out, it leaves"},
		"reclaimed: token":        {alter(func(e *events.LockReclaimed) { e.Token = never }), "which is not out"},
		"force_released: token":   {alter(func(e *events.LockForceReleased) { e.Token = never }), "which is not out"},
		"expired: token":          {alter(func(e *events.LockExpired) { e.Token = never }), "which is not out"},
		"orphaned: token":         {alter(func(e *events.LockOrphaned) { e.Token = never }), "is not out"},
		"orphaned: claimer":       {alter(func(e *events.LockOrphaned) { e.Evidence.Claimer = events.ID{1} }), "is gone, permit"},
		"blocked: lock":           {alter(func(e *events.MessageBlocked) { e.Lock = "x" }), `lock "x" is recorded`},
		"unblocked: lock":         {alter(func(e *events.MessageUnblocked) { e.Lock = "x" }), `lock "x" is recorded`},
		"discarded: lock":         {alter(func(e *events.MessageDiscarded) { e.Lock = "x" }), `lock "x" is recorded`},
		"claimed: permit":         {alter(func(e *events.MessageClaimed) { e.LockToken += never }), "permit 1099511627"},
		"elected: term":           {alter(func(e *events.LeaderElected) { e.Term = 0 }), "its term is 0"},
		"lost leader: term":       {alter(func(e *events.LeaderLost) { e.Term += 5 }), "led under"},
		"resigned leader: worker": {alter(func(e *events.LeaderResigned) { e.Worker = events.ID{1} }), "led under"},
		"a release becomes a take-back": {become(func(e *events.LockReleased) events.Event {
			return &events.LockReclaimed{Token: e.Token, Held: e.Held}
		}), "that its holder is gone is false"},
		"a take-back becomes a release": {become(func(e *events.LockReclaimed) events.Event {
			return &events.LockReleased{Token: e.Token, Held: e.Held}
		}), "that its holder is gone is true"},
		"state that a refused release met": {func(r *events.Recorded) bool {
			_, ok := r.Event.(*events.LockRefused)
			r.From, r.To = events.Absent, events.Absent
			return ok
		}, "from none to none is recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			for i := range log {
				bad := log[i]
				if !test.alter(&bad) {
					continue
				}
				altered := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
					list[i] = bad
					return list
				}}
				report := verify(t, altered, replay.Options{})
				found(t, report, replay.Violation{Entity: bad.Entity, Version: bad.Version, Position: bad.Position, Detail: test.detail})
				if len(report.Violations) != 1 {
					t.Errorf("one fault is told %d times:\n%s", len(report.Violations), texts(report))
				}
				if tried++; tried == 2 {
					break
				}
			}
			if tried == 0 {
				t.Error("the history has no event to alter so")
			}
		})
	}
}

// Each column of each permit that is kept is compared, and so is that it is there.
func TestVerifyFindsAlteredPermits(t *testing.T) {
	h := busy(t, 22, 400)
	permits, err := collect(h.Store.Permits(t.Context(), store.PermitFilter{}))
	if err != nil || len(permits) < 2 {
		t.Fatalf("%d permits are out, %v", len(permits), err)
	}
	one := func(change func(*store.Permit)) func([]store.Permit, int) []store.Permit {
		return func(list []store.Permit, i int) []store.Permit {
			change(&list[i])
			return list
		}
	}
	for name, test := range map[string]struct {
		alter  func([]store.Permit, int) []store.Permit
		detail string
	}{
		"worker":   {one(func(p *store.Permit) { p.Worker[0]++ }), "worker: "},
		"message":  {one(func(p *store.Permit) { p.Message[0]++ }), "message: "},
		"acquired": {one(func(p *store.Permit) { p.AcquiredAt = p.AcquiredAt.Add(time.Microsecond) }), "acquired: "},
		"expires":  {one(func(p *store.Permit) { p.ExpiresAt = p.AcquiredAt.Add(time.Microsecond) }), "expires: "},
		"missing":  {func(list []store.Permit, i int) []store.Permit { return slices.Delete(list, i, i+1) }, "is not kept"},
		"twice":    {func(list []store.Permit, i int) []store.Permit { return append(list, list[i]) }, "it is kept twice"},
		"surplus": {func(list []store.Permit, i int) []store.Permit {
			more := list[i]
			more.Token = 1 << 40
			return append(list, more)
		}, "permit 1099511627776: it is kept, and the log has it not out"},
	} {
		t.Run(name, func(t *testing.T) {
			for i, p := range permits {
				report := verify(t, damaged{Store: h.Store, permits: func(list []store.Permit) []store.Permit { return test.alter(list, i) }}, replay.Options{})
				if len(report.Violations) != 1 || report.Violations[0].Entity != events.LockEntity(p.Lock) || report.Violations[0].Version == 0 ||
					!strings.Contains(report.Violations[0].Detail, test.detail) {
					t.Errorf("permit %d of %q, want one violation with %q, found:\n%s", p.Token, p.Lock, test.detail, texts(report))
				}
			}
		})
	}
}

// holding is a store in which a session holds the lock and two messages of a topic wait for it.
func holding(t *testing.T) (h *history.History, session fsm.Permit, waiters []events.ID) {
	t.Helper()
	h = history.New(func(int) int { return 0 })
	session, err := h.Acquire(h.ID(), "gate", 0)
	if err != nil {
		t.Fatal(err)
	}
	waiters, err = h.Enqueue("mail", 2, fsm.EnqueueMessage{Lock: "gate"})
	if err != nil {
		t.Fatal(err)
	}
	if granted, err := h.Claim(h.ID(), "mail", 2); err != nil || len(granted) != 0 {
		t.Fatalf("%d messages were granted while their lock is taken, %v", len(granted), err)
	}
	if report := verify(t, h.Store, replay.Options{}); !report.Clean() {
		t.Fatalf("violations:\n%s", texts(report))
	}
	return h, session, waiters
}

// A rule that frees a lock and tells nobody is found, and repaired by level it is gone.
func TestVerifyFindsWaitersOnAFreeLock(t *testing.T) {
	h, session, waiters := holding(t)
	call, _ := calls.Unlock(calls.Origin{ID: h.ID()}, fsm.Unlock{Worker: session.Worker, Permits: []fsm.PermitKey{session.PermitKey}})
	decide := call.Fn
	call.Fn = func(view store.View) (store.Changes, error) {
		changes, err := decide(view)
		changes.Rows = slices.DeleteFunc(changes.Rows, func(c store.Change) bool { return c.Row.Entity.Kind == events.KindMessage })
		return changes, err
	}
	if _, err := h.Do(call); err != nil {
		t.Fatal(err)
	}
	report := verify(t, h.Store, replay.Options{})
	found(t, report, replay.Violation{
		Entity: events.MessageEntity(waiters[0]), Version: 2, Detail: `it is blocked, its lock "gate" has a free permit, and nobody of its topic tries`,
	})
	if len(report.Violations) != 1 {
		t.Errorf("one idle lock is told %d times:\n%s", len(report.Violations), texts(report))
	}
	if _, err := h.Do(calls.RepairLock(calls.Origin{ID: h.ID()}, fsm.RepairLock{Lock: "gate"})); err != nil {
		t.Fatal(err)
	}
	if report := verify(t, h.Store, replay.Options{}); !report.Clean() {
		t.Errorf("repaired, and still violations:\n%s", texts(report))
	}
}

// The log is made to say that the lock had another number of permits than it had.
func TestVerifyFindsWhatTheNumberOfPermitsForbids(t *testing.T) {
	for name, test := range map[string]struct {
		permits, said int
		do            func(h *history.History, p fsm.Permit) error
		detail        string
	}{
		"more are out than it has": {2, 1, func(h *history.History, p fsm.Permit) error {
			_, err := h.Acquire(p.Worker, "gate", 0)
			return err
		}, "it is permit number 2 of a lock that has 1"},
		"blocked though one was free": {1, 3, func(h *history.History, p fsm.Permit) error {
			if _, err := h.Enqueue("mail", 1, fsm.EnqueueMessage{Lock: "gate"}); err != nil {
				return err
			}
			_, err := h.Claim(p.Worker, "mail", 1)
			return err
		}, `lock "gate" has a free permit`},
		"discarded though one was free": {1, 3, func(h *history.History, p fsm.Permit) error {
			if _, err := h.Enqueue("mail", 1, fsm.EnqueueMessage{Lock: "gate", OnLocked: events.SkipIfLocked}); err != nil {
				return err
			}
			_, err := h.Claim(p.Worker, "mail", 1)
			return err
		}, `lock "gate" has a free permit`},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.New(func(int) int { return 0 })
			// Twice, so that there is an event to alter whatever the number is.
			for _, n := range []int{test.permits + 1, test.permits} {
				if err := h.Permits("gate", n); err != nil {
					t.Fatal(err)
				}
			}
			p, err := h.Acquire(h.ID(), "gate", 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := test.do(h, p); err != nil {
				t.Fatal(err)
			}
			if report := verify(t, h.Store, replay.Options{}); !report.Clean() {
				t.Fatalf("violations:\n%s", texts(report))
			}
			report := verify(t, damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
				list[1].Event = &events.LockConfigured{Permits: test.said}
				return list
			}}, replay.Options{})
			if !strings.Contains(texts(report), test.detail) {
				t.Errorf("%q is not found:\n%s", test.detail, texts(report))
			}
		})
	}
}

// Whoever is unblocked while nothing is free, waits although he should not, or is discarded although he waits, is found.
func TestVerifyFindsWaitersThatBreakTheirRule(t *testing.T) {
	h, _, waiters := holding(t)
	if err := h.Permits("gate", 2); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		alter  func([]events.Recorded) []events.Recorded
		detail string
	}{
		"unblocked though none was free": {func(list []events.Recorded) []events.Recorded {
			for i, r := range list {
				if _, ok := r.Event.(*events.LockConfigured); ok {
					list[i].Event = &events.LockConfigured{Permits: 1}
				}
			}
			return list
		}, `message.unblocked: lock "gate" has no free permit`},
		"blocked though it does not wait": {func(list []events.Recorded) []events.Recorded {
			for i, r := range list {
				if e, ok := r.Event.(*events.MessageEnqueued); ok {
					skips := *e
					skips.OnLocked = events.SkipIfLocked
					list[i].Event = &skips
				}
			}
			return list
		}, "message.blocked: it was claimed 0 times, and its policy is skip"},
		"discarded though it waits": {func(list []events.Recorded) []events.Recorded {
			for i, r := range list {
				if _, ok := r.Event.(*events.MessageBlocked); ok && r.Entity.ID == waiters[0] {
					list[i].Event, list[i].To = &events.MessageDiscarded{Reason: events.ReasonLockTaken, Lock: "gate"}, events.Discarded
				}
			}
			return list
		}, "message.discarded: it was claimed 0 times, and its policy is wait"},
	} {
		t.Run(name, func(t *testing.T) {
			report := verify(t, damaged{Store: h.Store, log: test.alter}, replay.Options{})
			if !strings.Contains(texts(report), test.detail) {
				t.Errorf("%q is not found:\n%s", test.detail, texts(report))
			}
		})
	}
}

// locked is a store in which a worker's claim holds the lock.
func locked(t *testing.T) (h *history.History, m fsm.Message) {
	t.Helper()
	h = history.New(func(int) int { return 0 })
	if _, err := h.Enqueue("mail", 1, fsm.EnqueueMessage{Lock: "gate"}); err != nil {
		t.Fatal(err)
	}
	worker := h.ID()
	if _, err := h.Store.Beat(t.Context(), store.Beat{Worker: worker, First: true, Interval: time.Second}); err != nil {
		t.Fatal(err)
	}
	rows, err := h.Claim(worker, "mail", 1)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d claims, %v", len(rows), err)
	}
	if m, err = calls.Message(rows[0]); err != nil {
		t.Fatal(err)
	}
	return h, m
}

// A worker that brings a result and keeps the lock is found: its handler has ended.
func TestVerifyFindsALockThatOutlivesItsHandler(t *testing.T) {
	for name, command := range map[string]fsm.MessageCommand{
		"completed": fsm.CompleteMessage{Token: 3}, "failed": fsm.FailMessage{Token: 3}, "dead-lettered": fsm.DeadLetterMessage{Token: 3},
		"released": fsm.ReleaseMessage{Token: 3, Reason: events.ReasonReleased}, "cancelled": fsm.CancelMessage{Token: 3},
	} {
		t.Run(name, func(t *testing.T) {
			h, m := locked(t)
			command := withToken(command, m.Token)
			if err := h.Settle(m.Worker, fsm.Settlement{ID: m.ID, Command: command}); err != nil { // without its permit
				t.Fatal(err)
			}
			report := verify(t, h.Store, replay.Options{})
			found(t, report, replay.Violation{Entity: events.LockEntity("gate"), Version: 1, Detail: "although its worker ended the claim"})
			if len(report.Violations) != 1 {
				t.Errorf("violations:\n%s", texts(report))
			}
		})
	}
}

// withToken is the command with the token of a claim.
func withToken(c fsm.MessageCommand, token events.Token) fsm.MessageCommand {
	switch c := c.(type) {
	case fsm.CompleteMessage:
		c.Token = token
		return c
	case fsm.FailMessage:
		c.Token = token
		return c
	case fsm.DeadLetterMessage:
		c.Token = token
		return c
	case fsm.ReleaseMessage:
		c.Token = token
		return c
	case fsm.CancelMessage:
		c.Token = token
		return c
	}
	return c
}

// A claim that was ended from outside leaves its lock with its worker, which lives, until its handler has ended. That is as it should be.
func TestVerifyAllowsALockWhoseHandlerWasNotToldYet(t *testing.T) {
	for name, command := range map[string]fsm.MessageCommand{"cancel": fsm.CancelMessage{By: "ann"}, "take-back": fsm.TakeBackMessage{By: "ann"}} {
		t.Run(name, func(t *testing.T) {
			h, m := locked(t)
			if err := h.Operate(fsm.Operate{IDs: []events.ID{m.ID}, Command: command, Force: fsm.Forced, After: time.Minute}); err != nil {
				t.Fatal(err)
			}
			for _, want := range []int{1, 0} {
				report := verify(t, h.Store, replay.Options{})
				if !report.Clean() || report.Permits != want {
					t.Errorf("%d permits, want %d, violations:\n%s", report.Permits, want, texts(report))
				}
				late := fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: m.Token}, Permit: m.Permit()}
				if err := h.Settle(m.Worker, late); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A claim whose permit another has, or that another commit took, is found.
func TestVerifyFindsAClaimWithoutItsLock(t *testing.T) {
	h, m := locked(t)
	for detail, change := range map[string]func(*events.Recorded){
		"is that of worker": func(r *events.Recorded) {
			if e, ok := r.Event.(*events.LockAcquired); ok {
				other := *e
				other.Worker = events.ID{1}
				r.Event = &other
			}
		},
		"was not taken by the same commit": func(r *events.Recorded) {
			commit := *r.Commit
			if commit.Count = 1; r.Entity.Kind == events.KindLock {
				commit.ID = events.ID{1}
			}
			r.Commit = &commit
		},
		`permit 0 is recorded, its lock is "gate"`: func(r *events.Recorded) {
			if e, ok := r.Event.(*events.MessageClaimed); ok {
				without := *e
				without.LockToken = 0
				r.Event = &without
			}
		},
		"a claim took it, and it has an end of its own": func(r *events.Recorded) {
			if e, ok := r.Event.(*events.LockAcquired); ok {
				ending := *e
				ending.ExpiresAt = h.Now()
				r.Event = &ending
			}
		},
		`whose lock is "press"`: func(r *events.Recorded) {
			if e, ok := r.Event.(*events.MessageEnqueued); ok {
				other := *e
				other.Lock = "press"
				r.Event = &other
			}
		},
	} {
		report := verify(t, damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
			for i := range list {
				if list[i].Entity.Kind == events.KindLock || list[i].Entity.ID == m.ID {
					change(&list[i])
				}
			}
			return list
		}}, replay.Options{})
		if !strings.Contains(texts(report), detail) {
			t.Errorf("%q is not found:\n%s", detail, texts(report))
		}
	}
}

// A release that was refused although the sender has the permit is found, and so is one of a lock that the log does not know.
func TestVerifyFindsReleasesRefusedWrongly(t *testing.T) {
	h, m := locked(t)
	stranger := fsm.PermitKey{Lock: "gate", Token: m.LockToken}
	if err := h.Unlock(h.ID(), stranger); err != nil {
		t.Fatal(err)
	}
	for detail, change := range map[string]func(*events.Recorded, *events.LockRefused){
		"is out, and is the sender's": func(_ *events.Recorded, e *events.LockRefused) { e.Sender = m.Worker },
		"the log does not know it":    func(r *events.Recorded, _ *events.LockRefused) { r.Entity = events.LockEntity("other") },
		"it was held": func(r *events.Recorded, _ *events.LockRefused) {
			r.From, r.To = events.Free, events.Free
		},
	} {
		report := verify(t, damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
			for i, r := range list {
				if e, ok := r.Event.(*events.LockRefused); ok {
					changed := *e
					list[i].Event = &changed
					change(&list[i], &changed)
				}
			}
			return list
		}}, replay.Options{})
		if len(report.Violations) != 1 || !strings.Contains(texts(report), detail) {
			t.Errorf("%q is not found once:\n%s", detail, texts(report))
		}
	}
}

// An end by time is found where the permit had no time, or where it was not over.
func TestVerifyFindsAPermitThatEndsBeforeItsTime(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Hour} {
		h := history.New(func(int) int { return 0 })
		p, err := h.Acquire(h.ID(), "gate", ttl)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Unlock(p.Worker, p.PermitKey); err != nil {
			t.Fatal(err)
		}
		report := verify(t, damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
			list[1].Event = &events.LockExpired{Token: p.Token}
			return list
		}}, replay.Options{})
		found(t, report, replay.Violation{Entity: events.LockEntity("gate"), Version: 2, Position: 2, Detail: "its time is not over"})
	}
}

// A permit whose holder was found gone, and that nobody took back, is found although its lock goes on.
func TestVerifyFindsAnOrphanedPermitThatStays(t *testing.T) {
	h := history.New(func(int) int { return 0 })
	p, err := h.Acquire(h.ID(), "gate", 0)
	if err != nil {
		t.Fatal(err)
	}
	report := verify(t, damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
		orphaned := list[0]
		orphaned.Position, orphaned.Version, orphaned.From = 2, 2, events.Held
		orphaned.Event = &events.LockOrphaned{Token: p.Token, Evidence: events.Evidence{Claimer: p.Worker}}
		return append(list, orphaned)
	}}, replay.Options{})
	found(t, report, replay.Violation{Entity: events.LockEntity("gate"), Position: 2, Version: 2, Detail: "was not taken back"})
}

// A permit that cannot be read is told, those behind it are compared, and it is not told to be missing as well.
func TestVerifyTellsPermitsThatCannotBeRead(t *testing.T) {
	h := history.New(func(int) int { return 0 })
	worker := h.ID()
	for _, lock := range []string{"gate", "press"} {
		if _, err := h.Acquire(worker, lock, 0); err != nil {
			t.Fatal(err)
		}
	}
	bad := &events.Corrupt{Entity: events.LockEntity("gate"), Detail: "checksum 00000001 is stored"}
	report := verify(t, illegible{h.Store, bad}, replay.Options{})
	found(t, report, replay.Violation{Entity: bad.Entity, Version: 1, Position: 1, Detail: bad.Detail})
	if len(report.Violations) != 1 || report.Permits != 1 {
		t.Errorf("%d permits were compared, violations:\n%s", report.Permits, texts(report))
	}
	gone := errors.New("gone")
	if _, err := replay.Verify(t.Context(), illegible{h.Store, gone}, replay.Options{}); !errors.Is(err, gone) {
		t.Errorf("Verify gives %v, want %v", err, gone)
	}
}

// illegible is a store whose first permit cannot be read.
type illegible struct {
	store.Store
	err error
}

// Permits implements store.Store.
func (i illegible) Permits(ctx context.Context, f store.PermitFilter) iter.Seq2[store.Permit, error] {
	return func(yield func(store.Permit, error) bool) {
		err := i.err
		for p, failed := range i.Store.Permits(ctx, f) {
			if err == nil {
				err = failed
			}
			if !yield(p, err) {
				return
			}
			err = nil
		}
	}
}
