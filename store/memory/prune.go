package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// pruned is what became of the beginning of the log.
type pruned struct {
	through  int64                   // the position of the last event that went
	prunedAt time.Time               // the latest time of a commit that went, no later than when it did
	told     map[events.Entity]int64 // the position of the newest event that says all of an entity's state
	waste    int                     // how many places before the log its array has
	most     int                     // how many streams there were at most since the maps were made
	topics   map[events.ID]string    // of messages whose first event went, and others that moved them did not

	retired   []store.CommitID // ids without events, in the order in which they came to be so
	droppedAt time.Time        // up to when ids were minted that are known no more
}

// First implements store.Pruner.
func (s *Store) First(ctx context.Context) (store.Cursor, error) {
	if err := s.enter(ctx); err != nil {
		return "", fmt.Errorf("memory: first: %w", err)
	}
	defer s.mu.Unlock()
	if s.through == 0 {
		return "", nil
	}
	return store.CursorAt(s.id, s.through), nil
}

// holdPruning says how much of the log's beginning may go, and holds the rows that need a snapshot first.
func (s *Store) holdPruning(view *store.View, asked store.Prunable) error {
	view.PrunedAt = s.prunedAt
	if !asked.Asks() {
		return nil
	}
	upto := s.head()
	if asked.Upto != "" {
		var err error
		if upto, err = asked.Upto.Within(s.id, upto); err != nil {
			return err
		}
	}
	p := &view.Pruning
	for last := s.through; last < upto; p.Through = last {
		first, commit := last+1, s.at(last+1).commit
		last += int64(commit.Count)
		if last > upto || !asked.Old(commit.At, view.Now) || p.Events > 0 && p.Events+commit.Count > asked.Events || s.endsBehind(upto, first, last) {
			break
		}
		p.At, p.Events = commit.At, p.Events+commit.Count
	}
	seen := map[events.Entity]bool{}
	for position := s.through + 1; position <= p.Through && len(p.Rows) < asked.Rows; position++ {
		entity := s.at(position).stored.Entity
		row, kept := s.rows[entity]
		if !kept || seen[entity] || s.told[entity] > p.Through {
			continue
		}
		seen[entity] = true
		p.Rows = append(p.Rows, row)
		view.Rows[entity] = row
	}
	return nil
}

// endsBehind reports whether one of some events is of a message that has no row and was moved behind a position for the last time.
func (s *Store) endsBehind(upto, first, last int64) bool {
	if upto == s.head() {
		return false
	}
	for position := first; position <= last; position++ {
		entity := s.at(position).stored.Entity
		if _, kept := s.rows[entity]; !kept && entity.Kind == events.KindMessage && s.moved(entity) > upto {
			return true
		}
	}
	return false
}

// moved is the position of the newest event that moved an entity; 0 where none is kept.
func (s *Store) moved(entity events.Entity) int64 {
	for _, position := range slices.Backward(s.streams[entity]) {
		if s.at(position).stored.Version > 0 {
			return position
		}
	}
	return 0
}

// prune lets go of the events up to a position, which is the last of its commit, and of what only they needed.
func (s *Store) prune(through int64, now time.Time) {
	s.most = max(s.most, len(s.streams))
	n := int(through - s.through)
	gone := map[events.Entity]int{}
	for i := range n {
		gone[s.log[i].stored.Entity]++
		commit := s.log[i].commit
		if i > 0 && commit == s.log[i-1].commit {
			continue
		}
		s.retired = append(s.retired, commit.ID)
		at := commit.At
		if at.After(now) {
			at = now
		}
		if at.After(s.prunedAt) {
			s.prunedAt = at
		}
	}
	for entity, n := range gone {
		s.behead(entity, n)
	}
	clear(s.log[:n])
	s.log, s.through, s.waste = s.log[n:], through, s.waste+n
	if s.waste > len(s.log) {
		s.log, s.waste = slices.Clone(s.log), 0
	}
	s.keys.drop(now)
	s.dropIDs(now)
	s.shrink()
}

// behead takes the first n events from an entity's stream, and its contents where the event that ended it is among them.
func (s *Store) behead(entity events.Entity, n int) {
	first, rest := s.streams[entity][0], s.streams[entity][n:]
	switch {
	case len(rest) == 0:
		delete(s.streams, entity)
		delete(s.told, entity)
	case n > len(rest):
		s.streams[entity] = slices.Clone(rest)
	default:
		s.streams[entity] = rest // its array ends with the next that it needs
	}
	if entity.Kind != events.KindMessage {
		return
	}
	if s.version(entity) == 0 { // no row, and no event that moved it: it has ended
		delete(s.contents, entity.ID)
		delete(s.topics, entity.ID)
		return
	}
	r, err := s.at(first).stored.Decode(nil)
	if enqueued, ok := r.Event.(*events.MessageEnqueued); ok && err == nil {
		s.topics[entity.ID] = enqueued.Topic
	}
}

// dropIDs forgets ids that have no events and are older than the horizon.
func (s *Store) dropIDs(now time.Time) {
	n := 0
	for ; n < len(s.retired); n++ {
		minted := store.MintedAt(s.retired[n])
		if now.Sub(minted) <= store.Horizon {
			break
		}
		if minted.After(s.droppedAt) {
			s.droppedAt = minted
		}
		delete(s.commits, s.retired[n])
	}
	s.retired = slices.Delete(s.retired, 0, n)
}

// checkID refuses an id that is not among those kept and may have been: the clock that made it too old may have been turned back.
func (s *Store) checkID(id store.CommitID, now time.Time) error {
	if err := store.CheckID(id, now); err != nil {
		return err
	}
	if minted := store.MintedAt(id); !minted.After(s.droppedAt) {
		return fmt.Errorf("commit id %s: minted %s, ids up to %s were dropped, since the store's clock was ahead: %w",
			id, minted.Format(time.RFC3339), s.droppedAt.Format(time.RFC3339), store.ErrExpired)
	}
	return nil
}

// shrink makes the maps anew once they are nearly empty: a map never gives back what it had.
func (s *Store) shrink() {
	if 4*len(s.streams) > s.most {
		return
	}
	s.most = len(s.streams)
	s.streams, s.told, s.commits, s.contents, s.topics = anew(s.streams), anew(s.told), anew(s.commits), anew(s.contents), anew(s.topics)
}

func anew[K comparable, V any](m map[K]V) map[K]V {
	made := make(map[K]V, len(m))
	maps.Copy(made, m)
	return made
}
