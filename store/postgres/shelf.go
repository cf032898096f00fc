package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file keeps checkpoints. Two who save the next one at once are told apart by the primary key: who comes second finds it taken.

const (
	shelfColumns = "name, version, sequence, cursor, at, digest, checksum"

	newestFirst    = "SELECT " + shelfColumns + " FROM @checkpoints WHERE name = $1 AND version = $2 ORDER BY version DESC, sequence DESC LIMIT 16"
	saveQuery      = "INSERT INTO @checkpoints (" + shelfColumns + ", view) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING RETURNING sequence"
	dropCheckpoint = "DELETE FROM @checkpoints WHERE name = $1 AND version = $2 AND sequence = $3"
	dropSpoilt     = dropCheckpoint + " AND digest = $4 AND checksum = $5"
	viewQuery      = "SELECT " + shelfColumns + ", view FROM @checkpoints WHERE name = $1 AND version = $2 AND sequence = $3"
)

// shelfTimeout is how long one of the largest views may take, each way.
const shelfTimeout = 2 * time.Minute

// patient has the server give a pipeline that time for each statement.
func (p *pipeline) patient() {
	p.exec(fmt.Sprintf("SET LOCAL statement_timeout = %d", shelfTimeout.Milliseconds()))
	p.exec("SELECT " + wholeTimeout + "'0', true) END") // a clock that runs is not set: it is stopped, and begun anew
	p.exec(fmt.Sprintf("SELECT %s'%d', true) END", wholeTimeout, shelfTimeout.Milliseconds()))
}

// Save implements store.Shelf.
func (s *Store) Save(ctx context.Context, c store.Checkpoint) (store.Checkpoint, error) {
	err := c.Check()
	if err == nil {
		err = s.save(ctx, &c)
	}
	if err != nil {
		return store.Checkpoint{}, fmt.Errorf("postgres: save: %w", err)
	}
	return c, nil
}

func (s *Store) save(ctx context.Context, c *store.Checkpoint) error {
	digest := crc32.Checksum(c.View, castagnoli)
	newest, err := s.newestCheckpoint(ctx, c)
	if err != nil {
		return err
	}
	if c.Sequence != newest+1 {
		return fmt.Errorf("%s: the newest is %d: %w", checkpointOf(c.CheckpointKey), newest, store.ErrMoved)
	}
	kept := false
	err = s.write(ctx, func(p *pipeline) {
		p.patient()
		r := newRecord("sequence")
		p.query(r, func() error { kept = true; return nil }, saveQuery, c.Name, int64(c.Version), int64(c.Sequence), string(c.Cursor), c.At.UnixMicro(),
			int32(digest), int32(checkpointSum(c, digest)), viewOf(c))
	})
	if err == nil && !kept {
		err = fmt.Errorf("%s: somebody saved it meanwhile: %w", checkpointOf(c.CheckpointKey), store.ErrMoved)
	}
	return err
}

// newestCheckpoint is the sequence of the newest checkpoint beside one that can be read; 0 where there is none. Whatever calls itself newer and
// is not what was saved goes: nothing could follow it. The checkpoint to be saved gets its time.
func (s *Store) newestCheckpoint(ctx context.Context, c *store.Checkpoint) (newest int, err error) {
	for {
		var spoilt []spoiltCheckpoint
		err := s.ask(ctx, func(p *pipeline) {
			spoilt, newest = nil, 0
			r := newRecord(shelfColumns)
			p.query(r, func() error {
				kept, _, err := r.checkpoint()
				if newest == 0 && err != nil {
					spoilt = append(spoilt, spoiltCheckpoint{r.raw(2), int32(r.raw(5)), int32(r.raw(6))})
				} else if newest == 0 {
					newest = kept.Sequence
				}
				return nil
			}, newestFirst, c.Name, int64(c.Version))
			s.askTime(p, &c.At)
		})
		if err != nil || len(spoilt) == 0 {
			return newest, err
		}
		err = s.write(ctx, func(p *pipeline) {
			for _, gone := range spoilt {
				p.exec(dropSpoilt, c.Name, int64(c.Version), gone.sequence, gone.digest, gone.checksum)
			}
		})
		if err != nil {
			return 0, err
		}
	}
}

