package postgres_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/jackc/pgx/v5"
)

// spoil overwrites a page of the largest table of a name, or of its partitions, while the server is down. It gives how many pages the table has.
func spoil(t *testing.T, server *pgtest.Server, table string, page int64) (pages int64) {
	t.Helper()
	ctx := context.Background()
	admin, err := pgx.Connect(ctx, server.Admin())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	var dir, file string
	if err := admin.QueryRow(ctx, `SELECT current_setting('data_directory'), pg_relation_filepath(oid), pg_relation_size(oid) / 8192
		FROM (SELECT $1::regclass::oid AS oid UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = $1::regclass) q
		WHERE pg_relation_filepath(oid) IS NOT NULL ORDER BY pg_relation_size(oid) DESC LIMIT 1`, table).Scan(&dir, &file, &pages); err != nil {
		t.Fatal(err)
	}
	admin.Close(ctx)
	server.Stop()
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	garbage := make([]byte, 8192)
	for i := range garbage {
		garbage[i] = 0xa5
	}
	if _, err := f.WriteAt(garbage, page*8192); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	server.Start()
	return pages
}

// A page that the server cannot read any more costs whoever passes over it no more steps than there are events that cannot be read for it, however wide
// the gaps between their positions are.
func TestAPageThatTheServerCannotReadIsPassedOver(t *testing.T) {
	for _, table := range []string{"foundling.events", "foundling.decisions"} {
		t.Run(table, func(t *testing.T) {
			server := pgtest.NewServer(t, pgtest.Options{Template: template(t)})
			s, err := postgres.Open(t.Context(), server.DSN(), postgres.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			c := &crowd{t: t, ctx: t.Context()}
			for range 300 {
				c.must(s.Decide(t.Context(), c.enqueueing("mail", "", 3)))
			}
			whole := 0
			for _, err := range s.Read(t.Context(), "", store.Filter{}) {
				if err != nil {
					t.Fatal(err)
				}
				whole++
			}
			pages := spoil(t, server, table, 1)
			if pages < 4 {
				t.Fatalf("%s has %d pages", table, pages)
			}
			read, steps := 0, 0
			var at int64
			for more := true; more; {
				var damage *events.Corrupt
				more = false
				cursor := store.Cursor("")
				if at > 0 {
					cursor = s.After(events.Recorded{Position: at})
				}
				for r, err := range s.Read(t.Context(), cursor, store.Filter{}) {
					if errors.As(err, &damage) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					read, at = read+1, r.Position
				}
				if more = damage != nil; more {
					at = max(at+1, damage.Begins)
					steps++
				}
				if steps > whole {
					t.Fatalf("%d steps over what is damaged, at position %d: %v", steps, at, damage)
				}
			}
			t.Logf("of %d events on %d pages %d were read, and %d steps passed over others", whole, pages, read, steps)
			lost := whole - read
			if lost == 0 || steps > lost+1 {
				t.Errorf("%d of %d events were lost with one of %d pages, in %d steps", lost, whole, pages, steps)
			}
			// Events are found by ranges of blocks, of which each is read as a whole.
			if table == "foundling.decisions" && lost > 3*whole/int(pages) {
				t.Errorf("%d of %d events were lost with one of %d pages", lost, whole, pages)
			}
		})
	}
}
