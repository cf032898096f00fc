package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// beside is the names in a directory.
func beside(t *testing.T, path string) string {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

func TestWhatMustExistIsNotMade(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, path string)
		is    error
		left  string
	}{
		{"nothing", func(*testing.T, string) {}, fs.ErrNotExist, ""},
		{"an empty file", func(t *testing.T, path string) { write(t, path, nil) }, store.ErrForeign, "store.db"},
		{"a byte", func(t *testing.T, path string) { write(t, path, []byte{0}) }, store.ErrForeign, "store.db"},
		{"a store whose maker died", func(t *testing.T, path string) {
			write(t, path, nil)
			db := raw(t, path)
			do(t, db, "PRAGMA application_id = 0x466e646c")
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}, store.ErrForeign, "store.db"},
	} {
		path := filepath.Join(t.TempDir(), "store.db")
		c.spoil(t, path)
		_, err := sqlite.Open(t.Context(), path, sqlite.Options{MustExist: true})
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want %v and the path", c.name, err, c.is)
		}
		if got := beside(t, path); got != c.left {
			t.Errorf("%s: the directory has %q, want %q", c.name, got, c.left)
		}
	}
	if _, err := open(t, made(t), sqlite.Options{MustExist: true}).Head(t.Context()); err != nil {
		t.Error(err)
	}
}

// SQLite takes a file that is shorter than any database for one that is still to be made, and would write over it.
func TestShortFilesAreForeign(t *testing.T) {
	for _, n := range []int{1, 15, 16, 100, 511} {
		for _, b := range []byte{0, 'x'} {
			path := filepath.Join(t.TempDir(), "store.db")
			content := bytes.Repeat([]byte{b}, n)
			write(t, path, content)
			_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if !errors.Is(err, store.ErrForeign) {
				t.Errorf("%d bytes: error %v, want %v", n, err, store.ErrForeign)
			}
			if !bytes.Equal(read(t, path), content) || beside(t, path) != "store.db" {
				t.Errorf("%d bytes: the file was changed, or others made beside it: %s", n, beside(t, path))
			}
		}
	}
}

func TestOpenOfAStoreThatIsThereWaitsForNobody(t *testing.T) {
	path := made(t)
	locked(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Head(ctx); err != nil {
		t.Error(err)
	}
	if _, err := s.Beats(ctx); err != nil {
		t.Error(err)
	}
}

// refusesToWrite ends the test unless a commit fails and names the file.
func refusesToWrite(t *testing.T, s *sqlite.Store, path, naming string) {
	t.Helper()
	_, err := s.Decide(t.Context(), enqueueing("mail", 1))
	if err == nil || errors.Is(err, store.ErrUnknown) || !strings.Contains(err.Error(), filepath.Base(path)) || !strings.Contains(err.Error(), naming) {
		t.Errorf("error %v, want one that names %s and %q", err, path, naming)
	}
}

func TestNothingIsWrittenToAFileThatTookTheStoresPlace(t *testing.T) {
	path, other := made(t), made(t)
	s := open(t, path, sqlite.Options{})
	content := read(t, other)
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	refusesToWrite(t, s, path, "replaced")
	if !bytes.Equal(read(t, path), content) {
		t.Error("the file that took its place was changed")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	refusesToWrite(t, s, path, "not there any more")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there again: %v", err)
	}
}

func TestLockOfARemovedStoreIsNoTurn(t *testing.T) {
	path := made(t)
	s := open(t, path, sqlite.Options{})
	old := locked(t, path)
	call := enqueueing("mail", 1)
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	if _, err := s.Decide(soon(), call); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v, want %v", err, context.DeadlineExceeded)
	}
	if err := os.Remove(path + "-lock"); err != nil {
		t.Fatal(err)
	}
	now := locked(t, path)
	answered := make(chan error, 1)
	go func() {
		_, err := s.Decide(soon(), call)
		answered <- err
	}()
	for !s.Waits() && len(answered) == 0 {
		runtime.Gosched()
	}
	if err := old.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v while somebody else has the turn, want %v", err, context.DeadlineExceeded)
	}
	if err := now.Unlock(); err != nil {
		t.Fatal(err)
	}
	commit(t, s, call)
}

func TestRemoveLeavesNothing(t *testing.T) {
	path := made(t)
	write(t, path+"-beats.damaged", nil)
	for range 2 {
		if err := sqlite.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if got := beside(t, path); got != "" {
		t.Errorf("left: %s", got)
	}
}

func TestDamagedHeartbeatsAreSetAside(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"no database": func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("no database\n"), 1000)) },
		"a damaged page": func(t *testing.T, path string) {
			content := read(t, path)
			write(t, path, append(content[:4096:4096], bytes.Repeat([]byte{0xff}, len(content)-4096)...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := made(t)
			if err := os.RemoveAll(path + "-beats-wal"); err != nil {
				t.Fatal(err)
			}
			spoil(t, path+"-beats")
			damaged := read(t, path+"-beats")
			s := open(t, path, sqlite.Options{})
			if _, err := s.Beat(t.Context(), store.Beat{Worker: worker, First: true, Interval: time.Second}); err != nil {
				t.Fatal(err)
			}
			list, err := s.Beats(t.Context())
			if err != nil || len(list) != 1 {
				t.Errorf("beats %v, %v", list, err)
			}
			if !bytes.Equal(read(t, path+"-beats.damaged"), damaged) {
				t.Error("what was damaged is not kept")
			}
		})
	}
}

// A transaction is rolled back with its context. That it then cannot be rolled back again is not what befell the caller.
func TestReadWhoseContextEndsSaysSo(t *testing.T) {
	s := open(t, made(t), sqlite.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Snapshot(ctx, func(query func() error) error {
		cancel()
		return query()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	ctx, cancel = context.WithCancel(t.Context())
	err = s.Snapshot(ctx, func(query func() error) error {
		err := query()
		cancel()
		for s.Reading() > 0 {
			runtime.Gosched()
		}
		return err
	})
	if err != nil {
		t.Errorf("error %v after all was read", err)
	}
}
