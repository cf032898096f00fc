package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"syscall"
	"unicode/utf16"
	"unicode/utf8"
)

// screen is the one place through which everything goes that a command itself prints, line by line: no character leaves it that a terminal
// would obey or show as something else, and no secret. What children print is not a command's own and does not come here.
type screen struct {
	mu      sync.Mutex
	to      io.Writer
	begun   []byte // a line that has not ended
	hide    func(line []byte) []byte
	escape  func(b []byte, r rune) []byte // how a character is written that cannot be printed
	broken  func(b []byte, c byte) []byte // how a byte is written that is of no character
	paint   func(line []byte) []byte      // nil leaves lines as they are
	unheard bool                          // whoever read it has closed the pipe
}

// newScreen is a screen of text for people.
func newScreen(to io.Writer) *screen {
	return &screen{to: to, hide: hideAddresses, escape: escapeText, broken: brokenText}
}

// Write implements io.Writer. Where nobody hears it any more, that is no error: what a command did stays done, and its exit code says so.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = append(s.begun, p...)
	end := bytes.LastIndexByte(s.begun, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	err := s.put(s.begun[:end])
	s.begun = append(s.begun[:0], s.begun[end:]...)
	return len(p), err
}

// Flush writes a line that has not ended.
func (s *screen) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.put(s.begun)
	s.begun = s.begun[:0]
	return err
}

// closed reports whether nobody hears it any more, so that going on only for the sake of printing is in vain.
func (s *screen) closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unheard
}

func (s *screen) put(lines []byte) error {
	if len(lines) == 0 || s.unheard {
		return nil
	}
	var out []byte
	for line := range bytes.Lines(lines) {
		text, ended := bytes.CutSuffix(line, []byte("\n"))
		text = s.harmless(s.hide(text))
		if s.paint != nil {
			text = s.paint(text)
		}
		out = append(out, text...)
		if ended {
			out = append(out, '\n')
		}
	}
	_, err := s.to.Write(out)
	if errors.Is(err, syscall.EPIPE) {
		s.unheard = true
		return nil
	}
	return err
}

// harmless is a line in which everything that cannot be printed is escaped.
func (s *screen) harmless(line []byte) []byte {
	clean := true
	for i := 0; i < len(line) && clean; i++ {
		clean = line[i] >= ' ' && line[i] <= '~' || line[i] == '\t'
	}
	if clean {
		return line
	}
	var b []byte
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		switch {
		case r == utf8.RuneError && size == 1:
			b = s.broken(b, line[0])
		case strconv.IsPrint(r), r == '\t': // which only goes on to the next stop
			b = append(b, line[:size]...)
		default:
			b = s.escape(b, r)
		}
		line = line[size:]
	}
	return b
}

// escapeText writes a character as Go does.
func escapeText(b []byte, r rune) []byte {
	quoted := strconv.QuoteRune(r)
	return append(b, quoted[1:len(quoted)-1]...)
}

// brokenText writes a byte as Go does.
func brokenText(b []byte, c byte) []byte { return fmt.Appendf(b, `\x%02x`, c) }

// brokenJSON writes a byte as JSON's encoders do, which has no other way.
func brokenJSON(b []byte, _ byte) []byte { return escapeJSON(b, utf8.RuneError) }

// escapeJSON writes a character as a string of JSON has it. Outside of strings, JSON has none that would have to be escaped.
func escapeJSON(b []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Appendf(b, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(b, `\u%04x`, r)
}
