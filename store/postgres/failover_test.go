package postgres_test

import (
	"context"
	"net/url"
	"sync"
	"testing"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/jackc/pgx/v5"
)

// pairOf leads to whichever of two servers takes writes.
func pairOf(t *testing.T, first, second string) string {
	t.Helper()
	a, errA := url.Parse(first)
	b, errB := url.Parse(second)
	if errA != nil || errB != nil {
		t.Fatal("a connection string is no address")
	}
	a.Host += "," + b.Host
	query := a.Query()
	query.Set("target_session_attrs", "read-write")
	a.RawQuery = query.Encode()
	return a.String()
}

// quorum has a server answer no commit before its standby has it.
func quorum(t *testing.T, server *pgtest.Server, s interface {
	until(context.Context, string, func() bool)
}) {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), server.Admin())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	for _, text := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (standby1)'", "SELECT pg_reload_conf()"} {
		if _, err := admin.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	s.until(t.Context(), "commits wait for the standby", func() bool {
		var waits bool
		const state = "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'quorum')"
		if err := admin.QueryRow(t.Context(), state).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
}

func TestReplicaPromotedUnderQuorumCommitLosesNothing(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{})
	standby := server.Standby(t)
	s := newStorm(t, pairOf(t, server.DSN(), standby.DSN()))
	quorum(t, server, s)
	s.rage(func(ctx context.Context) {
		s.progress(ctx, 40)
		server.Kill9()
		standby.Promote()
		s.progress(ctx, 40)
	})
	s.check(standby.DSN())
}

// The control of the test above: where commits do not wait for the replica, what it has not received is lost, and the test sees it.
func TestReplicaPromotedWithoutQuorumLosesWhatItHasNotReceived(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{})
	standby := server.Standby(t)
	s := newStorm(t, server.DSN())
	some := func() {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.send(ctx, s.clients[0]) })
		s.progress(ctx, 5)
		cancel()
		wg.Wait()
	}
	some()
	standby.CatchUp()
	received := len(s.acked)
	standby.Stop()
	some()
	server.Kill9()
	standby.Start()
	standby.Promote()
	one, err := postgres.Open(t.Context(), standby.DSN(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if lost := s.missing(s.there(one)); len(lost) != len(s.acked)-received {
		t.Errorf("of %d acknowledged letters, %d of which the replica had, %d are lost", len(s.acked), received, len(lost))
	}
}
