package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// How much is read at a time: whole commits, until there are so many commits or so many events; or rows, until there are so many of them
// or so many bytes of payloads.
const (
	pageCommits = 256
	pageEvents  = 1000
	pageRows    = 256
	pageBytes   = 8 << 20
)

// After implements store.Store.
func (s *Store) After(r events.Recorded) store.Cursor { return store.CursorAt(s.id, r.Position) }

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for at, given := after, 0; ; {
			list, err := s.readPage(ctx, at, f)
			for _, r := range list {
				if len(f.Types) > 0 && !slices.Contains(f.Types, r.Event.Type()) {
					continue
				}
				if given++; !yield(r, nil) || given == f.Limit {
					return
				}
			}
			if err != nil {
				yield(events.Recorded{}, fmt.Errorf("sqlite: read: %w", err))
				return
			}
			if len(list) == 0 {
				return
			}
			at = s.After(list[len(list)-1])
		}
	}
}

// readPage is the next events behind a cursor. What comes before an error is given with it.
func (s *Store) readPage(ctx context.Context, after store.Cursor, f store.Filter) (list []events.Recorded, err error) {
	position := int64(0)
	err = s.snapshot(ctx, func(from source) error {
		l, err := reachOf(from)
		if err == nil {
			position, err = s.behind(after, l)
		}
		switch {
		case err != nil:
		case f.Entity != (events.Entity{}):
			list, err = readStream(from, f.Entity, position)
		default:
			list, err = readLog(from, l, position)
		}
		return err
	})
	if isDamaged(err) {
		err = &events.Corrupt{Position: position + 1, Detail: "somewhere behind this position: " + err.Error()}
	}
	return list, err
}

// readStream is the next events of one entity. Each has its own checksum.
func readStream(from source, entity events.Entity, after int64) ([]events.Recorded, error) {
	var list []events.Recorded
	r := newRecord(aloneColumns)
	err := from(r, func() error {
		event, err := r.alone()
		if err == nil {
			list = append(list, event)
		}
		return err
	}, streamQuery, stream(entity), after, int64(pageEvents))
	return list, err
}

// A cursor may stand within a commit.
const commitsQuery = "SELECT " + commitColumns + " FROM commits" +
	" WHERE first >= coalesce((SELECT max(first) FROM commits WHERE first <= ?), 0) ORDER BY first LIMIT ?"

// readLog is the next commits. Positions have no gaps, and the newest that was ever written is known, so whatever was taken is missed.
func readLog(from source, l reach, after int64) ([]events.Recorded, error) {
	end := l.end
	if after >= end && l.last > end {
		return nil, beyond(from, end)
	}
	if after == end {
		return nil, nil
	}
	commits, err := readCommits(from, after+1)
	if err != nil {
		return nil, err
	}
	run, next := following(commits, after+1)
	var list []events.Recorded
	if len(run) > 0 {
		list, err = decodeRun(from, run)
		list = list[min(len(list), int(max(0, after+1-run[0].first))):]
	}
	switch {
	case err != nil:
		return list, err
	case next > end+1:
		return list[:max(0, len(list)-int(next-end-1))], beyond(from, end)
	case len(run) == len(commits) && len(run) < pageCommits && next <= end:
		return list, lost(from, next, "its commit is missing")
	case len(run) == 0:
		return nil, lost(from, next, broken(&commits[0]))
	}
	return list, nil
}

// following is the first commits of a list that stand without a gap, for a page of events, and the position behind them.
func following(commits []placed, next int64) ([]placed, int64) {
	begin := next
	for i := range commits {
		c := &commits[i]
		if i == 0 && c.wrong == nil && c.first < next && next < c.next() {
			next = c.first // the cursor stands within it
		}
		if c.first != next || c.wrong != nil || next-begin >= pageEvents {
			return commits[:i], next
		}
		next = c.next()
	}
	return commits, next
}

// broken says what is wrong with a commit that does not stand where it should.
func broken(c *placed) string {
	if c.wrong != nil {
		return fmt.Sprintf("its commit: %v", c.wrong)
	}
	return "its commit is missing"
}

// decodeRun reads commits that follow each other.
func decodeRun(from source, run []placed) ([]events.Recorded, error) {
	stored, wrong := readEvents(from, run[0].first, run[len(run)-1].next()-1)
	var list []events.Recorded
	for i := range run {
		n := 0
		for n < len(stored) && stored[n].Position < run[i].next() {
			n++
		}
		if n < run[i].Count && wrong != nil {
			return list, wrong
		}
		recorded, err := run[i].decode(from, stored[:n])
		if err != nil {
			return list, err
		}
		list, stored = append(list, recorded...), stored[n:]
	}
	return list, wrong
}

// readCommits is the commits from a position on.
func readCommits(from source, position int64) ([]placed, error) {
	var list []placed
	r := newRecord(commitColumns)
	err := from(r, func() error {
		list = append(list, r.commit(0))
		return nil
	}, commitsQuery, position, int64(pageCommits))
	return list, err
}

// snapshot runs body on what was committed when it began.
func (s *Store) snapshot(ctx context.Context, body func(source) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.patiently(ctx, func() error { return s.readOnce(ctx, body) })
}

func (s *Store) readOnce(ctx context.Context, body func(source) error) error {
	tx, err := s.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	from := func(r *record, found func() error, query string, args ...any) error {
		rows, err := tx.QueryContext(ctx, query, args...)
		return r.each(rows, err, found)
	}
	if err = s.schema.check(from); err == nil {
		err = body(from)
	}
	_ = tx.Rollback() // nothing was written; where ctx has ended, it was rolled back already
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
