package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/foundling-go/foundling/events"
)

// Cursor is a place in one store's log, behind an event that was read. It is opaque: compare it for equality, keep it, hand it back.
// Its zero is the beginning.
type Cursor string

// CursorAt is an engine's way to make a cursor: the store's own id and the position of the last event that was passed.
func CursorAt(storeID events.ID, position int64) Cursor {
	return Cursor(fmt.Sprintf("%s@%d", storeID, position))
}

// Position is an engine's way to read a cursor. One of another store, or a text that never was a cursor, is an error.
func (c Cursor) Position(storeID events.ID) (int64, error) {
	if c == "" {
		return 0, nil
	}
	owner, digits, ok := strings.Cut(string(c), "@")
	position, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || position < 0 {
		return 0, fmt.Errorf("cursor %q: not a cursor", string(c))
	}
	if owner != storeID.String() {
		return 0, fmt.Errorf("cursor %q: it belongs to store %s, this is store %s", string(c), owner, storeID)
	}
	return position, nil
}
