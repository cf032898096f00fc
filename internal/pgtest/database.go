package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Template says what a fresh database begins with. The zero Template is nothing.
type Template struct {
	// Hash names what Migrate makes: where it is the same, so is that. A hash over all migrations is one (see HashOf).
	Hash string
	// Migrate fills the database at dsn, as the role that the tests have. It is called once for a server and a Hash, whichever
	// process is first; all others copy what it made.
	Migrate func(ctx context.Context, dsn string) error
}

// HashOf is a hash over all files of a folder, by their names.
func HashOf(files fs.FS, dir string) (string, error) {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, entry := range entries {
		text, err := fs.ReadFile(files, path.Join(dir, entry.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q %d\n", entry.Name(), len(text))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Database gives the DSN of a fresh, empty database. It is dropped after the test, with force.
func Database(t testing.TB) string {
	t.Helper()
	return Template{}.Database(t)
}

// Database gives the DSN of a fresh database that begins as the template says. It is dropped after the test, with force.
func (template Template) Database(t testing.TB) string {
	t.Helper()
	return template.on(t, shared(t))
}

// New is Database for who has no test: drop drops the database. An error is ErrNone where there is no server.
func (template Template) New(ctx context.Context) (dsn string, drop func() error, err error) {
	h, err := sharedHost()
	if err != nil {
		return "", nil, err
	}
	return h.create(ctx, template)
}

func (template Template) on(t testing.TB, h *host) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	dsn, drop, err := h.create(ctx, template)
	if err != nil {
		t.Fatalf("pgtest: make a database: %v", err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Errorf("pgtest: drop the database: %v", err)
		}
	})
	return dsn
}

// Admin is the DSN of the same database for who may do everything, where dsn is one of Database. On the server of a DATABASE_URL
// that is its role.
func Admin(t testing.TB, dsn string) string {
	t.Helper()
	return shared(t).adminOf(t, dsn)
}

func (h *host) adminOf(t testing.TB, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := change{database: config.Database}.of(h.admin)
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// create makes a database. What drop is asked for late must not depend on ctx.
func (h *host) create(ctx context.Context, template Template) (dsn string, drop func() error, err error) {
	name := fmt.Sprintf("foundling_test_t%d_%s", time.Now().Unix(), token(6))
	if err := h.copyTo(ctx, name, template); err != nil {
		return "", nil, err
	}
	dsn, err = h.dsn(name)
	drop = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		return h.exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	}
	return dsn, drop, err
}

// copyTo makes a database of that name, as the template says.
func (h *host) copyTo(ctx context.Context, name string, template Template) error {
	source, err := h.source(ctx, template)
	if err != nil {
		return fmt.Errorf("template: %w", err)
	}
	return h.exec(ctx, h.createSQL(name, source))
}

func (h *host) createSQL(name, source string) string {
	sql := "CREATE DATABASE " + name + " TEMPLATE " + source + h.strategy
	if h.owner != "" {
		sql += " OWNER " + h.owner
	}
	return sql
}

func (h *host) exec(ctx context.Context, sql string) error {
	conn, err := h.takeAdmin(ctx)
	if err != nil {
		return err
	}
	defer h.putAdmin(conn)
	_, err = conn.Exec(ctx, sql)
	return err
}

// takeAdmin is the connection of who may make databases that waits, or a new one.
func (h *host) takeAdmin(ctx context.Context) (*pgx.Conn, error) {
	h.mu.Lock()
	conn := h.waiting
	h.waiting = nil
	h.mu.Unlock()
	if conn != nil && conn.Ping(ctx) == nil {
		return conn, nil
	}
	return pgx.Connect(ctx, h.admin)
}

func (h *host) putAdmin(conn *pgx.Conn) {
	h.mu.Lock()
	keep := h.keeps && h.waiting == nil && !conn.IsClosed()
	if keep {
		h.waiting = conn
	}
	h.mu.Unlock()
	if !keep {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		_ = conn.Close(ctx) // the server ends what is left of it
	}
}

// source is the database to copy.
func (h *host) source(ctx context.Context, template Template) (string, error) {
	if template.Migrate == nil {
		return "template0", nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if source, ok := h.templates[template.Hash]; ok {
		return source, nil
	}
	conn, err := pgx.Connect(ctx, h.admin)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var source string
	err = locked(ctx, conn, func() error {
		source, err = h.findOrMake(ctx, conn, template)
		return err
	})
	if err == nil {
		h.templates[template.Hash] = source
	}
	return source, err
}

// findOrMake gives the template's database. One that was not finished has another name and is not found.
func (h *host) findOrMake(ctx context.Context, conn *pgx.Conn, template Template) (string, error) {
	sum := sha256.Sum256([]byte(h.owner + "\x00" + template.Hash))
	prefix := "foundling_template_" + hex.EncodeToString(sum[:8]) + "_t"
	var source string
	like := strings.ReplaceAll(prefix, "_", `\_`) + "%"
	err := conn.QueryRow(ctx, "SELECT datname FROM pg_database WHERE datname LIKE $1 ORDER BY datname DESC LIMIT 1", like).Scan(&source)
	if !errors.Is(err, pgx.ErrNoRows) {
		return source, err
	}
	now := time.Now().Unix()
	source = fmt.Sprintf("%s%d", prefix, now)
	unfinished := fmt.Sprintf("foundling_test_t%d_%s", now, token(6))
	if _, err := conn.Exec(ctx, h.createSQL(unfinished, "template0")); err != nil {
		return "", err
	}
	if err := h.fill(ctx, conn, unfinished, template); err != nil {
		_, drop := conn.Exec(ctx, "DROP DATABASE "+unfinished+" WITH (FORCE)")
		return "", errors.Join(err, drop)
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+unfinished+" RENAME TO "+source)
	return source, err
}

// fill runs the migrations and shuts the database: what is connected to would not be copied.
func (h *host) fill(ctx context.Context, conn *pgx.Conn, database string, template Template) error {
	dsn, err := h.dsn(database)
	if err != nil {
		return err
	}
	if err := template.Migrate(ctx, dsn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+database+" ALLOW_CONNECTIONS false"); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", database)
	return err
}

// Begin begins a transaction over a connection of its own, as an application does. The connection is closed when the test ends.
func Begin(t testing.TB, dsn string) pgx.Tx {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return tx
}
