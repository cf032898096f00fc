package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// wholeOf is all that is in a database but what the server itself keeps: relations, rows, and where sequences stand.
func wholeOf(t *testing.T, dsn string) string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	list := func(sql string) []string {
		rows, err := conn.Query(ctx, sql, pgx.QueryExecModeExec)
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return all
	}
	const relations = "SELECT relkind::text || ' ' || oid::regclass || ' ' || coalesce(pg_get_expr(relpartbound, oid), '') FROM pg_class" +
		" WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema') ORDER BY 1"
	whole := list(relations)
	for _, relation := range whole[:len(whole):len(whole)] {
		kind, rest, _ := strings.Cut(relation, " ")
		name, _, _ := strings.Cut(rest, " ")
		switch kind {
		case "r":
			whole = append(whole, fmt.Sprint(name, ": ", list("SELECT t::text FROM "+name+" t ORDER BY 1")))
		case "S":
			whole = append(whole, fmt.Sprint(name, ": ", list("SELECT t.last_value || ' ' || t.is_called FROM "+name+" t")))
		}
	}
	return strings.Join(whole, "\n")
}

// The suites open their stores in databases that others have used: none may find anything of theirs, down to the numbers that are drawn next.
func TestADatabaseThatWasUsedIsLikeANewOne(t *testing.T) {
	hash, err := pgtest.HashOf(Migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	made := pgtest.Template{Hash: hash, Migrate: func(ctx context.Context, dsn string) error { return Migrate(ctx, dsn, Options{}) }}
	want := wholeOf(t, made.Database(t))
	var names []string
	for range 2 {
		dsn, giveBack, err := made.Borrow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := wholeOf(t, dsn); got != want {
			t.Errorf("it has\n%s\na new one has\n%s", got, want)
		}
		names = append(names, use(t, dsn))
		if wholeOf(t, dsn) == want {
			t.Error("nothing was done in it")
		}
		if err := giveBack(); err != nil {
			t.Fatal(err)
		}
	}
	if names[0] != names[1] {
		t.Errorf("%s was not used again, but %s", names[0], names[1])
	}
}

// use works in a database, and gives its name.
func use(t *testing.T, dsn string) string {
	t.Helper()
	s, err := Open(t.Context(), dsn, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, h := &beds{t: t, s: s}, newHand(t, s)
	b.configure("mail", 5)
	b.enqueue("mail", "lock", 3)
	worker := b.id()
	b.settle(worker, b.claim(worker, "mail", 1))
	h.do("INSERT INTO @beats (worker, at, every, fence_after, checksum) VALUES (gen_random_uuid(), 1, 1, 1, 1)")
	h.do("SELECT nextval('@fences')")
	h.do("UPDATE @ranges SET begun_at = 1")
	h.do("DELETE FROM @words WHERE kind = 'type'")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := h.conn.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return s.config.Database
}
