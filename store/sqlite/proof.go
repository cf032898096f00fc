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
	held map[events.ID]*proof
}

// proof is the lock on a file of this process.
type proof struct {
	*flock.Flock
	forgotten bool // its file was removed, since the worker has no row any more
}

func newProofs(dir string) *proofs { return &proofs{dir: dir, held: map[events.ID]*proof{}} }

func (p *proofs) path(worker events.ID) string { return filepath.Join(p.dir, worker.String()) }

// Attest implements store.ProcessWatcher. An incarnation is attested once: what was gone is never back.
func (s *Store) Attest(ctx context.Context, worker events.ID) (func() error, error) {
	release, err := s.attest(ctx, worker)
	if err != nil {
		return nil, fmt.Errorf("sqlite: attest %s: %w", worker, classed(err))
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
	if err := local(p.dir); err != nil { // it may be a link, or mounted
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
	p.held[worker] = &proof{Flock: lock}
	return func() error { return p.letGo(worker) }, nil
}

func (p *proofs) letGo(worker events.ID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	proof, ok := p.held[worker]
	if !ok {
		return nil
	}
	delete(p.held, worker)
	if !proof.forgotten {
		p.restore(worker)
	}
	return proof.Unlock()
}

// restore makes the file of an incarnation that is over where somebody has taken it away, so that its end can be proven after all.
func (p *proofs) restore(worker events.ID) {
	f, err := os.OpenFile(p.path(worker), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err == nil {
		_ = f.Close() // nothing was written to it
	}
}

// touch makes sure that the proof of an incarnation that was attested here is still the one that others look at, and keeps its file
// from looking old to whoever cleans up. Without it the incarnation could be taken for dead while it lives, or for alive for ever.
func (p *proofs) touch(worker events.ID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	proof, ok := p.held[worker]
	if !ok {
		return nil
	}
	path := p.path(worker)
	if !names(path, proof.Flock) {
		return fmt.Errorf("%w that others could believe: its proof of life %s was removed or replaced", store.ErrNotBeating, path)
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // where that cannot be had, the file is as safe as it was
	return nil
}

// close lets go of what is held: see Store.Close.
func (p *proofs) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, proof := range p.held {
		errs = append(errs, proof.Unlock())
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
	err := local(s.proofs.dir)
	if errors.Is(err, store.ErrNoProof) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nobody was ever attested here
	}
	if err != nil {
		return nil, fmt.Errorf("sqlite: gone: %w", err)
	}
	var gone []events.ID
	var errs []error
	for _, worker := range workers {
		ended, err := s.proofs.ended(worker)
		if err != nil {
			errs = append(errs, fmt.Errorf("sqlite: gone: proof of %s: %w", worker, err))
		}
		if ended {
			gone = append(gone, worker)
		}
	}
	return gone, errors.Join(errs...)
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
	_ = lock.Unlock() // the lock was had, which is the proof
	return true, nil
}

// forget removes the files of workers whose rows are gone: they hold nothing that anybody could ask about.
func (p *proofs) forget(workers []events.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, worker := range workers {
		if proof, ok := p.held[worker]; ok {
			proof.forgotten = true
		}
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
