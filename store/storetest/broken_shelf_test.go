package storetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/google/uuid"
)

// shelfEngines are broken in what they do with checkpoints.
func shelfEngines() []broken {
	const (
		back    = "a checkpoint comes back as it was saved"
		follows = "a checkpoint that does not follow the newest is ErrMoved, and not kept"
		listed  = "Checkpoints filters by name and version, and gives the newest alone"
		dropped = "what is dropped is gone, and nothing else"
	)
	lists := func(f func(*store.CheckpointFilter)) func(store.Store) store.Store {
		return shelves(shelf{filter: f})
	}
	return []broken{
		{"loses cursors", back, shelves(shelf{save: func(c *store.Checkpoint) { c.Cursor = "" }})},
		{"changes views", back, shelves(shelf{view: func(c *store.Checkpoint) { c.View = append(c.View, 0) }})},
		{"saves at the caller's time", "a checkpoint carries the store's time of saving", shelves(shelf{saved: func(c *store.Checkpoint) { c.At = c.At.Add(time.Hour) }})},
		{"saves over others", follows, func(s store.Store) store.Store { return pushing{shelf{Store: s}} }},
		{"lets the last one win", "of many who save the next checkpoint at once one does", func(s store.Store) store.Store { return pushing{shelf{Store: s}} }},
		{"lets the last process win", "processes never save one checkpoint twice", func(s store.Store) store.Store { return pushing{shelf{Store: s}} }},
		{"looks before it saves", "of many who save the next checkpoint at once one does", func(s store.Store) store.Store {
			return &looking{shelf: shelf{Store: s}}
		}},
		{"lists views", "Checkpoints lists by name, version, then sequence, without views", shelves(shelf{list: func(list []store.Checkpoint) []store.Checkpoint {
			for i := range list {
				list[i].View = []byte("view")
			}
			return list
		}})},
		{"lists backwards", "Checkpoints lists by name, version, then sequence, without views", shelves(shelf{list: func(list []store.Checkpoint) []store.Checkpoint {
			slices.Reverse(list)
			return list
		}})},
		{"lists every name", listed, lists(func(f *store.CheckpointFilter) { f.Name = "" })},
		{"lists every version", listed, lists(func(f *store.CheckpointFilter) { f.Version = 0 })},
		{"lists what is old", listed, lists(func(f *store.CheckpointFilter) { f.Newest = false })},
		{"has a view of everything", "the view of what is not kept is ErrMoved", func(s store.Store) store.Store { return visionary{shelf{Store: s}} }},
		{"drops nothing", dropped, shelves(shelf{drop: func([]store.CheckpointKey) []store.CheckpointKey { return nil }})},
		{"drops the first alone", dropped, shelves(shelf{drop: func(keys []store.CheckpointKey) []store.CheckpointKey { return keys[:min(1, len(keys))] }})},
		{"drops the next one too", dropped, shelves(shelf{drop: func(keys []store.CheckpointKey) []store.CheckpointKey {
			for _, k := range keys {
				k.Sequence++
				keys = append(keys, k)
			}
			return keys
		}})},
		{"takes any view", "the largest view is kept, one byte more is too large", shelves(shelf{save: func(c *store.Checkpoint) {
			if len(c.View) > store.MaxView {
				c.View = nil
			}
		}})},
		{"takes any key", "a checkpoint without a name, a version or a sequence is refused", shelves(shelf{save: func(c *store.Checkpoint) { c.Version = max(c.Version, 1) }})},
		{"records checkpoints", "a checkpoint is no event", func(s store.Store) store.Store { return diarist{shelf{Store: s}} }},
		{"keeps the caller's bytes", "what Shelf gives is the caller's, and what it is given too", func(s store.Store) store.Store {
			return &sharing{shelf: shelf{Store: s}, views: map[store.CheckpointKey][]byte{}}
		}},
		{"saves whatever its context says", "a context that has ended saves and drops nothing", shelves(shelf{tireless: true})},
		{"keeps checkpoints for itself", "checkpoints are there after the store was closed", func(s store.Store) store.Store {
			return &sharing{shelf: shelf{Store: s}, views: map[store.CheckpointKey][]byte{}, forgets: true}
		}},
	}
}

// shelf is an engine whose checkpoints are changed on their way.
type shelf struct {
	store.Store
	save, saved, view func(*store.Checkpoint)
	list              func([]store.Checkpoint) []store.Checkpoint
	filter            func(*store.CheckpointFilter)
	drop              func([]store.CheckpointKey) []store.CheckpointKey
	tireless          bool
}

