package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
)

// message keeps the row of a message by hand: of a worker, or blocked by a lock.
func (h *hand) message(n byte, worker *events.ID, lock *string) events.Entity {
	h.t.Helper()
	id := events.ID{15: n}
	var claimed *int64
	waiting := 1
	if worker != nil {
		at := int64(n)
		claimed, waiting = &at, 0
	}
	h.do("INSERT INTO @messages (place, claimed_at, version, state, priority, waiting, counted, id, worker, topic, lock, fields)"+
		" VALUES ($1, $2, 1, 1, 1, $3, false, $4, $5, 'mail', $6, '{}')", firstOf(int64(n)), claimed, waiting, id, worker, lock)
	return events.MessageEntity(id)
}

// rowsOf is whose rows pass a filter, and whose cannot be read.
func rowsWith(t *testing.T, s *Store, f store.RowFilter) (legible, not []events.Entity) {
	t.Helper()
	for row, err := range s.Rows(t.Context(), f) {
		var corrupt *events.Corrupt
		switch {
		case err == nil:
			legible = append(legible, row.Entity)
		case errors.As(err, &corrupt):
			not = append(not, corrupt.Entity)
		default:
			t.Fatal(err)
		}
	}
	return legible, not
}

func TestRowsThatCannotBeReadAreNamedAndOthersFollow(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	h := newHand(t, s)
	one, two, lock, other := events.ID{1}, events.ID{2}, "l", "m"
	var list []events.Entity
	for n := range byte(4) {
		list = append(list, h.message(n+1, &one, nil))
	}
	list = append(list, h.message(5, &two, nil), h.message(6, nil, &lock), h.message(7, nil, &lock), h.message(8, nil, &other))
	for _, c := range []struct {
		filter store.RowFilter
		spoil  []int // which are spoilt
		wanted []int
	}{
		{store.RowFilter{}, []int{0, 2, 7}, []int{1, 3, 4, 5, 6}},
		{store.RowFilter{Order: store.Falling}, []int{0, 2, 7}, []int{6, 5, 4, 3, 1}},
		{store.RowFilter{Worker: one}, []int{1}, []int{0, 2, 3}},
		{store.RowFilter{Lock: lock}, []int{5}, []int{6}},
		{store.RowFilter{Select: store.FirstClaims}, nil, []int{0, 4}},
		{store.RowFilter{Select: store.FirstClaims}, []int{0, 1}, []int{2, 4}},
		{store.RowFilter{Select: store.FirstClaims}, []int{4}, []int{0}},
		{store.RowFilter{Select: store.FirstWaits}, []int{5}, []int{6, 7}},
		{store.RowFilter{Select: store.FirstWaits}, []int{5, 6}, []int{7}},
	} {
		for _, change := range []string{"version = 0", "state = 300", "priority = 1000", "lock_token = -1"} {
			if c.filter.Select == store.FirstWaits && strings.HasPrefix(change, "priority") {
				continue // it stands first no more
			}
			var spoilt, wanted []events.Entity
			for _, i := range c.spoil {
				spoilt = append(spoilt, list[i])
				h.do("UPDATE @messages SET "+change+" WHERE id = $1", list[i].ID)
			}
			for _, i := range c.wanted {
				wanted = append(wanted, list[i])
			}
			legible, not := rowsWith(t, s, c.filter)
			if !slices.Equal(legible, wanted) {
				t.Errorf("%+v, of %v %s: rows %v, want %v", c.filter, spoilt, change, legible, wanted)
			}
			if c.filter.Select == store.All && len(not) != len(spoilt) || len(c.spoil) > 0 && len(not) == 0 {
				t.Errorf("%+v, of %v %s: named are %v", c.filter, spoilt, change, not)
			}
			for _, e := range not {
				if !slices.Contains(spoilt, e) {
					t.Errorf("%+v, of %v %s: named is %s", c.filter, spoilt, change, e)
				}
			}
			h.do("UPDATE @messages SET version = 1, state = 1, priority = 1, lock_token = NULL")
		}
	}
}

