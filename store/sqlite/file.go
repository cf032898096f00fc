package sqlite

import (
	"fmt"
	"os"

	"github.com/foundling-go/foundling/store"
)

// file is the file of a store: the name by which all find it, and what that name stood for when it was opened.
type file struct {
	path string
	info os.FileInfo
}

// headerBytes is the least size of a SQLite file. It takes what is smaller for one that is still to be made.
const headerBytes = 512

// look reports whether there is something in the file already, before SQLite touches it.
func (f *file) look() (exists bool, err error) {
	info, err := os.Stat(f.path)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if n := info.Size(); n > 0 && n < headerBytes && info.Mode().IsRegular() {
		return true, fmt.Errorf("%w: it has %d bytes, a SQLite file begins with %d", store.ErrForeign, n, headerBytes)
	}
	f.info = info // whoever takes its place from here on is another
	return true, alone(info)
}

// remember notes which file was made.
func (f *file) remember() (err error) {
	f.info, err = os.Stat(f.path)
	return err
}

// check makes sure that the name still stands for the file that was opened. What would be written to another is lost, and the write-ahead
// log beside the name belongs to the file that has it now.
func (f *file) check() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("the file that was opened is not there any more: %w", err)
	}
	if !os.SameFile(info, f.info) {
		return fmt.Errorf("%s is not the file that was opened: it was replaced", f.path)
	}
	return alone(info)
}

// alone makes sure that the file has no second name. Under each name SQLite would keep a write-ahead log of its own.
func alone(info os.FileInfo) error {
	if n := links(info); n > 1 {
		return fmt.Errorf("%s has %d names (hard links): a store must have one, or those who open it by another name damage it",
			info.Name(), n)
	}
	return nil
}
