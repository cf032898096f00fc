package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/google/uuid"
	"github.com/pressly/goose/v3"
)

// Migrations are the numbered steps that make the schema, as goose reads them. Open runs them.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// SchemaVersion is the schema that this version of Foundling writes: the number of the last of its Migrations.
const SchemaVersion = 3

const (
	setIncremental = "PRAGMA auto_vacuum = INCREMENTAL"
	// applicationID marks a SQLite file as a store: "Fndl".
	applicationID = 0x466e646c
	versionTable  = "schema_versions"
	wordsQuery    = "SELECT count(*) FROM words"
	identityQuery = "SELECT value FROM meta WHERE name = 'store_id'"
)

// prepare makes sure that the file is a store of this schema and gives its id. Nothing is written to a file that is something else.
// The writers' turn is held.
func prepare(ctx context.Context, db *sql.DB) (events.ID, error) {
	version, err := inspect(ctx, db)
	if err != nil {
		return events.ID{}, err
	}
	if version == 0 {
		err = begin(ctx, db)
	}
	if err == nil {
		err = writeAhead(ctx, db)
	}
	if err == nil && version < SchemaVersion {
		err = migrate(ctx, db, version)
	}
	if err == nil {
		// A file that gave its space back with each commit needs no more than this; of one that never did, only Compact makes another.
		_, err = db.ExecContext(ctx, setIncremental)
	}
	if err == nil {
		err = writeWords(ctx, db)
	}
	if err != nil {
		return events.ID{}, err
	}
	return identity(ctx, db)
}

// inspect is the schema version of the file, 0 where nothing is in it yet. One that is no store, or of a newer version, is an error.
func inspect(ctx context.Context, db *sql.DB) (version int, err error) {
	tx, err := db.BeginTx(ctx, nil) // others may be making it
	if err != nil {
		return 0, err
	}
	version, err = inspectTx(ctx, tx)
	_ = tx.Rollback() // nothing was written
	return version, err
}

func inspectTx(ctx context.Context, tx *sql.Tx) (version int, err error) {
	var application int64
	if err := tx.QueryRowContext(ctx, "PRAGMA application_id").Scan(&application); err != nil {
		return 0, err
	}
	tables, err := texts(ctx, tx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name LIMIT 4")
	if err != nil {
		return 0, err
	}
	switch {
	case application == applicationID:
	case application == 0 && len(tables) == 0:
		return 0, nil
	default:
		return 0, fmt.Errorf("%w: it is a SQLite file with application id %#x and tables %s",
			store.ErrForeign, application, strings.Join(tables, ", "))
	}
	if len(tables) == 0 {
		return 0, nil // the process that began to make it died
	}
	err = tx.QueryRowContext(ctx, versionQuery).Scan(&version)
	if err == nil {
		err = checkVersion(int64(version))
	}
	return version, err
}

// begin makes an empty file a store of schema version 0.
func begin(ctx context.Context, db *sql.DB) error {
	// Space that old events leave is given back a piece at a time, which only a file that began so can do.
	if _, err := db.ExecContext(ctx, setIncremental); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	return err
}

// complete reports whether nothing is to be made in a file of this schema, and gives the store's id.
func complete(ctx context.Context, db *sql.DB) (id events.ID, ready bool, err error) {
	var mode string
	var words int
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return id, false, err
	}
	if err := db.QueryRowContext(ctx, wordsQuery).Scan(&words); err != nil {
		return id, false, err
	}
	list, err := texts(ctx, db, identityQuery)
	if err != nil || mode != "wal" || words < len(vocabulary()) || len(list) == 0 {
		return id, false, err
	}
	id, err = parseIdentity(list[0])
	return id, err == nil, err
}

// writeAhead makes sure that the file has a write-ahead log.
func writeAhead(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the journal mode is %s where a write-ahead log is needed: its file system does not share memory", mode)
	}
	return nil
}

// migrate brings the schema from a version to this one.
func migrate(ctx context.Context, db *sql.DB, version int) error {
	steps, err := fs.Sub(Migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, steps,
		goose.WithDisableGlobalRegistry(true), goose.WithTableName(versionTable), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate from schema version %d: %w", version, err)
	}
	return nil
}

// writeWords writes the words of this version that the file does not have yet. They are for people: no code reads them.
func writeWords(ctx context.Context, db *sql.DB) error {
	words := vocabulary()
	var have int
	if err := db.QueryRowContext(ctx, wordsQuery).Scan(&have); err != nil || have >= len(words) {
		return err
	}
	var values []string
	var args []any
	for _, w := range words {
		values = append(values, "(?, ?, ?)")
		args = append(args, w.kind, w.code, w.word)
	}
	_, err := db.ExecContext(ctx, "INSERT OR IGNORE INTO words (kind, code, word) VALUES "+strings.Join(values, ", "), args...)
	return err
}

type word struct {
	kind string
	code int64
	word string
}

// vocabulary is what the numbers in the tables are called.
func vocabulary() []word {
	var list []word
	for _, t := range events.Types() {
		list = append(list, word{"type", int64(t), t.String()})
	}
	for state := range events.State(255) {
		if state.Known() {
			list = append(list, word{"state", int64(state), state.String()})
		}
	}
	for _, p := range events.Priorities() {
		list = append(list, word{"priority", int64(p), p.String()})
	}
	return list
}

// identity is the store's own id, drawn when it is made.
func identity(ctx context.Context, db *sql.DB) (events.ID, error) {
	list, err := texts(ctx, db, identityQuery)
	if err == nil && len(list) == 0 {
		list = []string{uuid.NewString()}
		_, err = db.ExecContext(ctx, "INSERT INTO meta (name, value) VALUES ('store_id', ?)", list[0])
	}
	if err != nil {
		return events.ID{}, err
	}
	return parseIdentity(list[0])
}

func parseIdentity(text string) (events.ID, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return events.ID{}, fmt.Errorf("%w: its store id %q: %w", store.ErrForeign, text, err)
	}
	return id, nil
}

// querier is a database or a transaction of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// texts is the one column of a query's rows.
func texts(ctx context.Context, from querier, query string) ([]string, error) {
	var list []string
	r := newRecord("text")
	rows, err := from.QueryContext(ctx, query)
	err = r.each(rows, err, func() error {
		list = append(list, r.text(0))
		return r.err
	})
	return list, err
}
