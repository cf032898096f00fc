package store_test

import (
	"errors"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

func TestEarlier(t *testing.T) {
	mine, other := events.ID{1}, events.ID{2}
	early, late := store.CursorAt(mine, 9), store.CursorAt(mine, 10)
	tests := []struct {
		a, b, want store.Cursor
		wrong      bool
	}{
		{early, late, early, false},
		{late, early, early, false}, // by number, not by letters
		{early, early, early, false},
		{"", late, "", false},
		{late, "", "", false},
		{early, store.CursorAt(other, 9), "", true},
		{"nonsense", late, "", true},
		{late, "nonsense", "", true},
	}
	for _, tt := range tests {
		got, err := tt.a.Earlier(tt.b)
		if got != tt.want || errors.Is(err, store.ErrCursor) != tt.wrong || (err != nil) != tt.wrong {
			t.Errorf("%q and %q: %q, %v, want %q", tt.a, tt.b, got, err, tt.want)
		}
	}
}

func TestCursorsOfLaterEpochs(t *testing.T) {
	mine := events.ID{1}
	const epoch = "0123456789abcdef"
	c := store.CursorIn(mine, epoch, 12)
	if position, err := c.Position(mine); position != 12 || err != nil || c.Epoch() != epoch {
		t.Errorf("%q: position %d, error %v, epoch %q", c, position, err, c.Epoch())
	}
	if first := store.CursorIn(mine, "", 12); first != store.CursorAt(mine, 12) || first.Epoch() != "" {
		t.Errorf("the first epoch: %q", first)
	}
	if got, err := c.Earlier(store.CursorAt(mine, 11)); got != store.CursorAt(mine, 11) || err != nil {
		t.Errorf("the earlier is %q, %v", got, err)
	}
	for _, wrong := range []store.Cursor{store.CursorAt(mine, 12) + "/", c + "0", c[:len(c)-1], c[:len(c)-1] + "g", c + "/" + epoch, "/" + epoch} {
		if _, err := wrong.Position(mine); !errors.Is(err, store.ErrCursor) {
			t.Errorf("%q: error %v, want ErrCursor", wrong, err)
		}
	}
}
