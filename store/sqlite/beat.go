package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// Heartbeats have a file of their own, so that a writer that goes flat out never delays one. After a power cut every incarnation in it
// is over, so nothing waits for the disk: synchronous NORMAL keeps the file whole, which is all that is asked of it.

const beatColumns = "worker, at, interval"

// openBeats opens the file of heartbeats, and makes it where it is not there or is damaged: whoever lives beats again.
func (s *Store) openBeats(ctx context.Context) (*sql.DB, error) {
	path := s.path + "-beats"
	db, err := connect(path, 1, "synchronous(NORMAL)")
	if err != nil {
		return nil, err
	}
	if s.beatsReady(ctx, db) {
		return db, nil
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	if err := s.turn.take(ctx); err != nil {
		return nil, err
	}
	defer s.turn.give()
	db, err = s.makeBeats(ctx, path)
	if isDamaged(err) {
		if err := setAside(path); err != nil {
			return nil, fmt.Errorf("heartbeats: %w", err)
		}
		db, err = s.makeBeats(ctx, path)
	}
	if err != nil {
		return nil, fmt.Errorf("heartbeats in %s: %w", path, err)
	}
	return db, nil
}

// beatsReady reports whether the file can be used as it is.
func (s *Store) beatsReady(ctx context.Context, db *sql.DB) bool {
	var mode string
	var beats int
	err := s.patiently(ctx, func() error {
		if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
			return err
		}
		return db.QueryRowContext(ctx, "SELECT count(*) FROM beats").Scan(&beats) // all of it, which finds what is damaged
	})
	return err == nil && mode == "wal"
}

func (s *Store) makeBeats(ctx context.Context, path string) (*sql.DB, error) {
	db, err := connect(path, 1, "synchronous(NORMAL)")
	if err != nil {
		return nil, err
	}
	err = s.patiently(ctx, func() error {
		if err := writeAhead(ctx, db); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS beats"+
			" (worker BLOB PRIMARY KEY, at INTEGER NOT NULL, interval INTEGER NOT NULL) STRICT, WITHOUT ROWID")
		if err == nil {
			_, err = db.ExecContext(ctx, "SELECT count(*) FROM beats")
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
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
	query := "UPDATE beats SET at = ?, interval = ? WHERE worker = ?"
	if b.First {
		query = "INSERT INTO beats (at, interval, worker) VALUES (?, ?, ?)" +
			" ON CONFLICT (worker) DO UPDATE SET at = excluded.at, interval = excluded.interval"
	}
	if !b.First {
		if err := s.proofs.touch(b.Worker); err != nil {
			return time.Time{}, fmt.Errorf("sqlite: beat of %s: %w", b.Worker, err)
		}
	}
	var at time.Time
	var beating int64
	err := s.beating(ctx, func() error {
		at = s.now()
		result, err := s.beats.ExecContext(ctx, query, at.UnixMicro(), b.Interval.Microseconds(), b.Worker[:])
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

// Beats implements store.Heart.
func (s *Store) Beats(ctx context.Context) ([]store.Beat, error) {
	var list []store.Beat
	r := newRecord(beatColumns)
	err := s.beating(ctx, func() error {
		list = nil
		rows, err := s.beats.QueryContext(ctx, "SELECT "+beatColumns+" FROM beats ORDER BY worker")
		return r.each(rows, err, func() error {
			b := store.Beat{
				Worker: r.array(0), At: r.time(1),
				Interval: time.Duration(r.whole(2, 0, math.MaxInt64/1000)) * time.Microsecond,
			}
			list = append(list, b)
			return damaged(events.WorkerEntity(b.Worker), "its heartbeat", r.err)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("sqlite: beats: %w", err)
	}
	return list, nil
}

// Still implements store.Heart.
func (s *Store) Still(ctx context.Context, worker events.ID) error {
	err := s.beating(ctx, func() error {
		_, err := s.beats.ExecContext(ctx, "DELETE FROM beats WHERE worker = ?", worker[:])
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlite: still: %w", err)
	}
	return nil
}

// beating runs a statement on the file of heartbeats, again where another process has it just then.
func (s *Store) beating(ctx context.Context, statement func() error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return classed(s.patiently(ctx, statement))
}
