package postgres

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file keeps commit ids for the horizon. The store's clock may step forward and back again, and take ids with it whose time is not over:
// whoever drops ids writes down up to which time, and none as old is ever taken for new.

// usedID is where the commit of an id is kept: which transaction, and which of its commits. A number of 0 is an id that was given up.
type usedID struct {
	number  int64
	ordinal int
}

// used is the place of an id whose columns begin at i.
func (r *record) used(i int) usedID {
	return usedID{r.whole(i, 0, math.MaxInt64>>blockBits), int(r.whole(i+1, 0, blockSize))}
}

// checkID refuses an id that is not among those kept and may have been.
func checkID(id store.CommitID, now, dropped time.Time) error {
	if err := store.CheckID(id, now); err != nil {
		return err
	}
	if minted := store.MintedAt(id); !minted.After(dropped) {
		return fmt.Errorf("commit id %s: minted %s, ids up to %s were dropped, since the store's clock was ahead: %w",
			id, minted.Format(time.RFC3339), dropped.Format(time.RFC3339), store.ErrExpired)
	}
	return nil
}

// logState is what a store has read of the ids that were dropped, and of the log that was pruned.
type logState struct {
	at      time.Time // up to when ids were dropped
	text    string    // as it is stored
	through pruned
}

// idUpkeep is what a store knows of that, and how many ids it has added since it dropped some.
type idUpkeep struct {
	mu    sync.Mutex
	known logState
	added int
	busy  bool
}

func (u *idUpkeep) state() logState {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.known
}

// readState takes in up to when ids were dropped, and up to where the log was pruned.
func (a *attempt) readState(r *record) error {
	text := ""
	if !r.null(0) {
		text = r.text(0)
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return damaged(events.Entity{}, "the time up to which commit ids were dropped", fmt.Errorf("%q is stored", text))
		}
		a.dropped = at
	}
	if !r.null(1) {
		a.pruned = r.pruned(1)
	}
	if r.err != nil {
		return damaged(events.LogEntity(), "up to where it was pruned", r.err)
	}
	u := &a.s.ids
	u.mu.Lock()
	u.known = logState{a.dropped, text, a.pruned}
	u.mu.Unlock()
	return nil
}

// How many new ids there are between looks for old ones, and how many a look takes at most at first.
const (
	dropEvery   = 64
	dropAtFirst = 10_000
)

const (
	oldestQuery = "SELECT id FROM @used_ids WHERE id < $1 ORDER BY id LIMIT $2"
	dropQuery   = "DELETE FROM @used_ids WHERE id <= $1"
	// Whoever steps in between has dropped more.
	droppedWrite = "INSERT INTO @meta AS m (name, value) VALUES ('ids_dropped', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value" +
		" WHERE m.value::timestamptz < excluded.value::timestamptz"
	// Nobody has dropped ids or pruned the log since that was looked at.
	unmovedQuery = "SELECT @must((SELECT count(*) FROM @meta WHERE name = 'ids_dropped' AND value <> $1)" +
		" + (SELECT count(*) FROM @pruned WHERE through <> $2), 0)"
)

// added takes old commit ids away, twice as fast as new ones come, beside the commits.
func (s *Store) added(ids int, now time.Time) {
	u := &s.ids
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.added += ids; u.added < dropEvery || u.busy {
		return
	}
	limit := 2 * u.added
	u.added, u.busy = 0, true
	s.calls.Add(1) // the caller is one of those that Close waits for
	go func() {
		defer s.calls.Done()
		ctx, cancel := context.WithTimeout(context.Background(), s.options.WriteTimeout)
		_ = s.dropIDs(ctx, now, limit) // the next one takes more
		cancel()
		u.mu.Lock()
		u.busy = false
		u.mu.Unlock()
	}()
}

// dropIDs takes away up to limit ids that were minted before the horizon. Their order is that of their time.
func (s *Store) dropIDs(ctx context.Context, now time.Time, limit int) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(conn)
	before := mintedAt(now.Add(-store.Horizon))
	var last store.CommitID
	p := s.pipeline()
	p.begin(beginWrite)
	r := newRecord("id")
	p.query(r, func() error {
		last = r.array(0)
		return damaged(events.Entity{}, "a commit id", r.err)
	}, oldestQuery, before, limit)
	if err := p.run(ctx, conn.Conn()); err != nil || last == (store.CommitID{}) {
		return err
	}
	p = s.pipeline()
	p.exec(droppedWrite, store.MintedAt(last).Format(time.RFC3339Nano))
	p.exec(dropQuery, last)
	p.exec("COMMIT")
	return p.run(ctx, conn.Conn())
}

// mintedAt is the least UUIDv7 of a time.
func mintedAt(t time.Time) (id events.ID) {
	ms := max(t.UnixMilli(), 0)
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}
