package pgtest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// through is a proxy with a connection of its own, without named statements, to a database with a table t (n int).
func through(t *testing.T) (*Proxy, *pgx.Conn) {
	t.Helper()
	dsn := Database(t)
	if _, err := connect(t, dsn).Exec(t.Context(), "CREATE TABLE t (n int)"); err != nil {
		t.Fatal(err)
	}
	p := NewProxy(t, dsn)
	return p, reach(t, p)
}

func reach(t *testing.T, p *Proxy) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(p.DSN())
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func TestProxyCountsTrips(t *testing.T) {
	p, conn := through(t)
	if c := p.Counts(); c.Connections != 1 || c.Trips < 1 || c.Trips > 3 {
		t.Errorf("the login: %+v", c)
	}
	ctx := t.Context()
	rows := func(n int) [][]any {
		all := make([][]any, n)
		for i := range all {
			all[i] = []any{i}
		}
		return all
	}
	batch := func(n int) error {
		b := &pgx.Batch{}
		for i := range n {
			b.Queue("INSERT INTO t VALUES ($1)", i)
		}
		return conn.SendBatch(ctx, b).Close()
	}
	exec := func(sql string, args ...any) error { _, err := conn.Exec(ctx, sql, args...); return err }
	tests := []struct {
		name              string
		do                func() error
		trips, statements int
	}{
		{"a statement", func() error { return exec("SELECT 1") }, 1, 1},
		{"a statement with arguments", func() error { return exec("SELECT $1::int", 1) }, 1, 1},
		{"three statements", func() error { return errors.Join(exec("BEGIN"), exec("SELECT 1"), exec("COMMIT")) }, 3, 3},
		{"a statement that is wrong", func() error {
			if exec("SELEC 1") == nil {
				return errors.New("it is right")
			}
			return nil
		}, 1, 1},
		{"a batch", func() error { return batch(3) }, 1, 3},
		// Longer than all buffers in between: the server answers its beginning while its end is being sent.
		{"a long batch", func() error { return batch(20_000) }, 1, 20_000},
		{"a long answer", func() error { return exec("SELECT repeat('x', 1000) FROM generate_series(1, 5000)") }, 1, 1},
		{"a prepared statement", func() error { _, err := conn.Exec(ctx, "SELECT $1::int", pgx.QueryExecModeDescribeExec, 1); return err }, 2, 1},
		{"rows of a copy", func() error {
			_, err := conn.CopyFrom(ctx, pgx.Identifier{"t"}, []string{"n"}, pgx.CopyFromRows(rows(10)))
			return err
		}, 2, 1}, // it asks for the columns, and sends
		{"a pipeline with a flush", func() error { return flushed(ctx, conn.PgConn()) }, 2, 1},
	}
	for _, test := range tests {
		before := p.Counts()
		if err := test.do(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if c := p.Since(before); c.Trips != test.trips || c.Statements != test.statements || c.Connections != 0 {
			t.Errorf("%s: got %+v, want %d trips and %d statements", test.name, c, test.trips, test.statements)
		}
	}
}

// flushed sees a statement's description before it ends the pipeline with running it.
func flushed(ctx context.Context, conn *pgconn.PgConn) error {
	p := conn.StartPipeline(ctx)
	p.SendPrepare("", "SELECT 1", nil)
	p.SendFlushRequest()
	if err := p.Flush(); err != nil {
		return err
	}
	if _, err := p.GetResults(); err != nil {
		return err
	}
	p.SendQueryParams("SELECT 1", nil, nil, nil, nil)
	return errors.Join(p.Sync(), p.Close())
}

func TestProxyCountsBytes(t *testing.T) {
	p, conn := through(t)
	before := p.Counts()
	if _, err := conn.PgConn().Exec(t.Context(), "SELECT repeat('x', 100000)").ReadAll(); err != nil {
		t.Fatal(err)
	}
	// Query: type, length, text, zero. The answer: RowDescription 1+4+2+(7+18), DataRow 1+4+2+4, CommandComplete 1+4+9, ReadyForQuery 6.
	c := p.Since(before)
	if c.Sent != int64(1+4+len("SELECT repeat('x', 100000)")+1) || c.Received != 32+11+100000+14+6 {
		t.Errorf("got %+v", c)
	}
}

func TestProxyCutsWhereItIsTold(t *testing.T) {
	tests := []struct {
		name string
		Fault
		committed bool
	}{
		{"COMMIT does not arrive", Fault{From: Client, Match: Says("commit"), Do: CutBefore}, false},
		{"half of COMMIT arrives", Fault{From: Client, Match: Says("commit"), Do: CutWithin}, false},
		{"all but a byte of COMMIT arrives", Fault{From: Client, Match: Says("commit"), Do: CutWithin, Bytes: len("Q0000commit")}, false},
		{"the answer to COMMIT does not arrive", Fault{From: Backend, Match: Says("commit"), Do: CutBefore}, true},
		{"half of the answer to COMMIT arrives", Fault{From: Backend, Match: Says("commit"), Do: CutWithin}, true},
		{"the statement after the second", Fault{From: Client, Match: func(m Message) bool { return m.Type == 'Q' || m.Type == 'P' }, Skip: 2, Do: CutBefore}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, conn := through(t)
			other := reach(t, p)
			hit := p.Inject(test.Fault)
			ctx := t.Context()
			_, err := conn.Exec(ctx, "BEGIN")
			if err != nil {
				t.Fatal(err)
			}
			if _, err = conn.Exec(ctx, "INSERT INTO t VALUES ($1)", 1); err != nil {
				t.Fatal(err)
			}
			select {
			case <-hit:
				t.Error("it struck too early")
			default:
			}
			if _, err = conn.Exec(ctx, "COMMIT"); err == nil {
				t.Error("the connection was cut, and COMMIT has an answer")
			}
			<-hit
			// The connection beside it lives, and the fault has happened once.
			for range 2 {
				if _, err := other.Exec(ctx, "BEGIN; COMMIT"); err != nil {
					t.Errorf("another connection: %v", err)
				}
			}
			if n := rowsAfter(t, other); n != map[bool]int{true: 1}[test.committed] {
				t.Errorf("%d rows were committed", n)
			}
		})
	}
}

