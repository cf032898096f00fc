package sqlite

import (
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file keeps commit ids for the horizon. The store's clock may step forward and back again, and take ids with it whose time is
// not over: whoever drops ids writes down up to which time, and none as old is ever taken for new.

// commitIDs looks up commit ids.
func (w *writer) commitIDs(ids []any) (map[store.CommitID]int64, error) {
	found := map[store.CommitID]int64{}
	r := newRecord(idColumns)
	err := w.selectAll(selectIDs, ids, r, func() error {
		id := store.CommitID(r.array(0))
		if found[id] = r.whole(1, 0, 1<<62); r.err != nil {
			return fmt.Errorf("commit id %s: %w", id, r.err)
		}
		return nil
	})
	return found, err
}

// commitID looks up a commit id. Its first is 0 where it was given up.
func (w *writer) commitID(id store.CommitID) (first int64, used bool, err error) {
	ids, err := w.commitIDs([]any{id[:]})
	first, used = ids[id]
	return first, used, err
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

const (
	droppedQuery = "SELECT value FROM meta WHERE name = 'ids_dropped'"
	droppedWrite = "INSERT INTO meta (name, value) VALUES ('ids_dropped', ?)" +
		" ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)

// dropped is the time up to which ids were dropped; zero where none ever was.
func (w *writer) dropped() (at time.Time, err error) {
	r := newRecord("value")
	err = w.query(r, func() error {
		text := r.text(0)
		if at, err = time.Parse(time.RFC3339Nano, text); err != nil || r.err != nil {
			return damaged(events.Entity{}, "the time up to which commit ids were dropped", fmt.Errorf("%q is stored", text))
		}
		return nil
	}, droppedQuery)
	return at, err
}

// How many old ids a look takes at most, and how many new ones there are between looks.
const (
	dropAtFirst = 10_000
	dropEvery   = 64
)

const (
	oldestQuery = "SELECT id FROM used_ids WHERE id < ? ORDER BY id LIMIT ?"
	dropQuery   = "DELETE FROM used_ids WHERE id <= ?"
)

// dropSome takes old commit ids away twice as fast as new ones come.
func (w *writer) dropSome(now time.Time, added int) error {
	if w.added += added; w.added < dropEvery {
		return nil
	}
	limit := 2 * w.added
	w.added = 0
	return w.dropIDs(now, limit)
}

// dropIDs takes away up to limit ids that were minted before the horizon. Their order is that of their time.
func (w *writer) dropIDs(now time.Time, limit int) error {
	before := mintedAt(now.Add(-store.Horizon))
	var last []byte
	r := newRecord("id")
	err := w.query(r, func() error {
		last = r.bytes(0)
		return damaged(events.Entity{}, "a commit id", r.err)
	}, oldestQuery, before[:], int64(limit))
	if err != nil || last == nil {
		return err
	}
	dropped, err := w.dropped()
	if err != nil {
		return err
	}
	var id store.CommitID
	copy(id[:], last)
	if at := store.MintedAt(id); at.After(dropped) {
		if err := w.exec(droppedWrite, at.Format(time.RFC3339Nano)); err != nil {
			return err
		}
	}
	return w.exec(dropQuery, last)
}

// mintedAt is the least UUIDv7 of a time.
func mintedAt(t time.Time) (id events.ID) {
	ms := max(t.UnixMilli(), 0)
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}
