package pgtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby starts a server that follows this one and answers reads, with the same databases and roles under another address. It follows without this
// one waiting for it, unless synchronous_standby_names says so: the first of a server is called standby1 there, the next standby2. It may be
// stopped, killed and started again like any other, and misses nothing meanwhile; it ends and is removed after the test. The settings are as in Options.
func (s *Server) Standby(t testing.TB, settings ...string) *Server {
	t.Helper()
	s.standbys++
	name := "standby" + strconv.Itoa(s.standbys)
	c := &cluster{binaries: s.cluster.binaries, password: s.cluster.password}
	if err := c.settle(); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	standby := &Server{t: t, cluster: c, follows: s}
	t.Cleanup(standby.remove)
	if err := c.copyOf(s.cluster, name); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	link := fmt.Sprintf("primary_conninfo = '%s application_name=%s'", s.cluster.local(), name)
	if err := c.startOnFreePort(append([]string{link, "primary_slot_name = '" + name + "'"}, settings...)); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	standby.host = &host{admin: c.admin(), owner: s.host.owner, password: s.host.password, Version: s.host.Version, templates: map[string]string{}}
	var err error
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port))
	if standby.dsn, err = (change{address: address}).of(s.dsn); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	standby.CatchUp()
	return standby
}

// Promote makes a standby a primary of its own, whether or not the server that it followed still runs, and returns when it takes writes. What it had not
// received is lost to it.
func (s *Server) Promote() {
	s.t.Helper()
	if s.follows == nil {
		s.t.Fatal("pgtest: promote: the server is no standby")
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	var done bool
	if err := s.queryRow(ctx, &done, "SELECT pg_promote(true, 60)"); err != nil || !done {
		s.t.Fatalf("pgtest: promote: %t, %v", done, err)
	}
	s.follows = nil
}

// CatchUp returns when a standby shows all that was committed on the server that it follows when it was called. Both must run.
func (s *Server) CatchUp() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if s.follows == nil {
		s.t.Fatal("pgtest: catch up: the server is no standby")
	}
	var end string
	if err := s.follows.queryRow(ctx, &end, "SELECT pg_current_wal_insert_lsn()::text"); err != nil {
		s.t.Fatalf("pgtest: catch up: %v", err)
	}
	// What is written and not yet flushed is not sent: the end may lie in a page that only the next commit sends off.
	if err := s.follows.queryRow(ctx, new(string), "SELECT pg_switch_wal()::text"); err != nil {
		s.t.Fatalf("pgtest: catch up: %v", err)
	}
	for until := time.Now().Add(bound); ; {
		var there bool
		const reached = "SELECT coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false) FROM (SELECT pg_sleep(0.01)) slept"
		if err := s.queryRow(ctx, &there, reached, end); err != nil {
			s.t.Fatalf("pgtest: catch up: %v", err)
		}
		if there {
			return
		}
		if time.Now().After(until) {
			s.t.Fatal("pgtest: catch up: the standby does not follow")
		}
	}
}

// queryRow asks the server for one value, as its superuser.
func (s *Server) queryRow(ctx context.Context, into any, sql string, args ...any) error {
	conn, err := pgx.Connect(ctx, s.Admin())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, sql, args...).Scan(into)
}

// local is how the server's own user reaches the superuser's account, over the socket and without a password.
func (c *cluster) local() string {
	return fmt.Sprintf("host=%s port=%d user=%s", c.dir, c.port, superuser)
}

// copyOf fills the data directory with a copy of a running server, made to follow it by a slot of that name.
func (c *cluster) copyOf(from *cluster, name string) error {
	out, err := c.command("pg_basebackup", "-d", from.local(), "-D", c.data(), "--checkpoint=fast", "--wal-method=stream",
		"--create-slot", "--slot="+name, "--no-sync").CombinedOutput()
	if err != nil {
		return fmt.Errorf("pg_basebackup: %s", out)
	}
	signal := filepath.Join(c.data(), "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		return err
	}
	return c.own(signal)
}