// rowsAfter counts the rows of t when no transaction that writes there is open any more.
func rowsAfter(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "LOCK TABLE t IN ACCESS EXCLUSIVE MODE"); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), "SELECT count(*) FROM t").Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestProxyCutsAfterAMessageWithoutItsAnswer(t *testing.T) {
	p, conn := through(t)
	before := p.Counts()
	hit := p.Inject(Fault{From: Client, Match: Says("insert"), Do: CutAfter})
	p.Refuse() // the client asks for what it has sent to be cancelled
	if _, err := conn.PgConn().Exec(t.Context(), "INSERT INTO t VALUES (1)").ReadAll(); err == nil {
		t.Error("the connection was cut, and the statement has an answer")
	}
	<-hit
	if c := p.Since(before); c.Statements != 1 {
		t.Errorf("got %+v", c)
	}
	// It arrived, so it is done, some time.
	other := connect(t, p.direct)
	for deadline := time.Now().Add(20 * time.Second); rowsAfter(t, other) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("what was passed on whole was not done")
		}
	}
}

func TestProxyStallsAndResumes(t *testing.T) {
	for name, stall := range map[string]func(p *Proxy) (hit <-chan struct{}){
		"before a statement": func(p *Proxy) <-chan struct{} { return p.Inject(Fault{From: Client, Match: Says("insert"), Do: Stall}) },
		"before an answer": func(p *Proxy) <-chan struct{} {
			return p.Inject(Fault{From: Backend, Match: Says("insert"), Do: Stall})
		},
		"everything": func(p *Proxy) <-chan struct{} {
			p.Stall()
			hit := make(chan struct{})
			close(hit)
			return hit
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, conn := through(t)
			hit := stall(p)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := conn.Exec(ctx, "INSERT INTO t VALUES (1)")
				done <- err
			}()
			<-hit
			// A straight connection shows that the server is well, and gives the statement time to come through where it could.
			direct := connect(t, p.direct)
			for range 50 {
				query[int](t, direct, "SELECT 1")
			}
			select {
			case err := <-done:
				t.Fatalf("it came through: %v", err)
			default:
			}
			if n, want := rowsAfter(t, direct), map[bool]int{true: 1}[name == "before an answer"]; n != want {
				t.Errorf("%d rows, want %d", n, want)
			}
			p.Resume()
			if err := <-done; err != nil {
				t.Errorf("after Resume: %v", err)
			}
			if n := rowsAfter(t, direct); n != 1 {
				t.Errorf("%d rows in the end", n)
			}
		})
	}
}

