package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// beginning is what a database holds before anybody has used it, and what brings it back to that.
type beginning struct {
	catalog string // see catalogSQL
	empty   string // statements that empty all tables and set all sequences back
	rows    []tableRows
}

// tableRows is what a table begins with, as COPY writes it.
type tableRows struct {
	table string
	text  []byte
}

// most is how many bytes all tables may have for a database to be used again: beyond, a new one is cheaper than what is left in it.
const most = 16 << 20

// catalogSQL is a sum over all that was ever created, altered or dropped in the database: the server writes a new version of whatever tells of it.
// What statements on rows leave, and what vacuum and ANALYZE do, is not in it. Behind it comes the size of all tables.
const catalogSQL = `SELECT string_agg(what || ' ' || n || ' ' || coalesce(total, 0), ', ' ORDER BY what), (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)
  FROM pg_class WHERE relkind = 'r' AND oid >= 16384) FROM (
  SELECT 'relations' AS what, count(*) AS n, sum(xmin::text::bigint) AS total FROM pg_class WHERE oid >= 16384
  UNION ALL SELECT 'columns', count(*), sum(xmin::text::bigint) FROM pg_attribute WHERE attrelid >= 16384
  UNION ALL SELECT 'defaults', count(*), sum(xmin::text::bigint) FROM pg_attrdef
  UNION ALL SELECT 'indexes', count(*), sum(xmin::text::bigint) FROM pg_index WHERE indexrelid >= 16384
  UNION ALL SELECT 'constraints', count(*), sum(xmin::text::bigint) FROM pg_constraint WHERE oid >= 16384
  UNION ALL SELECT 'parents', count(*), sum(xmin::text::bigint) FROM pg_inherits
  UNION ALL SELECT 'sequences', count(*), sum(xmin::text::bigint) FROM pg_sequence
  UNION ALL SELECT 'triggers', count(*), sum(xmin::text::bigint) FROM pg_trigger
  UNION ALL SELECT 'rules', count(*), sum(xmin::text::bigint) FROM pg_rewrite WHERE oid >= 16384
  UNION ALL SELECT 'functions', count(*), sum(xmin::text::bigint) FROM pg_proc WHERE oid >= 16384
  UNION ALL SELECT 'types', count(*), sum(xmin::text::bigint) FROM pg_type WHERE oid >= 16384
  UNION ALL SELECT 'schemas', count(*), sum(xmin::text::bigint) FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp_'
  UNION ALL SELECT 'extensions', count(*), sum(xmin::text::bigint) FROM pg_extension
  UNION ALL SELECT 'statistics', count(*), sum(xmin::text::bigint) FROM pg_statistic_ext
  UNION ALL SELECT 'large objects', count(*), sum(xmin::text::bigint) FROM pg_largeobject_metadata
  UNION ALL SELECT 'defaults of rights', count(*), sum(xmin::text::bigint) FROM pg_default_acl
  UNION ALL SELECT 'publications', count(*), sum(xmin::text::bigint) FROM pg_publication
  UNION ALL SELECT 'settings', count(*), sum(xmin::text::bigint) FROM pg_db_role_setting
    WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
  UNION ALL SELECT 'the database', count(*), sum(xmin::text::bigint) FROM pg_database WHERE datname = current_database()) AS all_of_it`

// Tables that have rows of their own, and sequences.
const (
	tablesSQL    = `SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND oid >= 16384 ORDER BY oid`
	sequencesSQL = `SELECT oid::regclass FROM pg_class WHERE relkind = 'S' AND oid >= 16384 ORDER BY oid`
)

// learn finds out what the database holds.
func learn(ctx context.Context, conn *pgconn.PgConn) (*beginning, error) {
	catalog, _, err := look(ctx, conn)
	if err != nil {
		return nil, err
	}
	b := &beginning{catalog: catalog}
	var empty strings.Builder
	tables, err := column(ctx, conn, tablesSQL)
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		fmt.Fprintf(&empty, "DELETE FROM %s;", table)
		var text bytes.Buffer
		if _, err := conn.CopyTo(ctx, &text, "COPY "+table+" TO STDOUT"); err != nil {
			return nil, err
		}
		if text.Len() > 0 {
			b.rows = append(b.rows, tableRows{table, text.Bytes()})
		}
	}
	sequences, err := column(ctx, conn, sequencesSQL)
	if err != nil {
		return nil, err
	}
	for _, sequence := range sequences {
		set, err := column(ctx, conn, fmt.Sprintf("SELECT format('SELECT setval(%%L, %%s, %%L);', '%s', last_value, is_called) FROM %[1]s", sequence))
		if err != nil {
			return nil, err
		}
		empty.WriteString(set[0])
	}
	b.empty = empty.String()
	return b, nil
}

// restore brings the database back to what it was. It is false where it is not: then nothing was done.
func (b *beginning) restore(ctx context.Context, conn *pgconn.PgConn) (bool, error) {
	catalog, size, err := look(ctx, conn)
	if err != nil || catalog != b.catalog || size > most {
		return false, err
	}
	if err := perform(ctx, conn, "BEGIN;"+b.empty); err != nil {
		return false, err
	}
	for _, rows := range b.rows {
		if _, err := conn.CopyFrom(ctx, bytes.NewReader(rows.text), "COPY "+rows.table+" FROM STDIN"); err != nil {
			return false, err
		}
	}
	return true, perform(ctx, conn, "COMMIT")
}

// look gives the sum over the catalog, and the size of all tables in bytes.
func look(ctx context.Context, conn *pgconn.PgConn) (catalog string, size int, err error) {
	results, err := conn.Exec(ctx, catalogSQL).ReadAll()
	if err != nil {
		return "", 0, err
	}
	row := results[0].Rows[0]
	_, err = fmt.Sscan(string(row[1]), &size)
	return string(row[0]), size, err
}

// column is the first column of a query's rows.
func column(ctx context.Context, conn *pgconn.PgConn, sql string) (all []string, err error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	for _, row := range results[0].Rows {
		all = append(all, string(row[0]))
	}
	return all, nil
}
