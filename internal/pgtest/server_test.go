package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestServerIsStoppedKilledAndStartedAgain(t *testing.T) {
	srv := NewServer(t, Options{Settings: []string{"max_connections = 17", "application_name = 'mine'"},
		Template: Template{Hash: "one", Migrate: func(ctx context.Context, dsn string) error {
			conn, err := pgx.Connect(ctx, dsn)
			if err != nil {
				return err
			}
			_, err = conn.Exec(ctx, "CREATE TABLE kept (n int)")
			return errors.Join(err, conn.Close(ctx))
		}}})
	conn := connect(t, srv.DSN())
	for name, want := range map[string]string{"max_connections": "17", "fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"} {
		if got := query[string](t, conn, "SELECT current_setting($1)", name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if !query[bool](t, connect(t, srv.Admin()), "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") {
		t.Error("Admin is no superuser")
	}

	for i, end := range []func(){srv.Kill9, srv.Stop, srv.Kill9} {
		conn := connect(t, srv.DSN())
		if _, err := conn.Exec(t.Context(), "INSERT INTO kept VALUES ($1)", i); err != nil {
			t.Fatal(err)
		}
		working := make(chan error)
		go func() {
			_, err := conn.Exec(context.Background(), "BEGIN; INSERT INTO kept VALUES (99); SELECT pg_sleep(600)")
			working <- err
		}()
		awaitSleep(t, srv.Admin())
		end()
		if err := <-working; err == nil {
			t.Error("the server ended, and a statement did not")
		}
		if _, err := pgx.Connect(t.Context(), srv.DSN()); err == nil {
			t.Error("the server ended, and takes connections")
		}
		srv.Start()
		conn = connect(t, srv.DSN())
		if n := query[int](t, conn, "SELECT count(*) FROM kept WHERE n < 99"); n != i+1 {
			t.Errorf("%d of %d rows are there", n, i+1)
		}
		if query[bool](t, conn, "SELECT EXISTS (SELECT FROM kept WHERE n = 99)") {
			t.Error("what was not committed is there")
		}
	}
	if log := srv.Log(); strings.Count(log, "automatic recovery in progress") != 2 {
		t.Errorf("want two recoveries in\n%s", log)
	}
}

// awaitSleep returns when a statement sleeps in the server.
func awaitSleep(t *testing.T, admin string) {
	t.Helper()
	conn := connect(t, admin)
	const asleep = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep')"
	for deadline := time.Now().Add(20 * time.Second); !query[bool](t, conn, asleep); {
		if time.Now().After(deadline) {
			t.Fatal("nothing sleeps")
		}
	}
}

// playServer starts a server, tells its folder, and waits to be killed.
func playServer() error {
	c, err := newCluster(nil)
	if err != nil {
		return err
	}
	if os.Getenv("KILLED") != "" {
		if err := c.kill(); err != nil {
			return err
		}
	}
	fmt.Println(c.dir)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// The server, its processes and the watchdog hold the one end of a pipe, as they have it from the process that is killed; the
// test reads the other, which ends with the last of them.
func TestServerEndsWithItsProcessHoweverThatEnds(t *testing.T) {
	wanted(t)
	if _, err := findBinaries(); err != nil {
		t.Skip(LeftOut + err.Error())
	}
	ends := map[string]func(process *os.Process, in io.Closer) error{
		"killed":             func(process *os.Process, _ io.Closer) error { return process.Kill() },
		"interrupted":        func(process *os.Process, _ io.Closer) error { return process.Signal(os.Interrupt) },
		"at its end":         func(_ *os.Process, in io.Closer) error { return in.Close() },
		"its server is dead": func(process *os.Process, _ io.Closer) error { return process.Kill() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			alive, held, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer alive.Close()
			cmd := child(t, "server")
			if name == "its server is dead" {
				cmd.Env = append(cmd.Env, "KILLED=yes")
			}
			cmd.ExtraFiles = []*os.File{held}
			in, errIn := cmd.StdinPipe()
			out, errOut := cmd.StdoutPipe()
			if err := errors.Join(errIn, errOut, cmd.Start(), held.Close()); err != nil {
				t.Fatal(err)
			}
			dir, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			dir = strings.TrimSuffix(dir, "\n")
			if _, err := os.Stat(dir); err != nil {
				t.Error(err)
			}
			if err := end(cmd.Process, in); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // it was killed, as wanted
			if err := alive.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, alive); err != nil {
				t.Errorf("something lives on: %v", err)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is still there: %v", dir, err)
			}
		})
	}
}

func TestSettingsOfTheCallerDoNotReachAServer(t *testing.T) {
	for name, value := range map[string]string{"PGHOST": "nowhere.invalid", "PGPORT": "1", "PGUSER": "somebody", "PGDATA": "/nowhere", "PGOPTIONS": "-c nothing=1",
		"PGSSLMODE": "verify-full", "PGSERVICE": "none", "PGTARGETSESSIONATTRS": "standby", "LC_ALL": "xx_YY"} {
		t.Setenv(name, value)
	}
	srv := NewServer(t, Options{})
	connect(t, srv.DSN())
}

func TestServerThatDoesNotStartSaysWhy(t *testing.T) {
	wanted(t)
	if _, err := findBinaries(); err != nil {
		t.Skip(LeftOut + err.Error())
	}
	_, err := newCluster([]string{"shared_buffers = 'plenty'"})
	if err == nil || !strings.Contains(err.Error(), `"shared_buffers": "plenty"`) {
		t.Errorf("got %v", err)
	}
}

func TestNoServerIsLeftOutOrMissing(t *testing.T) {
	t.Setenv("FOUNDLING_POSTGRES_BIN", t.TempDir())
	if _, err := findBinaries(); err == nil || !strings.Contains(err.Error(), "FOUNDLING_POSTGRES_BIN") {
		t.Errorf("an empty folder gives %v", err)
	}
	for engines, want := range map[string]bool{"": true, "postgres": true, "memory,postgres": true, "memory,sqlite": false, "postgres_not": false} {
		t.Setenv("FOUNDLING_ENGINES", engines)
		if got := Wanted(); got != want {
			t.Errorf("%q: %v", engines, got)
		}
	}
}
