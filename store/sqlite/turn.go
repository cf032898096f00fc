package sqlite

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/foundling-go/foundling/store"
	"github.com/gofrs/flock"
)

// turn is the right to write: one at a time within this process, then one at a time among processes by an OS lock on a file. The
// kernel lets go of it when the process ends, however it ends.
type turn struct {
	path    string
	closing <-chan struct{}
	seat    chan struct{} // full while somebody of this process has the turn or waits for the file
	lock    *flock.Flock  // held; owned by who has the seat
	pending *pending      // a wait for the file that outlives the caller who began it; owned by who has the seat
}

// pending is a wait in the kernel. It cannot be called off, so there is at most one, and it is handed from caller to caller: were each
// to begin its own, a stopped process that has the lock would cost this one a thread per attempt.
type pending struct {
	mu     sync.Mutex
	wanted bool
	over   bool       // it got the lock when nobody wanted it, and let it go
	got    chan error // of one
	lock   *flock.Flock
}

func newTurn(path string, closing <-chan struct{}) *turn {
	return &turn{path: path, closing: closing, seat: make(chan struct{}, 1)}
}

// take waits for the turn. It fails when ctx ends or the store closes first.
func (t *turn) take(ctx context.Context) error {
	select {
	case t.seat <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-t.closing:
		return store.ErrClosed
	}
	err := t.lockFile(ctx)
	if err == nil && ctx.Err() != nil { // it may have ended while others had their turn
		t.give()
		return ctx.Err()
	}
	if err != nil {
		<-t.seat
	}
	return err
}

// give ends the turn.
func (t *turn) give() {
	_ = t.lock.Unlock() // cannot fail on a file that is locked, and what was committed stays so
	t.lock = nil
	<-t.seat
}

// lockFile locks the file that its path names. Whoever removes a store removes that file too: who waited for it then has the lock on a
// file that nobody else will ever look at.
func (t *turn) lockFile(ctx context.Context) error {
	for {
		if err := t.lockOne(ctx); err != nil {
			return err
		}
		if names(t.path, t.lock) {
			return nil
		}
		_ = t.lock.Unlock() // as in give
		t.lock = nil
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// names reports whether a path leads to the file of a lock that is held.
func names(path string, lock *flock.Flock) bool {
	held, err := lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(held, there)
}

func (t *turn) lockOne(ctx context.Context) error {
	if t.pending != nil && !t.pending.want() {
		t.pending = nil
	}
	if t.pending == nil {
		lock := newFlock(t.path)
		if ok, err := lock.TryLock(); ok || err != nil {
			t.lock = lock
			return err
		}
		t.pending = &pending{wanted: true, got: make(chan error, 1), lock: lock}
		go t.pending.wait()
	}
	select {
	case err := <-t.pending.got:
		t.lock, t.pending = t.pending.lock, nil
		return err
	case <-ctx.Done():
		return errors.Join(ctx.Err(), t.leave())
	case <-t.closing:
		return errors.Join(store.ErrClosed, t.leave())
	}
}

// leave gives up the wait, or the lock where it has come meanwhile.
func (t *turn) leave() error {
	t.pending.mu.Lock()
	defer t.pending.mu.Unlock()
	t.pending.wanted = false
	select {
	case err := <-t.pending.got:
		lock := t.pending.lock
		t.pending = nil
		return errors.Join(err, lock.Unlock())
	default:
		return nil
	}
}

// want takes over a wait that another caller began. It is false where that wait is over.
func (p *pending) want() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = true
	return !p.over
}

func (p *pending) wait() {
	err := p.lock.Lock()
	for errors.Is(err, syscall.EINTR) {
		err = p.lock.Lock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted {
		p.got <- err
		return
	}
	p.over = true
	if err == nil {
		_ = p.lock.Unlock() // closing the file lets go as well, and nobody is there to be told
	}
}

// newFlock is a lock file with the mode that SQLite gives its own files. It is closed in children.
func newFlock(path string) *flock.Flock { return flock.New(path, flock.SetPermissions(0o644)) }
