package events

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/foundling-go/foundling/internal/idtext"
)

// Fields walks the fields of one stored value in their fixed order. The value's own method names each field once; whether that walk
// writes, reads or prints is this type's business, so the three cannot disagree. Zero values are neither written nor printed.
//
// It serves the bodies of events, the parameters of commands, and the states that package fsm gives to a store.
type Fields struct {
	walk  walk
	buf   []byte // writing, printing: what there is so far; reading: what is left
	names *Names // printing
	count int    // fields written, read or printed so far
	err   error  // reading: the first thing that was wrong
}

type walk uint8

const (
	writing walk = iota
	reading
	printing
)

// Visitor is a value that can name its fields.
type Visitor interface{ VisitFields(*Fields) }

// AppendFields appends the canonical JSON of v to b.
func AppendFields(b []byte, v Visitor) []byte {
	f := pens.Get().(*Fields)
	*f = Fields{walk: writing, buf: append(f.buf[:0], '{')}
	v.VisitFields(f)
	f.buf = append(f.buf, '}')
	b = append(b, f.buf...)
	if cap(f.buf) <= maxPen {
		pens.Put(f)
	}
	return b
}

// pens are Fields that wrote before, with the room that they needed: what is written takes one allocation, of its own size.
var pens = sync.Pool{New: func() any { return new(Fields) }}

// maxPen is how many bytes one keeps room for.
const maxPen = 4 << 10

// ReadFields sets v from what [AppendFields] wrote. It is strict: an unknown, repeated or misplaced field, a value of another type or
// anything behind the closing brace is an error that names it.
func ReadFields(b []byte, v Visitor) error {
	if len(b) < 2 || b[0] != '{' {
		return fmt.Errorf("stored value %q: want an object", cut(b))
	}
	f := Fields{walk: reading, buf: b[1:]}
	v.VisitFields(&f)
	switch {
	case f.err != nil:
		return f.err
	case len(f.buf) == 0 || f.buf[0] != '}':
		return fmt.Errorf("stored value: unknown or misplaced field at %q", cut(f.buf))
	case len(f.buf) > 1:
		return fmt.Errorf("stored value: %q behind its end", cut(f.buf[1:]))
	}
	return nil
}

// cut bounds what an error message shows of stored bytes.
func cut(b []byte) []byte { return b[:min(len(b), 40)] }

// Text visits a string. Bytes that are not UTF-8 are stored as U+FFFD.
func (f *Fields) Text(name string, v *string) {
	switch f.walk {
	case writing:
		if *v != "" {
			f.key(name)
			f.buf = appendJSONString(f.buf, *v)
		}
	case reading:
		if f.at(name) {
			*v = f.readString(name)
		}
	case printing:
		if *v != "" {
			f.print(name, quoteIfNeeded(*v))
		}
	}
}

// Int visits an int.
func (f *Fields) Int(name string, v *int) {
	n := int64(*v)
	f.Int64(name, &n)
	f.demand(int64(int(n)) == n, name)
	*v = int(n)
}

// Int64 visits an int64.
func (f *Fields) Int64(name string, v *int64) {
	f.integer(name, v, func(n int64) string { return fmt.Sprint(n) })
}

// Token visits a fencing token.
func (f *Fields) Token(name string, v *Token) {
	n := int64(*v)
	f.Int64(name, &n)
	*v = Token(n)
}

// Time visits an instant, kept in whole microseconds since 1970, in UTC.
func (f *Fields) Time(name string, v *time.Time) {
	var n int64
	if f.walk != reading && !v.IsZero() {
		n = v.UnixMicro()
	}
	f.integer(name, &n, func(int64) string { return f.names.time(*v) })
	if f.walk == reading && n != 0 {
		*v = time.UnixMicro(n).UTC()
		f.demand(!v.IsZero(), name)
	}
}

// Duration visits a length of time, kept in whole microseconds.
func (f *Fields) Duration(name string, v *time.Duration) {
	n := v.Microseconds()
	f.integer(name, &n, func(int64) string { return v.String() })
	if f.walk == reading {
		*v = time.Duration(n) * time.Microsecond
		f.demand(v.Microseconds() == n, name)
	}
}

// Flag visits a bool, kept as 1 where it is true.
func (f *Fields) Flag(name string, v *bool) {
	var n int64
	if *v {
		n = 1
	}
	f.integer(name, &n, func(int64) string { return "yes" })
	if f.walk == reading {
		*v = n != 0
		f.demand(n == 0 || n == 1, name)
	}
}

