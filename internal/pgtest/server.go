package pgtest

import (
	"context"
	"errors"
	"os"
	"testing"
)

// Options are the settings of a server of one's own. The zero value is a server that keeps what it has acknowledged.
type Options struct {
	// Settings are lines of postgresql.conf, such as "max_connections = 20". The last of a name holds.
	Settings []string
	// Template is what the server's database begins with.
	Template Template
}

// Server is a server of a test's own, which may be stopped, killed and started again; its DSNs stay the same. It is for one
// goroutine at a time.
type Server struct {
	t       testing.TB
	cluster *cluster
	host    *host
	dsn     string

	follows  *Server // set while it is a standby
	standbys int     // that were started of it
}

// NewServer starts a server with one database. It ends and is removed after the test, also when the test's process is killed.
// The test is skipped where DATABASE_URL names a server and this machine has no binaries.
func NewServer(t testing.TB, o Options) *Server {
	t.Helper()
	wanted(t)
	hideSettings()
	c, err := newCluster(o.Settings)
	if errors.Is(err, errNoBinaries) {
		if os.Getenv("DATABASE_URL") != "" || os.Getenv("FOUNDLING_POSTGRES") != "" {
			t.Skip(LeftOut + err.Error())
		}
		err = ErrNone
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	s := &Server{t: t, cluster: c}
	t.Cleanup(s.remove)

	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if s.host, err = newHost(ctx, c.admin()); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if s.dsn, _, err = s.host.create(ctx, o.Template); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return s
}

// DSN is that of the server's database, for a role that owns it and is no superuser.
func (s *Server) DSN() string { return s.dsn }

// Admin is the DSN of the same database for the superuser.
func (s *Server) Admin() string { return s.host.adminOf(s.t, s.dsn) }

// Version is the server's, as in "15.18".
func (s *Server) Version() string { return s.host.Version }

// Kill9 ends the server and all its processes with SIGKILL, as a machine that loses its power would, but for what the operating
// system has not yet written.
func (s *Server) Kill9() { s.do("kill", s.cluster.kill) }

// Stop ends the server as an operator would: open transactions are rolled back and everything is written.
func (s *Server) Stop() { s.do("stop", s.cluster.stop) }

// Start starts the server after Kill9 or Stop and returns when it answers.
func (s *Server) Start() { s.do("start", s.cluster.start) }

// Log is what the server has written to its log so far.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.cluster.logFile())
	if err != nil {
		s.t.Errorf("pgtest: %v", err)
	}
	return string(text)
}

func (s *Server) do(what string, step func() error) {
	s.t.Helper()
	if err := step(); err != nil {
		s.t.Fatalf("pgtest: %s the server: %v", what, err)
	}
}

func (s *Server) remove() {
	if s.t.Failed() {
		s.t.Logf("the end of the server's log:\n%s", tail(s.Log()))
	}
	if err := s.cluster.remove(); err != nil {
		s.t.Errorf("pgtest: %v", err)
	}
}

// tail is the end of a long text.
func tail(text string) string {
	const most = 4000
	return text[max(0, len(text)-most):]
}
