package memory

import (
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/tidwall/btree"
)

// view holds what a call needs. Everything is held already: the store's mutex is.
func (s *Store) view(need store.Need, now time.Time) (store.View, error) {
	view := store.View{
		Now: now, Rows: map[events.Entity]store.Row{}, History: map[events.Entity][]events.Recorded{},
		Claimable: map[string][]store.Row{}, Claims: map[events.ID][]store.Row{}, Uncounted: map[string][]store.Row{},
		Keys: map[store.Key]store.KeyRow{},
	}
	for _, entity := range need.Held {
		if err := s.hold(&view, entity); err != nil {
			return view, err
		}
	}
	for _, row := range need.Known {
		if err := s.hold(&view, row.Entity); err != nil {
			return view, err
		}
	}
	for _, page := range need.Claim {
		s.holdTopic(&view, page.Topic)
		view.Claimable[page.Topic] = s.claimable(page, now)
	}
	for _, page := range need.Uncounted {
		s.holdTopic(&view, page.Topic)
		uncounted := func(row store.Row) bool { return !row.Counted }
		view.Uncounted[page.Topic] = take(s.running[events.TopicEntity(page.Topic)], page.N, uncounted)
	}
	for _, holder := range need.Claims {
		view.Claims[holder.Worker] = take(s.running[events.WorkerEntity(holder.Worker)], holder.N, nil)
	}
	for _, key := range need.Keys {
		if row, ok := s.keys[key]; ok {
			view.Keys[key] = row
		}
	}
	return view, nil
}

func (s *Store) hold(view *store.View, entity events.Entity) error {
	if row, ok := s.rows[entity]; ok {
		view.Rows[entity] = row
		return nil
	}
	if len(s.streams[entity]) == 0 {
		return nil
	}
	history, err := s.history(entity)
	view.History[entity] = history
	return err
}

func (s *Store) holdTopic(view *store.View, topic string) {
	if row, ok := s.rows[events.TopicEntity(topic)]; ok {
		view.Rows[row.Entity] = row
	}
}

// claimable is the first n due messages of a topic, one range per priority.
func (s *Store) claimable(page store.Page, now time.Time) []store.Row {
	var list []store.Row
	for _, priority := range events.Priorities() {
		tree := s.queued[level{page.Topic, priority}]
		if tree == nil {
			continue
		}
		tree.Scan(func(row store.Row) bool {
			if len(list) >= page.N || row.DueAt.After(now) {
				return false
			}
			list = append(list, s.withPayload(row))
			return true
		})
	}
	return list
}

// take is the first n rows of a tree that pass.
func take(tree *btree.BTreeG[store.Row], n int, pass func(store.Row) bool) []store.Row {
	var list []store.Row
	if tree == nil {
		return nil
	}
	tree.Scan(func(row store.Row) bool {
		if len(list) >= n {
			return false
		}
		if pass == nil || pass(row) {
			list = append(list, row)
		}
		return true
	})
	return list
}

// index puts a message's row where claims look for it.
func (s *Store) index(row store.Row) {
	for _, tree := range s.places(row) {
		tree.Set(row)
	}
}

func (s *Store) unindex(row store.Row) {
	for _, tree := range s.places(row) {
		tree.Delete(row)
	}
}

// places is the trees that a message's row belongs to.
func (s *Store) places(row store.Row) []*btree.BTreeG[store.Row] {
	switch {
	case !row.DueAt.IsZero():
		return []*btree.BTreeG[store.Row]{place(s.queued, level{row.Topic, row.Priority}, s.byDue)}
	case row.Worker != (events.ID{}):
		return []*btree.BTreeG[store.Row]{
			place(s.running, events.WorkerEntity(row.Worker), byClaim),
			place(s.running, events.TopicEntity(row.Topic), byClaim),
		}
	}
	return nil
}

func place[K comparable](trees map[K]*btree.BTreeG[store.Row], key K, less func(a, b store.Row) bool) *btree.BTreeG[store.Row] {
	tree := trees[key]
	if tree == nil {
		tree = btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
		trees[key] = tree
	}
	return tree
}

// byDue is the order of claims within a priority: what was enqueued first goes first among those due at the same time.
func (s *Store) byDue(a, b store.Row) bool {
	if c := a.DueAt.Compare(b.DueAt); c != 0 {
		return c < 0
	}
	return s.streams[a.Entity][0] < s.streams[b.Entity][0]
}

func byClaim(a, b store.Row) bool {
	if c := a.ClaimedAt.Compare(b.ClaimedAt); c != 0 {
		return c < 0
	}
	return a.Entity.Compare(b.Entity) < 0
}
