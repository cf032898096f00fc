package findings

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Text renders findings for people, in the order given. It has no blank lines and no control characters, ends with a line end, and is
// empty where there is no finding.
//
//	✖ critical worker_gone: worker …c17 is gone and still holds 1 claim
//	  because its process 4711 on host-a has ended: the kernel let go of its lock
//	  because message …a31, attempt 1, claimed 4m10s ago (position 12)
//	  next    foundling run --resume nightly
func Text(list []Finding) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s %s %s: %s\n", f.Severity.Glyph(), f.Severity, f.Code, f.Text)
		for _, line := range f.Evidence {
			fmt.Fprintf(&b, "  because %s\n", line)
		}
		for _, command := range f.Next {
			fmt.Fprintf(&b, "  next    %s\n", command)
		}
	}
	return b.String()
}

// Glyph is a sign for the severity, which never stands without its word.
func (s Severity) Glyph() string {
	switch s {
	case Critical:
		return "✖"
	case Warning:
		return "▲"
	}
	return "●"
}

// Span is a length of time as people read it, in two units at most: 0s, 350ms, 12.5s, 4m10s, 3h07m, 11d04:12.
func Span(d time.Duration) string {
	minutes := int64(d / time.Minute)
	switch {
	case d < 0:
		return "-" + Span(-d)
	case d < time.Millisecond:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return strings.TrimSuffix(strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64), ".0") + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", minutes, int64(d/time.Second)%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", minutes/60, minutes%60)
	}
	return fmt.Sprintf("%dd%02d:%02d", minutes/60/24, minutes/60%24, minutes%60)
}

// longest is how many bytes of a stored text a finding shows.
const longest = 200

// ShellWord is s as one word for a shell, in a command that is printed to be used. What cannot be printed is written as $'…', which
// all shells in use read but the plainest.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	switch {
	case s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0:
		return s
	case utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for i := range len(s) { // byte for byte, so that what is not UTF-8 survives
		switch c := s[i]; {
		case c == '\\' || c == '\'':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return "$'" + b.String() + "'"
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// joined is a list in a sentence: a, b and c.
func joined(parts ...string) string {
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}
