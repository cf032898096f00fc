package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// filled is a template that has something of everything which tests change.
func filled() Template {
	return Template{Hash: "filled", Migrate: func(ctx context.Context, dsn string) error {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, `CREATE SCHEMA "a schema"; CREATE TABLE "a schema"."a table" (n int, t text);
			INSERT INTO "a schema"."a table" VALUES (1, E'tab\t, line\n and \\'), (2, NULL), (3, '');
			CREATE TABLE empty (n int); CREATE SEQUENCE drawn; SELECT nextval('drawn'); CREATE SEQUENCE "not yet";
			CREATE TABLE parts (n int) PARTITION BY RANGE (n); CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (10)`)
		return errors.Join(err, conn.Close(ctx))
	}}
}

const everythingSQL = `SELECT concat_ws(E'\n', current_database(),
  (SELECT string_agg(r::text, ';' ORDER BY n) FROM "a schema"."a table" r), (SELECT string_agg(r::text, ';') FROM empty r),
  (SELECT string_agg(r::text, ';') FROM parts r), (SELECT last_value || ' ' || is_called FROM drawn), (SELECT last_value || ' ' || is_called FROM "not yet"),
  'locks: ' || (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())),
  'channels: ' || (SELECT count(*) FROM pg_listening_channels()), 'temporary: ' || (SELECT count(*) FROM pg_class WHERE relpersistence = 't'),
  'statements: ' || (SELECT count(*) FROM pg_prepared_statements), current_setting('work_mem'), current_setting('application_name'))`

// borrow gives a connection to a database that is lent, and what ends both.
func borrow(t *testing.T, template Template) (*pgx.Conn, func()) {
	t.Helper()
	shared(t)
	dsn, giveBack, err := template.Borrow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = "mine"
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return conn, func() {
		t.Helper()
		_ = conn.Close(context.Background()) // it may have been cut
		if err := giveBack(); err != nil {
			t.Error(err)
		}
	}
}

func statements(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestDatabaseThatWasUsedIsAsANewOne(t *testing.T) {
	conn, giveBack := borrow(t, filled())
	before := query[string](t, conn, everythingSQL)
	if !strings.HasSuffix(before, "locks: 0\nchannels: 0\ntemporary: 0\nstatements: 0\n4MB\nmine") || strings.Count(before, "\n") < 9 {
		t.Fatalf("a new one is %s", before)
	}
	statements(t, conn, `UPDATE "a schema"."a table" SET t = 'x'; DELETE FROM "a schema"."a table" WHERE n = 2; INSERT INTO empty VALUES (1); INSERT INTO parts VALUES (1);
		SELECT nextval('drawn'), nextval('"not yet"'); LISTEN something; SELECT pg_advisory_lock(1); CREATE TEMPORARY TABLE mine (n int);
		PREPARE p AS SELECT 1; SET work_mem = '1MB'; SET application_name = 'other'`)
	if query[string](t, conn, everythingSQL) == before {
		t.Fatal("nothing was changed")
	}
	giveBack()
	conn, giveBack = borrow(t, filled())
	defer giveBack()
	if after := query[string](t, conn, everythingSQL); after != before {
		t.Errorf("it is\n%s\nand was\n%s", after, before)
	}
}

// What cannot be made as it was is no more, and the next is lent another.
func TestDatabaseThatCannotBeAsANewOneIsDropped(t *testing.T) {
	tests := []struct {
		name string
		do   func(*testing.T, *pgx.Conn)
	}{
		{"a table more", func(t *testing.T, conn *pgx.Conn) { statements(t, conn, "CREATE TABLE more (n int)") }},
		{"a partition more", func(t *testing.T, conn *pgx.Conn) {
			statements(t, conn, "CREATE TABLE other PARTITION OF parts FOR VALUES FROM (10) TO (20)")
		}},
		{"a column more", func(t *testing.T, conn *pgx.Conn) { statements(t, conn, "ALTER TABLE empty ADD COLUMN m int") }},
		{"an index more", func(t *testing.T, conn *pgx.Conn) { statements(t, conn, "CREATE INDEX ON empty (n)") }},
		{"a constraint more", func(t *testing.T, conn *pgx.Conn) { statements(t, conn, "ALTER TABLE empty ADD CHECK (n > 0)") }},
		{"a function more", func(t *testing.T, conn *pgx.Conn) {
			statements(t, conn, "CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'")
		}},
		{"a sequence with another step", func(t *testing.T, conn *pgx.Conn) { statements(t, conn, "ALTER SEQUENCE drawn INCREMENT 2") }},
		{"a setting", func(t *testing.T, conn *pgx.Conn) {
			statements(t, conn, "ALTER DATABASE "+conn.Config().Database+" SET work_mem = '2MB'")
		}},
		{"much", func(t *testing.T, conn *pgx.Conn) {
			statements(t, conn, `INSERT INTO "a schema"."a table" SELECT i, repeat(md5(i::text), 50) FROM generate_series(1, 12000) i`)
		}},
		{"a client that is past the lender", func(t *testing.T, conn *pgx.Conn) {
			connect(t, Admin(t, conn.Config().ConnString()))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			conn, giveBack := borrow(t, filled())
			name := query[string](t, conn, "SELECT current_database()")
			test.do(t, conn)
			giveBack()
			if query[bool](t, connect(t, shared(t).admin), "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name) {
				t.Error("it is still there")
			}
		})
	}
}

// What a client was about that vanishes, or stays beyond its test, ends before the next has the database.
func TestClientThatDoesNotHangUpLeavesNothingInABorrowedDatabase(t *testing.T) {
	for name, leave := range map[string]func(*pgx.Conn) error{
		"vanishes": func(conn *pgx.Conn) error { return conn.PgConn().Conn().Close() },
		"stays":    func(*pgx.Conn) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dsn, giveBack, err := filled().Borrow(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			conn := connect(t, dsn)
			statements(t, conn, "BEGIN; SELECT pg_advisory_lock(7); INSERT INTO empty VALUES (1)")
			if err := errors.Join(leave(conn), giveBack()); err != nil {
				t.Fatal(err)
			}
			next, end := borrow(t, filled())
			defer end()
			if n := query[int](t, next, "SELECT count(*) FROM empty"); n != 0 {
				t.Errorf("%d rows", n)
			}
			statements(t, next, "SET statement_timeout = '60s'; SELECT pg_advisory_lock(7)")
		})
	}
}

