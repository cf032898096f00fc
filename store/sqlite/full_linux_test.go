package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/foundling-go/foundling/store/sqlite"
	"golang.org/x/sys/unix"
)

func TestFullDiskGoesOnOnceThereIsRoom(t *testing.T) {
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=3m")
	if errors.Is(err, unix.EPERM) {
		t.Log("no right to mount a small disk: TestFullStoreGoesOnOnceThereIsRoom stands for it")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := open(t, filepath.Join(dir, "store.db"), sqlite.Options{})
	call := fill(t, s)
	whole(t, s)
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=30m"); err != nil {
		t.Fatal(err)
	}
	commit(t, s, call)
	whole(t, s)
}
