package postgres

import (
	"errors"
	"slices"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
)

// followed is a store whose log was read to its end, with the cursor there and a hand to append behind it.
func followed(t *testing.T) (*Store, *hand, store.Cursor) {
	t.Helper()
	s := openAt(t, pgtest.Database(t), Options{})
	h := newHand(t, s)
	h.commit("a", "b")
	list := read(t, s, "", store.Filter{})
	return s, h, s.After(list[len(list)-1])
}

// What was appended behind the last event that somebody has read is found in the blocks behind it.
func TestWhoFollowsTheLogKnowsWhereItsEndLies(t *testing.T) {
	s, h, cursor := followed(t)
	for range 3 {
		want := h.commit("a", "c")
		position, err := cursor.Position(s.id)
		if err != nil {
			t.Fatal(err)
		}
		low, high, ok := s.powers.spots.near(position, 2)
		if !ok {
			t.Fatalf("nobody knows where the log ends behind position %d", position)
		}
		r := reader{store: s}
		if err := r.begin(t.Context(), cursor); err != nil {
			t.Fatal(err)
		}
		near, err := r.eventsBetween(t.Context(), nearQuery, piece{position, firstOf(want + 1), 10}, low, high)
		if err != nil || len(near.events) != 2 || numberOf(near.events[0].Position) != want {
			t.Fatalf("%d events are found among blocks %v to %v, error %v; want the 2 of transaction %d", len(near.events), low, high, err, want)
		}
		list := read(t, s, cursor, store.Filter{})
		if got := numbers(list); !slices.Equal(got, []int64{want}) {
			t.Fatalf("transactions %v were read, want %d", got, want)
		}
		cursor = s.After(list[len(list)-1])
	}
}

// Where events lie is a guess that may be wrong: in parts or altogether, and for blocks that there are not.
func TestEventsThatLieElsewhereAreFoundAllTheSame(t *testing.T) {
	s, h, cursor := followed(t)
	for _, wrong := range []spot{{high: 1 << 30}, {high: 1 << 20, open: []uint32{7, 1 << 20}}, {high: 0xffffffff - 4096, open: []uint32{0}}} {
		for i := range s.powers.spots.list {
			wrong.position = s.powers.spots.list[i].position
			s.powers.spots.list[i] = wrong
		}
		want := h.commit("a", "d")
		list := read(t, s, cursor, store.Filter{})
		if got := numbers(list); !slices.Equal(got, []int64{want}) || len(list) != 2 {
			t.Fatalf("%d events of transactions %v were read, want the 2 of %d", len(list), got, want)
		}
		cursor = s.After(list[1])
	}
}

// inBlock is one event, found in a block.
func inBlock(position int64, block uint32) found {
	return found{[]events.Stored{{Position: position}}, []uint32{block}}
}

// A range of the log has tables of its own, whose blocks are counted from the first again.
func TestTheEndOfTheLogIsFoundInTheNextTable(t *testing.T) {
	var s spots
	s.learn(0, inBlock(1, 5000), byIndex)
	s.learn(1, inBlock(2, 5001), byBlocks)
	s.learn(2, inBlock(3, 0), byIndex)
	low, high, ok := s.near(3, 1)
	if !ok || len(low) != 1 || low[0].BlockNumber != 0 || high[0].BlockNumber > 2*lateBlocks {
		t.Errorf("it is looked for in blocks %v to %v", low, high)
	}
}

// What no transaction tells of is found by whoever reads from the beginning, wherever it lies.
func TestAnEventOfNoTransactionIsFoundFromTheBeginning(t *testing.T) {
	s, h, cursor := followed(t)
	for range 3 * pageEvents / 2 {
		h.commit("a", "b")
	}
	list := read(t, s, cursor, store.Filter{})
	stray := list[len(list)/2].Position + 100
	h.do("INSERT INTO @events (position, version, type, schema, from_state, to_state, checksum, stream, body) VALUES ($1, NULL, 1, 1, 0, 0, 0, 'x', '{}')", stray)
	for range 2 {
		if _, err := s.all(t.Context(), "", store.Filter{}); !errors.As(err, new(*events.Corrupt)) {
			t.Errorf("error %v, want one of the stray event", err)
		}
	}
}

// Who reads a part of a transaction knows where the rest lies.
func TestWhoStopsWithinATransactionGoesOnFromThere(t *testing.T) {
	s, h, cursor := followed(t)
	h.commit("a", "b", "c")
	for range 3 {
		list := read(t, s, cursor, store.Filter{Limit: 1})
		if len(list) != 1 {
			t.Fatalf("%d events were read, want 1", len(list))
		}
		if _, _, ok := s.powers.spots.near(list[0].Position, 1); !ok {
			t.Errorf("nobody knows where the log goes on behind position %d", list[0].Position)
		}
		cursor = s.After(list[0])
	}
}

// However many read, what is remembered of them is bounded, and the newest is what stays.
func TestSpotsAreBounded(t *testing.T) {
	var s spots
	for i := range int64(10 * mostSpots) {
		s.learn(i, inBlock(i+1, uint32(i)), byBlocks)
	}
	if len(s.list) > mostSpots {
		t.Errorf("%d are remembered, want %d at most", len(s.list), mostSpots)
	}
	if at := s.at(10 * mostSpots); at == nil || len(at.open) > mostOpen {
		t.Errorf("the newest is %v", at)
	}
}
