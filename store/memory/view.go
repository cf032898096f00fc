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
		Keys: map[store.Key]store.KeyRow{}, Waiting: map[string][]store.Row{}, Beats: map[events.ID]store.Beat{},
		Fence: events.Token(s.head() + 1), // each permit is an event at least
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
		for _, row := range view.Claimable[page.Topic] {
			if err := s.holdLockOf(&view, row); err != nil {
				return view, err
			}
		}
	}
	for _, page := range need.Uncounted {
		s.holdTopic(&view, page.Topic)
		uncounted := func(row store.Row) bool { return !row.Counted }
		view.Uncounted[page.Topic] = take(s.running[events.TopicEntity(page.Topic)], page.N, uncounted)
	}
	for _, holder := range need.Claims {
		if err := s.holdEstate(&view, holder); err != nil {
			return view, err
		}
	}
	if err := s.holdLocks(&view, need); err != nil {
		return view, err
	}
	for _, key := range need.Keys {
		if row, ok := s.keys.rows[key]; ok {
			view.Keys[key] = row
		}
	}
	return view, s.holdPruning(&view, need.Prune)
}

func (s *Store) hold(view *store.View, entity events.Entity) error {
	if row, ok := s.rows[entity]; ok {
		view.Rows[entity] = row
		return nil
	}
	if len(s.streams[entity]) == 0 {
		return nil
	}
	if entity.Kind.Rests() {
		newest, err := s.newest(entity)
		view.History[entity] = newest
		return err
	}
	history, err := s.history(entity)
	view.History[entity] = history
	return err
}

// newest is the last event of an entity that moved it.
func (s *Store) newest(entity events.Entity) ([]events.Recorded, error) {
	if position := s.moved(entity); position > 0 {
		return s.decodeEach([]int64{position})
	}
	return nil, nil
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
	s.tidy(row)
}

// places is the trees that a message's row belongs to.
func (s *Store) places(row store.Row) []*btree.BTreeG[store.Row] {
	var list []*btree.BTreeG[store.Row]
	switch {
	case !row.DueAt.IsZero():
		list = append(list, place(s.queued, level{row.Topic, row.Priority}, s.byDue))
	case row.Worker != (events.ID{}):
		list = append(list,
			place(s.running, events.WorkerEntity(row.Worker), byClaim),
			place(s.running, events.TopicEntity(row.Topic), byClaim))
	}
	if row.Waiting != store.NotWaiting {
		if s.waits[row.Lock] == nil {
			s.waits[row.Lock] = map[wait]*btree.BTreeG[store.Row]{}
		}
		list = append(list, place(s.waits[row.Lock], wait{row.Topic, row.Waiting}, s.byPlace))
	}
	return list
}

// tidy drops the trees that a row left empty: there may be as many workers and locks as the store ever saw.
func (s *Store) tidy(row store.Row) {
	if worker := events.WorkerEntity(row.Worker); s.running[worker] != nil && s.running[worker].Len() == 0 {
		delete(s.running, worker)
	}
	if row.Waiting == store.NotWaiting {
		return
	}
	waits := s.waits[row.Lock]
	if at := (wait{row.Topic, row.Waiting}); waits[at].Len() == 0 {
		delete(waits, at)
	}
	if len(waits) == 0 {
		delete(s.waits, row.Lock)
	}
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
	return s.place(a) < s.place(b)
}

// byPlace is the order of those who wait for a lock.
func (s *Store) byPlace(a, b store.Row) bool {
	if a.Priority != b.Priority {
		return a.Priority < b.Priority
	}
	return s.place(a) < s.place(b)
}

// place is the position of a message's first event.
func (s *Store) place(row store.Row) int64 { return s.placed[row.Entity] }

func byClaim(a, b store.Row) bool {
	if c := a.ClaimedAt.Compare(b.ClaimedAt); c != 0 {
		return c < 0
	}
	return a.Entity.Compare(b.Entity) < 0
}
