package replay_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
)

// moving is a store at which something happens whenever its rows or its permits are read.
type moving struct {
	store.Store
	rows    func(store.RowFilter) error
	permits func() error
}

// Permits implements store.Store.
func (m moving) Permits(ctx context.Context, f store.PermitFilter) iter.Seq2[store.Permit, error] {
	if m.permits != nil {
		if err := m.permits(); err != nil {
			return func(yield func(store.Permit, error) bool) { yield(store.Permit{}, err) }
		}
	}
	return m.Store.Permits(ctx, f)
}

// Rows implements store.Store.
func (m moving) Rows(ctx context.Context, f store.RowFilter) iter.Seq2[store.Row, error] {
	if m.rows != nil {
		if err := m.rows(f); err != nil {
			return func(yield func(store.Row, error) bool) { yield(store.Row{}, err) }
		}
	}
	return m.Store.Rows(ctx, f)
}

// Rows that have moved since the log was read are settled by their own events.
func TestVerifyOfALiveStore(t *testing.T) {
	for seed := range uint64(10) {
		h := busy(t, seed, 150)
		live := moving{h.Store, func(f store.RowFilter) error {
			if f.Kind == events.KindTopic {
				return nil // the running counts find it at rest
			}
			return h.Busy(150)
		}, func() error { return h.Busy(150) }}
		report := verify(t, live, replay.Options{Payloads: true})
		if !report.Clean() || len(report.Unchecked) > 0 {
			t.Errorf("unchecked %q, violations:\n%s", report.Unchecked, texts(report))
		}
		if want := len(logOf(t, h.Store)); report.Events != want {
			t.Errorf("%d events were checked of %d", report.Events, want)
		}
	}
}

// A row that is ahead of what was read of the log is no excuse for what it holds.
func TestVerifyFindsDamageInRowsThatMove(t *testing.T) {
	h := busy(t, 8, 150)
	tried := 0
	altered := damaged{
		Store: moving{Store: h.Store, rows: func(store.RowFilter) error { return h.Busy(50) }},
		rows: func(list []store.Row) []store.Row {
			for i := range list {
				list[i].Fields = []byte("{}")
			}
			tried = max(tried, len(list))
			return list
		},
	}
	report := verify(t, altered, replay.Options{Violations: 10_000})
	if got := strings.Count(texts(report), "fields: "); got != tried || tried == 0 {
		t.Errorf("%d of %d rows were found:\n%s", got, tried, texts(report))
	}
}

// Permits that have moved since the log was read are no excuse for what they hold.
func TestVerifyFindsDamageInPermitsThatMove(t *testing.T) {
	h := busy(t, 20, 50)
	tried := 0
	altered := damaged{
		Store: moving{Store: h.Store, permits: func() error { return h.Busy(100) }},
		permits: func(list []store.Permit) []store.Permit {
			for i := range list {
				list[i].AcquiredAt = list[i].AcquiredAt.Add(time.Hour)
			}
			tried = len(list)
			return list
		},
	}
	report := verify(t, altered, replay.Options{})
	if got := strings.Count(texts(report), "acquired: "); got != tried || tried == 0 {
		t.Errorf("%d of %d permits were found:\n%s", got, tried, texts(report))
	}
}

// A permit that came back and another that was taken since the log was read are told where the store does not say so.
func TestVerifyFindsPermitsThatStayWhereTheyWere(t *testing.T) {
	h := history.New(func(int) int { return 0 })
	worker := h.ID()
	old, err := h.Acquire(worker, "gate", 0)
	if err != nil {
		t.Fatal(err)
	}
	var before []store.Permit
	altered := damaged{
		Store: moving{Store: h.Store, permits: func() error {
			if before, err = collect(h.Store.Permits(t.Context(), store.PermitFilter{})); err != nil {
				return err
			}
			if err := h.Unlock(worker, old.PermitKey); err != nil {
				return err
			}
			_, err := h.Acquire(worker, "press", 0)
			return err
		}},
	}
	if report := verify(t, altered, replay.Options{}); !report.Clean() {
		t.Errorf("violations:\n%s", texts(report))
	}
	altered.Store = h.Store
	altered.permits = func([]store.Permit) []store.Permit { return before } // as they were
	report := verify(t, altered, replay.Options{})
	found(t, report, replay.Violation{Entity: events.LockEntity("gate"), Position: 0, Detail: "permit 1: it is kept, and the log has it not out"})
	found(t, report, replay.Violation{Entity: events.LockEntity("press"), Version: 1, Detail: "and is not kept"})
	if len(report.Violations) != 2 {
		t.Errorf("violations:\n%s", texts(report))
	}
}