func shelves(bend shelf) func(store.Store) store.Store {
	return func(s store.Store) store.Store {
		bend.Store = s
		return bend
	}
}

func (s shelf) Unwrap() store.Store { return s.Store }

func (s shelf) inner() store.Shelf {
	inner, _ := store.As[store.Shelf](s.Store)
	return inner
}

func (s shelf) ctx(ctx context.Context) context.Context {
	if s.tireless {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

func (s shelf) Save(ctx context.Context, c store.Checkpoint) (store.Checkpoint, error) {
	if s.save != nil {
		s.save(&c)
	}
	c, err := s.inner().Save(s.ctx(ctx), c)
	if s.saved != nil {
		s.saved(&c)
	}
	return c, err
}

func (s shelf) Checkpoints(ctx context.Context, f store.CheckpointFilter) ([]store.Checkpoint, error) {
	if s.filter != nil {
		s.filter(&f)
	}
	list, err := s.inner().Checkpoints(s.ctx(ctx), f)
	if s.list != nil {
		list = s.list(list)
	}
	return list, err
}

func (s shelf) View(ctx context.Context, k store.CheckpointKey) (store.Checkpoint, error) {
	c, err := s.inner().View(s.ctx(ctx), k)
	if s.view != nil && err == nil {
		s.view(&c)
	}
	return c, err
}

func (s shelf) Drop(ctx context.Context, keys ...store.CheckpointKey) error {
	if s.drop != nil {
		keys = s.drop(keys)
	}
	return s.inner().Drop(s.ctx(ctx), keys...)
}

// pushing is an engine that makes every checkpoint follow.
type pushing struct{ shelf }

func (p pushing) Save(ctx context.Context, c store.Checkpoint) (store.Checkpoint, error) {
	for {
		list, err := p.Checkpoints(ctx, store.CheckpointFilter{Name: c.Name, Version: c.Version, Newest: true})
		if err != nil {
			return store.Checkpoint{}, err
		}
		c.Sequence = 1
		if len(list) > 0 {
			c.Sequence = list[0].Sequence + 1
		}
		if saved, err := p.shelf.Save(ctx, c); !errors.Is(err, store.ErrMoved) {
			return saved, err
		}
	}
}

// looking is an engine that sees whether a checkpoint follows before it saves, in two steps: two callers that look at once both do.
type looking struct {
	shelf
	mu   sync.Mutex
	once bool
}

func (l *looking) Save(ctx context.Context, c store.Checkpoint) (store.Checkpoint, error) {
	saved, err := l.shelf.Save(ctx, c)
	if errors.Is(err, store.ErrMoved) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.once {
			l.once = true
			return c, nil // as if it had come at the same time
		}
	}
	return saved, err
}

// visionary is an engine that has a view of what it does not keep.
type visionary struct{ shelf }

func (v visionary) View(ctx context.Context, k store.CheckpointKey) (store.Checkpoint, error) {
	c, err := v.shelf.View(ctx, k)
	if errors.Is(err, store.ErrMoved) {
		return store.Checkpoint{CheckpointKey: k}, nil
	}
	return c, err
}

// diarist is an engine that has an event for every checkpoint.
type diarist struct{ shelf }

func (d diarist) Save(ctx context.Context, c store.Checkpoint) (store.Checkpoint, error) {
	change := store.Change{
		Row:         store.Row{Entity: events.TopicEntity("diary"), Version: 1, State: events.Active, Fields: []byte("{}")},
		Transitions: []events.Transition{{Event: &events.TopicConfigured{}, Version: 1, To: events.Active}},
	}
	_, err := d.Decide(ctx, store.Call{ID: uuid.Must(uuid.NewV7()), Fn: func(store.View) (store.Changes, error) {
		return store.Changes{Rows: []store.Change{change}}, nil
	}})
	if err != nil {
		return store.Checkpoint{}, err
	}
	return d.shelf.Save(ctx, c)
}

// sharing is an engine that keeps views in its own process as they were handed over, beside everything else.
type sharing struct {
	shelf
	forgets bool
	views   map[store.CheckpointKey][]byte
}

func (s *sharing) Save(ctx context.Context, c store.Checkpoint) (store.Checkpoint, error) {
	view := c.View
	if s.forgets {
		c.View = nil
	}
	saved, err := s.shelf.Save(ctx, c)
	if err == nil {
		s.views[c.CheckpointKey] = view
		saved.View = view
	}
	return saved, err
}

func (s *sharing) View(ctx context.Context, k store.CheckpointKey) (store.Checkpoint, error) {
	c, err := s.shelf.View(ctx, k)
	c.View = s.views[k]
	return c, err
}
