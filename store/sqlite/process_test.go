package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/google/uuid"
)

func TestTwoProcessesShareTheRate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{})
	const length = 1500 * time.Millisecond
	other := startChild(t, roleWrite, path, "theirs", length.String())
	mine, err := flatOut(s, "mine", length)
	if err != nil {
		t.Fatal(err)
	}
	var theirs tally
	var longest string
	if _, err := fmt.Sscan(other.line(t), &theirs.commits, &longest); err != nil {
		t.Fatal(err)
	}
	if theirs.longest, err = time.ParseDuration(longest); err != nil {
		t.Fatal(err)
	}
	t.Logf("commits: %d here, %d there; longest wait: %s here, %s there", mine.commits, theirs.commits, mine.longest, theirs.longest)
	if few, many := min(mine.commits, theirs.commits), max(mine.commits, theirs.commits); few*10 < many {
		t.Errorf("one process made %d commits while the other made %d", few, many)
	}
	messages := 0
	for _, err := range s.Read(t.Context(), "", store.Filter{Types: []events.Type{events.TypeMessageEnqueued}}) {
		if err != nil {
			t.Fatal(err)
		}
		messages++
	}
	if want := 10 * (mine.commits + theirs.commits); messages != want {
		t.Errorf("%d messages in the log, %d were answered", messages, want)
	}
}

func TestFirstOpeningsAtOnceMakeOneStore(t *testing.T) {
	for round := range 4 {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("store %d #?%%41.db", round)) // a name that is no URL by itself
		heads := make([]store.Cursor, 10)
		var wg sync.WaitGroup
		for i := range heads {
			wg.Go(func() {
				s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
				if err == nil {
					heads[i], err = s.Head(t.Context())
				}
				if err == nil {
					err = s.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, head := range heads {
			if head != heads[0] || head == "" {
				t.Fatalf("different stores: %v", heads)
			}
		}
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLinksLeadToOneStore(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.db")
	open(t, filepath.Join(dir, "store.db"), sqlite.Options{})
	if err := os.Symlink("store.db", link); err != nil {
		t.Fatal(err)
	}
	commit(t, open(t, link, sqlite.Options{}), enqueueing("mail", 1))
	for _, suffix := range []string{"-lock", "-beats", "-wal"} {
		if _, err := os.Lstat(link + suffix); err == nil {
			t.Errorf("link.db%s is not the store's", suffix)
		}
	}
}

func TestProofOfLifeEndsWithItsRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, asker := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	worker := uuid.Must(uuid.NewV7())
	release, err := s.Attest(t.Context(), worker)
	if err != nil {
		t.Fatal(err)
	}
	wantGone(t, asker, worker, false)
	wantGone(t, s, worker, false)
	if _, err := s.Attest(t.Context(), worker); err == nil {
		t.Error("attested twice")
	}
	for range 2 {
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
	wantGone(t, asker, worker, true)
	if _, err := asker.Attest(t.Context(), worker); err == nil {
		t.Error("attested again after it was gone")
	}
	wantGone(t, s, worker, true)
}

func TestIncarnationEndsWhenItsProofIsTakenAway(t *testing.T) {
	for name, take := range map[string]func(file string) error{
		"removed": os.Remove,
		"renamed": func(file string) error { return os.Rename(file, file+".old") },
		"replaced": func(file string) error {
			return errors.Join(os.Rename(file, file+".old"), os.WriteFile(file, nil, 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			s := open(t, path, sqlite.Options{})
			worker := uuid.Must(uuid.NewV7())
			file := filepath.Join(path+"-workers", worker.String())
			release, err := s.Attest(t.Context(), worker)
			if err != nil {
				t.Fatal(err)
			}
			beat := func(first bool) error {
				_, err := s.Beat(t.Context(), store.Beat{Worker: worker, First: first, Interval: time.Second})
				return err
			}
			day := time.Now().Add(-48 * time.Hour)
			if err := errors.Join(beat(true), os.Chtimes(file, day, day), beat(false)); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(file)
			if err != nil || time.Since(info.ModTime()) > time.Hour {
				t.Errorf("the proof of a worker that beats looks old: %v, %v", info, err)
			}
			if err := take(file); err != nil {
				t.Fatal(err)
			}
			if err := beat(false); !errors.Is(err, store.ErrNotBeating) || !strings.Contains(err.Error(), file) {
				t.Errorf("error %v, want %v that names the proof", err, store.ErrNotBeating)
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
			wantGone(t, s, worker, true) // so that what it held can be taken back
		})
	}
}

// wantGone ends the test unless the store says so of the worker.
func wantGone(t *testing.T, s *sqlite.Store, worker events.ID, want bool) {
	t.Helper()
	never := uuid.Must(uuid.NewV7())
	gone, err := s.Gone(t.Context(), never, worker)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(gone) == 1 && gone[0] == worker; got != want || len(gone) > 1 {
		t.Fatalf("gone: %v of %s and %s", gone, never, worker)
	}
}
