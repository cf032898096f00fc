// Package shorthand is a shorter form of the texts that an engine keeps by the million: bodies of events and fields of rows, which are canonical JSON.
// What most of them have takes a byte (names of fields) or the bytes that it stands for (ids, commitments, times). What is read is, byte for byte, what
// was written, whatever that was.
//
// A form begins with a byte that no JSON begins with, so forms and texts can lie beside each other, and a text that has no shorter form is kept as it is.
package shorthand

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/foundling-go/foundling/internal/idtext"
	"github.com/google/uuid"
)

// The first byte of what is stored tells what it is; any other is that of a text which stands for itself.
const (
	verbatim = 0x00 // what follows stands for itself
	short    = 0x01 // what follows is in shorthand, by the words below
)

// In shorthand a byte from firstText on stands for itself. One below is a code.
const (
	codeID     = 0x00 // 16 bytes follow: a UUID, in quotes
	codeHash   = 0x01 // 32 bytes follow: base64url without padding, in quotes
	codeNumber = 0x02 // a varint follows: a number of some digits
	firstWord  = 0x03
	firstText  = 0x20

	quotedID    = idtext.Len + 2
	quotedHash  = 43 + 2
	leastDigits = 6 // fewer would hardly be shorter
	mostDigits  = 18
)

// words are what stands in most texts; where one is the beginning of another, the longer one is first. A word keeps its code for ever, since it is
// stored; there is room for some more.
var words = [...]string{
	`,"commitment":`, `,"enqueued":`, `{"enqueued":`, `,"attempts":`, `,"attempt":`, `{"worker":`, `,"worker":`, `,"token":`, `{"token":`, `{"topic":"`, `,"size":`,
	`,"lock_token":`, `,"running":`, `,"limit":`, `,"lock":"`, `,"due":`, `,"error":"`, `,"result_size":`, `,"result_commitment":`, `,"codec":"`, `,"trace":"`,
	`{"key":"`, `,"key":"`, `,"failures":`, `,"max_attempts":`,
}

// byLetter is the codes of words by the letter behind their quote.
var byLetter = func() (codes [256][]byte) {
	for i, word := range words {
		codes[word[2]] = append(codes[word[2]], firstWord+byte(i))
	}
	return codes
}()

var base64url = base64.RawURLEncoding.Strict()

// Append appends what is to be stored for a text to b.
func Append(b, text []byte) []byte {
	for _, c := range text {
		if c < firstText { // no JSON of ours has such a byte
			return append(append(b, verbatim), text...)
		}
	}
	begin := len(b)
	b = append(slices.Grow(b, len(text)/2+8), short)
	for i := 0; i < len(text); {
		var n int
		if b, n = appendCode(b, text[i:]); n == 0 {
			b, n = append(b, text[i]), 1
			for isDigit(text[i]) && i+n < len(text) && isDigit(text[i+n]) { // the rest of a number is none of its own
				b, n = append(b, text[i+n]), n+1
			}
		}
		i += n
	}
	if len(b)-begin > len(text) {
		return append(b[:begin], text...)
	}
	return b
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// appendCode appends a code for what a text begins with; n is how much of the text that is, 0 where there is no code.
func appendCode(b, text []byte) (_ []byte, n int) {
	switch c := text[0]; {
	case (c == ',' || c == '{') && len(text) > 2:
		for _, code := range byLetter[text[2]] {
			if word := words[code-firstWord]; len(text) >= len(word) && string(text[:len(word)]) == word {
				return append(b, code), len(word)
			}
		}
	case c == '"':
		return appendQuoted(b, text)
	case c >= '1' && c <= '9':
		for n < len(text) && isDigit(text[n]) {
			n++
		}
		if n >= leastDigits && n <= mostDigits {
			number, _ := strconv.ParseUint(string(text[:n]), 10, 64) // it fits
			return binary.AppendUvarint(append(b, codeNumber), number), n
		}
	}
	return b, 0
}

func appendQuoted(b, text []byte) (_ []byte, n int) {
	if len(text) < quotedID {
		return b, 0
	}
	switch n = 2 + bytes.IndexByte(text[1:], '"'); n {
	case quotedID:
		if id, ok := idtext.Parse(text[1 : n-1]); ok {
			return append(append(b, codeID), id[:]...), n
		}
	case quotedHash:
		if with, err := base64url.AppendDecode(append(b, codeHash), text[1:n-1]); err == nil {
			return with, n
		}
	}
	return b, 0
}

var errCut = errors.New("it is cut short")

// Text gives back what [Append] was given, in bytes of its own. What Append cannot have written is an error.
func Text(stored []byte) ([]byte, error) {
	switch {
	case len(stored) == 0 || stored[0] > short:
		return bytes.Clone(stored), nil
	case stored[0] == verbatim:
		return bytes.Clone(stored[1:]), nil
	}
	text := make([]byte, 0, 3*len(stored))
	for b := stored[1:]; len(b) > 0; {
		var err error
		if text, b, err = expand(text, b[0], b[1:]); err != nil {
			return nil, fmt.Errorf("shorthand: %w", err)
		}
	}
	return text, nil
}

// expand appends what a code stands for, with what follows it, and gives the rest.
func expand(text []byte, code byte, b []byte) (_, rest []byte, err error) {
	switch {
	case code >= firstText:
		return append(text, code), b, nil
	case code == codeID && len(b) >= 16:
		return append(idtext.Append(append(text, '"'), uuid.UUID(b[:16])), '"'), b[16:], nil
	case code == codeHash && len(b) >= 32:
		return append(base64url.AppendEncode(append(text, '"'), b[:32]), '"'), b[32:], nil
	case code == codeNumber:
		number, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, nil, errCut
		}
		return strconv.AppendUint(text, number, 10), b[n:], nil
	case code < firstWord:
		return nil, nil, errCut
	case int(code-firstWord) < len(words):
		return append(text, words[code-firstWord]...), b, nil
	}
	return nil, nil, fmt.Errorf("code %#02x is unknown to this version", code)
}
