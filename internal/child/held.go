package child

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// held keeps one stream of output: in memory up to a bound, then all of it in a
// file that has no name, or is removed by Close where the system wants a name.
// One goroutine writes; when that is over, any one may read.
type held struct {
	max    int // bytes in memory
	create func() (*os.File, error)

	memory bytes.Buffer
	file   *os.File
	name   string // of the file, while it has one
	size   int64
}

// Write implements io.Writer; a full disk is an error.
func (h *held) Write(p []byte) (int, error) {
	if h.file == nil && h.memory.Len()+len(p) <= h.max {
		h.size += int64(len(p))
		return h.memory.Write(p)
	}
	if err := h.spill(); err != nil {
		return 0, err
	}
	n, err := h.file.Write(p)
	h.size += int64(n)
	return n, err
}

// spill moves what is in memory to a file, once. Where that fails it stays in
// memory, for an error message.
func (h *held) spill() error {
	if h.file != nil {
		return nil
	}
	file, err := h.create()
	if err != nil {
		return err
	}
	// Without a name, nothing is left behind however this process ends.
	name := ""
	if os.Remove(file.Name()) != nil {
		name = file.Name()
	}
	if _, err := file.Write(h.memory.Bytes()); err != nil {
		return errors.Join(err, drop(file, name))
	}
	h.file, h.name, h.memory = file, name, bytes.Buffer{}
	return nil
}

// content returns a reader of n bytes from the given offset.
func (h *held) content(from, n int64) io.Reader {
	if h.file == nil {
		return io.NewSectionReader(bytes.NewReader(h.memory.Bytes()), from, n)
	}
	return io.NewSectionReader(h.file, from, n)
}

func (h *held) close() error {
	file, name := h.file, h.name
	h.memory, h.size, h.file, h.name = bytes.Buffer{}, 0, nil, ""
	if file == nil {
		return nil
	}
	return drop(file, name)
}

// drop closes a file, and removes it where it still has a name.
func drop(file *os.File, name string) error {
	err := file.Close()
	if name != "" {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
