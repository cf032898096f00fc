// Package idtext writes and reads ids in the one form in which Foundling keeps them as text: 36 letters, lower case.
package idtext

import (
	"encoding/hex"

	"github.com/google/uuid"
)

// Len is how many letters an id has.
const Len = 36

// Append appends the letters of an id to b.
func Append(b []byte, id uuid.UUID) []byte {
	for i, part := range [...][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}

// Parse reads what Append writes. It is false for everything else, such as the other forms in which an id can be written.
func Parse(text []byte) (uuid.UUID, bool) {
	if len(text) != Len {
		return uuid.UUID{}, false
	}
	id, err := uuid.ParseBytes(text)
	var again [Len]byte
	if err != nil || string(Append(again[:0], id)) != string(text) {
		return uuid.UUID{}, false
	}
	return id, true
}
