package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// Store is a store.Store in a SQLite file. It is also a store.Waiter, a store.ProcessWatcher, a store.Heart, a store.Leaser, a store.Pruner
// and a store.Shelf.
type Store struct {
	path  string
	clock func() time.Time
	id    events.ID

	file    *file
	turn    *turn
	writer  *writer // used by who has the turn
	readers *sql.DB
	schema  edition
	beats   atomic.Pointer[beats] // replaced where somebody set its file aside
	hints   *hints
	proofs  *proofs

	renewing sync.Mutex // who opens the file of heartbeats anew
	retired  []*beats   // files of heartbeats that were set aside: somebody may still read them

	mu      sync.Mutex
	closed  bool
	closing chan struct{}
	calls   sync.WaitGroup // of methods that are under way
}

var (
	_ store.Store          = (*Store)(nil)
	_ store.Waiter         = (*Store)(nil)
	_ store.ProcessWatcher = (*Store)(nil)
	_ store.Heart          = (*Store)(nil)
	_ store.Leaser         = (*Store)(nil)
	_ store.Pruner         = (*Store)(nil)
	_ store.Shelf          = (*Store)(nil)
)

// Open opens the store in the file at path and makes it where it does not exist. A file that is no store, or is damaged beyond
// reading, is store.ErrForeign; one of a newer version is store.ErrNewer. One of an older schema is migrated, unless Options.NoMigrate. It waits for its turn among writers, until ctx ends, where
// there is something to make or to migrate; to open a store of this version it waits for nobody.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("sqlite: open: %w", err)
	}
	path, err := resolve(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open: %w", err)
	}
	s := &Store{path: path, clock: o.Clock, closing: make(chan struct{})}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.file = &file{path: path}
	s.turn = newTurn(path+"-lock", s.closing)
	s.proofs = newProofs(path + "-workers")
	if err := s.open(ctx, o); err != nil {
		if isDamaged(err) {
			err = fmt.Errorf("%w: it is no readable SQLite file: %w", store.ErrForeign, err)
		}
		return nil, errors.Join(fmt.Errorf("sqlite: open %s: %w", path, classed(err)), s.release())
	}
	return s, nil
}

// resolve is the one absolute name of the file, whatever link leads to it: the files beside it must be the same for every process,
// and stay so when the working directory changes.
func resolve(path string) (string, error) {
	if path == "" {
		return "", errors.New("path is empty")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return real, err
	}
	if target, err := os.Readlink(path); err == nil {
		return "", fmt.Errorf("%s is a link to %s, which does not exist", path, target)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// open opens the files, and makes under the writers' lock what is not there, so that of several first openings one makes the store and
// the others find it.
func (s *Store) open(ctx context.Context, o Options) (err error) {
	exists, err := s.file.look()
	if err != nil {
		return err
	}
	if !exists && o.MustExist {
		return &fs.PathError{Op: "open", Path: s.path, Err: fs.ErrNotExist}
	}
	if s.writer, err = newWriter(s.path, o.Synchronous); err != nil {
		return err
	}
	if s.readers, err = openReaders(s.path); err != nil {
		return err
	}
	ready := false
	if exists {
		if s.id, ready, err = s.find(ctx, o); err != nil {
			return err
		}
	}
	if !ready {
		if err := s.make(ctx); err != nil {
			return err
		}
	}
	if !exists {
		if err := s.file.remember(); err != nil {
			return err
		}
	}
	beats, err := s.openBeats(ctx)
	if err != nil {
		return err
	}
	s.beats.Store(beats)
	s.hints = newHints(s)
	return s.sweepProofs(ctx)
}

// find gives the id of the store in a file that is there. It is false where something is to be made first.
func (s *Store) find(ctx context.Context, o Options) (id events.ID, ready bool, err error) {
	err = s.patiently(ctx, func() error {
		version, err := inspect(ctx, s.readers)
		if err != nil {
			return err
		}
		if version == 0 && o.MustExist {
			return fmt.Errorf("%w: no store was ever made in it", store.ErrForeign)
		}
		if version > 0 && version < SchemaVersion && o.NoMigrate {
			return &OlderError{version}
		}
		if version == SchemaVersion {
			id, ready, err = complete(ctx, s.readers)
		}
		return err
	})
	return id, ready, err
}

// make makes the store, or what is missing of it.
func (s *Store) make(ctx context.Context) error {
	if err := s.turn.take(ctx); err != nil {
		return err
	}
	defer s.turn.give()
	return s.patiently(ctx, func() (err error) {
		s.id, err = prepare(ctx, s.writer.db)
		return err
	})
}

// now is the store's time.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// Now implements store.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, fmt.Errorf("sqlite: now: %w", err)
	}
	defer s.calls.Done()
	return s.now(), nil
}

// enter begins a call that Close waits for. The caller ends it with s.calls.Done.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.calls.Add(1)
	return nil
}

// Close implements store.Store. Calls that wait for their turn fail with store.ErrClosed, those under way are waited for. What was begun
// of a wait in the kernel cannot be called off: a goroutine stays until the process that has the lock lets it go, and then ends. Proofs of
// life that were not let go are let go: whoever attested must have stopped its worker before.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.closing)
	s.mu.Unlock()
	s.calls.Wait()
	if err := s.release(); err != nil {
		return fmt.Errorf("sqlite: close: %w", err)
	}
	return nil
}

// release lets go of what was opened. The writer goes last: whoever closes a file last brings the write-ahead log home, and readers
// may not write.
func (s *Store) release() error {
	var errs []error
	if s.hints != nil {
		s.hints.close()
	}
	if s.readers != nil {
		errs = append(errs, s.readers.Close())
	}
	for _, b := range append(s.retired, s.beats.Load()) {
		if b != nil {
			errs = append(errs, b.close())
		}
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	return errors.Join(append(errs, s.proofs.close())...)
}
