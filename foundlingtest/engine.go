package foundlingtest

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/foundling-go/foundling/store/memory"
)

// engine is the store with hints of its own: when time has gone by, which no commit tells.
type engine struct {
	*memory.Store
	clock clock

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	watched  chan struct{} // a hint that somebody has begun to watch
}

// watcher is somebody who claims.
type watcher struct {
	topics []string
	hints  chan struct{}
}

func newEngine(s *memory.Store, c clock) *engine {
	return &engine{Store: s, clock: c, watchers: map[*watcher]struct{}{}, watched: make(chan struct{}, 1)}
}

// LookEvery is how often whoever follows the log looks for the commits of others. There are none: the client's own wake him.
func (e *engine) LookEvery() time.Duration { return e.clock.poll() }

// Watch implements store.Waiter.
func (e *engine) Watch(topics []string) (<-chan struct{}, func()) {
	w := &watcher{topics: slices.Clone(topics), hints: make(chan struct{}, 1)}
	commits, unwatch := e.Store.Watch(topics)
	over := make(chan struct{})
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-commits:
				hint(w.hints)
			}
		}
	})
	e.mu.Lock()
	e.watchers[w] = struct{}{}
	e.mu.Unlock()
	hint(e.watched)
	return w.hints, func() {
		e.mu.Lock()
		delete(e.watchers, w)
		e.mu.Unlock()
		unwatch()
		close(over)
		passing.Wait()
	}
}

// hint wakes all who claim.
func (e *engine) hint() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for w := range e.watchers {
		hint(w.hints)
	}
}

// handled is the topics that somebody claims.
func (e *engine) handled() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	topics := map[string]struct{}{}
	for w := range e.watchers {
		for _, topic := range w.topics {
			topics[topic] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(topics))
}

// hint leaves a hint where none waits.
func hint(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
