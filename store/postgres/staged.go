package postgres

import (
	"context"
	"fmt"
	"hash/crc32"
	"iter"
	"math"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file reads what is staged, and moves it: a row goes in the transaction that appends the events which tell of it. Rows of transactions that have
// not committed nobody sees, so nobody waits for those.

const (
	stagedColumns = "place, at, checksum, id, topic, draft, salt, bytes"

	// How many rows, and about how many bytes of payloads, one read takes.
	stagedRows  = 200
	stagedBytes = 4 << 20

	stagedQuery   = stagedFrom + "@staged" + stagedWhere
	stagedOfQuery = stagedFrom + "(SELECT " + stagedColumns + " FROM @staged WHERE id = ANY($4::uuid[]) OFFSET 0) o" + stagedWhere
	stagedFrom    = "SELECT " + stagedColumns + " FROM (SELECT " + stagedColumns + ", sum(octet_length(bytes)) OVER (ORDER BY place" +
		" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - octet_length(bytes) AS before FROM "
	stagedWhere = " WHERE place > $1 ORDER BY place LIMIT $2) q WHERE q.before < $3"

	holdStagedQuery = "SELECT place FROM @staged WHERE place = ANY($1::bigint[]) ORDER BY place FOR UPDATE SKIP LOCKED"
	deleteStaged    = "WITH gone AS (DELETE FROM @staged WHERE place = ANY($1::bigint[]) RETURNING 1) SELECT @must(count(*), $2) FROM gone"
)

// stagedSum is the checksum of a staged message. The columns that the server gives it are not in it.
func stagedSum(m *store.Staged) uint32 {
	sum := crc32.Update(0, castagnoli, m.Message[:])
	for _, part := range [][]byte{[]byte(m.Topic), m.Draft, m.Payload.Salt[:], m.Payload.Bytes} {
		sum = crc32.Update(sum, castagnoli, fmt.Appendf(nil, "%d:", len(part)))
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

// Staged implements store.Stager.
func (s *Store) Staged(ctx context.Context, f store.StagedFilter) iter.Seq2[store.Staged, error] {
	return func(yield func(store.Staged, error) bool) {
		left := f.Limit
		for {
			n := stagedRows
			if f.Limit > 0 {
				n = min(n, left)
			}
			list, err := s.stagedPage(ctx, f, n)
			for _, item := range list {
				if !yield(item.Staged, item.err) {
					return
				}
				f.After = item.Place
			}
			if err != nil {
				yield(store.Staged{}, fmt.Errorf("postgres: staged: %w", err))
				return
			}
			if left -= len(list); f.Limit > 0 && left <= 0 || len(list) < n && !full(list) {
				return
			}
		}
	}
}

// stagedItem is a staged message, or what is wrong with it.
type stagedItem struct {
	store.Staged
	err error
}

// full reports whether others may have been left out of a page for the bytes of these.
func full(list []stagedItem) bool {
	size := 0
	for i := range list {
		size += len(list[i].Payload.Bytes)
	}
	return size >= stagedBytes
}

// stagedPage reads up to n staged messages behind the filter's place.
func (s *Store) stagedPage(ctx context.Context, f store.StagedFilter, n int) (list []stagedItem, err error) {
	text, args := stagedQuery, []any{f.After, n, int64(stagedBytes)}
	if len(f.Messages) > 0 {
		text, args = stagedOfQuery, append(args, f.Messages)
	}
	err = s.ask(ctx, func(p *pipeline) {
		list = nil
		r := newRecord(stagedColumns)
		p.query(r, func() error {
			m := r.staged()
			list = append(list, stagedItem{m, damaged(events.MessageEntity(m.Message), "what is staged of it", r.err)})
			return nil
		}, text, args...)
	})
	return list, err
}

// staged is the staged message that was scanned.
func (r *record) staged() store.Staged {
	m := store.Staged{Place: r.whole(0, math.MinInt64, math.MaxInt64), At: r.time(1), Message: r.array(3), Topic: r.text(4), Draft: r.bytes(5)}
	m.Payload = store.Payload{Salt: r.array(6), Bytes: r.bytes(7)}
	if sum := r.checksum(2); r.err == nil && sum != stagedSum(&m) {
		r.wrong(2, sum, fmt.Sprintf("that of the other columns, %d", stagedSum(&m)))
	}
	return m
}

// WatchStaged implements store.Stager.
func (s *Store) WatchStaged() (<-chan struct{}, func()) {
	return s.powers.hints.watch(&watcher{staged: true, hints: make(chan struct{}, 1)})
}

// wakeStaged wakes who waits for what is staged.
func (h *hints) wakeStaged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		if w.staged {
			w.wake()
		}
	}
}

// Near implements store.Stager.
func (s *Store) Near() time.Time {
	now, _ := s.lowerBound() // else the zero
	return now
}

// holdStaged holds what is staged, where nobody else does.
func (a *attempt) holdStaged(p *pipeline, w *wants) {
	if len(w.staged) == 0 {
		return
	}
	places := make([]int64, 0, len(w.staged))
	for place := range w.staged {
		places = append(places, place)
	}
	r := newRecord("place")
	p.query(r, func() error {
		a.staged[r.whole(0, math.MinInt64, math.MaxInt64)] = true
		return r.err
	}, holdStagedQuery, places)
}

// holdStaged says what is there of that which a call moves.
func (v *viewer) holdStaged(need *store.Need) error {
	for _, place := range need.Staged {
		if v.staged[place] {
			if v.view.Staged == nil {
				v.view.Staged = make(map[int64]bool, len(need.Staged))
			}
			v.view.Staged[place] = true
		}
	}
	return nil
}

// unstage takes in what a call has moved.
func (a *attempt) unstage(places []int64) {
	for _, place := range places {
		delete(a.staged, place)
	}
	a.unstaged = append(a.unstaged, places...)
}

func (a *attempt) writeUnstaged(p *pipeline) {
	if len(a.unstaged) > 0 {
		p.exec(deleteStaged, a.unstaged, len(a.unstaged))
	}
}
