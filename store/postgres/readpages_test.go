package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
)

// places is where events stand.
func places(list []events.Recorded) []int64 {
	all := make([]int64, len(list))
	for i, r := range list {
		all[i] = r.Position
	}
	return all
}

// What is longer than a page comes whole and in order, wherever a reader begins.
func TestLogIsReadInPages(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	h := newHand(t, s)
	var all, ofA []int64 // positions, in the order in which they were written
	h.do("BEGIN")
	for i := range 2*pageDecisions + 10 {
		clear(h.moved)
		names := []string{"a", "b", "c"}[i%2 : 1+i%3]
		for _, name := range names {
			if name != "a" || i%4 == 0 {
				h.hold(name)
			}
		}
		var notes []string
		if i%4 != 0 || i%2 == 1 {
			notes = []string{"a", "a"}
		}
		if len(h.moved)+len(notes) == 0 {
			notes = []string{"c"}
		}
		number := h.draw()
		if i%7 == 0 {
			number = h.draw() // somebody who drew the one before has rolled back
		}
		moved := len(h.moved)
		_, moves := h.moved["a"]
		delete(h.moved, "a")
		if moves { // it comes first
			h.moved = map[string]int{"a": h.last("a")}
			moved = 1
		}
		h.append(number, notes...)
		for k := range moved + len(notes) {
			position := firstOf(number) + int64(k)
			if all = append(all, position); moves && k == 0 || k >= moved && notes[k-moved] == "a" {
				ofA = append(ofA, position)
			}
		}
	}
	h.do("COMMIT")
	of := events.TopicEntity("a")
	for _, c := range []struct {
		filter store.Filter
		wanted []int64
	}{{store.Filter{}, all}, {store.Filter{Entity: of}, ofA}} {
		if len(c.wanted) <= pageStream {
			t.Fatalf("%d events are no more than a page", len(c.wanted))
		}
		for _, from := range []int{0, 1, 2, 3, len(all) / 2, len(all) - 1, len(all)} {
			after, wanted := store.Cursor(""), c.wanted
			if from > 0 {
				after = store.CursorAt(s.id, all[from-1])
				wanted = slices.DeleteFunc(slices.Clone(c.wanted), func(p int64) bool { return p <= all[from-1] })
			}
			for _, limit := range []int{0, 1, 2, pageStream, pageStream + 1, len(all)} {
				f := c.filter
				f.Limit = limit
				want := wanted
				if limit > 0 {
					want = wanted[:min(limit, len(wanted))]
				}
				if got := places(read(t, s, after, f)); !slices.Equal(got, want) {
					t.Fatalf("%+v behind %d: %d events, want %d: %s", f, from, len(got), len(want), differ(got, want))
				}
			}
		}
	}
}

// differ is where two lists begin to.
func differ(got, want []int64) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("the %d. stands at %d, want %d", i+1, got[i], want[i])
		}
	}
	return "one ends early"
}

