package postgres

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
)

// hints wakes who watches: at once for commits of this process, by notifications of the server for those of others. Notifications are sent after the
// commit they tell of, on a connection of their own: in the transaction that commits they would have all commits of the database take turns.
type hints struct {
	config  *pgx.ConnConfig // of those that tell
	direct  *pgx.ConnConfig // of those that listen
	pooler  *pooler
	empties *empties
	log     *slog.Logger
	waits   hintWaits
	me      string // names this store among those that notify
	name    string // of the channel

	stagedName string // of the channel on which transactions tell that they have staged something

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	closed   bool
	stop     context.CancelFunc // of the listener, while it runs
	runs     sync.WaitGroup
	ends     context.Context // of what tells others
	end      context.CancelFunc

	told  telling
	heard hearing
}

type watcher struct {
	topics []string
	staged bool // it waits for what is staged, and for no topic
	hints  chan struct{}
}

func newHints(s *Store) *hints {
	h := &hints{
		config: s.config, direct: s.direct.Copy(), pooler: &s.pooler, empties: &s.empties, log: s.options.Logger, waits: usualWaits, watchers: map[*watcher]struct{}{}, me: someName(),
		name: "foundling_" + flat(s.id), stagedName: s.desk.channel(),
	}
	h.direct.OnNotification = nil // they are kept until they are waited for
	h.ends, h.end = context.WithCancel(context.Background())
	h.told.work = make(chan struct{}, 1)
	return h
}

// Watch implements store.Waiter.
func (s *Store) Watch(topics []string) (<-chan struct{}, func()) {
	return s.powers.hints.watch(&watcher{topics: slices.Clone(topics), hints: make(chan struct{}, 1)})
}

func (h *hints) watch(w *watcher) (<-chan struct{}, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers[w] = struct{}{}
	if h.stop == nil && !h.closed {
		var ctx context.Context
		ctx, h.stop = context.WithCancel(h.ends)
		h.runs.Go(func() { h.listen(ctx) })
	}
	return w.hints, func() { h.leave(w) }
}

// leave ends a watch, and the listener with the last of them.
func (h *hints) leave(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers, w)
	if len(h.watchers) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// close ends what runs. Who watches a closed store watches nothing.
func (h *hints) close() {
	h.mu.Lock()
	h.closed = true
	h.end()
	h.stop = nil
	h.mu.Unlock()
	h.runs.Wait()
}

// hint wakes who watches one of the topics, here and in other processes.
func (h *hints) hint(woken []string) {
	if len(woken) == 0 {
		return
	}
	h.wake(woken)
	h.tell(woken)
}

// wake wakes who watches one of the topics here.
func (h *hints) wake(woken []string) {
	h.empties.woke(woken)
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		if slices.ContainsFunc(w.topics, func(t string) bool { return slices.Contains(woken, t) }) {
			w.wake()
		}
	}
}

// wakeAll wakes everybody: nobody knows what was missed.
func (h *hints) wakeAll() {
	h.empties.forget()
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		w.wake()
	}
}

func (w *watcher) wake() {
	select {
	case w.hints <- struct{}{}:
	default: // the one that nobody took yet says the same
	}
}
