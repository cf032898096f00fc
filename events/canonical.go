package events

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/foundling-go/foundling/internal/idtext"
)

// This file is the letters of the canonical form: how Fields writes and reads keys, strings and numbers.

const hexDigits = "0123456789abcdef"

// key writes the separator and the name of the next field.
func (f *Fields) key(name string) {
	if f.count > 0 {
		f.buf = append(f.buf, ',')
	}
	f.count++
	f.buf = append(f.buf, '"')
	f.buf = append(f.buf, name...)
	f.buf = append(f.buf, '"', ':')
}

// print appends one name=value, with a space before it.
func (f *Fields) print(name, value string) {
	f.count++
	f.buf = append(f.buf, ' ')
	f.buf = append(f.buf, name...)
	f.buf = append(f.buf, '=')
	f.buf = append(f.buf, value...)
}

// at reports whether the next stored field is the named one, and steps behind its colon if so.
func (f *Fields) at(name string) bool {
	rest := f.buf
	if f.err != nil {
		return false
	}
	if f.count > 0 {
		if len(rest) == 0 || rest[0] != ',' {
			return false
		}
		rest = rest[1:]
	}
	n := len(name)
	if len(rest) < n+3 || rest[0] != '"' || string(rest[1:n+1]) != name || rest[n+1] != '"' || rest[n+2] != ':' {
		return false
	}
	f.count++
	f.buf = rest[n+3:]
	return true
}

func (f *Fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// demand fails a reading of what would not be written again as it stands.
func (f *Fields) demand(canonical bool, name string) {
	if f.walk == reading && !canonical {
		f.fail("field %s: its value is not canonical", name)
	}
}

func (f *Fields) readInt(name string) int64 {
	end := 0
	for end < len(f.buf) && (f.buf[end] == '-' || f.buf[end] >= '0' && f.buf[end] <= '9') {
		end++
	}
	n, err := strconv.ParseInt(string(f.buf[:end]), 10, 64)
	if err != nil || n == 0 || f.buf[0] == '0' || bytes.HasPrefix(f.buf[:end], []byte("-0")) {
		f.fail("field %s: %q is not a canonical whole number other than 0", name, cut(f.buf))
		return 0
	}
	f.buf = f.buf[end:]
	return n
}

func (f *Fields) readString(name string) string {
	s, rest, ok := readJSONString(f.buf)
	if !ok || s == "" {
		f.fail("field %s: %q is not a canonical string", name, cut(f.buf))
		return ""
	}
	f.buf = rest
	return s
}

func (f *Fields) readStrings(name string) []string {
	var list []string
	rest, ok := bytes.CutPrefix(f.buf, []byte{'['})
	for ok {
		var s string
		if s, rest, ok = readJSONString(rest); !ok {
			break
		}
		list = append(list, s)
		if after, end := bytes.CutPrefix(rest, []byte{']'}); end {
			f.buf = after
			return list
		}
		rest, ok = bytes.CutPrefix(rest, []byte{','})
	}
	f.fail("field %s: %q is not a canonical list of strings", name, cut(f.buf))
	return nil
}

// readObject steps over one nested object and returns a copy of its bytes.
func (f *Fields) readObject(name string) []byte {
	depth, inString := 0, false
	for i := 0; i < len(f.buf); i++ {
		c := f.buf[i]
		switch {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
		if depth == 0 {
			if c != '}' {
				break
			}
			object := bytes.Clone(f.buf[:i+1])
			f.buf = f.buf[i+1:]
			return object
		}
	}
	f.fail("field %s: %q is not an object", name, cut(f.buf))
	return nil
}

// hashLen is how many letters a hash has.
const hashLen = 43

// readID reads an id other than the zero.
func (f *Fields) readID(v *ID) bool {
	text, rest, ok := f.quoted(idtext.Len)
	if !ok {
		return false
	}
	id, ok := idtext.Parse(text)
	if !ok || id == (ID{}) {
		return false
	}
	*v, f.buf = id, rest
	return true
}

// quoted is the n letters in quotes that come next, and what follows.
func (f *Fields) quoted(n int) (text, rest []byte, ok bool) {
	if len(f.buf) < n+2 || f.buf[0] != '"' || f.buf[n+1] != '"' {
		return nil, nil, false
	}
	return f.buf[1 : n+1], f.buf[n+2:], true
}

var base64url = base64.RawURLEncoding.Strict()

func (f *Fields) hash(name string, v *[32]byte) {
	switch f.walk {
	case writing:
		if *v != ([32]byte{}) {
			f.key(name)
			f.buf = append(base64url.AppendEncode(append(f.buf, '"'), v[:]), '"')
		}
	case printing:
		if *v != ([32]byte{}) {
			f.print(name, quoteIfNeeded(base64url.EncodeToString(v[:])[:8]))
		}
	case reading:
		if !f.at(name) {
			return
		}
		text, rest, ok := f.quoted(hashLen)
		var hash [32]byte
		if ok {
			n, err := base64url.Decode(hash[:], text)
			ok = err == nil && n == len(hash) && hash != ([32]byte{})
		}
		if !ok {
			f.fail("field %s: %q is not a hash of 32 bytes", name, cut(f.buf))
			return
		}
		*v, f.buf = hash, rest
	}
}

// appendJSONString writes s with the fewest escapes that JSON allows. Invalid UTF-8 becomes U+FFFD.
func appendJSONString(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// readJSONString reads what appendJSONString writes, and nothing else.
func readJSONString(b []byte) (s string, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return "", b, false
	}
	end := bytes.IndexByte(b[1:], '"') + 1
	if end > 0 && bytes.IndexByte(b[1:end], '\\') < 0 {
		return string(b[1:end]), b[end+1:], plain(b[1:end])
	}
	var out []byte
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return string(out), b[i+1:], utf8.Valid(out) && bytes.Equal(appendJSONString(nil, string(out)), b[:i+1])
		case '\\':
			if i++; i >= len(b) {
				return "", b, false
			}
			switch b[i] {
			case 'n':
				out = append(out, '\n')
			case 't':
				out = append(out, '\t')
			case 'u':
				if i+4 >= len(b) {
					return "", b, false
				}
				c, err := strconv.ParseUint(string(b[i+1:i+5]), 16, 8)
				if err != nil {
					return "", b, false
				}
				out = append(out, byte(c))
				i += 4
			default:
				out = append(out, b[i])
			}
		default:
			out = append(out, b[i])
		}
	}
	return "", b, false
}

// plain reports whether a text is written without escapes, but for quotes and backslashes.
func plain(b []byte) bool {
	letters := true // of one byte
	for _, c := range b {
		if c < 0x20 {
			return false
		}
		letters = letters && c < utf8.RuneSelf
	}
	return letters || utf8.Valid(b)
}

// quoteIfNeeded prints s bare where that is unambiguous, and quoted (with escapes, so that nothing reaches a terminal raw) elsewhere.
func quoteIfNeeded(s string) string {
	for _, r := range s {
		if r <= ' ' || r == '"' || r == '=' || r == '\\' || r == utf8.RuneError || !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

// Printable is s as one line that cannot move a terminal, at most so many bytes of it (0 is all): as it is where all of it can be printed,
// else quoted. Every text that comes from a message goes through it on its way to a person.
func Printable(s string, most int) string {
	if most > 0 && len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	for _, r := range s {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}

func joinInts(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

func joinComma(list []string) string { return strings.Join(list, ",") }