// A damaged log names the first event that is not what was written, and gives what stands before it.
func TestDamageOfTheLogIsFoundWhereItIs(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	h := newHand(t, s)
	for range 3 {
		h.commit("a", "b")
	}
	h.commit("a")
	log := read(t, s, "", store.Filter{})
	h.do("CREATE TABLE @was_events AS TABLE @events")
	h.do("CREATE TABLE @was_decisions AS TABLE @decisions")
	at, last := log[2].Position, log[3].Position
	number := numberOf(at)
	for _, c := range []struct {
		statement string
		position  int64
		alone     bool // found by who reads the entity alone, too
	}{
		{"UPDATE @events SET version = version + 50 WHERE position = $1", at, true},
		{"UPDATE @events SET version = NULL WHERE position = $1", at, true},
		{"UPDATE @events SET type = type + 1 WHERE position = $1", at, true},
		{"UPDATE @events SET type = -1 WHERE position = $1", at, true},
		{"UPDATE @events SET schema = schema + 1 WHERE position = $1", at, true},
		{"UPDATE @events SET from_state = 99 WHERE position = $1", at, true},
		{"UPDATE @events SET to_state = 999 WHERE position = $1", at, true},
		{"UPDATE @events SET body = body || '\\x20' WHERE position = $1", at, true},
		{"UPDATE @events SET checksum = checksum + 1 WHERE position = $1", at, true},
		{"UPDATE @events SET stream = 'lock/a' WHERE position = $1", at, false},
		{"UPDATE @events SET stream = 'x' WHERE position = $1", at, false},
		{"DELETE FROM @events WHERE position = $1", at, false},
		{"UPDATE @events SET position = position + 5 WHERE position = $1", at, false},
		{"DELETE FROM @events WHERE position = $1 + 1", last, false},
		{"INSERT INTO @events SELECT position + 1, 70, type, schema, from_state, to_state, checksum, stream, body FROM @events WHERE position = $1 + 1", last + 1, false},
		{"UPDATE @decisions SET at = at + 1 WHERE number = $1 >> 14", at, true},
		{"UPDATE @decisions SET events = events + 1 WHERE number = $1 >> 14", at, true},
		{"UPDATE @decisions SET checksum = checksum + 1 WHERE number = $1 >> 14", at, true},
		{"UPDATE @decisions SET commits = commits || '\\x00' WHERE number = $1 >> 14", at, true},
		{"UPDATE @decisions SET commits = '' WHERE number = $1 >> 14", at, true},
		{"DELETE FROM @decisions WHERE number = $1 >> 14", at, true},
		{"WITH gone AS (DELETE FROM @decisions WHERE number = $1 >> 14) UPDATE @events SET body = '' WHERE position = $1", at, true},
	} {
		h.do(c.statement, at)
		list, err := s.all(t.Context(), "", store.Filter{})
		var corrupt *events.Corrupt
		nameless := strings.Contains(c.statement, "stream = 'x'")
		if !errors.As(err, &corrupt) || corrupt.Position != c.position || corrupt.Entity == (events.Entity{}) && !nameless {
			t.Errorf("%s: error %v, want what stands at %d", c.statement, err, c.position)
		}
		for i, r := range list {
			if r.Position != log[i].Position || numberOf(r.Position) > number || r.Position >= c.position {
				t.Errorf("%s: %d events were read, the last at %d", c.statement, len(list), r.Position)
			}
		}
		if len(list) < 2 {
			t.Errorf("%s: %d events were read of those before", c.statement, len(list))
		}
		list, err = s.all(t.Context(), "", store.Filter{Entity: log[2].Entity})
		if c.alone && (!errors.As(err, &corrupt) || corrupt.Position != at || len(list) != 1) {
			t.Errorf("%s: read by its entity: %d events, error %v", c.statement, len(list), err)
		}
		h.do("TRUNCATE @events, @decisions")
		h.do("INSERT INTO @events SELECT * FROM @was_events")
		h.do("INSERT INTO @decisions SELECT * FROM @was_decisions")
	}
	if got := read(t, s, "", store.Filter{}); len(got) != len(log) {
		t.Errorf("%d events after all was put back, want %d", len(got), len(log))
	}
}

// What goes while it is read is told of as what it is.
func TestWhatIsPrunedWhileItIsReadIsNoDamage(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	h := newHand(t, s)
	first, second := h.commit("a"), h.commit("a")
	r := reader{store: s}
	if err := r.begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	p := pruned{through: firstOf(first), at: r.look.at}
	h.do("DELETE FROM @events WHERE position <= $1", p.through)
	h.do("INSERT INTO @pruned (id, through, at, checksum) VALUES (1, $1, $2, $3)", p.through, p.at.UnixMicro(), int32(p.checksum()))
	_, err := r.next(t.Context())
	var gone *store.PrunedError
	if !errors.As(err, &gone) || gone.First != store.CursorAt(s.id, p.through) {
		t.Errorf("error %v, want one that names what is kept", err)
	}
	if got := numbers(read(t, s, gone.First, store.Filter{})); !slices.Equal(got, []int64{second}) {
		t.Errorf("transactions %v, want [%d]", got, second)
	}
	h.do("UPDATE @pruned SET through = through + 1")
	var corrupt *events.Corrupt
	if _, err := s.Head(t.Context()); !errors.As(err, &corrupt) || corrupt.Entity != events.LogEntity() {
		t.Errorf("error %v, want one of what was pruned", err)
	}
}
