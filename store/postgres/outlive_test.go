package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
)

// This file is what a process remembers that goes on while the server is restored, is replaced, or is not the only one that it is connected to.

// restart has the process and the store believe that the server was started anew.
func (h *hand) restart(t *testing.T) {
	t.Helper()
	h.do("UPDATE @epochs SET server = 'gone'")
	h.s.epochs.mu.Lock()
	defer h.s.epochs.mu.Unlock()
	h.s.epochs.server = "gone"
}

// Whoever writes down a start of the server and whoever reads of it wait for each other's turn, and for connections.
func TestWritersAndReadersAreNotInEachOthersWayAfterARestart(t *testing.T) {
	b := &beds{t: t, s: openAt(t, pgtest.Database(t), Options{MaxConns: 1})}
	b.configure("mail", 0)
	h := newHand(t, b.s)
	for range 20 {
		h.do("INSERT INTO @epochs (ordinal, begin, at, id, server, history, fences)" + // somebody else was the first who wrote
			" SELECT max(ordinal) + 1, max(begin), max(at), left(md5(random()::text), 16), 'gone', '', max(fences) FROM @epochs")
		h.restart(t)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { b.enqueue("mail", "", 1) })
			all.Go(func() {
				if _, err := b.s.all(context.Background(), "", store.Filter{}); err != nil {
					t.Errorf("a reader: %v", err)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
	}
}

// The server was started once more in what is lost, as when somebody looks at it before he restores a backup. Tokens that were given by then stay lower.
func TestTokensRiseAboveThoseOfALostFutureInWhichTheServerWasStarted(t *testing.T) {
	var ahead time.Duration
	o := Options{Clock: func() time.Time { return time.Now().Add(ahead) }}
	from, to := pgtest.Database(t), pgtest.Database(t)
	b := &beds{t: t, s: openAt(t, from, o)}
	b.configure("mail", 0)
	b.enqueue("mail", "door", 1)
	pgtest.Dump(t, from, to)
	ahead = 10 * time.Hour
	h := newHand(t, b.s)
	h.do("SELECT setval('@fences', $1)", int64(ahead/time.Second)*100) // a hundred calls a second that take locks
	h.restart(t)
	b.enqueue("mail", "", 1)
	if n := epochsOf(t, b.s); n != 2 {
		t.Fatalf("%d epochs, want 2", n)
	}
	lost := b.claim(b.id(), "mail", 1)
	ahead += time.Minute
	restored := &beds{t: t, s: openAt(t, to, o)}
	again := restored.claim(restored.id(), "mail", 1)
	if len(lost) != 1 || len(again) != 1 || again[0].LockToken <= lost[0].LockToken {
		t.Errorf("claimed %+v, and in what is lost %+v: want a higher token", again, lost)
	}
}

// What is lost had come to a later range of the log.
func TestAProcessThatOutlivesARestoredBackupWritesOn(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{})
	b := &beds{t: t, s: openAt(t, server.DSN(), Options{})}
	b.configure("mail", 0)
	b.enqueue("mail", "", 1)
	server.Save()
	h := newHand(t, b.s)
	b.skip(h)
	h.do("SELECT setval('@blocks', $1)", b.s.ranges.list[len(b.s.ranges.list)-1].upper+5)
	b.enqueue("mail", "", 1)
	server.Kill9()
	server.Restore()
	b.enqueue("mail", "", 1)
	if n := len(b.claim(b.id(), "mail", 9)); n != 2 {
		t.Errorf("%d messages, want the one that was kept and a new one", n)
	}
}

// A connection string may lead to a server and to its standby. What one of them says of the log is no answer to what the other was asked.
func TestAReadThatComesToAStandbyWhichLagsPassesNothing(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{})
	b := &beds{t: t, s: openAt(t, server.DSN(), Options{})}
	b.configure("mail", 0)
	standby := server.Standby(t)
	standby.CatchUp()
	admin, err := pgx.Connect(t.Context(), standby.Admin())
	if err != nil {
		t.Fatal(err)
	}
	defer hangUp(admin)
	if _, err := admin.Exec(t.Context(), "SELECT pg_wal_replay_pause()"); err != nil {
		t.Fatal(err)
	}
	lagging := openAt(t, standby.DSN(), Options{})
	b.enqueue("mail", "", 3)
	r := reader{store: b.s}
	if err := r.begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	r.store = lagging
	for !r.ended && err == nil {
		_, err = r.next(t.Context())
	}
	l, failed := lagging.look(t.Context())
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	if r.at > firstOf(l.newest.number+1)-1 {
		t.Errorf("it has passed all up to %d where the newest event stands at %d", r.at, l.newest.position())
	}
}
