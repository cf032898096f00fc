package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/gofrs/flock"
)

const patience = 20 * time.Second

func TestHintsOfOtherProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, other := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	commit(t, other, enqueueing("mail", 1))
	rows := commit(t, other, claiming("mail", 1)).Rows
	hints, stop := s.Watch([]string{"none", "mail"})
	commit(t, other, completing(t, rows)) // makes nothing claimable
	commit(t, other, enqueueing("mail", 1))
	select {
	case <-hints:
	case <-time.After(patience):
		t.Fatal("no hint")
	}
	stop()
	stop()
	again, stop := s.Watch([]string{"mail"}) // the poll begins anew
	defer stop()
	commit(t, other, enqueueing("mail", 1))
	select {
	case <-again:
	case <-time.After(patience):
		t.Fatal("no hint for the second watch")
	}
}

func TestHintsAreOfTheTopic(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	hints, stop := s.Watch([]string{"mail"})
	defer stop()
	commit(t, s, enqueueing("other", 1))
	commit(t, s, enqueueing("mail", 1))
	<-hints
}

// locked takes the writers' turn as a process that is stopped in the middle of a commit would keep it.
func locked(t *testing.T, path string) *flock.Flock {
	t.Helper()
	lock := flock.New(path + "-lock")
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Unlock() })
	return lock
}

func TestWaitForTheTurnEndsWithTheContext(t *testing.T) {
	path := made(t)
	s := open(t, path, sqlite.Options{})
	lock := locked(t, path)
	call := enqueueing("mail", 1)
	for range 3 { // the later ones take over the wait of the first
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := s.Decide(ctx, call); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
		}
		cancel()
	}
	if _, err := s.Head(t.Context()); err != nil {
		t.Errorf("readers wait for no turn: %v", err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := s.Decide(t.Context(), call)
		answered <- err
	}()
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	commit(t, open(t, path, sqlite.Options{}), enqueueing("mail", 1)) // nobody keeps the turn
	commit(t, s, enqueueing("mail", 1))
}

func TestTurnThatNobodyWantsIsLetGo(t *testing.T) {
	path := made(t)
	s := open(t, path, sqlite.Options{})
	lock := locked(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Decide(ctx, enqueueing("mail", 1)); err == nil {
		t.Error("committed out of turn")
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	commit(t, open(t, path, sqlite.Options{}), enqueueing("mail", 1)) // while s does nothing
}

func TestCloseDoesNotWaitForTheTurn(t *testing.T) {
	path := made(t)
	s := open(t, path, sqlite.Options{})
	lock := locked(t, path)
	answered, call := make(chan error), enqueueing("mail", 1)
	go func() {
		answered <- nil
		_, err := s.Decide(t.Context(), call)
		answered <- err
	}()
	<-answered
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-answered; !errors.Is(err, store.ErrClosed) {
		t.Errorf("error %v, want %v", err, store.ErrClosed)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Read(t.Context(), "", store.Filter{}) {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("error %v, want %v", err, store.ErrClosed)
		}
	}
}

func TestBeatsGoPastCommits(t *testing.T) {
	path := made(t)
	s := open(t, path, sqlite.Options{})
	locked(t, path)
	beat := store.Beat{Worker: worker, First: true, Interval: time.Second}
	if _, err := s.Beat(t.Context(), beat); err != nil {
		t.Fatal(err)
	}
	list, err := s.Beats(t.Context())
	if err != nil || len(list) != 1 || list[0].Worker != worker {
		t.Errorf("beats %v, %v", list, err)
	}
}
