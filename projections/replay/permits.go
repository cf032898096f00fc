package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// permitRows compares every permit that is kept with the log, which was read before them: what is kept may be ahead of it, never behind. A
// permit has no version, but it never changes and its token is never used again: what differs is settled by the lock's events since.
func (v *verifier) permitRows(ctx context.Context) error {
	illegible := map[string]bool{} // locks of which not all could be read
	for p, err := range v.store.Permits(ctx, store.PermitFilter{}) {
		if corrupt := (*events.Corrupt)(nil); errors.As(err, &corrupt) && v.illegible(err) {
			if illegible[corrupt.Entity.Name] = true; v.over {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := v.permitRow(ctx, p); err != nil || v.over {
			return err
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(v.permits), byKey) {
		if v.permits[key].rowed || illegible[key.Lock] {
			continue
		}
		if err := v.missingPermit(ctx, key); err != nil || v.over {
			return err
		}
	}
	return nil
}

func byKey(a, b store.PermitKey) int {
	return cmp.Or(strings.Compare(a.Lock, b.Lock), cmp.Compare(a.Token, b.Token))
}

func (v *verifier) permitRow(ctx context.Context, p store.Permit) error {
	lock := events.LockEntity(p.Lock)
	if v.report.Permits++; v.broken[lock] {
		return nil
	}
	if o := v.permits[p.PermitKey]; o != nil {
		if o.rowed {
			v.wrongPermit(p.PermitKey, "it is kept twice")
			return nil
		}
		o.rowed = true
		v.comparePermit(p, o.Permit)
		return nil
	}
	for r, err := range v.newer(ctx, lock) {
		if err != nil {
			return v.told(err)
		}
		if e, ok := r.Event.(*events.LockAcquired); ok && e.Token == p.Token {
			v.comparePermit(p, permitOf(r, e))
			return nil
		}
	}
	v.wrongPermit(p.PermitKey, "it is kept, and the log has it not out")
	return nil
}

// missingPermit settles a permit that is not kept although the log had it out when it was read.
func (v *verifier) missingPermit(ctx context.Context, key store.PermitKey) error {
	for r, err := range v.newer(ctx, events.LockEntity(key.Lock)) {
		if err != nil {
			return v.told(err)
		}
		if end, ends := events.EndOf(r.Event); ends && end.Token == key.Token {
			return nil
		}
	}
	v.wrongPermit(key, fmt.Sprintf("it is out, held by worker %s, and is not kept", v.permits[key].Worker))
	return nil
}

// comparePermit tells in what a permit that is kept differs from what the log leads to.
func (v *verifier) comparePermit(kept, want store.Permit) {
	var wrong []string
	for _, column := range []struct{ name, stored, log string }{
		{"worker", kept.Worker.String(), want.Worker.String()},
		{"message", kept.Message.String(), want.Message.String()},
		{"acquired", instant(kept.AcquiredAt), instant(want.AcquiredAt)},
		{"expires", instant(kept.ExpiresAt), instant(want.ExpiresAt)},
	} {
		if column.stored != column.log {
			wrong = append(wrong, fmt.Sprintf("%s: %q is stored, the log leads to %q", column.name, column.stored, column.log))
		}
	}
	if len(wrong) > 0 {
		v.wrongPermit(want.PermitKey, strings.Join(wrong, "; "))
	}
}

// wrongPermit lists a violation of a permit, at its lock.
func (v *verifier) wrongPermit(key store.PermitKey, detail string) {
	lock := events.LockEntity(key.Lock)
	version := 0
	if h := v.held[lock]; h != nil {
		version, _ = h.value.At()
	}
	v.violate(Violation{lock, version, v.behind(lock), fmt.Sprintf("permit %d: %s", key.Token, detail)})
}

// unsettled tells of permits that are out although they should have come back: their claim was ended by its own worker, or their holder
// was found gone (law 7).
func (v *verifier) unsettled() {
	for _, key := range slices.SortedFunc(maps.Keys(v.permits), byKey) {
		switch p := v.permits[key]; {
		case p.orphaned:
			v.wrongPermit(key, "its holder was found gone, and it was not taken back")
		case p.settled > 0:
			v.wrongPermit(key, fmt.Sprintf("it is out, although its worker ended the claim of message %s that took it at position %d", p.Message, p.settled))
		}
	}
}

// idle tells of messages that are blocked although their lock has a free permit and nobody of their topic was sent to try (law 3).
//
// It judges by the log alone, up to the end of a commit, and needs no quiet store: whatever blocks, unblocks, takes or frees holds the
// lock's row meanwhile, so that of one lock all of it comes in the log in the order in which it was decided.
func (v *verifier) idle() {
	type place struct{ lock, topic string }
	trying, first := map[place]bool{}, map[place]*held{}
	for _, h := range v.held {
		m, ok := h.value.(*fsm.Message)
		if !ok || !m.Trying && m.State != events.Blocked {
			continue
		}
		at := place{m.Lock, m.Topic}
		if m.Trying {
			trying[at] = true
		} else if first[at] == nil || h.position < first[at].position {
			first[at] = h
		}
	}
	for at := range first {
		if trying[at] || v.free(at.lock) <= 0 || v.broken[events.LockEntity(at.lock)] || v.doubtful[at.topic] || v.allDoubtful {
			delete(first, at)
		}
	}
	for _, h := range slices.SortedFunc(maps.Values(first), func(a, b *held) int { return cmp.Compare(a.position, b.position) }) {
		m := h.value.(*fsm.Message)
		detail := fmt.Sprintf("it is blocked, its lock %q has a free permit, and nobody of its topic tries", m.Lock)
		v.violate(Violation{m.Entity(), m.Version, h.position, detail})
	}
}
