package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
)

// pollEvery is how often the file is looked at for commits of other processes while somebody watches.
const pollEvery = 10 * time.Millisecond

// hints wakes who watches: at once for commits of this process, by polling for those of others.
type hints struct {
	store *Store

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	closed   bool
	stop     context.CancelFunc // of the poll, while it runs
	polls    sync.WaitGroup
}

type watcher struct {
	topics []string
	hints  chan struct{}
}

func newHints(s *Store) *hints { return &hints{store: s, watchers: map[*watcher]struct{}{}} }

// Watch implements store.Waiter.
func (s *Store) Watch(topics []string) (<-chan struct{}, func()) {
	w := &watcher{topics: slices.Clone(topics), hints: make(chan struct{}, 1)}
	h := s.hints
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers[w] = struct{}{}
	if h.stop == nil && !h.closed {
		var ctx context.Context
		ctx, h.stop = context.WithCancel(context.Background())
		h.polls.Go(func() { h.poll(ctx) })
	}
	return w.hints, func() { h.leave(w) }
}

// leave ends a watch, and the poll with the last of them.
func (h *hints) leave(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers, w)
	if len(h.watchers) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// close ends the poll. Who watches a closed store watches nothing.
func (h *hints) close() {
	h.mu.Lock()
	h.closed = true
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	h.mu.Unlock()
	h.polls.Wait()
}

// hint wakes who watches one of the topics.
func (h *hints) hint(woken []string) {
	if len(woken) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		if slices.ContainsFunc(w.topics, func(t string) bool { return slices.Contains(woken, t) }) {
			w.wake()
		}
	}
}

func (w *watcher) wake() {
	select {
	case w.hints <- struct{}{}:
	default: // the one that nobody took yet says the same
	}
}

// poll looks for commits of other processes until ctx ends. A look that fails is made again: whoever needs to know reads the tables.
func (h *hints) poll(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		h.pollOn(ctx, tick.C)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pollOn polls on one connection until something fails.
func (h *hints) pollOn(ctx context.Context, tick <-chan time.Time) {
	conn, err := h.store.readers.Conn(ctx)
	if err != nil {
		return
	}
	defer conn.Close()
	last := int64(-1) // so that what was committed before the first look is seen
	for {
		var version int64
		if conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version) != nil {
			return
		}
		if version != last && h.look(ctx, conn) != nil {
			return
		}
		last = version
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// look wakes who watches a topic that has something due.
func (h *hints) look(ctx context.Context, conn *sql.Conn) error {
	h.mu.Lock()
	watchers := make([]*watcher, 0, len(h.watchers))
	for w := range h.watchers {
		watchers = append(watchers, w)
	}
	h.mu.Unlock()
	found := map[string]bool{}
	for _, w := range watchers {
		for _, topic := range w.topics {
			due, known := found[topic]
			if !known {
				var err error
				if due, err = h.store.anyDue(ctx, conn, topic); err != nil {
					return err
				}
				found[topic] = due
			}
			if due {
				w.wake()
				break
			}
		}
	}
	return nil
}

const dueQuery = "SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_claimable" +
	" WHERE topic = ? AND priority = ? AND due <= ?)"

func (s *Store) anyDue(ctx context.Context, conn *sql.Conn, topic string) (due bool, err error) {
	for _, p := range events.Priorities() {
		err := conn.QueryRowContext(ctx, dueQuery, topic, int64(p), s.now().UnixMicro()).Scan(&due)
		if err != nil || due {
			return due, err
		}
	}
	return false, nil
}
