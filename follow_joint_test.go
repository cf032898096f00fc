package foundling_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store/sqlite"
	"pgregory.net/rapid"
)

// Two processes write to one file, and this one follows: from any cursor, stopped after any number of events and continued by another client,
// as a process would that was restarted. Positions in SQLite have no gaps, so that each event once and in order is one after the other.
func TestAFollowerOverTwoProcessesThatWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	write := []string{"write", path}
	j := startJoint(t, write, write)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	j.tell(t, "go\n")
	cursors := []foundling.Cursor{""} // behind events that were seen, by their positions
	rapid.Check(t, func(rt *rapid.T) {
		c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: quiet})
		if err != nil {
			rt.Fatal(err)
		}
		position := rapid.IntRange(0, len(cursors)-1).Draw(rt, "begin")
		if rapid.IntRange(0, 3).Draw(rt, "near the head") == 0 {
			position = len(cursors) - 1
		}
		for range rapid.IntRange(1, 4).Draw(rt, "stops") {
			f := follower{client: c, left: rapid.IntRange(1, 150).Draw(rt, "events"), position: int64(position)}
			if rapid.Bool().Draw(rt, "by its context") {
				f.stop = byContext
			}
			for _, cursor := range f.follow(rt, cursors[position]) {
				if position++; position == len(cursors) {
					cursors = append(cursors, cursor)
				}
			}
		}
	})
	j.end()
	for j.left > 0 {
		j.next(t)
	}
	c := clientOf(t, s)
	actors, last := map[string]int{}, int64(0)
	for _, r := range toHead(t, c, "", foundling.EventFilter{}) {
		if r.Position != last+1 {
			t.Fatalf("position %d behind %d", r.Position, last)
		}
		last = r.Position
		if r.Event.Type() == events.TypeMessageEnqueued {
			actors[r.Commit.Command.Actor]++
		}
	}
	t.Logf("%d events, %d of them seen by followers, enqueued by %v", last, len(cursors)-1, actors)
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if end := c.After(events.Recorded{Position: last}); len(actors) != 2 || end != head {
		t.Errorf("enqueued by %v; read up to %s, the head is %s", actors, end, head)
	}
}

// follower follows until so many events have come.
type follower struct {
	client   *foundling.Client
	position int64 // of the event it stands behind
	left     int
	stop     ending
}

// ending is how a follower stops.
type ending uint8

const (
	byBreak   ending = iota
	byContext        // which ends while the event is in its hands: nothing more may come
)

// follow gives the cursors behind the events that it was given, each of which must be the next one.
func (f *follower) follow(t *rapid.T, after foundling.Cursor) []foundling.Cursor {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var list []foundling.Cursor
	for r, err := range f.client.Events(ctx, after, foundling.EventFilter{}) {
		if err != nil {
			if f.left > 0 || !errors.Is(err, context.Canceled) {
				t.Fatalf("behind position %d: %v", f.position, err)
			}
			return list
		}
		if f.position++; r.Position != f.position || f.left == 0 {
			t.Fatalf("position %d, want %d; %d events were still to come", r.Position, f.position, f.left)
		}
		list = append(list, f.client.After(r))
		if f.left--; f.left > 0 {
			continue
		}
		if f.stop == byBreak {
			return list
		}
		cancel()
	}
	t.Fatalf("it ended by itself behind position %d", f.position)
	return nil
}
