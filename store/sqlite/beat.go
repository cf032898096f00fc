package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// Heartbeats and leases have a file of their own, so that a writer that goes flat out never delays one. After a power cut every incarnation
// in it is over, so nothing waits for the disk: synchronous NORMAL keeps the file whole, which is all that is asked of it.

const (
	beatColumns = "worker, at, interval, fence_after"
	beatsTable  = "CREATE TABLE IF NOT EXISTS beats (worker BLOB PRIMARY KEY, at INTEGER NOT NULL, interval INTEGER NOT NULL," +
		" fence_after INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID"
	leasesTable = "CREATE TABLE IF NOT EXISTS leases (name TEXT PRIMARY KEY, holder BLOB, term INTEGER NOT NULL, until INTEGER," +
		" life INTEGER NOT NULL, swept INTEGER) STRICT, WITHOUT ROWID"
	// Files made before there were leases have no such column.
	fencedQuery = "SELECT count(*) FROM pragma_table_info('beats') WHERE name = 'fence_after'"
	fencedAlter = "ALTER TABLE beats ADD COLUMN fence_after INTEGER NOT NULL DEFAULT 0"
	// All of the file, which finds what is damaged.
	beatsCheck = "SELECT count(fence_after) + (SELECT count(*) FROM leases) FROM beats"

	beatFirst = "INSERT INTO beats (at, interval, fence_after, worker) VALUES (?, ?, ?, ?) ON CONFLICT (worker)" +
		" DO UPDATE SET at = excluded.at, interval = excluded.interval, fence_after = excluded.fence_after"
	beatAgain  = "UPDATE beats SET at = ?, interval = ?, fence_after = ? WHERE worker = ?"
	beatsQuery = "SELECT " + beatColumns + " FROM beats ORDER BY worker"
)

// beats is the file of heartbeats. Who reads it waits for nobody who writes.
type beats struct {
	file            *file
	writer, readers *sql.DB
}

func (b *beats) close() error {
	return errors.Join(b.readers.Close(), b.writer.Close()) // the last to close writes
}

func connectBeats(path string) (*beats, error) {
	b := &beats{file: &file{path: path}}
	var err error
	if b.writer, err = connect(path, 1, "synchronous(NORMAL)"); err != nil {
		return nil, err
	}
	if b.readers, err = connect(path, readerCount, "query_only(1)"); err != nil {
		return nil, errors.Join(err, b.writer.Close())
	}
	return b, nil
}

// openBeats opens the file of heartbeats, and makes it where it is not there, or is damaged: whoever lives beats again. One of an older
// version is brought up to this one.
func (s *Store) openBeats(ctx context.Context) (*beats, error) {
	path := s.path + "-beats"
	b, err := connectBeats(path)
	if err != nil {
		return nil, err
	}
	if s.beatsReady(ctx, b) {
		return b, nil
	}
	if err := b.close(); err != nil {
		return nil, err
	}
	if err := s.turn.take(ctx); err != nil {
		return nil, err
	}
	defer s.turn.give()
	b, err = s.makeBeats(ctx, path)
	if isDamaged(err) {
		if err := setAside(path); err != nil {
			return nil, fmt.Errorf("heartbeats: %w", err)
		}
		b, err = s.makeBeats(ctx, path)
	}
	if err != nil {
		return nil, fmt.Errorf("heartbeats in %s: %w", path, err)
	}
	return b, nil
}

// beatsReady reports whether the file can be used as it is.
func (s *Store) beatsReady(ctx context.Context, b *beats) bool {
	if there, err := b.file.look(); !there || err != nil {
		return false
	}
	var mode string
	var rows int
	err := s.patiently(ctx, func() error {
		if err := b.readers.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
			return err
		}
		return b.readers.QueryRowContext(ctx, beatsCheck).Scan(&rows)
	})
	return err == nil && mode == "wal" && b.file.check() == nil // somebody may have set it aside meanwhile
}

