package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
)

// Check holds what the store keeps against the log: replay.Verify finds nothing, every open message and dead letter has the one row
// that it should have, every count and budget is what the events add up to, every running count is that of the open claims that count,
// no key is held by two open messages, and the permits that are out are those that the events gave out and did not take back.
func (w *World) Check(ctx context.Context) error {
	report, err := replay.Verify(ctx, w.engine, replay.Options{Payloads: true})
	if err != nil {
		return err
	}
	errs := []error{w.laws.settled()}
	for _, v := range report.Violations {
		errs = append(errs, fmt.Errorf("verify: %s", v.Text(w.names.text)))
	}
	for _, text := range report.Unchecked {
		errs = append(errs, fmt.Errorf("verify: unchecked: %s", text))
	}
	rows := map[events.Entity]store.Row{}
	for row, err := range w.engine.Rows(ctx, store.RowFilter{}) {
		if err != nil {
			return err
		}
		rows[row.Entity] = row
	}
	errs = append(errs, w.checkMessages(rows), w.checkLocks(rows), w.checkPermits(ctx), w.checkContents(ctx))
	for name, t := range w.laws.topics {
		if row, ok := rows[events.TopicEntity(name)]; ok && row.Running != t.running {
			errs = append(errs, fmt.Errorf("topic %s: running %d is stored, %d open claims count", name, row.Running, t.running))
		}
	}
	return errors.Join(errs...)
}

// checkContents holds what is kept of messages beside their events against what the laws let go of (law 4).
func (w *World) checkContents(ctx context.Context) error {
	var errs []error
	for id := range w.laws.messages {
		c, err := w.engine.Contents(ctx, id)
		if err != nil {
			return err
		}
		if want := w.laws.keepsContents(id); (c.Payload != nil) != want || !want && c.Result != nil {
			errs = append(errs, fmt.Errorf("law 4: message %s: that its contents are kept is %t, they should be %t", w.names.word(id), c.Payload != nil, want))
		}
	}
	return errors.Join(errs...)
}

func (w *World) checkMessages(rows map[events.Entity]store.Row) error {
	var errs []error
	keys := map[store.Key]events.ID{}
	for _, id := range slices.SortedFunc(maps.Keys(w.laws.messages), func(a, b events.ID) int { return slices.Compare(a[:], b[:]) }) {
		m := w.laws.messages[id]
		row, kept := rows[events.MessageEntity(id)]
		if err := m.compare(row, kept); err != nil {
			errs = append(errs, fmt.Errorf("message %s: %w", w.names.word(id), err))
		}
		key := store.Key{Topic: m.topic, Name: m.key}
		if other, taken := keys[key]; m.key != "" && !m.ended && taken {
			errs = append(errs, fmt.Errorf("messages %s and %s have the same key %s", w.names.word(other), w.names.word(id), m.key))
		} else if m.key != "" && !m.ended {
			keys[key] = id
		}
	}
	return errors.Join(errs...)
}

// compare holds a message's row against its events (laws 3, 4 and 6).
func (m *message) compare(row store.Row, kept bool) error {
	if want := !m.ended || m.state == events.DeadLettered; kept != want {
		return fmt.Errorf("law 4: it is %s, and whether it has a row is %t", m.state, kept)
	}
	if !kept {
		return nil
	}
	none := row.DueAt.IsZero() && row.Worker == (events.ID{})
	fits := false
	switch m.state {
	case events.Queued:
		fits = row.DueAt.Equal(m.due) && row.Worker == (events.ID{})
	case events.Running:
		fits = row.DueAt.IsZero() && row.Worker == m.claim.worker && row.Worker != (events.ID{})
	case events.Blocked:
		fits = none && row.Waiting == store.Blocked
	case events.DeadLettered:
		fits = none
	}
	if !fits || row.State != m.state || (row.Waiting == store.Trying) != m.trying {
		return fmt.Errorf("law 3: it is %s, due %s; its row is %s, due %s, of worker %s", m.state, m.due, row.State, row.DueAt, row.Worker)
	}
	stored, err := calls.Message(row)
	if err != nil {
		return err
	}
	got := []int{stored.Attempts, stored.Releases, stored.Failures, stored.Orphanings, stored.SpentBefore, stored.OrphanedBefore}
	want := []int{m.claims, m.released(), m.failed, m.orphans, m.spent[0], m.spent[1]}
	if !slices.Equal(got, want) || stored.Token != m.claim.token || stored.Counted != m.claim.counted {
		return fmt.Errorf("law 6: counts %v are stored, its events add up to %v", got, want)
	}
	if stored.Lock != m.lock || stored.LockToken != m.claim.permit {
		return fmt.Errorf("law 7: permit %d of lock %q is stored, its events say %d of %q", stored.LockToken, stored.Lock, m.claim.permit, m.lock)
	}
	return nil
}

// checkLocks holds the rows of locks against their events: one that is free and that nobody configured has none.
func (w *World) checkLocks(rows map[events.Entity]store.Row) error {
	var errs []error
	for name, k := range w.laws.locks {
		row, kept := rows[events.LockEntity(name)]
		if want := len(k.out) > 0 || k.permits > 0; kept != want {
			errs = append(errs, fmt.Errorf("lock %s: %d permits are out of %d, and whether it has a row is %t", name, len(k.out), k.permits, kept))
		}
		if !kept {
			continue
		}
		v, err := calls.Value(row)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if got, ok := v.(*fsm.Lock); !ok || got.Held != len(k.out) || got.Permits != k.permits || got.Version != k.version {
			errs = append(errs, fmt.Errorf("lock %s: %v is stored, %d permits are out of %d at version %d", name, v, len(k.out), k.permits, k.version))
		}
	}
	for entity := range rows {
		if entity.Kind == events.KindLock && w.laws.locks[entity.Name] == nil {
			errs = append(errs, fmt.Errorf("lock %s: the log does not know it", entity.Name))
		}
	}
	return errors.Join(errs...)
}

// checkPermits holds the permits that are kept against those that the events gave out (law 7).
func (w *World) checkPermits(ctx context.Context) error {
	var errs []error
	kept := map[store.PermitKey]bool{}
	for p, err := range w.engine.Permits(ctx, store.PermitFilter{}) {
		if err != nil {
			return err
		}
		kept[p.PermitKey] = true
		want := w.laws.permit(p.Lock, p.Token)
		if want == nil {
			errs = append(errs, fmt.Errorf("law 7: permit %d of lock %s is kept, and is not out", p.Token, p.Lock))
		} else if p.Worker != want.Worker || p.Message != want.Message || !p.AcquiredAt.Equal(want.AcquiredAt) || !p.ExpiresAt.Equal(want.ExpiresAt) {
			errs = append(errs, fmt.Errorf("law 7: permit %d of lock %s is kept as %v, its event says %v", p.Token, p.Lock, p, want.Permit))
		}
	}
	for name, k := range w.laws.locks {
		for token := range k.out {
			if !kept[store.PermitKey{Lock: name, Token: token}] {
				errs = append(errs, fmt.Errorf("law 7: permit %d of lock %s is out, and is not kept", token, name))
			}
		}
	}
	return errors.Join(errs...)
}