func TestProxyStallEndsWithACut(t *testing.T) {
	p, conn := through(t)
	hit := p.Inject(Fault{From: Client, Do: Stall})
	done := make(chan error)
	go func() {
		_, err := conn.Exec(context.Background(), "SELECT 1")
		done <- err
	}()
	<-hit
	if n := p.Cut(); n != 1 {
		t.Errorf("%d connections were cut", n)
	}
	if err := <-done; err == nil {
		t.Error("a statement that was held back and cut has an answer")
	}
}

func TestProxyRefuses(t *testing.T) {
	p, conn := through(t)
	p.Refuse()
	if c, err := pgx.Connect(t.Context(), p.DSN()); err == nil {
		t.Error("a connection came about")
		c.Close(t.Context())
	}
	if query[int](t, conn, "SELECT 1") != 1 {
		t.Error("a connection that was there does not live on")
	}
	p.Resume()
	query[int](t, reach(t, p), "SELECT 1")
}

func TestProxyPassesOnTheLastWordsOfAServer(t *testing.T) {
	p, conn := through(t)
	pid := conn.PgConn().PID()
	if !query[bool](t, connect(t, p.direct), "SELECT pg_terminate_backend($1)", pid) {
		t.Fatal("it was not ended")
	}
	_, err := conn.Exec(t.Context(), "SELECT 1")
	if !isCode(err, "57P01") { // admin_shutdown
		t.Errorf("got %v", err)
	}
}

func TestProxyPassesOnACancel(t *testing.T) {
	p, conn := through(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error)
	go func() {
		_, err := conn.Exec(ctx, "SELECT pg_sleep(600)")
		done <- err
	}()
	awaitSleep(t, p.direct)
	if err := conn.PgConn().CancelRequest(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !isCode(err, "57014") { // query_canceled
		t.Errorf("got %v", err)
	}
}

func TestProxyDeclinesTLS(t *testing.T) {
	p, _ := through(t)
	u, err := url.Parse(p.DSN())
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = "sslmode=prefer"
	query[int](t, connect(t, u.String()), "SELECT 1")
	u.RawQuery = "sslmode=require"
	if _, err := pgx.Connect(t.Context(), u.String()); err == nil || !strings.Contains(err.Error(), "refused TLS") {
		t.Errorf("got %v", err)
	}
}

func TestProxyEndsOnWhatIsNoMessage(t *testing.T) {
	p, _ := through(t)
	c, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("\x00\x00\x00\x01GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("it is kept open")
	}
}

func TestMessageText(t *testing.T) {
	front := func(m pgproto3.FrontendMessage) Message { return encoded(t, Client, m) }
	back := func(m pgproto3.BackendMessage) Message { return encoded(t, Backend, m) }
	tests := []struct {
		message Message
		want    string
	}{
		{front(&pgproto3.Query{String: "commit"}), "commit"},
		{front(&pgproto3.Parse{Query: "SELECT $1"}), "SELECT $1"},
		{front(&pgproto3.Parse{Name: "named", Query: "SELECT $1"}), ""},
		{front(&pgproto3.Bind{PreparedStatement: "unknown"}), ""},
		{front(&pgproto3.Bind{}), ""},
		{front(&pgproto3.Close{ObjectType: 'S', Name: "commit"}), ""},
		{front(&pgproto3.Describe{ObjectType: 'S', Name: "commit"}), ""},
		{back(&pgproto3.CommandComplete{CommandTag: []byte("COMMIT")}), "COMMIT"},
		{back(&pgproto3.DataRow{Values: [][]byte{[]byte("COMMIT")}}), ""},
	}
	for _, test := range tests {
		if got := test.message.Text(); got != test.want {
			t.Errorf("%c gives %q, want %q", test.message.Type, got, test.want)
		}
		if got := Says("COMMIT")(test.message); got != strings.EqualFold(test.want, "commit") {
			t.Errorf("%c matches: %v", test.message.Type, got)
		}
	}
}

func encoded(t *testing.T, from Side, m interface{ Encode([]byte) ([]byte, error) }) Message {
	t.Helper()
	b, err := m.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return Message{From: from, Type: b[0], Body: b[5:]}
}
