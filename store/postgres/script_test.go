package postgres

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/internal/pgtest"
)

// ran runs what is printed for an administrator, as psql does: in the simple protocol.
func ran(t *testing.T, dsn, text string) error {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(t.Context(), text) // without arguments, so in the simple protocol
	return err
}

// catalog is what a schema has, however it came about.
func catalog(t *testing.T, dsn string) (lines []string) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, query := range []string{
		`SELECT concat_ws(' ', c.relname, c.relkind, c.reloptions, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attcollation, a.attidentity,
		   pg_get_expr(d.adbin, d.adrelid), pg_get_indexdef(c.oid), pg_get_expr(c.relpartbound, c.oid))
		 FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		 WHERE c.relnamespace = 'foundling'::regnamespace AND c.relkind <> 'i' OR c.relnamespace = 'foundling'::regnamespace AND a.attnum = 1 ORDER BY 1`,
		`SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = 'foundling'::regnamespace ORDER BY 1`,
		`SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'foundling'::regnamespace ORDER BY 1`,
		`SELECT concat_ws(' ', sequencename, data_type, cache_size, increment_by, cycle) FROM pg_sequences WHERE schemaname = 'foundling' ORDER BY 1`,
		`SELECT concat_ws(' ', version_id, is_applied) FROM foundling.schema_versions ORDER BY id`,
		`SELECT concat_ws(' ', kind, code, word) FROM foundling.words ORDER BY 1`,
		`SELECT concat_ws(' ', lower, upper, begun_at) FROM foundling.ranges ORDER BY lower`,
	} {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// What is printed for an administrator does what Migrate does.
func TestScriptMakesWhatMigrateMakes(t *testing.T) {
	text, err := Script(0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dsn, other := pgtest.Database(t), pgtest.Database(t)
	if version, err := Version(t.Context(), dsn, Options{}); version != 0 || err != nil {
		t.Errorf("of an empty database: version %d, %v", version, err)
	}
	if err := ran(t, dsn, text); err != nil {
		t.Fatal(err)
	}
	if err := Migrate(t.Context(), other, Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := catalog(t, dsn), catalog(t, other); !slices.Equal(got, want) {
		t.Errorf("it has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if version, err := Version(t.Context(), dsn, Options{}); version != SchemaVersion || err != nil {
		t.Errorf("version %d, %v", version, err)
	}
	b := &beds{t, openAt(t, dsn, Options{NoMigrate: true})}
	b.enqueue("mail", "", 3)
	if n := len(b.claim(b.id(), "mail", 5)); n != 3 {
		t.Errorf("%d claims, want 3", n)
	}
	// Run once more, it comes to nothing.
	before := catalog(t, dsn)
	if err := ran(t, dsn, text); err == nil || !strings.Contains(err.Error(), "no longer schema version 0") {
		t.Errorf("once more: %v", err)
	}
	if after := catalog(t, dsn); !slices.Equal(before, after) {
		t.Errorf("it was\n%s\nit is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

func TestScriptIsOfOneSchemaAndOfVersionsThatThereAre(t *testing.T) {
	text, err := Script(0, Options{Schema: "others"})
	if err != nil || strings.Contains(text, `"foundling"`) {
		t.Errorf("%v\n%s", err, text)
	}
	dsn := pgtest.Database(t)
	if err := ran(t, dsn, text); err != nil {
		t.Fatal(err)
	}
	openAt(t, dsn, Options{Schema: "others", NoMigrate: true})
	if _, err := Open(t.Context(), dsn, Options{NoMigrate: true}); !errors.As(err, new(*OlderError)) {
		t.Errorf("the schema beside it: %v", err)
	}
	if text, err := Script(SchemaVersion, Options{}); text != "" || err != nil {
		t.Errorf("of this version: %v\n%s", err, text)
	}
	for _, version := range []int{-1, SchemaVersion + 1} {
		if _, err := Script(version, Options{}); err == nil {
			t.Errorf("from version %d: no error", version)
		}
	}
}
