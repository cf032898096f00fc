package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/tidwall/btree"
)

// wait is one range of messages that wait for a lock.
type wait struct {
	topic   string
	waiting store.Waiting
}

// permits is those that are out, by all that anybody asks for.
type permits struct {
	byKey    map[store.PermitKey]store.Permit
	byLock   map[string]*btree.BTreeG[store.Permit]    // those that expire first, then the oldest
	byWorker map[events.ID]*btree.BTreeG[store.Permit] // the oldest first
}

func newPermits() *permits {
	return &permits{
		byKey:    map[store.PermitKey]store.Permit{},
		byLock:   map[string]*btree.BTreeG[store.Permit]{},
		byWorker: map[events.ID]*btree.BTreeG[store.Permit]{},
	}
}

func (p *permits) change(c store.PermitChange) {
	if c.Back {
		permit := p.byKey[c.Permit.PermitKey]
		delete(p.byKey, permit.PermitKey)
		drop(p.byLock, permit.Lock, permit)
		drop(p.byWorker, permit.Worker, permit)
		return
	}
	p.byKey[c.Permit.PermitKey] = c.Permit
	set(p.byLock, c.Permit.Lock, c.Permit, byExpiry)
	set(p.byWorker, c.Permit.Worker, c.Permit, byAge)
}

func set[K comparable](trees map[K]*btree.BTreeG[store.Permit], key K, p store.Permit, less func(a, b store.Permit) bool) {
	if trees[key] == nil {
		trees[key] = btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
	}
	trees[key].Set(p)
}

func drop[K comparable](trees map[K]*btree.BTreeG[store.Permit], key K, p store.Permit) {
	if trees[key].Delete(p); trees[key].Len() == 0 {
		delete(trees, key)
	}
}

// trees hold between them all permits that may pass the filter, and each once.
func (p *permits) trees(f store.PermitFilter) []*btree.BTreeG[store.Permit] {
	var one *btree.BTreeG[store.Permit]
	switch {
	case f.Worker != events.ID{}:
		one = p.byWorker[f.Worker]
	case f.Lock != "":
		one = p.byLock[f.Lock]
	default:
		return slices.Collect(maps.Values(p.byLock))
	}
	if one == nil {
		return nil
	}
	return []*btree.BTreeG[store.Permit]{one}
}

func byAge(a, b store.Permit) bool {
	if c := a.AcquiredAt.Compare(b.AcquiredAt); c != 0 {
		return c < 0
	}
	return byName(a, b) < 0
}

func byExpiry(a, b store.Permit) bool {
	if a.ExpiresAt.IsZero() != b.ExpiresAt.IsZero() {
		return b.ExpiresAt.IsZero()
	}
	if c := a.ExpiresAt.Compare(b.ExpiresAt); c != 0 {
		return c < 0
	}
	return byAge(a, b)
}

func byName(a, b store.Permit) int {
	return cmp.Or(strings.Compare(a.Lock, b.Lock), cmp.Compare(a.Token, b.Token))
}

// first is the first n permits of a tree.
func first(tree *btree.BTreeG[store.Permit], n int) []store.Permit {
	var list []store.Permit
	if tree == nil {
		return nil
	}
	tree.Scan(func(p store.Permit) bool {
		if len(list) < n {
			list = append(list, p)
		}
		return len(list) < n
	})
	return list
}

// holdLocks holds what a call needs of locks, their permits and heartbeats by name.
func (s *Store) holdLocks(view *store.View, need store.Need) error {
	for _, lock := range need.Locks {
		if err := s.holdLock(view, lock); err != nil {
			return err
		}
	}
	for _, key := range need.Permits {
		s.holdPermits(view, s.permits.byKey[key])
	}
	for _, page := range need.Holders {
		s.holdPermits(view, first(s.permits.byLock[page.Lock], page.N)...)
	}
	for _, worker := range need.Beats {
		s.holdBeat(view, worker)
	}
	return nil
}

