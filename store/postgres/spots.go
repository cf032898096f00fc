package postgres

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/foundling-go/foundling/events"
	"github.com/jackc/pgx/v5/pgtype"
)

// This file remembers where in its table the end of the log lies. Whoever follows the log finds there what was appended behind it, and need not walk
// over all that no summary of blocks (BRIN) covers yet, of which there are many: the server summarizes once a minute.
//
// Each writer's connection fills one block after the other, so that the next events lie in the block that one of them wrote to last, or behind the
// last one that anybody did. That is a guess. How many events there must be is known from their transactions, and where it finds fewer the index is asked.

const (
	// lateBlocks is how many blocks before the last one are looked at besides: several are added to a table at once, and filled in any order.
	lateBlocks = 32
	// mostOpen is how many writers' blocks are remembered, and mostSpots how many ends: some for each reader that follows the log.
	mostOpen, mostSpots = 48, 32
	// perBlock is how many events a block has at least, when the end of what is looked for is guessed.
	perBlock = 16
)

const spotColumns = eventColumns + ", ctid"

// nearQuery is eventsQuery among some blocks. What stands behind OFFSET is not to be mixed with the rest: only so are places compared.
const nearQuery = "SELECT " + spotColumns + " FROM unnest($4::tid[], $5::tid[]) AS b (low, high) CROSS JOIN LATERAL (SELECT " + spotColumns +
	" FROM @events WHERE ctid >= b.low AND ctid < b.high AND position > $1 AND position <= $2 OFFSET 0) e ORDER BY position LIMIT $3"

// found is events with the block that each of them lies in.
type found struct {
	events []events.Stored
	blocks []uint32
}

// block is that of a row whose column is ctid.
func (r *record) block(i int) uint32 {
	if len(r.values[i]) != 6 {
		r.wrong(i, r.values[i], "the place of a row")
		return 0
	}
	return binary.BigEndian.Uint32(r.values[i])
}

// spot is where a log ends, as far as one has read.
type spot struct {
	position int64    // of the last event
	high     uint32   // the last block with an event
	open     []uint32 // the last one of each writer, the newest behind
}

// spots are the ends of the log up to which readers have read.
type spots struct {
	mu   sync.Mutex
	list []spot // the newest behind
}

// at is the spot of a position; nil where nobody has read up to there.
func (s *spots) at(position int64) *spot {
	i := slices.IndexFunc(s.list, func(at spot) bool { return at.position == position })
	if i < 0 {
		return nil
	}
	return &s.list[i]
}

func (s *spots) note(at spot) {
	s.list = append(slices.DeleteFunc(s.list, func(old spot) bool { return old.position == at.position }), at)
	s.list = slices.Delete(s.list, 0, max(0, len(s.list)-mostSpots))
}

// near is among which blocks n events behind a position are looked for; false where nobody has read up to there.
func (s *spots) near(position int64, n int) (low, high pgtype.FlatArray[pgtype.TID], ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.at(position)
	if at == nil {
		return nil, nil, false
	}
	from := at.high - min(at.high, lateBlocks)
	add := func(begin, end uint32) {
		low = append(low, pgtype.TID{BlockNumber: begin, Valid: true})
		high = append(high, pgtype.TID{BlockNumber: end, Valid: true})
	}
	for _, block := range at.open {
		if block < from {
			add(block, block+1)
		}
	}
	add(from, at.high+lateBlocks+uint32(n/perBlock))
	return low, high, true
}

// searched says how events were found.
type searched bool

const (
	byIndex  searched = false
	byBlocks searched = true
)

// learn takes in where the events behind a position were. Those that were not where they were looked for may be in another table.
func (s *spots) learn(position int64, f found, how searched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := f.events
	at := spot{position: list[len(list)-1].Position}
	if before := s.at(position); before != nil {
		if at.open = slices.Clone(before.open); how == byBlocks {
			at.high = before.high
		}
	}
	for i := 0; i < len(list); {
		first, number := f.blocks[i], numberOf(list[i].Position)
		last := first
		for ; i < len(list) && numberOf(list[i].Position) == number; i++ {
			last = f.blocks[i]
			at.high = max(at.high, last)
		}
		at.open = append(slices.DeleteFunc(at.open, func(b uint32) bool { return b == first || b == last }), last)
	}
	at.open = slices.DeleteFunc(at.open, func(b uint32) bool { return b > at.high })
	at.open = at.open[max(0, len(at.open)-mostOpen):]
	s.note(at)
}

// cut notes that a reader has ended within a page, which began behind an event whose block is known. It will go on from there.
func (s *spots) cut(position, begin int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.at(begin); at != nil {
		s.note(spot{position: position, high: at.high, open: at.open})
	}
}

// closed reports whether events are all that transactions have behind a position.
func closed(run []decision, list []events.Stored, after int64) bool {
	n := 0
	for i := range run {
		if run[i].wrong != nil {
			return false
		}
		for p, end := max(after+1, firstOf(run[i].number)), firstOf(run[i].number)+int64(run[i].events); p < end; p++ {
			if n == len(list) || list[n].Position != p {
				return false
			}
			n++
		}
	}
	return n > 0 && n == len(list)
}
