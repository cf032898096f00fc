package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// rows compares every row with the log, which was read before them: a row may be ahead of it, never behind.
func (v *verifier) rows(ctx context.Context) error {
	for row, err := range v.store.Rows(ctx, store.RowFilter{Payloads: v.options.Payloads}) {
		if v.illegible(err) {
			if v.over {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := v.row(ctx, row); err != nil || v.over {
			return err
		}
	}
	for _, entity := range slices.SortedFunc(maps.Keys(v.held), events.Entity.Compare) {
		if v.held[entity].rowed {
			continue
		}
		if err := v.missing(ctx, entity); err != nil || v.over {
			return err
		}
	}
	return nil
}

// illegible lists a row that cannot be read, at the last event of its entity, and is false for what ends the reading.
func (v *verifier) illegible(err error) bool {
	var corrupt *events.Corrupt
	if !errors.As(err, &corrupt) || corrupt.Entity == (events.Entity{}) {
		return false
	}
	version := corrupt.Version
	if h := v.held[corrupt.Entity]; h != nil {
		h.rowed = true
		if version == 0 {
			version, _ = h.value.At()
		}
	}
	v.violate(Violation{corrupt.Entity, version, v.behind(corrupt.Entity), corrupt.Detail})
	return true
}

// behind is the position of the last event that was read of an entity, as far as it is known: of one that the log has not open, that of
// the last event at all.
func (v *verifier) behind(entity events.Entity) int64 {
	if h := v.held[entity]; h != nil {
		return h.position
	}
	return v.last
}

func (v *verifier) row(ctx context.Context, row store.Row) error {
	if v.report.Rows++; v.broken[row.Entity] {
		return nil
	}
	h := v.held[row.Entity]
	if h == nil {
		return v.settle(ctx, row)
	}
	if h.rowed {
		v.wrong(row, "it has two rows")
		return nil
	}
	h.rowed = true
	if version, _ := h.value.At(); version != row.Version {
		return v.settle(ctx, row)
	}
	v.compare(row, h.value)
	return nil
}

// settle compares a row that is not at the version that the log had when it was read, with the entity's own events up to the row's.
func (v *verifier) settle(ctx context.Context, row store.Row) error {
	if _, err := fsm.LifecycleOf(row.Entity.Kind); err != nil {
		v.wrong(row, "a row is kept of a %v", err)
		return nil
	}
	h, err := v.known(ctx, row.Entity, v.last+1)
	if err != nil {
		return v.told(err)
	}
	value, list := h.value, v.newer(ctx, row.Entity)
	version, _ := value.At()
	if version > row.Version {
		v.wrong(row, "the row is behind the log, which has version %d at position %d", version, h.position)
		return nil
	}
	if version == 0 { // it has ended, or the log does not know it
		list = v.store.Read(ctx, v.first, store.Filter{Entity: row.Entity})
	}
	for r, err := range list {
		if err == nil && r.Version > row.Version {
			if r.Position <= v.last {
				v.wrong(row, "the row is behind the log, which has version %d at position %d", r.Version, r.Position)
				return nil
			}
			break
		}
		if err == nil {
			value, err = fsm.Apply(value, r)
		}
		if err != nil {
			return v.told(err)
		}
	}
	switch version, state := value.At(); {
	case version == 0:
		v.wrong(row, "a row is kept of what the log does not know")
	case version != row.Version:
		v.wrong(row, "the row is ahead of the log, which ends at version %d", version)
	case !value.Kept():
		v.wrong(row, "a row is kept of what is %s", state)
	default:
		v.compare(row, value)
	}
	return nil
}

// missing settles an entity that has no row although the log had it open when it was read.
func (v *verifier) missing(ctx context.Context, entity events.Entity) error {
	value := v.held[entity].value
	for r, err := range v.newer(ctx, entity) {
		if err == nil {
			value, err = fsm.Apply(value, r)
		}
		if err != nil {
			return v.told(err)
		}
	}
	if version, state := value.At(); open(value) {
		v.violate(Violation{entity, version, v.behind(entity), fmt.Sprintf("it is %s and has no row", state)})
	}
	return nil
}

// newer is the events of an entity since the log was read.
func (v *verifier) newer(ctx context.Context, entity events.Entity) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for r, err := range v.store.Read(ctx, v.report.Head, store.Filter{Entity: entity}) {
			if err == nil && r.Position <= v.last {
				continue // it came after the head was asked for, and was read with what was before
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// compare tells in which columns a row differs from what the log leads to. The running count of a topic has no version and is compared
// apart.
func (v *verifier) compare(row store.Row, value fsm.Value) {
	want := calls.Row(value)
	var wrong []string
	for _, column := range []struct{ name, stored, log string }{
		{"state", row.State.String(), want.State.String()},
		{"topic", row.Topic, want.Topic},
		{"priority", row.Priority.String(), want.Priority.String()},
		{"due", instant(row.DueAt), instant(want.DueAt)},
		{"worker", row.Worker.String(), want.Worker.String()},
		{"claimed", instant(row.ClaimedAt), instant(want.ClaimedAt)},
		{"counted", strconv.FormatBool(row.Counted), strconv.FormatBool(want.Counted)},
		{"lock", row.Lock, want.Lock},
		{"lock token", fmt.Sprint(row.LockToken), fmt.Sprint(want.LockToken)},
		{"waiting", fmt.Sprint(row.Waiting), fmt.Sprint(want.Waiting)},
		{"fields", string(row.Fields), string(want.Fields)},
	} {
		if column.stored != column.log {
			wrong = append(wrong, fmt.Sprintf("%s: %q is stored, the log leads to %q", column.name, column.stored, column.log))
		}
	}
	if m, ok := value.(*fsm.Message); ok && v.options.Payloads {
		if err := payload(m.Payload, row.Payload); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if len(wrong) > 0 {
		v.wrong(row, "%s", strings.Join(wrong, "; "))
	}
}

// instant is a time as text, empty for none.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// payload compares the stored bytes with what the log says of them.
func payload(facts events.Facts, stored *store.Payload) error {
	switch {
	case stored == nil && facts.Size > 0:
		return errors.New("payload: it is missing")
	case stored == nil:
		return nil
	case len(stored.Bytes) != facts.Size:
		return fmt.Errorf("payload: %d bytes are stored, %d were enqueued", len(stored.Bytes), facts.Size)
	case events.Commitment(stored.Salt, stored.Bytes) != facts.Commitment:
		return errors.New("payload: it is not what was enqueued")
	}
	return nil
}

// wrong lists a violation of a row.
func (v *verifier) wrong(row store.Row, format string, args ...any) {
	v.violate(Violation{row.Entity, row.Version, v.behind(row.Entity), fmt.Sprintf(format, args...)})
}

// counts compares every topic's running count with the open claims that count, at a time when nothing moves: when no event came
// between the reading of the log and that of the topics.
func (v *verifier) counts(ctx context.Context) error {
	for range looks {
		if err := v.follow(ctx); err != nil || v.over {
			return err
		}
		var topics []store.Row
		for row, err := range v.store.Rows(ctx, store.RowFilter{Kind: events.KindTopic}) {
			if corrupt := (*events.Corrupt)(nil); errors.As(err, &corrupt) && corrupt.Entity != (events.Entity{}) {
				continue // it was listed with the other rows
			}
			if err != nil {
				return err
			}
			topics = append(topics, row)
		}
		head, err := v.store.Head(ctx)
		if err != nil {
			return err
		}
		if head == v.report.Head {
			v.compareCounts(topics)
			return nil
		}
	}
	v.report.Unchecked = append(v.report.Unchecked,
		fmt.Sprintf("the running counts of topics: the store was at work during each of %d looks", looks))
	return nil
}

func (v *verifier) compareCounts(topics []store.Row) {
	for _, row := range topics {
		name := row.Entity.Name
		switch {
		case v.doubtful[name] || v.allDoubtful:
			v.report.Unchecked = append(v.report.Unchecked, fmt.Sprintf("the running count of topic %q, and who of it waits for locks: a message of it is broken", name))
		case row.Running != v.counted[name]:
			v.wrong(row, "running: %d is stored, %d claims of it count", row.Running, v.counted[name])
		}
	}
}
