package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file keeps checkpoints. They lie in the store's own file, so that whoever copies it has both or neither, and take their turn among
// writers for as long as it takes to write one row.

const (
	shelfColumns = "name, version, sequence, cursor, at, digest, checksum"

	newestFirst    = "SELECT " + shelfColumns + " FROM checkpoints WHERE name = ? AND version = ? ORDER BY sequence DESC"
	saveCheckpoint = "INSERT INTO checkpoints (" + shelfColumns + ", view) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
	dropCheckpoint = "DELETE FROM checkpoints WHERE name = ? AND version = ? AND sequence = ?"
	viewQuery      = "SELECT " + shelfColumns + ", view FROM checkpoints WHERE name = ? AND version = ? AND sequence = ?"
)

// Save implements store.Shelf.
func (s *Store) Save(ctx context.Context, c store.Checkpoint) (store.Checkpoint, error) {
	err := c.Check()
	digest := crc32.Checksum(c.View, castagnoli) // nobody waits for it
	if err == nil {
		err = s.transact(ctx, func(w *writer) error {
			last, err := w.lastCheckpoint(c.CheckpointKey)
			if err != nil {
				return err
			}
			if c.Sequence != last+1 {
				return fmt.Errorf("%s: the newest is %d: %w", checkpointOf(c.CheckpointKey), last, store.ErrMoved)
			}
			c.At = s.now()
			return w.exec(saveCheckpoint, c.Name, int64(c.Version), int64(c.Sequence), string(c.Cursor), c.At.UnixMicro(),
				int64(int32(digest)), int64(int32(checkpointSum(&c, digest))), blob(c.View))
		})
	}
	if err != nil {
		return store.Checkpoint{}, fmt.Errorf("sqlite: save: %w", err)
	}
	return c, nil
}

// lastCheckpoint is the sequence of the newest checkpoint beside one that can be read; 0 where there is none. Whatever calls itself newer and is
// not what was saved goes: nothing could follow it.
func (w *writer) lastCheckpoint(k store.CheckpointKey) (last int, err error) {
	var spoilt []any // their sequences
	r := newRecord(shelfColumns)
	err = w.query(r, func() error {
		c, _, err := r.checkpoint()
		if err != nil {
			spoilt = append(spoilt, r.values[2])
			return nil
		}
		last = c.Sequence
		return errPageFull
	}, newestFirst, k.Name, int64(k.Version))
	if err != nil && !errors.Is(err, errPageFull) {
		return 0, err
	}
	for _, sequence := range spoilt {
		if err := w.exec(dropCheckpoint, k.Name, int64(k.Version), sequence); err != nil {
			return 0, err
		}
	}
	return last, nil
}

func checkpointOf(k store.CheckpointKey) string {
	return fmt.Sprintf("checkpoint %d of projection %q in version %d", k.Sequence, k.Name, k.Version)
}

// checkpointSum is a checksum over all of a checkpoint, for whose view a digest stands: so a list of them need not read the views.
func checkpointSum(c *store.Checkpoint, digest uint32) uint32 {
	b := binary.BigEndian.AppendUint32(nil, digest)
	for _, n := range []int64{int64(c.Version), int64(c.Sequence), c.At.UnixMicro(), int64(len(c.Name))} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = append(append(b, c.Name...), c.Cursor...)
	return crc32.Checksum(b, castagnoli)
}

// checkpoint is the checkpoint that was scanned, without its view, and the digest of that. What is not what was saved is an error.
func (r *record) checkpoint() (c store.Checkpoint, digest uint32, err error) {
	c.Name, c.Version, c.Sequence = r.text(0), r.version(1), r.version(2)
	c.Cursor, c.At, digest = store.Cursor(r.text(3)), r.time(4), r.checksum(5)
	if sum := r.checksum(6); r.err == nil && sum != checkpointSum(&c, digest) {
		r.err = fmt.Errorf("checksum %08x, stored as %08x", checkpointSum(&c, digest), sum)
	}
	return c, digest, damaged(events.Entity{}, checkpointOf(c.CheckpointKey), r.err)
}

// Checkpoints implements store.Shelf. One that is not what was saved is told of by itself: the others are listed beside the error.
func (s *Store) Checkpoints(ctx context.Context, f store.CheckpointFilter) ([]store.Checkpoint, error) {
	query, args := shelfQuery(f)
	var list []store.Checkpoint
	var spoilt []error
	err := s.snapshot(ctx, func(from source) error {
		list, spoilt = nil, nil
		r := newRecord(shelfColumns)
		return from(r, func() error {
			c, _, err := r.checkpoint()
			if err != nil {
				spoilt = append(spoilt, fmt.Errorf("sqlite: checkpoints: %w", err))
			} else {
				list = append(list, c)
			}
			return nil
		}, query, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("sqlite: checkpoints: %w", err)
	}
	return list, errors.Join(spoilt...)
}

// shelfQuery is the query for the checkpoints that pass a filter.
func shelfQuery(f store.CheckpointFilter) (query string, args []any) {
	query = "SELECT " + shelfColumns + " FROM checkpoints c WHERE 1"
	if f.Name != "" {
		query, args = query+" AND name = ?", append(args, f.Name)
	}
	if f.Version != 0 {
		query, args = query+" AND version = ?", append(args, int64(f.Version))
	}
	if f.Newest {
		query += " AND NOT EXISTS (SELECT 1 FROM checkpoints n WHERE n.name = c.name AND n.version = c.version AND n.sequence > c.sequence)"
	}
	return query + " ORDER BY name, version, sequence", args
}

// View implements store.Shelf.
func (s *Store) View(ctx context.Context, k store.CheckpointKey) (store.Checkpoint, error) {
	var c store.Checkpoint
	found := false
	err := s.snapshot(ctx, func(from source) error {
		found = false
		r := newRecord(shelfColumns + ", view")
		return from(r, func() error {
			var digest uint32
			var err error
			if c, digest, err = r.checkpoint(); err != nil {
				return err
			}
			found, c.View = true, r.bytes(width(shelfColumns))
			if sum := crc32.Checksum(c.View, castagnoli); r.err == nil && sum != digest {
				r.err = fmt.Errorf("its view: checksum %08x, stored as %08x", sum, digest)
			}
			return damaged(events.Entity{}, checkpointOf(k), r.err)
		}, viewQuery, k.Name, int64(k.Version), int64(k.Sequence))
	})
	if err == nil && !found {
		err = fmt.Errorf("%s is not kept: %w", checkpointOf(k), store.ErrMoved)
	}
	if err != nil {
		return store.Checkpoint{}, fmt.Errorf("sqlite: view: %w", err)
	}
	return c, nil
}

// Drop implements store.Shelf.
func (s *Store) Drop(ctx context.Context, keys ...store.CheckpointKey) error {
	if len(keys) == 0 {
		return nil
	}
	err := s.transact(ctx, func(w *writer) error {
		for _, k := range keys {
			if err := w.exec(dropCheckpoint, k.Name, int64(k.Version), int64(k.Sequence)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sqlite: drop: %w", err)
	}
	return nil
}
