package sqlite

import (
	"fmt"

	"github.com/foundling-go/foundling/store"
	"golang.org/x/sys/unix"
)

// known are the magic numbers of file systems that are this machine's alone. On any other, other machines may see a lock late or not at
// all, and a wrong proof would give away work that is being done. What an overlay is made of must be local itself to be written to.
var known = map[int64]bool{
	unix.EXT4_SUPER_MAGIC:      true, // ext2 and ext3 too
	unix.XFS_SUPER_MAGIC:       true,
	unix.BTRFS_SUPER_MAGIC:     true,
	unix.F2FS_SUPER_MAGIC:      true,
	unix.TMPFS_MAGIC:           true,
	unix.RAMFS_MAGIC:           true,
	unix.OVERLAYFS_SUPER_MAGIC: true,
	unix.NILFS_SUPER_MAGIC:     true,
	unix.REISERFS_SUPER_MAGIC:  true,
	unix.MSDOS_SUPER_MAGIC:     true,
	0x2fc12fc1:                 true, // ZFS
	0xca451a4e:                 true, // bcachefs
	0x3153464a:                 true, // JFS
	0x2011bab0:                 true, // exFAT
	0x7366746e:                 true, // NTFS
}

// local makes sure that a directory lies in a file system of this machine alone, so that its locks prove what they should.
func local(dir string) error {
	var at unix.Statfs_t
	if err := unix.Statfs(dir, &at); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	if kind := int64(uint32(at.Type)); !known[kind] {
		return fmt.Errorf("%w: %s lies in a file system that is not known to be of this machine alone (type %#x)", store.ErrNoProof, dir, kind)
	}
	return nil
}