// ID visits an id, kept as text.
func (f *Fields) ID(name string, v *ID) {
	if f.walk == printing {
		if *v != (ID{}) {
			f.print(name, f.names.ID(*v))
		}
		return
	}
	if f.walk == writing {
		if *v != (ID{}) {
			f.key(name)
			f.buf = append(idtext.Append(append(f.buf, '"'), *v), '"')
		}
		return
	}
	if f.at(name) && !f.readID(v) {
		f.fail("field %s: %q is not a canonical id", name, cut(f.buf))
	}
}

// Reason visits a reason of the closed set.
func (f *Fields) Reason(name string, v *Reason) {
	f.Text(name, (*string)(v))
	if f.walk == reading && !v.Known() {
		f.fail("field %s: unknown reason %q", name, cut([]byte(*v)))
	}
}

// Priority visits a priority, kept as its word; normal is left out.
func (f *Fields) Priority(name string, v *Priority) {
	var word string
	if f.walk != reading && *v != Normal {
		word = v.String()
	}
	f.Text(name, &word)
	if f.walk == reading {
		p, err := ParsePriority(word)
		if err != nil || p == Normal && word != "" {
			f.fail("field %s: %q is not a canonical priority", name, cut([]byte(word)))
		}
		*v = p
	}
}

// State visits a state, kept as its number and printed as its word.
func (f *Fields) State(name string, v *State) {
	n := int64(*v)
	f.integer(name, &n, func(int64) string { return v.String() })
	f.demand(int64(State(n)) == n, name)
	*v = State(n)
}

// Hash visits a 32-byte hash, kept as unpadded URL-safe base64 and printed by its first eight characters.
func (f *Fields) Hash(name string, v *[32]byte) {
	f.hash(name, v)
}

// Texts visits a list of strings.
func (f *Fields) Texts(name string, v *[]string) {
	switch f.walk {
	case writing:
		if len(*v) == 0 {
			return
		}
		f.key(name)
		for i, s := range *v {
			f.buf = append(f.buf, "[,"[min(i, 1)])
			f.buf = appendJSONString(f.buf, s)
		}
		f.buf = append(f.buf, ']')
	case reading:
		if f.at(name) {
			*v = f.readStrings(name)
		}
	case printing:
		if len(*v) > 0 {
			f.print(name, quoteIfNeeded(joinComma(*v)))
		}
	}
}

// IDs visits a list of ids, kept as a list of strings.
func (f *Fields) IDs(name string, v *[]ID) {
	texts := make([]string, len(*v))
	for i, id := range *v {
		if texts[i] = id.String(); f.walk == printing {
			texts[i] = f.names.ID(id)
		}
	}
	f.Texts(name, &texts)
	if f.walk != reading {
		return
	}
	*v = nil
	for _, text := range texts {
		var id ID
		if err := id.UnmarshalText([]byte(text)); err != nil || len(text) != 36 || strings.ToLower(text) != text {
			f.fail("field %s: %q is not a canonical id", name, cut([]byte(text)))
			return
		}
		*v = append(*v, id)
	}
}

// Ints visits a list of whole numbers, kept as one string of them with commas between.
func (f *Fields) Ints(name string, v *[]int) {
	var text string
	if f.walk != reading && len(*v) > 0 {
		text = joinInts(*v)
	}
	f.Text(name, &text)
	if f.walk != reading || text == "" {
		return
	}
	*v = nil
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			f.fail("field %s: %q is not a list of whole numbers", name, cut([]byte(text)))
			return
		}
		*v = append(*v, n)
	}
	f.demand(joinInts(*v) == text, name)
}

// Raw visits a nested canonical object as its bytes. Ids in it are printed as others are.
func (f *Fields) Raw(name string, v *[]byte) {
	switch f.walk {
	case writing:
		if len(*v) > 0 {
			f.key(name)
			f.buf = append(f.buf, *v...)
		}
	case reading:
		if f.at(name) {
			*v = f.readObject(name)
		}
	case printing:
		if len(*v) > 0 {
			f.print(name, Printable(f.names.within(string(*v)), 0))
		}
	}
}

// integer visits a whole number; show is how it is printed.
func (f *Fields) integer(name string, v *int64, show func(int64) string) {
	switch f.walk {
	case writing:
		if *v != 0 {
			f.key(name)
			f.buf = strconv.AppendInt(f.buf, *v, 10)
		}
	case reading:
		if f.at(name) {
			*v = f.readInt(name)
		}
	case printing:
		if *v != 0 {
			f.print(name, show(*v))
		}
	}
}
