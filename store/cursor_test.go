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