// holdEstate holds what a worker holds.
func (s *Store) holdEstate(view *store.View, holder store.Holder) error {
	claims := take(s.running[events.WorkerEntity(holder.Worker)], holder.N, nil)
	view.Claims[holder.Worker] = claims
	for _, row := range claims {
		s.holdPermits(view, s.permits.byKey[store.PermitKey{Lock: row.Lock, Token: row.LockToken}])
	}
	s.holdPermits(view, first(s.permits.byWorker[holder.Worker], holder.N)...)
	s.holdBeat(view, holder.Worker)
	for _, p := range view.Permits {
		if err := s.holdLock(view, p.Lock); err != nil {
			return err
		}
	}
	return nil
}

// holdPermits adds permits to the view, each once. A zero is none.
func (s *Store) holdPermits(view *store.View, list ...store.Permit) {
	for _, p := range list {
		if p.Token != 0 && !slices.ContainsFunc(view.Permits, func(q store.Permit) bool { return q.PermitKey == p.PermitKey }) {
			view.Permits = append(view.Permits, p)
		}
	}
}

func (s *Store) holdBeat(view *store.View, worker events.ID) {
	if b, ok := s.beats[worker]; ok {
		view.Beats[worker] = b
	}
}

// holdLockOf holds the lock of a claimable message, and who waits for it where the message is the one that was sent to try.
func (s *Store) holdLockOf(view *store.View, row store.Row) error {
	switch {
	case row.Lock == "":
		return nil
	case row.Waiting == store.Trying:
		return s.holdLock(view, row.Lock)
	}
	return s.hold(view, events.LockEntity(row.Lock))
}

// holdLock holds a lock and who waits for it.
func (s *Store) holdLock(view *store.View, lock string) error {
	if err := s.hold(view, events.LockEntity(lock)); err != nil {
		return err
	}
	if _, ok := view.Waiting[lock]; ok {
		return nil
	}
	view.Waiting[lock] = nil
	for _, tree := range s.waits[lock] {
		view.Waiting[lock] = append(view.Waiting[lock], take(tree, 1, nil)...)
	}
	return nil
}

// selected is one message for each of what the filter selects.
func (s *Store) selected(f store.RowFilter) []events.Entity {
	var rows []store.Row
	switch f.Select {
	case store.FirstClaims:
		for holder, tree := range s.running {
			if holder.Kind == events.KindWorker {
				rows = append(rows, take(tree, 1, nil)...)
			}
		}
	case store.FirstWaits:
		for _, waits := range s.waits {
			for at, tree := range waits {
				if at.waiting == store.Blocked {
					rows = append(rows, take(tree, 1, nil)...)
				}
			}
		}
	}
	list := make([]events.Entity, len(rows))
	for i, row := range rows {
		list[i] = row.Entity
	}
	return list
}

// Permits implements store.Store.
func (s *Store) Permits(ctx context.Context, f store.PermitFilter) iter.Seq2[store.Permit, error] {
	return func(yield func(store.Permit, error) bool) {
		list, err := s.permitsOf(ctx, f)
		if err != nil {
			yield(store.Permit{}, fmt.Errorf("memory: permits: %w", err))
			return
		}
		for _, p := range list {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func (s *Store) permitsOf(ctx context.Context, f store.PermitFilter) ([]store.Permit, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var list []store.Permit
	for _, tree := range s.permits.trees(f) {
		tree.Scan(func(p store.Permit) bool {
			expired := f.ExpiredAt.IsZero() || !p.ExpiresAt.IsZero() && !p.ExpiresAt.After(f.ExpiredAt)
			if expired && (f.Lock == "" || p.Lock == f.Lock) && (f.Worker == events.ID{} || p.Worker == f.Worker) {
				list = append(list, p)
			}
			return expired || f.Worker != events.ID{} // of a lock those that expire later stand behind it
		})
	}
	slices.SortFunc(list, byName)
	return list, nil
}
