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

// epochDigits is the length of an epoch's name in a cursor.
const epochDigits = 16

// CursorIn is CursorAt for a log whose end may be lost, with a server that took over and goes on from before it: the same positions then mean other
// events. epoch is the name of what the position belongs to, 16 lower case hexadecimal digits; it is empty in the first epoch of a store.
func CursorIn(storeID events.ID, epoch string, position int64) Cursor {
	c := CursorAt(storeID, position)
	if epoch == "" {
		return c
	}
	return c + Cursor("/"+epoch)
}

// Epoch is the name of the epoch that a cursor was made in.
func (c Cursor) Epoch() string {
	_, epoch, _ := strings.Cut(string(c), "/")
	return epoch
}

// Position is an engine's way to read a cursor. One of another store, or a text that never was a cursor, is an error.
func (c Cursor) Position(storeID events.ID) (int64, error) {
	if c == "" {
		return 0, nil
	}
	text, epoch, later := strings.Cut(string(c), "/")
	owner, digits, ok := strings.Cut(text, "@")
	position, err := strconv.ParseInt(digits, 10, 64)
	if later && (len(epoch) != epochDigits || strings.Trim(epoch, "0123456789abcdef") != "") {
		ok = false
	}
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
