//go:build unix

package sqlite_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/google/uuid"
)

func TestKilledProcessIsGoneAndAStoppedOneIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{})
	worker := uuid.Must(uuid.NewV7())
	c := startChild(t, roleAttest, path, worker.String())
	wantGone(t, s, worker, false)
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the child is not stopped: %v, %v", status, err)
	}
	wantGone(t, s, worker, false)
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil {
		t.Fatal("the child was not killed")
	}
	wantGone(t, s, worker, true) // though a child of its own lives on
	wantGone(t, open(t, path, sqlite.Options{}), worker, true)
}