// A store that never rests has its running counts unchecked, and the report says so.
func TestVerifyAdmitsWhatItCouldNotCheck(t *testing.T) {
	h := busy(t, 9, 50)
	report := verify(t, moving{Store: h.Store, rows: func(store.RowFilter) error {
		_, err := h.Enqueue("mail", 1, fsm.EnqueueMessage{})
		return err
	}}, replay.Options{})
	want := "[the running counts of topics: the store was at work during each of 10 looks]"
	if got := fmt.Sprint(report.Unchecked); got != want || !report.Clean() {
		t.Errorf("unchecked %s, want %s; violations:\n%s", got, want, texts(report))
	}
}

// The writer does not wait for the verification, nor the other way round.
func TestVerifyBesideAWriter(t *testing.T) {
	h := busy(t, 10, 10)
	done := make(chan error, 1)
	go func() { done <- h.Busy(1500) }()
	for range 5 {
		if report := verify(t, h.Store, replay.Options{}); !report.Clean() {
			t.Errorf("violations:\n%s", texts(report))
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if report := verify(t, h.Store, replay.Options{}); !report.Clean() || len(report.Unchecked) > 0 {
		t.Errorf("unchecked %q, violations:\n%s", report.Unchecked, texts(report))
	}
}

// failing ends the reading of the log with an error.
type failing struct {
	store.Store
	after int
	err   error
}

// Read implements store.Store.
func (f failing) Read(ctx context.Context, after store.Cursor, filter store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		n := 0
		for r, err := range f.Store.Read(ctx, after, filter) {
			if n++; n > f.after {
				err = fmt.Errorf("read: %w", f.err)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func TestVerifyStopsAtDamageAndAtErrors(t *testing.T) {
	h := busy(t, 11, 150)
	bad := &events.Corrupt{Entity: events.TopicEntity("mail"), Version: 3, Position: 21, Detail: "checksum 00000001 is stored"}
	report := verify(t, failing{h.Store, 20, bad}, replay.Options{})
	found(t, report, replay.Violation{Entity: bad.Entity, Version: 3, Position: 21, Detail: bad.Detail})
	if got, want := fmt.Sprint(report.Unchecked), "[everything behind the damage: the rest of the log, and rows]"; got != want || report.Events != 20 {
		t.Errorf("%d events, unchecked %s, want 20 and %s", report.Events, got, want)
	}

	gone := errors.New("gone")
	report, err := replay.Verify(t.Context(), failing{h.Store, 20, gone}, replay.Options{})
	if !errors.Is(err, gone) || report.Events != 20 {
		t.Errorf("%d events and %v, want 20 and %v", report.Events, err, gone)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := replay.Verify(ctx, h.Store, replay.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("under an ended context it gives %v", err)
	}
}

func TestVerifyStopsAtItsBound(t *testing.T) {
	h := busy(t, 12, 200)
	broken := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
		for i := range list {
			list[i].Version += 5
		}
		return list
	}}
	report := verify(t, broken, replay.Options{Violations: 7})
	if got, want := fmt.Sprint(report.Unchecked), "[everything behind the first 7 violations]"; len(report.Violations) != 7 || got != want {
		t.Errorf("%d violations, unchecked %s, want 7 and %s", len(report.Violations), got, want)
	}
	if _, err := replay.Verify(t.Context(), h.Store, replay.Options{Violations: -1}); err == nil || !strings.Contains(err.Error(), "Violations is -1") {
		t.Errorf("a negative bound gives %v", err)
	}
}

func TestFold(t *testing.T) {
	h := busy(t, 13, 200)
	for _, row := range rowsOf(t, h.Store) {
		v, err := replay.Fold(t.Context(), h.Store, row.Entity)
		if err != nil {
			t.Fatal(err)
		}
		if version, state := v.At(); version != row.Version || state != row.State {
			t.Errorf("%s folds to version %d, %s; its row has %d, %s", row.Entity, version, state, row.Version, row.State)
		}
	}
	id := complete(t, h)
	v, err := replay.Fold(t.Context(), h.Store, events.MessageEntity(id))
	if m, ok := v.(*fsm.Message); err != nil || !ok || m.State != events.Completed || m.Attempts != 1 {
		t.Errorf("the completed message folds to %+v, %v", v, err)
	}
	v, err = replay.Fold(t.Context(), h.Store, events.MessageEntity(events.ID{1}))
	if version, state := v.At(); err != nil || version != 0 || state != events.Absent {
		t.Errorf("what the log does not know folds to version %d, %s, %v", version, state, err)
	}
	if _, err := replay.Fold(t.Context(), h.Store, events.Entity{Kind: 99, Name: "x"}); err == nil {
		t.Error("a kind without a machine folds")
	}
	var corrupt *events.Corrupt
	lost := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded { return list[len(list)-1:] }}
	if _, err := replay.Fold(t.Context(), lost, events.MessageEntity(id)); !errors.As(err, &corrupt) {
		t.Errorf("a history without its beginning folds with %v, want a *events.Corrupt", err)
	}
}
