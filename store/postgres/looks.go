package postgres

import (
	"context"
	"sync"
	"time"
)

// lookTimeout bounds a look that nobody waits for any more.
const lookTimeout = 10 * time.Second

// looks has one look under way at a time: whoever asks while one is, takes part in the next. So a look always began after it was asked for, and
// a crowd of readers asks no more than one.
type looks struct {
	mu   sync.Mutex
	busy bool
	next *sharedLook
	done sync.WaitGroup
}

// sharedLook is a look that several wait for.
type sharedLook struct {
	ready chan struct{}
	look  *look
	err   error
}

// look is a look that began after the call.
func (s *Store) look(ctx context.Context) (*look, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	shared := s.powers.looks.join(s.lookNow)
	select {
	case <-shared.ready:
		return shared.look, shared.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *looks) join(do func(context.Context) (*look, error)) *sharedLook {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &sharedLook{ready: make(chan struct{})}
	}
	shared := l.next
	if !l.busy {
		l.busy = true
		l.done.Go(func() { l.run(do) })
	}
	return shared
}

// run takes looks for as long as somebody asks for one.
func (l *looks) run(do func(context.Context) (*look, error)) {
	for {
		l.mu.Lock()
		shared := l.next
		l.next = nil
		l.busy = shared != nil
		l.mu.Unlock()
		if shared == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		shared.look, shared.err = do(ctx)
		cancel()
		close(shared.ready)
	}
}
