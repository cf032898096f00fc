package sqlite

import (
	"fmt"

	"github.com/foundling-go/foundling/store"
	"golang.org/x/sys/unix"
)

// remote are the magic numbers of file systems whose locks another machine may see late, or not at all. FUSE may be anything.
var remote = map[int64]string{
	unix.NFS_SUPER_MAGIC:   "NFS",
	unix.SMB_SUPER_MAGIC:   "SMB",
	unix.SMB2_SUPER_MAGIC:  "SMB",
	unix.CIFS_SUPER_MAGIC:  "CIFS",
	unix.V9FS_MAGIC:        "9p",
	unix.FUSE_SUPER_MAGIC:  "FUSE",
	unix.AFS_SUPER_MAGIC:   "AFS",
	unix.AFS_FS_MAGIC:      "AFS",
	unix.CODA_SUPER_MAGIC:  "Coda",
	unix.NCP_SUPER_MAGIC:   "NCP",
	unix.CEPH_SUPER_MAGIC:  "Ceph",
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
	0x0bd00bd0:             "Lustre",
	0x01161970:             "GFS2",
	0x786f4256:             "VirtualBox shared folder",
}

// local makes sure that a directory lies in a file system of this machine alone, so that its locks prove what they should.
func local(dir string) error {
	var at unix.Statfs_t
	if err := unix.Statfs(dir, &at); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	if name, ok := remote[int64(uint32(at.Type))]; ok {
		return fmt.Errorf("%w: %s lies in a network file system (%s)", store.ErrNoProof, dir, name)
	}
	return nil
}
