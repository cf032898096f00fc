package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/gofrs/flock"
	"github.com/google/uuid"
)

// proofs is a directory with a file for each incarnation that was attested, locked while its process lives. The kernel lets go of the
// lock when the process ends, however it ends, and keeps it while the process is only stopped. A file that can be locked proves that
// its process has ended; it stays for whoever asks later, until the worker's row is gone. A missing file proves nothing.
type proofs struct {
	dir string

	mu   sync.Mutex
	held map[events.ID]*flock.Flock
}

func newProofs(dir string) *proofs { return &proofs{dir: dir, held: map[events.ID]*flock.Flock{}} }

func (p *proofs) path(worker events.ID) string { return filepath.Join(p.dir, worker.String()) }

// Attest implements store.ProcessWatcher. An incarnation is attested once: what was gone is never back.
func (s *Store) Attest(ctx context.Context, worker events.ID) (func() error, error) {
	release, err := s.attest(ctx, worker)
	if err != nil {
		return nil, fmt.Errorf("sqlite: attest %s: %w", worker, err)
	}
	return release, nil
}

func (s *Store) attest(ctx context.Context, worker events.ID) (func() error, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	p := s.proofs
	if err := local(filepath.Dir(p.dir)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	// Nobody asks for an incarnation that is not known yet, so that the file is there a moment before its lock misleads nobody.
	lock := flock.New(p.path(worker), flock.SetFlag(os.O_CREATE|os.O_EXCL|os.O_RDWR), flock.SetPermissions(0o644))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("somebody else has its lock")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[worker] = lock
	return func() error { return p.letGo(worker) }, nil
}

func (p *proofs) letGo(worker events.ID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	lock, ok := p.held[worker]
	if !ok {
		return nil
	}
	delete(p.held, worker)
	return lock.Unlock()
}

// close lets go of what is held: see Store.Close.
func (p *proofs) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, lock := range p.held {
		errs = append(errs, lock.Unlock())
	}
	clear(p.held)
	return errors.Join(errs...)
}

// Gone implements store.ProcessWatcher.
func (s *Store) Gone(ctx context.Context, workers ...events.ID) ([]events.ID, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("sqlite: gone: %w", err)
	}
	defer s.calls.Done()
	err := local(filepath.Dir(s.proofs.dir))
	if errors.Is(err, store.ErrNoProof) {
		return nil, nil // nobody was ever attested here
	}
	if err != nil {
		return nil, fmt.Errorf("sqlite: gone: %w", err)
	}
	var gone []events.ID
	for _, worker := range workers {
		ended, err := s.proofs.ended(worker)
		if err != nil {
			return nil, fmt.Errorf("sqlite: gone: %s: %w", worker, err)
		}
		if ended {
			gone = append(gone, worker)
		}
	}
	return gone, nil
}

// ended tries the lock. It is shared, so that two who ask at once do not take each other for the process.
func (p *proofs) ended(worker events.ID) (bool, error) {
	lock := flock.New(p.path(worker), flock.SetFlag(os.O_RDONLY))
	ok, err := lock.TryRLock()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !ok {
		return false, err
	}
	return true, lock.Unlock()
}

// forget removes the files of workers whose rows are gone: they hold nothing that anybody could ask about.
func (p *proofs) forget(workers []events.ID) {
	for _, worker := range workers {
		_ = os.Remove(p.path(worker)) // one that stays is swept by a later Open
	}
}

// sweepProofs removes files that nobody can ask about any more: of incarnations that ended long ago without a row. They are left by
// processes that died before they were known, or before they had removed the file.
func (s *Store) sweepProofs(ctx context.Context) error {
	files, err := os.ReadDir(s.proofs.dir)
	if err != nil {
		return nil // there are none
	}
	for _, file := range files {
		worker, err := uuid.Parse(file.Name())
		if err != nil || !old(file) {
			continue
		}
		var rows int
		err = s.readers.QueryRowContext(ctx, "SELECT count(*) FROM workers WHERE id = ?", worker[:]).Scan(&rows)
		if err != nil {
			return err
		}
		if ended, err := s.proofs.ended(worker); rows == 0 && ended && err == nil {
			_ = os.Remove(s.proofs.path(worker)) // it is a matter of tidiness
		}
	}
	return nil
}

func old(file fs.DirEntry) bool {
	info, err := file.Info()
	return err == nil && time.Since(info.ModTime()) > store.Horizon
}
