package pgtest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Dump copies what is in a database into another, empty one by pg_dump and psql. The test is skipped where this machine has none.
func Dump(t testing.TB, from, to string) {
	t.Helper()
	dump := client(t, "pg_dump", "--no-owner", "--dbname", from)
	var said, script bytes.Buffer
	dump.Stdout, dump.Stderr = &script, &said
	if err := dump.Run(); err != nil {
		t.Fatalf("pgtest: pg_dump: %v: %s", err, tail(said.String()))
	}
	load := client(t, "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "--dbname", to)
	load.Stdin = &script
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("pgtest: psql: %v: %s", err, tail(string(out)))
	}
}

// StartDump starts a pg_dump of a database that nobody reads; the returned function waits until it has ended. The test is skipped where this machine has
// none.
func StartDump(t testing.TB, from string) (wait func() error) {
	t.Helper()
	dump := client(t, "pg_dump", "--dbname", from)
	var said bytes.Buffer
	dump.Stderr = &said
	if err := dump.Start(); err != nil {
		t.Fatalf("pgtest: pg_dump: %v", err)
	}
	return func() error {
		if err := dump.Wait(); err != nil {
			return errors.Join(err, errors.New(tail(said.String())))
		}
		return nil
	}
}

// client is a program for users of a server, of the newest version that there is.
func client(t testing.TB, program string, args ...string) *exec.Cmd {
	t.Helper()
	path := program
	if b, err := findBinaries(); err == nil {
		if _, err := os.Stat(b.path(program)); err == nil {
			path = b.path(program)
		}
	}
	if _, err := exec.LookPath(path); err != nil {
		t.Skip(LeftOut + "no " + program + " on this machine")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	return cmd
}

// Save stops the server, keeps a copy of its files, and starts it again.
func (s *Server) Save() {
	s.t.Helper()
	s.Stop()
	s.do("save", func() error { return s.cluster.copyFiles(s.cluster.data(), s.cluster.saved()) })
	s.Start()
}

// Restore gives the server back the files that Save kept, as a restored backup would be, and starts it. It must have been stopped or killed.
func (s *Server) Restore() {
	s.t.Helper()
	s.do("restore", func() error {
		if err := os.RemoveAll(s.cluster.data()); err != nil {
			return err
		}
		return s.cluster.copyFiles(s.cluster.saved(), s.cluster.data())
	})
	s.Start()
}

func (c *cluster) saved() string { return filepath.Join(c.dir, "saved") }

// copyFiles copies a folder, as the server's user.
func (c *cluster) copyFiles(from, to string) error {
	cmd := c.command("postgres", "-a", from, to)
	cmd.Path, cmd.Args[0], cmd.Err = "/bin/cp", "cp", nil
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}
