package replay_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
)

// damaged is a store whose log, rows and permits are altered behind the checksums, as an engine with a fault would.
type damaged struct {
	store.Store
	log     func([]events.Recorded) []events.Recorded
	rows    func([]store.Row) []store.Row
	permits func([]store.Permit) []store.Permit
}

// Read implements store.Store over the altered log.
func (d damaged) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		first, err := store.Oldest(ctx, d.Store)
		if err != nil {
			yield(events.Recorded{}, err)
			return
		}
		list, err := collect(d.Store.Read(ctx, first, store.Filter{}))
		if err != nil {
			yield(events.Recorded{}, err)
			return
		}
		if d.log != nil {
			list = d.log(list)
		}
		for _, r := range list {
			if r.Position <= position(after) || f.Entity != (events.Entity{}) && r.Entity != f.Entity {
				continue
			}
			if f.Limit--; !yield(r, nil) || f.Limit == 0 {
				return
			}
		}
	}
}

// position is that of the last event that a cursor has passed.
func position(after store.Cursor) int64 {
	_, digits, _ := strings.Cut(string(after), "@")
	position, _ := strconv.ParseInt(digits, 10, 64)
	return position
}

// First implements store.Pruner.
func (d damaged) First(ctx context.Context) (store.Cursor, error) { return store.Oldest(ctx, d.Store) }

// Rows implements store.Store over the altered rows.
func (d damaged) Rows(ctx context.Context, f store.RowFilter) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		list, err := collect(d.Store.Rows(ctx, f))
		if err != nil {
			yield(store.Row{}, err)
			return
		}
		if d.rows != nil {
			list = d.rows(list)
		}
		for _, row := range list {
			if (f.Kind == events.KindNone || f.Kind == row.Entity.Kind) && !yield(row, nil) {
				return
			}
		}
	}
}

// Permits implements store.Store over the altered permits.
func (d damaged) Permits(ctx context.Context, f store.PermitFilter) iter.Seq2[store.Permit, error] {
	return func(yield func(store.Permit, error) bool) {
		list, err := collect(d.Store.Permits(ctx, f))
		if err != nil {
			yield(store.Permit{}, err)
			return
		}
		if d.permits != nil {
			list = d.permits(list)
		}
		for _, p := range list {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var list []T
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// busy is a store after so many commands, the same for the same seed.
func busy(t *testing.T, seed uint64, n int) *history.History {
	t.Helper()
	h := history.New(rand.New(rand.NewPCG(seed, 0)).IntN)
	if err := h.Busy(n); err != nil {
		t.Fatal(err)
	}
	return h
}

func verify(t *testing.T, s store.Store, o replay.Options) replay.Report {
	t.Helper()
	report, err := replay.Verify(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// found fails unless there is a violation at the entity, version and position whose detail has the text. A position of 0 is any.
func found(t *testing.T, report replay.Report, want replay.Violation) {
	t.Helper()
	for _, v := range report.Violations {
		at := want.Position == 0 || v.Position == want.Position
		if at && v.Entity == want.Entity && v.Version == want.Version && strings.Contains(v.Detail, want.Detail) {
			return
		}
	}
	t.Errorf("no violation %s; found:\n%s", want.Text(nil), texts(report))
}

func texts(report replay.Report) string {
	var b strings.Builder
	for _, v := range report.Violations {
		b.WriteString(v.Text(nil) + "\n")
	}
	return b.String()
}

func logOf(t *testing.T, s store.Store) []events.Recorded {
	t.Helper()
	list, err := collect(s.Read(t.Context(), "", store.Filter{}))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func rowsOf(t *testing.T, s store.Store) []store.Row {
	t.Helper()
	list, err := collect(s.Rows(t.Context(), store.RowFilter{}))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// alone reports whether an event is the only one of its commit and leaves nothing but itself, so that nothing tells that it is gone.
func alone(r events.Recorded) bool {
	return r.Commit.Count == 1 && (r.Version == 0 || r.Entity.Kind == events.KindSweep)
}

// without is the log without the event at an index.
func without(i int) func([]events.Recorded) []events.Recorded {
	return func(list []events.Recorded) []events.Recorded { return slices.Delete(list, i, i+1) }
}