func TestStatementOnABorrowedDatabaseIsCancelled(t *testing.T) {
	conn, giveBack := borrow(t, filled())
	defer giveBack()
	ended := make(chan error)
	go func() {
		_, err := conn.Exec(context.Background(), "SELECT pg_sleep(600)")
		ended <- err
	}()
	awaitSleep(t, shared(t).admin)
	if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if !isCode(err, "57014") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(bound):
		t.Fatal("it was not cancelled")
	}
}

func TestSessionThatWasEndedWhileItWaitedIsReplaced(t *testing.T) {
	conn, giveBack := borrow(t, filled())
	giveBack()
	pid := conn.PgConn().PID()
	if !query[bool](t, connect(t, shared(t).admin), "SELECT pg_terminate_backend($1)", pid) {
		t.Error("the session did not wait")
	}
	conn, giveBack = borrow(t, filled())
	defer giveBack()
	if query[int](t, conn, "SELECT 1") != 1 || conn.PgConn().PID() == pid {
		t.Error("it is the one that was ended")
	}
}

func TestLenderWantsThePassword(t *testing.T) {
	conn, giveBack := borrow(t, filled())
	defer giveBack()
	wrong, err := change{user: conn.Config().User, password: "wrong"}.of(conn.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.Connect(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), errPassword.Error()) {
		t.Errorf("it lets in, or says %v", err)
	}
}

// pgx leaves a reader waiting in a connection after a write that was slow; what comes for the client must not go there.
func TestReaderThatWaitsTakesNothingFromWhoTheConnectionIsLentTo(t *testing.T) {
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	l := &lane{Conn: near}
	l.changed = sync.NewCond(&l.mu)
	got := make(chan string, 1)
	go func() {
		b := make([]byte, 8)
		n, err := l.Read(b)
		got <- fmt.Sprint(string(b[:n]), err)
	}()
	for waits := false; !waits; runtime.Gosched() {
		l.mu.Lock()
		waits = l.reading > 0
		l.mu.Unlock()
	}
	write := func(text string) {
		if _, err := far.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	lent := l.lend()
	go write("client's")
	b := make([]byte, 8)
	if _, err := io.ReadFull(lent, b); err != nil || string(b) != "client's" {
		t.Fatalf("the client reads %q, %v", b, err)
	}
	l.takeBack()
	write("ours")
	if text := <-got; text != "ours<nil>" {
		t.Errorf("the reader that waited has %s", text)
	}
}

// On a server that goes on after the run, what the run has kept does not.
func TestRunLeavesNoDatabasesOnAServerThatItDidNotStart(t *testing.T) {
	srv := NewServer(t, Options{}) // on the one that is shared others may have made one this very moment
	h := srv.host
	left, used := fmt.Sprintf("foundling_kept_t%d_%s", time.Now().Unix(), token(6)), fmt.Sprintf("foundling_kept_t%d_%s", time.Now().Unix(), token(6))
	for _, name := range []string{left, used} {
		if err := h.exec(t.Context(), h.createSQL(name, "template0")); err != nil {
			t.Fatal(err)
		}
	}
	dsn, err := h.dsn(used)
	if err != nil {
		t.Fatal(err)
	}
	connect(t, dsn)
	if err := (&Run{DSN: h.admin}).Close(); err != nil {
		t.Fatal(err)
	}
	there := query[[]string](t, connect(t, h.admin), "SELECT array_agg(datname::text) FROM pg_database WHERE datname = ANY ($1)", []string{left, used})
	if strings.Join(there, " ") != used {
		t.Errorf("%v are left, want %s", there, used)
	}
}