// Payloads that are larger than a page come whole, and not all at once.
func TestRowsWithLargePayloadsComeInPages(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	h := newHand(t, s)
	worker := events.ID{1}
	var list []events.Entity
	payload := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16)
	for n := range byte(9) {
		list = append(list, h.message(n+1, &worker, nil))
		if n != 4 { // which has none
			h.do("INSERT INTO @payloads (place, salt, bytes) VALUES ($1, $2, $3)", firstOf(int64(n+1)), make([]byte, 16), payload[:len(payload)-int(n)])
		}
	}
	for _, f := range []store.RowFilter{{}, {Worker: worker}, {Order: store.Falling}, {Entities: list}, {Limit: 4}, {Topic: "mail"}} {
		f.Payloads = true
		var got []events.Entity
		for row, err := range s.Rows(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			n := int(row.Entity.ID[15]) - 1
			if got = append(got, row.Entity); (row.Payload == nil) != (n == 4) || row.Payload != nil && len(row.Payload.Bytes) != len(payload)-n {
				t.Errorf("%+v: the payload of %s is not what was kept", f, row.Entity)
			}
		}
		wanted := slices.Clone(list)
		if f.Order == store.Falling {
			slices.Reverse(wanted)
		}
		if f.Limit > 0 {
			wanted = wanted[:f.Limit]
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("%+v: rows %v, want %v", f, got, wanted)
		}
	}
	l := &listing{table: tables[events.KindMessage], kind: events.KindMessage, filter: store.RowFilter{Payloads: true}}
	page, err := s.rowPage(t.Context(), l)
	if err != nil || len(page) != 3 || l.done {
		t.Errorf("a page has %d rows of 3 MB each, error %v; want as many as make 8 MB", len(page), err)
	}
}

func TestContentsThatCannotBeReadAreNamed(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	h := newHand(t, s)
	worker := events.ID{1}
	m := h.message(1, &worker, nil)
	h.do("INSERT INTO @payloads (place, salt, bytes) VALUES ($1, '', 'x')", firstOf(1))
	_, err := s.Contents(t.Context(), m.ID)
	var corrupt *events.Corrupt
	if !errors.As(err, &corrupt) || corrupt.Entity != m || !strings.Contains(corrupt.Detail, "payload") {
		t.Errorf("error %v, want one of the payload of %s", err, m)
	}
}

// What calls itself the newest checkpoint and is not what was saved must not keep others from being saved.
func TestCheckpointsThatAreNotWhatWasSaved(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{})
	h := newHand(t, s)
	key := store.CheckpointKey{Name: "totals", Version: 1}
	save := func(sequence int) error {
		c := store.Checkpoint{CheckpointKey: key, View: []byte("view")}
		c.Sequence = sequence
		_, err := s.Save(t.Context(), c)
		return err
	}
	for n := range 3 {
		if err := save(n + 1); err != nil {
			t.Fatal(err)
		}
	}
	key.Sequence = 3
	for _, change := range []string{"at = at + 1", "cursor = 'x'", "digest = digest + 1", "checksum = checksum + 1", "sequence = 9"} {
		h.do("UPDATE @checkpoints SET " + change + " WHERE sequence = 3")
		list, err := s.Checkpoints(t.Context(), store.CheckpointFilter{})
		var corrupt *events.Corrupt
		if !errors.As(err, &corrupt) || len(list) != 2 {
			t.Errorf("%s: %d are listed, error %v", change, len(list), err)
		}
		if _, err := s.View(t.Context(), key); !errors.As(err, &corrupt) && !errors.Is(err, store.ErrMoved) {
			t.Errorf("%s: view: error %v", change, err)
		}
		if err := save(3); err != nil {
			t.Errorf("%s: the next is not saved: %v", change, err)
		}
		if list, err := s.Checkpoints(t.Context(), store.CheckpointFilter{}); err != nil || len(list) != 3 {
			t.Errorf("%s: %d are listed after the next was saved, error %v", change, len(list), err)
		}
	}
	h.do("UPDATE @checkpoints SET view = 'other' WHERE sequence = 3")
	var corrupt *events.Corrupt
	if _, err := s.View(t.Context(), key); !errors.As(err, &corrupt) || !strings.Contains(fmt.Sprint(err), "view") {
		t.Errorf("a view that was changed: error %v", err)
	}
}
