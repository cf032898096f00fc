package sqlite

import (
	"fmt"

	"github.com/foundling-go/foundling/store"
	"golang.org/x/sys/unix"
)

// local makes sure that a directory lies in a file system of this machine alone, so that its locks prove what they should.
func local(dir string) error {
	var at unix.Statfs_t
	if err := unix.Statfs(dir, &at); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	if at.Flags&unix.MNT_LOCAL == 0 {
		return fmt.Errorf("%w: %s lies in a network file system", store.ErrNoProof, dir)
	}
	return nil
}
