package pgtest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// lockKey is the advisory lock on what all databases of a server share: the role and the templates.
	lockKey = 0x666f756e646c
	// bound is how long anything that is asked of a server may take.
	bound = 2 * time.Minute
	// forgotten is the age from which a database that no test dropped, and a template, are taken to be left behind.
	forgottenDatabase = 6 * time.Hour
	forgottenTemplate = 14 * 24 * time.Hour
	// forgottenKept is that of a database that is lent from test to test: whoever lends it is connected to it, until its process ends.
	forgottenKept = time.Minute
)

var errDSN = errors.New("not a DSN")

// host is a server on which databases can be made.
type host struct {
	admin           string   // the DSN of a role that may make databases
	owner, password string   // the role the tests use
	Version         string   // as in "15.18"
	strategy        string   // how a database is copied quickest, as a clause
	cluster         *cluster // what was started for it, if anything: it ends when nobody refers to it any more

	keeps bool // it is for all of this process, which uses what it has of it again

	mu        sync.Mutex
	templates map[string]string  // the databases that are ready to be copied, by what they begin with
	kept      map[string][]*kept // those that wait to be lent, by what they begin with
	waiting   *pgx.Conn          // a connection of admin's that nobody uses
}

// newHost gets a server ready. It is an error where its version is too old, or where the role may not do what is needed.
func newHost(ctx context.Context, admin string) (*host, error) {
	h := &host{admin: admin, templates: map[string]string{}, kept: map[string][]*kept{}}
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	if err := h.look(ctx, conn); err != nil {
		return nil, err
	}
	err = locked(ctx, conn, func() error {
		if err := h.makeOwner(ctx, conn); err != nil {
			return err
		}
		return sweep(ctx, conn, time.Now())
	})
	return h, err
}

// locked does what only one process may do at a time.
func locked(ctx context.Context, conn *pgx.Conn, do func() error) error {
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(lockKey)); err != nil {
		return err
	}
	err := do()
	_, unlock := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", int64(lockKey))
	return errors.Join(err, unlock)
}

const lookSQL = `SELECT current_user, rolsuper, rolsuper OR rolcreatedb, current_setting('server_version'),
  current_setting('server_version_num')::int / 10000, current_setting('fsync')::bool, pg_is_in_recovery()
FROM pg_roles WHERE rolname = current_user`

// look finds out what the server is and what we may do.
func (h *host) look(ctx context.Context, conn *pgx.Conn) error {
	var user, version string
	var super, creates, fsync, standby bool
	var major int
	if err := conn.QueryRow(ctx, lookSQL).Scan(&user, &super, &creates, &version, &major, &fsync, &standby); err != nil {
		return err
	}
	h.Version, _, _ = strings.Cut(version, " ")
	switch {
	case major < oldest:
		return fmt.Errorf("its version is %s, older than %d", h.Version, oldest)
	case standby:
		return errors.New("it is a standby, which takes no databases")
	case !creates:
		return fmt.Errorf("role %q may not make the databases of the tests: ALTER ROLE … CREATEDB", user)
	}
	if major > oldest && !fsync {
		h.strategy = " STRATEGY file_copy" // without fsync less work than writing the copy to the log
	}
	if super {
		// All processes that are given this DSN must come to the same role. It shows nothing of the DSN's password.
		mac := hmac.New(sha256.New, []byte(h.admin))
		mac.Write([]byte("role of the tests"))
		sum := hex.EncodeToString(mac.Sum(nil))
		h.owner, h.password = "foundling_test_"+sum[:8], sum[8:40]
	}
	return nil
}

// makeOwner makes the role that the databases belong to, unless we are as plain a role ourselves.
func (h *host) makeOwner(ctx context.Context, conn *pgx.Conn) error {
	if h.owner == "" {
		return nil
	}
	var there bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", h.owner).Scan(&there); err != nil || there {
		return err
	}
	_, err := conn.Exec(ctx, "CREATE ROLE "+h.owner+" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD '"+h.password+"'")
	return err
}

var madeAt = regexp.MustCompile(`^foundling_(test|template|kept)_(?:[0-9a-f]+_)?t(\d+)`)

// sweep drops what test processes that were killed have left behind. One that is being used stays.
func sweep(ctx context.Context, conn *pgx.Conn, now time.Time) error {
	const query = `SELECT datname FROM pg_database d WHERE (datname LIKE 'foundling\_te%' OR datname LIKE 'foundling\_kept\_%')
	  AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.datid = d.oid)`
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if !stale(name, now) {
			continue
		}
		if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name); err != nil && !isCode(err, "55006", "42501") {
			return err
		}
	}
	return nil
}

// stale tells by a database's name whether it was left behind.
func stale(name string, now time.Time) bool {
	m := madeAt.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	seconds, err := strconv.ParseInt(m[2], 10, 64)
	limit := map[string]time.Duration{"test": forgottenDatabase, "template": forgottenTemplate, "kept": forgottenKept}[m[1]]
	return err == nil && now.Sub(time.Unix(seconds, 0)) > limit
}

// isCode tells whether an error is the server's with one of these codes.
func isCode(err error, codes ...string) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	for _, code := range codes {
		if pg.Code == code {
			return true
		}
	}
	return false
}

// dsn is that of a database for the tests' role.
func (h *host) dsn(database string) (string, error) {
	return change{user: h.owner, password: h.password, database: database}.of(h.admin)
}
