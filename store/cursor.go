package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/google/uuid"
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
		return 0, fmt.Errorf("cursor %q: it has not the form of one: %w", string(c), ErrCursor)
	}
	if owner != storeID.String() {
		return 0, fmt.Errorf("cursor %q: it belongs to store %s, this is store %s: %w", string(c), owner, storeID, ErrCursor)
	}
	return position, nil
}

// Within is Position in a log whose newest event stands at head. A cursor behind it has passed what is not there: ErrAhead.
func (c Cursor) Within(storeID events.ID, head int64) (int64, error) {
	position, err := c.Position(storeID)
	if err == nil && position > head {
		return 0, fmt.Errorf("cursor %q: the newest event of the log stands at %d: %w", string(c), head, ErrAhead)
	}
	return position, err
}

// Earlier is the one of two cursors of a store that stands further to the beginning. Two of different stores have no order: ErrCursor.
func (c Cursor) Earlier(o Cursor) (Cursor, error) {
	if c == "" || o == "" {
		return "", nil
	}
	owner, _, _ := strings.Cut(string(c), "@")
	id, err := uuid.Parse(owner)
	if err != nil {
		return "", fmt.Errorf("cursor %q: it has not the form of one: %w", string(c), ErrCursor)
	}
	mine, err := c.Position(id)
	if err != nil {
		return "", err
	}
	others, err := o.Position(id)
	if err != nil {
		return "", err
	}
	if others < mine {
		return o, nil
	}
	return c, nil
}
