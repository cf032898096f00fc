package postgres

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
)

// waitingForStandby is the number of a backend that waits for a standby; 0 where there is none.
func waitingForStandby(t *testing.T, admin *pgx.Conn) (pid int) {
	t.Helper()
	const query = "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
	if err := admin.QueryRow(t.Context(), query).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// Who waits for a standby that is gone may be called off. Then the server has the commit and says so; whether it outlives the server nobody knows, and
// no look at it may tell that it does.
func TestACommitThatReachedNoStandbyIsUnknownUntilOneHasIt(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{})
	b := &beds{t: t, s: openAt(t, server.DSN(), Options{WriteTimeout: time.Second})}
	b.configure("mail", 0)
	admin, err := pgx.Connect(t.Context(), server.Admin())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	names := func(what string) {
		t.Helper()
		for _, text := range []string{"ALTER SYSTEM " + what, "SELECT pg_reload_conf()"} {
			if _, err := admin.Exec(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
	}
	names("SET synchronous_standby_names = 'nobody'")
	call := b.enqueueing("mail", "", 1)
	decided := make(chan error, 1)
	decide := func() {
		_, err := b.s.Decide(context.WithoutCancel(t.Context()), call)
		decided <- err
	}
	go decide()
	await(t, "a commit waits for the standby", func() bool {
		select {
		case err := <-decided: // the server has not heard yet that it should wait
			if err != nil {
				t.Fatal(err)
			}
			call = b.enqueueing("mail", "", 1)
			go decide()
		default:
		}
		pid := waitingForStandby(t, admin)
		if pid != 0 {
			if _, err := admin.Exec(t.Context(), "SELECT pg_cancel_backend($1)", pid); err != nil {
				t.Fatal(err)
			}
		}
		return pid != 0
	})
	if err := <-decided; !errors.Is(err, store.ErrUnknown) {
		t.Errorf("the commit: error %v, want one that is %q", err, store.ErrUnknown)
	}
	if _, committed, err := b.s.Outcome(t.Context(), call.ID); err == nil {
		t.Errorf("it is said to be certain that it was committed (%t), which no standby has", committed)
	}
	if _, err := b.s.Decide(t.Context(), call); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("asked again: error %v, want one that is %q", err, store.ErrUnknown)
	}
	names("RESET synchronous_standby_names")
	await(t, "it is settled", func() bool {
		_, committed, err := b.s.Outcome(t.Context(), call.ID)
		if err == nil && !committed {
			t.Fatal("it is said not to be committed")
		}
		return err == nil
	})
	if n := len(read(t, b.s, "", store.Filter{})); n < 2 {
		t.Errorf("%d events are in the log", n)
	}
}

// recoveredAt is when a server last went back to what its disk has; empty where it cannot be asked.
func recoveredAt(ctx context.Context, server *pgtest.Server) (at string) {
	conn, err := pgx.Connect(ctx, server.Admin())
	if err != nil {
		return ""
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_ = conn.QueryRow(ctx, "SELECT backend_start::text FROM pg_stat_activity WHERE backend_type = 'checkpointer'").Scan(&at)
	return at
}

// When one backend crashes, the server goes back to what its disk has, and its start stays what it was: nobody would notice that commits are gone.
func TestTheCrashOfABackendTakesNoCommitWithItWhereTheServerWaitsForNone(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{Settings: []string{"synchronous_commit=off", "wal_writer_delay=10s"}})
	b := &beds{t: t, s: openAt(t, server.DSN(), Options{})}
	b.configure("mail", 0)
	var last store.Cursor
	for range 10 {
		b.enqueue("mail", "", 1)
		log := read(t, b.s, last, store.Filter{})
		last = b.s.After(log[len(log)-1])
	}
	before := places(read(t, b.s, "", store.Filter{}))
	began := recoveredAt(t.Context(), server)
	conn, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	backend, err := os.FindProcess(int(conn.PgConn().PID()))
	if err != nil {
		t.Fatal(err)
	}
	if err := backend.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "the server has recovered", func() bool {
		at := recoveredAt(t.Context(), server)
		return at != "" && at != began
	})
	if after := places(read(t, b.s, "", store.Filter{})); !slices.Equal(after, before) {
		t.Errorf("the log had %v, and has %v", before, after)
	}
	b.enqueue("mail", "", 1)
	if list := read(t, b.s, last, store.Filter{}); len(list) != 1 {
		t.Errorf("%d events behind what was read before, want the one that was decided afterwards", len(list))
	}
}
