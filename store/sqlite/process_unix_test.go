//go:build unix

package sqlite_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
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

// A process that is killed while it writes leaves every lock with who holds it, and nobody waiting for a lock that is free.
func TestKilledProcessLeavesItsLocksWhole(t *testing.T) {
	for _, lines := range []int{1, 20, 61} {
		path := filepath.Join(t.TempDir(), "store.db")
		c := startChild(t, roleLock, path)
		for range lines {
			c.line(t)
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		s := open(t, path, sqlite.Options{})
		wholeLocks(t, s)
		dead, errs := rowsOf(t, s, store.RowFilter{Select: store.FirstClaims})
		if len(dead) != 1 || len(errs) > 0 {
			t.Fatalf("claims %v, errors %v: want one worker's", dead, errs)
		}
		call, _ := calls.Reclaim(origin(), fsm.Reclaim{Evidence: events.Evidence{Claimer: dead[0].Worker, Reason: events.ReasonProcessGone}, Page: 100})
		commit(t, s, call)
		wholeLocks(t, s)
		for done := false; !done; {
			rows := running(commit(t, s, claiming("mail", 50)))
			rows = append(rows, running(commit(t, s, claiming("press", 50)))...)
			if len(rows) > 0 {
				commit(t, s, settling(t, worker, rows))
			}
			done = len(rows) == 0
		}
		wholeLocks(t, s)
		if rows, errs := rowsOf(t, s, store.RowFilter{Kind: events.KindMessage}); len(rows)+len(errs) > 0 {
			t.Errorf("left behind: %v, %v", rows, errs)
		}
	}
}
