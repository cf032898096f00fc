package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// Two clients that take turns use one connection to the server, and neither keeps it.
func TestBouncerGivesTransactionsOfManyClientsTheSameConnections(t *testing.T) {
	dsn := Database(t)
	b := NewBouncer(t, dsn, 1)
	one, other := connect(t, b.DSN(dsn)), connect(t, b.DSN(dsn))
	const who, unnamed = "SELECT pg_backend_pid()", pgx.QueryExecModeExec
	if a, b := query[int](t, one, who, unnamed), query[int](t, other, who, unnamed); a != b {
		t.Errorf("two clients are served by %d and %d", a, b)
	}
	if int(one.PgConn().PID()) == query[int](t, one, who, unnamed) {
		t.Error("nothing stands between the client and the server")
	}
	if got, want := query[string](t, one, "SELECT current_user::text", unnamed), query[string](t, connect(t, dsn), "SELECT current_user::text"); got != want {
		t.Errorf("the server sees %q, want %q", got, want)
	}
}
