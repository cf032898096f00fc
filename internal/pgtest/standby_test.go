package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestStandbyFollowsAndIsPromoted(t *testing.T) {
	srv := NewServer(t, Options{})
	run(t, srv.DSN(), "CREATE TABLE kept (n int)")
	standby := srv.Standby(t)
	run(t, srv.DSN(), "INSERT INTO kept VALUES (1)")
	standby.CatchUp()
	count := func() int {
		return query[int](t, connect(t, standby.DSN()), "SELECT count(*) FROM kept")
	}
	if n := count(); n != 1 {
		t.Errorf("the standby has %d rows, want 1", n)
	}
	if !query[bool](t, connect(t, standby.DSN()), "SELECT pg_is_in_recovery()") {
		t.Error("the standby is none")
	}
	if got := query[string](t, connect(t, srv.Admin()), "SELECT application_name FROM pg_stat_replication"); got != "standby1" {
		t.Errorf("it is called %q", got)
	}

	standby.Stop() // an asynchronous standby that is behind
	run(t, srv.DSN(), "INSERT INTO kept VALUES (2)")
	srv.Kill9()
	standby.Start()
	standby.Promote()
	if n := count(); n != 1 {
		t.Errorf("the promoted server has %d rows, want 1: it never got the other", n)
	}
	run(t, standby.DSN(), "INSERT INTO kept VALUES (3)")
	standby.Kill9()
	standby.Start()
	if n := count(); n != 2 {
		t.Errorf("the promoted server has %d rows, want 2", n)
	}
}

func run(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
