package main

import (
	"context"
	"io"
)

// heedful is an input whose reader goes away when it is told to, though nobody writes to it. What was begun of a read then ends with the process.
type heedful struct {
	over    <-chan struct{} // closed when it is to go away
	from    io.Reader
	reading chan chunk // nil while nothing is read
	left    chunk      // that was read and not given yet
}

// chunk is what one read gave.
type chunk struct {
	bytes []byte
	err   error
}

// Read implements io.Reader.
func (h *heedful) Read(p []byte) (int, error) {
	if len(h.left.bytes) == 0 && h.left.err == nil {
		if h.reading == nil {
			h.reading = make(chan chunk, 1)
			go h.next(h.reading)
		}
		select {
		case <-h.over:
			return 0, context.Canceled
		case h.left = <-h.reading:
			h.reading = nil
		}
	}
	n := copy(p, h.left.bytes)
	if h.left.bytes = h.left.bytes[n:]; n > 0 || len(p) == 0 {
		return n, nil
	}
	err := h.left.err
	h.left.err = nil
	return 0, err
}

// next reads what comes next.
func (h *heedful) next(to chan<- chunk) {
	b := make([]byte, 64<<10)
	n, err := h.from.Read(b)
	to <- chunk{b[:n], err}
}
