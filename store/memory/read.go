package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// page is how many events or rows are copied at a time.
const page = 256

// head is the position of the newest event, kept or not.
func (s *Store) head() int64 { return s.through + int64(len(s.log)) }

// at is the event at a position that is kept.
func (s *Store) at(position int64) *entry { return &s.log[position-s.through-1] }

// Head implements store.Store.
func (s *Store) Head(ctx context.Context) (store.Cursor, error) {
	if err := s.enter(ctx); err != nil {
		return "", fmt.Errorf("memory: head: %w", err)
	}
	defer s.mu.Unlock()
	return store.CursorAt(s.id, s.head()), nil
}

// After implements store.Store.
func (s *Store) After(r events.Recorded) store.Cursor { return store.CursorAt(s.id, r.Position) }

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for at, given := after, 0; ; {
			list, next, err := s.readPage(ctx, at, f)
			if err != nil {
				yield(events.Recorded{}, fmt.Errorf("memory: read: %w", err))
				return
			}
			for _, r := range list {
				if given++; !yield(r, nil) || given == f.Limit {
					return
				}
			}
			if next == at {
				return
			}
			at = next
		}
	}
}

// readPage is the events of the next commits that pass the filter, and the cursor up to which it looked.
func (s *Store) readPage(ctx context.Context, after store.Cursor, f store.Filter) ([]events.Recorded, store.Cursor, error) {
	if err := s.enter(ctx); err != nil {
		return nil, after, err
	}
	defer s.mu.Unlock()
	begin, err := after.Within(s.id, s.head())
	if err != nil {
		return nil, after, err
	}
	if begin < s.through {
		return nil, after, &store.PrunedError{Asked: after, First: store.CursorAt(s.id, s.through)}
	}
	if f.Entity != (events.Entity{}) {
		list, err := s.history(f.Entity)
		list = slices.DeleteFunc(list, func(r events.Recorded) bool { return r.Position <= begin || !passes(f, r) })
		return list, after, err
	}
	var list []events.Recorded
	position := begin
	for position < s.head() && position-begin < page {
		first := position + 1
		for first > s.through+1 && s.at(first-1).commit == s.at(position+1).commit {
			first-- // a cursor may stand within a commit
		}
		commit, err := s.decode(first, s.at(first).commit.Count)
		if err != nil {
			return list, after, err
		}
		for _, r := range commit {
			if r.Position > position && passes(f, r) {
				list = append(list, r)
			}
		}
		position = first + int64(len(commit)) - 1
	}
	if position > begin {
		after = store.CursorAt(s.id, position)
	}
	return list, after, nil
}

func passes(f store.Filter, r events.Recorded) bool {
	return len(f.Types) == 0 || slices.Contains(f.Types, r.Event.Type())
}

// decode gives back the commit whose first event stands at a position, checked as every read is.
func (s *Store) decode(first int64, count int) ([]events.Recorded, error) {
	stored := make([]events.Stored, count)
	for i := range stored {
		stored[i] = s.at(first + int64(i)).stored
	}
	return events.DecodeCommit(*s.at(first).commit, stored)
}

// history is all events of one entity.
func (s *Store) history(entity events.Entity) ([]events.Recorded, error) {
	return s.decodeEach(s.streams[entity])
}

// decodeEach gives back events by their positions, each checked by itself.
func (s *Store) decodeEach(positions []int64) ([]events.Recorded, error) {
	list := make([]events.Recorded, 0, len(positions))
	for _, position := range positions {
		e := s.at(position)
		commit, err := e.commit.Header()
		if err != nil {
			return nil, err
		}
		r, err := e.stored.Decode(commit)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}
