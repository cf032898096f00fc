package sqlite_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// fill enqueues until the store is full, and gives the call that found no room. Everything before it is there, of it nothing is.
func fill(t *testing.T, s *sqlite.Store) store.Call {
	t.Helper()
	for range 10_000 {
		before, err := s.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		call := enqueueing("mail", 50)
		receipts, err := s.Decide(t.Context(), call)
		if err == nil {
			err = receipts[0].Err
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrFull) {
			t.Fatalf("error %v, want %v", err, store.ErrFull)
		}
		if after, err := s.Head(t.Context()); err != nil || after != before {
			t.Fatalf("the head was %s, it is %s: %v", before, after, err)
		}
		return call
	}
	t.Fatal("the store is never full")
	return store.Call{}
}

// whole ends the test unless log and rows agree.
func whole(t *testing.T, s *sqlite.Store) {
	t.Helper()
	messages, rows := 0, 0
	for r, err := range s.Read(t.Context(), "", store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Version == 1 && !r.Entity.Kind.Named() {
			messages++
		}
	}
	for row, err := range s.Rows(t.Context(), store.RowFilter{Topic: "mail", Payloads: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Payload == nil {
			t.Fatalf("%s has no payload", row.Entity)
		}
		rows++
	}
	if messages != rows || rows == 0 {
		t.Fatalf("%d messages in the log, %d rows", messages, rows)
	}
}

func TestFullStoreGoesOnOnceThereIsRoom(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err := s.OnWriter("PRAGMA max_page_count = 200"); err != nil {
		t.Fatal(err)
	}
	call := fill(t, s)
	whole(t, s)
	if _, err := s.Decide(t.Context(), call); !errors.Is(err, store.ErrFull) {
		t.Fatalf("error %v, want %v", err, store.ErrFull)
	}
	if err := s.OnWriter("PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if n := len(commit(t, s, call).Events); n != 50 {
		t.Fatalf("%d events, want 50", n)
	}
	whole(t, s)
}

// A claim takes its message, its slot and its lock, or nothing of them.
func TestFullStoreKeepsLocksWhole(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err := s.OnWriter("PRAGMA max_page_count = 200"); err != nil {
		t.Fatal(err)
	}
	var full error
	for i := 0; full == nil; i++ {
		lock := fmt.Sprint("l", i)
		_, full = s.Decide(t.Context(), locking("mail", lock, 3), claiming("mail", 1), claiming("mail", 2))
	}
	if !errors.Is(full, store.ErrFull) {
		t.Fatalf("error %v, want %v", full, store.ErrFull)
	}
	wholeLocks(t, s)
	if err := s.OnWriter("PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	rows, _ := rowsOf(t, s, store.RowFilter{Worker: worker})
	commit(t, s, settling(t, worker, rows[:10]))
	if n := len(running(commit(t, s, claiming("mail", 10)))); n != 10 {
		t.Errorf("%d of the 10 who waited were granted", n)
	}
	wholeLocks(t, s)
}

func TestBytesPerEvent(t *testing.T) {
	for _, c := range []struct{ batch, jobs, most int }{{100, 3000, 200}, {1, 300, 400}} {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", c.batch))
		s := open(t, path, sqlite.Options{Synchronous: sqlite.SynchronousNormal})
		if err := s.OnWriter("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			t.Fatal(err)
		}
		before := size(t, path)
		for range c.jobs / c.batch {
			lives(t, s, c.batch)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		each := float64(size(t, path)-before) / float64(3*c.jobs)
		t.Logf("batches of %d: %.1f bytes of file for each event of a life", c.batch, each)
		if each > float64(c.most) {
			t.Errorf("batches of %d: %.1f bytes for each event, at most %d", c.batch, each, c.most)
		}
	}
}

func TestNoRoomForTheFilesBesideTheStore(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if err := sqlite.Classed(&fs.PathError{Op: "mkdir", Path: "store.db-workers", Err: err}); !errors.Is(err, store.ErrFull) {
			t.Errorf("error %v, want %v", err, store.ErrFull)
		}
	}
	if err := sqlite.Classed(syscall.EACCES); errors.Is(err, store.ErrFull) {
		t.Errorf("error %v", err)
	}
}