// makeBeats makes the file, or what is missing of it. The writers' turn is held, so nobody sets it aside meanwhile.
func (s *Store) makeBeats(ctx context.Context, path string) (*beats, error) {
	b, err := connectBeats(path)
	if err != nil {
		return nil, err
	}
	err = s.patiently(ctx, func() error { return prepareBeats(ctx, b.writer) })
	if err == nil {
		err = b.file.remember()
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func prepareBeats(ctx context.Context, db *sql.DB) error {
	if err := writeAhead(ctx, db); err != nil {
		return err
	}
	for _, table := range []string{beatsTable, leasesTable} {
		if _, err := db.ExecContext(ctx, table); err != nil {
			return err
		}
	}
	var fenced int
	err := db.QueryRowContext(ctx, fencedQuery).Scan(&fenced)
	if err == nil && fenced == 0 {
		_, err = db.ExecContext(ctx, fencedAlter)
	}
	if err == nil {
		_, err = db.ExecContext(ctx, beatsCheck)
	}
	return err
}

// setAside keeps a damaged file for whoever wants to know what befell it. What SQLite keeps beside it is of no use to anybody.
func setAside(path string) error {
	if err := os.Rename(path, path+".damaged"); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(path+"-wal"), os.RemoveAll(path+"-shm"))
}

// Beat implements store.Heart.
func (s *Store) Beat(ctx context.Context, b store.Beat) (time.Time, error) {
	query := beatAgain
	if b.First {
		query = beatFirst
	} else if err := s.proofs.touch(b.Worker); err != nil {
		return time.Time{}, fmt.Errorf("sqlite: beat of %s: %w", b.Worker, err)
	}
	if err := s.renewBeats(ctx); err != nil {
		return time.Time{}, fmt.Errorf("sqlite: beat of %s: %w", b.Worker, err)
	}
	var at time.Time
	var beating int64
	err := s.beating(ctx, func() error {
		at = s.now()
		result, err := s.beats.Load().writer.ExecContext(ctx, query,
			at.UnixMicro(), b.Interval.Microseconds(), b.FenceAfter.Microseconds(), b.Worker[:])
		if err != nil {
			return err
		}
		beating, err = result.RowsAffected()
		return err
	})
	if err == nil && beating == 0 {
		err = store.ErrNotBeating
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("sqlite: beat of %s: %w", b.Worker, err)
	}
	return at, nil
}

// Beats implements store.Heart. One that is not what was written is told of by itself: the others are listed beside the error.
func (s *Store) Beats(ctx context.Context) ([]store.Beat, error) {
	var list []store.Beat
	var spoilt []error
	err := s.beating(ctx, func() (err error) {
		list, spoilt, err = s.readBeats(ctx, beatsQuery)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sqlite: beats: %w", err)
	}
	for i, err := range spoilt {
		spoilt[i] = fmt.Errorf("sqlite: beats: %w", err)
	}
	return list, errors.Join(spoilt...)
}

// readBeats reads the heartbeats of a query, and what is wrong with those that cannot be read.
func (s *Store) readBeats(ctx context.Context, query string, args ...any) (list []store.Beat, spoilt []error, err error) {
	r := newRecord(beatColumns)
	rows, err := s.beats.Load().readers.QueryContext(ctx, query, args...)
	err = r.each(rows, err, func() error {
		b := r.beat()
		if r.err == nil {
			list = append(list, b)
		} else {
			spoilt = append(spoilt, damaged(events.WorkerEntity(b.Worker), "its heartbeat", r.err))
		}
		return nil
	})
	return list, spoilt, err
}

func (r *record) beat() store.Beat {
	return store.Beat{Worker: r.array(0), At: r.time(1), Interval: r.length(2), FenceAfter: r.length(3)}
}

// length is a length of time, which is kept in whole microseconds.
func (r *record) length(i int) time.Duration {
	return time.Duration(r.whole(i, 0, math.MaxInt64/1000)) * time.Microsecond
}

// beaters is the incarnations whose heartbeats a call must see.
func beaters(need *store.Need) []events.ID {
	list := slices.Clone(need.Beats)
	for _, holder := range need.Claims {
		if !slices.Contains(list, holder.Worker) {
			list = append(list, holder.Worker)
		}
	}
	return list
}

// beatsOf is the heartbeats of those of the incarnations that have one. That they cannot be read is the fault of nobody but refuses the call
// that must see them: the file of the store is as well as before, and whoever judges by heartbeats judges nothing without them.
func (s *Store) beatsOf(ctx context.Context, workers []events.ID) (map[events.ID]store.Beat, error) {
	args := make([]any, len(workers))
	for i := range workers {
		args[i] = workers[i][:]
	}
	query := "SELECT " + beatColumns + " FROM beats WHERE worker IN (?" + strings.Repeat(", ?", len(args)-1) + ")"
	var list []store.Beat
	var spoilt []error
	err := s.onBeats(ctx, func() (err error) {
		list, spoilt, err = s.readBeats(ctx, query, args...)
		return err
	})
	if err = errors.Join(err, errors.Join(spoilt...)); err != nil {
		return nil, atFault{fmt.Errorf("heartbeats: %w", err)}
	}
	found := make(map[events.ID]store.Beat, len(list))
	for _, b := range list {
		found[b.Worker] = b
	}
	return found, nil
}

// renewBeats opens the file of heartbeats anew where somebody has set it aside: an incarnation whose row was in it is over, and starts again.
func (s *Store) renewBeats(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	if s.beats.Load().file.check() == nil {
		return nil
	}
	s.renewing.Lock()
	defer s.renewing.Unlock()
	if s.beats.Load().file.check() == nil {
		return nil
	}
	b, err := s.openBeats(ctx)
	if err != nil {
		return fmt.Errorf("heartbeats were set aside: %w", err)
	}
	s.retired = append(s.retired, s.beats.Swap(b))
	return nil
}

// Still implements store.Heart.
func (s *Store) Still(ctx context.Context, worker events.ID) error {
	err := s.beating(ctx, func() error {
		_, err := s.beats.Load().writer.ExecContext(ctx, "DELETE FROM beats WHERE worker = ?", worker[:])
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlite: still: %w", err)
	}
	return nil
}

// beating runs a statement on the file of heartbeats.
func (s *Store) beating(ctx context.Context, statement func() error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.onBeats(ctx, statement)
}

// onBeats tries a statement again where another process has the file just then. What is written to a file that was set aside nobody sees, and
// what it says of others is out of date.
func (s *Store) onBeats(ctx context.Context, statement func() error) error {
	if err := s.beats.Load().file.check(); err != nil {
		return err
	}
	return classed(s.patiently(ctx, statement))
}
