package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Migrations are the numbered steps that make the schema, as goose reads them. Open runs them. They name no schema: whoever runs them does.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// SchemaVersion is the schema that this version of Foundling writes: the number of the last of its Migrations.
const SchemaVersion = 1

const (
	versionTable = "schema_versions"
	leastServer  = 140000
)

const (
	inspectColumns = "server, standby, relations, versions"
	inspectQuery   = "SELECT current_setting('server_version_num')::integer, pg_is_in_recovery()," +
		" (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1)," +
		" (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = '" + versionTable + "')"
	versionQuery  = "SELECT coalesce(max(version_id), 0) FROM @" + versionTable + " WHERE is_applied"
	identityQuery = "SELECT value FROM @meta WHERE name = 'store_id'"
	identityWrite = "INSERT INTO @meta (name, value) VALUES ('store_id', $1) ON CONFLICT (name) DO NOTHING"
	wordsQuery    = "SELECT count(*) FROM @words"
	wordsWrite    = "INSERT INTO @words (kind, code, word) SELECT * FROM unnest($1::text[], $2::smallint[], $3::text[]) ON CONFLICT (kind, code) DO NOTHING"
)

// inspect makes sure that the schema is a store of this version, and makes it one where that is possible.
func (s *Store) inspect(ctx context.Context) (standby bool, err error) {
	var server, relations, versions int64
	err = s.asking(ctx, func(p *pipeline) {
		r := newRecord(inspectColumns)
		p.query(r, func() error {
			server, standby, relations, versions = r.whole(0, 0, 1<<31), r.flag(1), r.whole(2, 0, 1<<62), r.whole(3, 0, 1<<62)
			return r.err
		}, inspectQuery, s.options.Schema)
	})
	if err != nil {
		return false, err
	}
	if err := checkServer(server); err != nil {
		return standby, err
	}
	version := int64(0)
	if versions > 0 {
		if version, err = s.version(ctx); err != nil {
			return standby, err
		}
	}
	switch {
	case version > SchemaVersion:
		return standby, fmt.Errorf("%w: its schema has version %d, this program knows %d", store.ErrNewer, version, SchemaVersion)
	case version == SchemaVersion:
		return standby, nil
	case versions == 0 && relations > 0:
		return standby, fmt.Errorf("%w: schema %s holds something else", store.ErrForeign, s.options.Schema)
	case s.options.NoMigrate || standby:
		return standby, &OlderError{Version: int(version)}
	}
	return standby, s.migrate(ctx)
}

// checkServer refuses a server that is too old, by what it calls its version.
func checkServer(version int64) error {
	if version >= leastServer {
		return nil
	}
	name := fmt.Sprint(version / 10000)
	if version < 100000 {
		name += fmt.Sprint(".", version/100%100)
	}
	return fmt.Errorf("%w: it is Postgres %s, want 14 or newer: upgrade it, or name another", ErrServer, name)
}

func (s *Store) version(ctx context.Context) (version int64, err error) {
	err = s.asking(ctx, func(p *pipeline) {
		r := newRecord("version")
		p.query(r, func() error { version = r.whole(0, 0, 1<<62); return r.err }, versionQuery)
	})
	return version, err
}

// migrate brings the schema to this version, over a connection of its own: the lock that keeps two from it belongs to a session.
func (s *Store) migrate(ctx context.Context) error {
	config := s.direct.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.RuntimeParams["search_path"] = strings.TrimSuffix(s.prefix, ".")
	db := stdlib.OpenDB(*config)
	defer db.Close()
	if err := s.createSchema(ctx); err != nil {
		return err
	}
	if err := s.checkDirect(ctx, db); err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(s.lockKey("migrations", "")), lock.WithLockTimeout(1, 120))
	if err != nil {
		return err
	}
	steps, err := fs.Sub(Migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, steps, goose.WithDisableGlobalRegistry(true),
		goose.WithTableName(versionTable), goose.WithLogger(goose.NopLogger()), goose.WithSessionLocker(locker))
	if err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return s.writeWords(ctx)
}

// checkDirect makes sure that a connection keeps what was set when it began: behind a pooler the steps would run in another schema, and the lock
// would be somebody else's.
func (s *Store) checkDirect(ctx context.Context, db *sql.DB) error {
	var path string
	err := db.QueryRowContext(ctx, "SELECT current_setting('search_path')").Scan(&path)
	if err == nil && path+"." != s.prefix {
		err = fmt.Errorf("its search_path is %s", path)
	} else if err != nil && code(err) != codeProtocol {
		return err
	}
	if err != nil {
		return fmt.Errorf("migrations want a connection to the server itself, not by way of a pooler: Options.Direct takes a connection string for that: %w", err)
	}
	return nil
}

// createSchema makes the schema where it is not there. Two who do so at once may see each other.
func (s *Store) createSchema(ctx context.Context) error {
	for try := 1; ; try++ {
		there := false
		err := s.asking(ctx, func(p *pipeline) {
			r := newRecord("name")
			p.query(r, func() error { there = true; return nil }, "SELECT nspname::text FROM pg_namespace WHERE nspname = $1", s.options.Schema)
		})
		if err != nil || there {
			return err
		}
		_, err = s.pool.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+strings.TrimSuffix(s.prefix, "."), pgx.QueryExecModeSimpleProtocol)
		if err == nil || code(err) != codeTaken || try == 10 {
			return err
		}
		if err := s.rest(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// identity is the store's own id, drawn when it is made.
func (s *Store) identity(ctx context.Context, standby bool) (events.ID, error) {
	text := ""
	read := func(p *pipeline) {
		r := newRecord("value")
		p.query(r, func() error { text = r.text(0); return r.err }, identityQuery)
	}
	err := s.asking(ctx, read)
	if err == nil && text == "" && !standby {
		if _, err = s.pool.Exec(ctx, s.sql(identityWrite), uuid.NewString()); err == nil {
			err = s.asking(ctx, read)
		}
	}
	if err != nil {
		return events.ID{}, err
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return events.ID{}, fmt.Errorf("%w: its store id %q: %w", store.ErrForeign, text, err)
	}
	return id, nil
}

// writeWords writes the words of this version that the schema does not have yet. They are for people: no code reads them.
func (s *Store) writeWords(ctx context.Context) error {
	kinds, codes, words := vocabulary()
	_, err := s.pool.Exec(ctx, s.sql(wordsWrite), kinds, codes, words)
	return errors.Join(err)
}

// vocabulary is what the numbers in the tables are called, a row for each index.
func vocabulary() (kinds []string, codes []int16, words []string) {
	add := func(kind string, code int16, word string) {
		kinds, codes, words = append(kinds, kind), append(codes, code), append(words, word)
	}
	for _, t := range events.Types() {
		add("type", int16(t), t.String())
	}
	for state := range events.State(255) {
		if state.Known() {
			add("state", int16(state), state.String())
		}
	}
	for _, p := range events.Priorities() {
		add("priority", int16(p), p.String())
	}
	return kinds, codes, words
}
