package foundling

import (
	"context"
	"sync"
	"time"

	"github.com/foundling-go/foundling/store"
)

// tailEvery is how often the head of the log is looked at for commits of other processes while somebody follows it.
const tailEvery = 25 * time.Millisecond

// lookEvery is how often the head is looked at for the commits of others: tailEvery, or what a store says that knows better.
func lookEvery(s store.Store) time.Duration {
	if paced, ok := store.As[interface{ LookEvery() time.Duration }](s); ok {
		return paced.LookEvery()
	}
	return tailEvery
}

// tail tells all followers of a client's log that it may have grown: at once for the client's own commits, by looking at the head for those of
// others. However many follow, one of them looks.
type tail struct {
	mu      sync.Mutex
	growths int           // rises whenever the log may have grown
	grown   chan struct{} // closed with the next rise; nil while nobody waits for it

	turn chan struct{} // full while somebody looks
	head Cursor        // as it was at the last look; of whoever has the turn
}

func newTail() *tail { return &tail{turn: make(chan struct{}, 1)} }

// grew wakes all who wait.
func (t *tail) grew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.growths++
	if t.grown != nil {
		close(t.grown)
		t.grown = nil
	}
}

// count is what wait compares with: take it before you read.
func (t *tail) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.growths
}

// wait blocks until the log may have grown since the count was taken, or ctx ends.
func (t *tail) wait(ctx context.Context, s store.Store, count int) {
	for ctx.Err() == nil {
		grown := t.after(count)
		if grown == nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-grown:
			return
		case t.turn <- struct{}{}:
			t.look(ctx, s, grown)
			<-t.turn
		}
	}
}

// after is a channel that is closed with the next rise; nil where the count has risen already.
func (t *tail) after(count int) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.growths != count {
		return nil
	}
	if t.grown == nil {
		t.grown = make(chan struct{})
	}
	return t.grown
}

// look looks at the head until it has moved. What it cannot see may have moved: whoever reads on is told why it cannot be read.
func (t *tail) look(ctx context.Context, s store.Store, grown <-chan struct{}) {
	ticker := time.NewTicker(lookEvery(s))
	defer ticker.Stop()
	for {
		head, err := s.Head(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil || head != t.head {
			t.head = head
			t.grew()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-grown:
			return
		case <-ticker.C:
		}
	}
}
