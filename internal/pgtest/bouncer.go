package pgtest

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// errNoBouncer says that this machine has no PgBouncer.
var errNoBouncer = errors.New("there is no pgbouncer: ./test --install brings it, FOUNDLING_ENGINES=memory,sqlite leaves out the tests that want it")

// Bouncer is a PgBouncer in transaction mode: each transaction of a client goes over whichever of a few connections to the server is free.
type Bouncer struct {
	dir     string
	address string
	t       testing.TB
}

// NewBouncer starts a PgBouncer before the server of dsn, for all databases there, with so many connections to each. It ends after the test, also
// when the test's process is killed.
func NewBouncer(t testing.TB, dsn string, connections int) *Bouncer {
	t.Helper()
	wanted(t)
	program, err := findBouncer()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatalf("pgtest: bouncer: %v", errDSN)
	}
	b := &Bouncer{t: t}
	settings := func(port int) string { return bouncerSettings(config, port, connections) }
	if err := b.start(program, settings); err != nil {
		t.Fatalf("pgtest: bouncer: %v", err)
	}
	return b
}

// DSN leads to the database of another DSN for the same server, through the bouncer. Whatever role it names, the server sees that of NewBouncer.
func (b *Bouncer) DSN(dsn string) string {
	b.t.Helper()
	through, err := change{address: b.address}.of(dsn)
	if err != nil {
		b.t.Fatalf("pgtest: bouncer: %v", err)
	}
	return through
}

// FindBouncer is an error where this machine has no PgBouncer.
func FindBouncer() error {
	_, err := findBouncer()
	return err
}

// findBouncer looks in PATH and where packages put it, which is not in everybody's PATH.
func findBouncer() (string, error) {
	for _, program := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer"} {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
	}
	return "", errNoBouncer
}

func bouncerSettings(server *pgx.ConnConfig, port, connections int) string {
	quoted := func(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }
	return fmt.Sprintf(`[databases]
* = host=%s port=%d user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
log_connections = 0
log_disconnections = 0
`, quoted(server.Host), server.Port, quoted(server.User), quoted(server.Password), port, connections)
}
