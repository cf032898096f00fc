package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Ending says which byte ends a record.
type Ending int

const (
	// Newline ends records with '\n'. A '\r' before it belongs to the record.
	Newline Ending = iota
	// NUL ends records with a zero byte, as `find -print0` writes them.
	NUL
)

// DefaultMaxBytes is the bound of one record, without its ending, where
// ReaderOptions names none: the bound of a message's payload.
const DefaultMaxBytes = 1 << 20

// bufferBytes is how much is read ahead.
const bufferBytes = 64 << 10

// ReaderOptions configures a Reader. The zero value reads lines of at most
// DefaultMaxBytes.
type ReaderOptions struct {
	// Ending is the byte that ends a record; by default Newline.
	Ending Ending
	// MaxBytes bounds one record without its ending, in bytes; 0 means
	// DefaultMaxBytes.
	MaxBytes int
}

func (o ReaderOptions) validate() error {
	if o.Ending != Newline && o.Ending != NUL {
		return fmt.Errorf("ending %d: want Newline (%d) or NUL (%d)", o.Ending, Newline, NUL)
	}
	if o.MaxBytes < 0 {
		return fmt.Errorf("max bytes %d: want 0 (the default, %d) or more", o.MaxBytes, DefaultMaxBytes)
	}
	return nil
}

// Record is one piece of the input.
type Record struct {
	// Bytes is the record without its ending, byte for byte as it was read.
	// It belongs to the Reader and is overwritten by its next Next.
	Bytes []byte
	// Line is the record's number in the input, from 1, empty ones counted.
	Line int
}

// TooLongError says that a record passes the bound. The Reader can be read on:
// its next Next gives the record after this one.
type TooLongError struct {
	// Line is the record's number in the input, from 1.
	Line int
	// ReadBytes is how much of it had been read when it was given up; the
	// whole may be longer.
	ReadBytes int
	// MaxBytes is the bound.
	MaxBytes int
}

// Error implements error.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("line %d: %d bytes so far, more than the %d a record may have", e.Line, e.ReadBytes, e.MaxBytes)
}

// Reader cuts an input into records. Empty records are skipped, as GNU xargs
// does; a last record without an ending counts. It is for one goroutine.
type Reader struct {
	in     *bufio.Reader
	end    byte
	max    int
	line   int    // number of the record being read, or read last
	long   []byte // a record that did not lie in the buffer whole
	within bool   // the rest of a record that was too long is still to come
	err    error  // what ended the input, for ever
}

// NewReader returns a Reader of in. The error names an option out of bounds.
func NewReader(in io.Reader, o ReaderOptions) (*Reader, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("read lines: %w", err)
	}
	r := &Reader{in: bufio.NewReaderSize(in, bufferBytes), end: '\n', max: o.MaxBytes}
	if o.Ending == NUL {
		r.end = 0
	}
	if r.max == 0 {
		r.max = DefaultMaxBytes
	}
	return r, nil
}

// Next returns the next record that is not empty, as soon as its ending has
// been read. It returns io.EOF, bare, at the end, a *TooLongError for a record
// past the bound, after which reading goes on, or what the input's Read
// returned with the line it happened in; the last is final, and what had been
// read of that line is dropped, since it may be cut.
//
// Next blocks as long as the input's Read does, and nothing but closing the
// input ends that: call it where waiting is allowed.
func (r *Reader) Next() (Record, error) {
	for {
		if r.err != nil {
			return Record{}, r.err
		}
		if err := r.skipRest(); err != nil {
			return Record{}, err
		}
		r.line++
		b, err := r.record()
		if err != nil {
			return Record{}, err
		}
		if len(b) > 0 {
			return Record{Bytes: b, Line: r.line}, nil
		}
	}
}

// Ready reports whether Next can return without reading from the input: false
// is the moment to hand on what has been gathered, as the next record may be a
// long time coming.
func (r *Reader) Ready() bool {
	if r.err != nil {
		return true
	}
	ahead, _ := r.in.Peek(r.in.Buffered()) // what is buffered can always be peeked at
	return r.nonEmpty(ahead)
}

// nonEmpty reports whether ahead holds the whole of a record with bytes in it.
func (r *Reader) nonEmpty(ahead []byte) bool {
	rest := r.within // the first ending only ends what is skipped
	for {
		at := bytes.IndexByte(ahead, r.end)
		if at < 0 {
			return false
		}
		if at > 0 && !rest {
			return true
		}
		rest = false
		ahead = ahead[at+1:]
	}
}

// record reads one record, which may be empty.
func (r *Reader) record() ([]byte, error) {
	r.long = r.long[:0]
	for {
		chunk, err := r.in.ReadSlice(r.end)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return r.last(chunk, err)
		}
		ended := err == nil
		if ended {
			chunk = chunk[:len(chunk)-1]
		}
		if size := len(r.long) + len(chunk); size > r.max {
			r.within = !ended
			return nil, &TooLongError{Line: r.line, ReadBytes: size, MaxBytes: r.max}
		}
		if ended && len(r.long) == 0 {
			return chunk, nil // the usual case: no copy
		}
		r.long = append(r.long, chunk...)
		if ended {
			return r.long, nil
		}
	}
}

// last gives what came before the input ended, if it ended well.
func (r *Reader) last(chunk []byte, err error) ([]byte, error) {
	r.stop(err)
	if r.err != io.EOF {
		return nil, r.err
	}
	if size := len(r.long) + len(chunk); size > r.max {
		return nil, &TooLongError{Line: r.line, ReadBytes: size, MaxBytes: r.max}
	}
	r.long = append(r.long, chunk...)
	return r.long, nil
}

// skipRest reads past what is left of a record that was too long.
func (r *Reader) skipRest() error {
	for r.within {
		_, err := r.in.ReadSlice(r.end)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		r.within = false
		if err != nil {
			r.stop(err)
			return r.err
		}
	}
	return nil
}

func (r *Reader) stop(err error) {
	r.err = io.EOF
	if err != io.EOF {
		r.err = fmt.Errorf("read line %d: %w", r.line, err)
	}
}
