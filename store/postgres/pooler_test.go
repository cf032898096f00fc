package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// await ends the test unless something becomes true.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patienceOfTests); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
		_ = pause(t.Context(), time.Millisecond)
	}
}

// pooled is a store behind PgBouncer in transaction mode, whose schema was made before.
func pooled(t *testing.T, dsn string, o Options) *Store {
	t.Helper()
	if err := Migrate(t.Context(), dsn, Options{}); err != nil {
		t.Fatal(err)
	}
	return openAt(t, pgtest.NewBouncer(t, dsn, 4).DSN(dsn), o)
}

func TestAListenerBehindAPoolerGivesUpAndSaysSoOnce(t *testing.T) {
	var log lines
	s := pooled(t, pgtest.Database(t), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	h := s.powers.hints
	h.waits.echo = 300 * time.Millisecond
	_, stop := s.Watch([]string{"mail"})
	await(t, "it says that there are no hints", func() bool { return log.count("no hints") > 0 })
	stop()
	_, stop = s.Watch([]string{"mail"}) // another watch is no reason to try again
	defer stop()
	if n, wait := h.heard.connected.Load(), h.heard.wait(); n != mostDeaf || wait < h.waits.deaf/2 {
		t.Errorf("it has listened %d times, and will again in %s", n, wait)
	}
	if log.count("Options.Direct") != 1 {
		t.Errorf("the log does not say once what to do: %s", log.text.String())
	}
	h.wake([]string{"mail"}) // what this process does itself needs no server
}

func TestAListenerThatHasGivenUpTriesAgainAfterLongAndSaysNothingMore(t *testing.T) {
	var log lines
	s := pooled(t, pgtest.Database(t), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	h := s.powers.hints
	h.waits.echo, h.waits.deaf = 50*time.Millisecond, 50*time.Millisecond
	_, stop := s.Watch([]string{"mail"})
	defer stop()
	await(t, "it listens again", func() bool { return h.heard.connected.Load() > mostDeaf+1 })
	if n := log.count("no hints"); n != 1 {
		t.Errorf("it has said %d times that there are no hints", n)
	}
}

func TestHintsComeBehindAPoolerOverADirectConnection(t *testing.T) {
	dsn := pgtest.Database(t)
	s := pooled(t, dsn, Options{Direct: dsn})
	other := openAt(t, dsn, Options{})
	hints, stop := s.Watch([]string{"mail"})
	defer stop()
	hears(t, "when it begins to listen", hints)
	other.powers.hints.hint([]string{"mail"})
	hears(t, "of another process", hints)
	back, stop := other.Watch([]string{"mail"})
	defer stop()
	hears(t, "when it begins to listen", back)
	s.powers.hints.hint([]string{"mail"})
	hears(t, "of one behind the pooler", back)
	lives(t, s)
}

func TestMigrationsWantADirectConnection(t *testing.T) {
	dsn := pgtest.Database(t)
	through := pgtest.NewBouncer(t, dsn, 2).DSN(dsn)
	s, err := Open(t.Context(), through, Options{})
	if err == nil {
		t.Fatalf("%s was migrated through a pooler", s)
	}
	if !strings.Contains(err.Error(), "Options.Direct") {
		t.Errorf("the error does not name the way out: %v", err)
	}
	b := &beds{t: t, s: openAt(t, through, Options{Direct: dsn})}
	b.configure("mail", 1)
	b.enqueue("mail", "", 2)
	if n := len(b.claim(b.id(), "mail", 2)); n != 1 {
		t.Errorf("%d messages were claimed, want 1", n)
	}
}

// What a pooler's connections were listened on is told to whoever has them next. Nobody there waits for it, and it is not kept.
func TestNotificationsOfOthersAreNotGathered(t *testing.T) {
	s := pooled(t, pgtest.Database(t), Options{MaxConns: 1})
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for range 3 {
		if _, err := conn.Exec(t.Context(), "BEGIN; LISTEN gossip; SELECT pg_notify('gossip', ''); COMMIT", pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if n, err := conn.Conn().WaitForNotification(ctx); err == nil {
		t.Errorf("a notification was kept: %+v", n)
	}
}

// Old versions of PgBouncer end by requests to cancel.
func TestAPoolerIsAskedToCancelNothing(t *testing.T) {
	dsn := pgtest.Database(t)
	bouncer := pgtest.NewBouncer(t, dsn, 2)
	for _, test := range []struct {
		name, behind string
		cancels      int
	}{{"the server", dsn, 1}, {"a pooler", bouncer.DSN(dsn), 0}} {
		t.Run(test.name, func(t *testing.T) {
			proxy := pgtest.NewProxy(t, test.behind)
			s := openAt(t, proxy.DSN(), Options{MaxConns: 1, Direct: dsn})
			canceling := func(m pgtest.Message) bool {
				return m.Type == 0 && len(m.Body) >= 4 && binary.BigEndian.Uint32(m.Body) == 80877102
			}
			hit := proxy.Inject(pgtest.Fault{From: pgtest.Client, Match: canceling, Do: pgtest.CutAfter})
			conn, err := s.pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := conn.Exec(ctx, "SELECT pg_sleep(1)", pgx.QueryExecModeExec); err == nil {
				t.Fatal("a statement outlived its context")
			}
			<-conn.Conn().PgConn().CleanupDone()
			got := 0
			select {
			case <-hit:
				got = 1
			default:
			}
			if got != test.cancels {
				t.Errorf("%d requests to cancel were sent, want %d", got, test.cancels)
			}
			lives(t, s)
		})
	}
}
