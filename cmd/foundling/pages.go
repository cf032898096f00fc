package main

import (
	"bytes"
	"errors"
	"io"

	"github.com/foundling-go/foundling/internal/lines"
)

const (
	// pageLines is how many lines are made durable at a time, and pageBytes about how many bytes of them.
	pageLines = 500
	pageBytes = 4 << 20
)

// nulEnded is the flag that says how lines end.
type nulEnded bool

func (n nulEnded) ending() lines.Ending {
	if n {
		return lines.NUL
	}
	return lines.Newline
}

// pager cuts an input into pages of lines, each to be made durable at once.
type pager struct {
	reader  *lines.Reader
	tooLong func(error) // is told of every line that is too long, which is passed over
}

func newPager(input io.Reader, ending lines.Ending, tooLong func(error)) (*pager, error) {
	reader, err := lines.NewReader(input, lines.ReaderOptions{Ending: ending})
	if err != nil {
		return nil, err
	}
	return &pager{reader: reader, tooLong: tooLong}, nil
}

// next is the next lines: as many as can be had without waiting, and at least one. With an error, io.EOF at the end, come the lines
// before it.
func (p *pager) next() ([][]byte, error) {
	var page [][]byte
	size := 0
	for len(page) < pageLines && size < pageBytes && (len(page) == 0 || p.reader.Ready()) {
		record, err := p.reader.Next()
		var long *lines.TooLongError
		if errors.As(err, &long) {
			p.tooLong(long)
			continue
		}
		if err != nil {
			return page, err
		}
		page = append(page, bytes.Clone(record.Bytes))
		size += len(record.Bytes)
	}
	return page, nil
}