// spoiltCheckpoint names one that is not what was saved, as it was found.
type spoiltCheckpoint struct {
	sequence         int64
	digest, checksum int32
}

// write runs statements as one transaction, in one round trip. No context cancels it once it was sent.
func (s *Store) write(ctx context.Context, fill func(*pipeline)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return s.classed(err)
	}
	defer s.release(conn)
	p := s.pipeline()
	p.begin(beginWrite)
	fill(p)
	p.exec("COMMIT")
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shelfTimeout)
	defer cancel()
	return s.classed(p.run(bounded, conn.Conn()))
}

// viewOf is the view of a checkpoint: nothing is not NULL.
func viewOf(c *store.Checkpoint) []byte {
	if c.View == nil {
		return []byte{}
	}
	return c.View
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

// raw is a whole number as it is stored, whatever else is wrong.
func (r *record) raw(i int) int64 {
	was := r.err
	n := r.whole(i, math.MinInt64, math.MaxInt64)
	r.err = was
	return n
}

// checkpoint is the checkpoint that was scanned, without its view, and the digest of that. What is not what was saved is an error.
func (r *record) checkpoint() (c store.Checkpoint, digest uint32, err error) {
	c.Name, c.Version, c.Sequence = r.text(0), int(r.whole(1, 1, math.MaxInt64)), int(r.whole(2, 1, math.MaxInt64))
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
	err := s.ask(ctx, func(p *pipeline) {
		list, spoilt = nil, nil
		r := newRecord(shelfColumns)
		p.query(r, func() error {
			c, _, err := r.checkpoint()
			if err != nil {
				spoilt = append(spoilt, fmt.Errorf("postgres: checkpoints: %w", err))
			} else {
				list = append(list, c)
			}
			return nil
		}, query, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: checkpoints: %w", err)
	}
	return list, errors.Join(spoilt...)
}

// shelfQuery is the query for the checkpoints that pass a filter.
func shelfQuery(f store.CheckpointFilter) (query string, args []any) {
	query = "SELECT " + shelfColumns + " FROM @checkpoints c WHERE true"
	if f.Name != "" {
		args = append(args, f.Name)
		query += fmt.Sprintf(" AND name = $%d", len(args))
	}
	if f.Version != 0 {
		args = append(args, int64(f.Version))
		query += fmt.Sprintf(" AND version = $%d", len(args))
	}
	if f.Newest {
		query += " AND NOT EXISTS (SELECT FROM @checkpoints n WHERE n.name = c.name AND n.version = c.version AND n.sequence > c.sequence)"
	}
	return query + " ORDER BY name, version, sequence", args
}

// View implements store.Shelf.
func (s *Store) View(ctx context.Context, k store.CheckpointKey) (store.Checkpoint, error) {
	var c store.Checkpoint
	found := false
	err := s.ask(ctx, func(p *pipeline) {
		found = false
		p.patient()
		r := newRecord(shelfColumns + ", view")
		p.query(r, func() error {
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
		return store.Checkpoint{}, fmt.Errorf("postgres: view: %w", err)
	}
	return c, nil
}

// Drop implements store.Shelf.
func (s *Store) Drop(ctx context.Context, keys ...store.CheckpointKey) error {
	if len(keys) == 0 {
		return nil
	}
	err := s.write(ctx, func(p *pipeline) {
		for _, k := range keys {
			p.exec(dropCheckpoint, k.Name, int64(k.Version), int64(k.Sequence))
		}
	})
	if err != nil {
		return fmt.Errorf("postgres: drop: %w", err)
	}
	return nil
}
