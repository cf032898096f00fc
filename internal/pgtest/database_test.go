package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func playChild(role string) int {
	play, ok := map[string]func() error{"template": playTemplate, "server": playServer}[role]
	if !ok {
		fmt.Fprintf(os.Stderr, "no role %q\n", role)
		return 2
	}
	if err := play(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child is another process of this test binary.
func child(t *testing.T, role string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), asChild+"="+role), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func query[T any](t testing.TB, conn *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestDatabasesAreFreshAndGoAfterTheTest(t *testing.T) {
	shared(t) // or this is left out with its subtests
	names := map[string]bool{}
	for range 2 {
		t.Run("one", func(t *testing.T) {
			conn := connect(t, Database(t))
			names[query[string](t, conn, "SELECT current_database()")] = true
			if _, err := conn.Exec(t.Context(), "CREATE TABLE there (id int)"); err != nil {
				t.Errorf("the database is not empty, or not its role's: %v", err)
			}
			// One connection stays open: the drop must not wait for it.
			left, err := pgx.Connect(t.Context(), conn.Config().ConnString())
			if err != nil {
				t.Fatal(err)
			}
			names[query[string](t, left, "SELECT current_database()")] = true
		})
	}
	if len(names) != 2 {
		t.Errorf("two tests got databases %v", names)
	}
	conn := connect(t, Admin(t, Database(t)))
	for name := range names {
		if query[bool](t, conn, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name) {
			t.Errorf("%s is still there", name)
		}
	}
}

func TestTheRoleOfTheTestsIsPlain(t *testing.T) {
	dsn := Database(t)
	conn := connect(t, dsn)
	if query[bool](t, conn, "SELECT rolsuper OR rolcreaterole OR rolreplication OR rolbypassrls FROM pg_roles WHERE rolname = current_user") {
		t.Error("it may do more than it should")
	}
	if memberships := query[int](t, conn, "SELECT count(*) FROM pg_auth_members WHERE member = current_user::regrole"); memberships != 0 {
		t.Errorf("it is a member of %d roles", memberships)
	}
	if query[string](t, conn, "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()") != conn.Config().User {
		t.Error("it does not own its database")
	}
	admin := connect(t, Admin(t, dsn))
	if query[string](t, admin, "SELECT current_database()") != conn.Config().Database {
		t.Error("Admin leads to another database")
	}
}

// counted is a template whose Migrate writes a line for each of its runs to a file.
func counted(hash, file string) Template {
	return Template{Hash: hash, Migrate: func(ctx context.Context, dsn string) error {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(f, "made"); err != nil {
			return err
		}
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		// It is not closed: who migrates may well leave a pool behind for a moment.
		_, err = conn.Exec(ctx, "CREATE SCHEMA filled; CREATE TABLE filled.rows AS SELECT 42 AS n")
		return errors.Join(err, f.Close())
	}}
}

func playTemplate() error {
	ctx := context.Background()
	dsn, drop, err := counted(os.Getenv("TEMPLATE"), os.Getenv("COUNT")).New(ctx)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	var n int
	err = conn.QueryRow(ctx, "UPDATE filled.rows SET n = n + 1 RETURNING n").Scan(&n)
	if n != 43 {
		err = errors.Join(err, fmt.Errorf("n is %d", n))
	}
	return errors.Join(err, conn.Close(ctx), drop())
}

func TestTemplateIsMadeOnceByManyProcesses(t *testing.T) {
	h := shared(t)
	file, hash := t.TempDir()+"/count", token(8)
	dropTemplate(t, h, hash)
	var all []*exec.Cmd
	for range 4 {
		cmd := child(t, "template", "FOUNDLING_POSTGRES="+h.admin, "FOUNDLING_ENGINES=", "COUNT="+file, "TEMPLATE="+hash)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	// This process finds it made, and changes nothing in it.
	if n := query[int](t, connect(t, counted(hash, file).Database(t)), "SELECT n FROM filled.rows"); n != 42 {
		t.Errorf("a copy begins with %d", n)
	}
	made, err := os.ReadFile(file)
	if n := bytes.Count(made, []byte("\n")); err != nil || n != 1 {
		t.Errorf("made %d times, %v", n, err)
	}
}

// dropTemplate removes after the test what would otherwise stay on a server that does.
func dropTemplate(t *testing.T, h *host, hash string) {
	t.Cleanup(func() {
		ctx := context.Background()
		source, err := h.source(ctx, Template{Hash: hash, Migrate: func(context.Context, string) error { return errors.New("it is not there") }})
		if err == nil {
			err = h.exec(ctx, "DROP DATABASE "+source)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

func TestTemplateThatCannotBeMadeLeavesNothing(t *testing.T) {
	h := shared(t)
	broken := errors.New("a migration is wrong")
	var database string
	template := Template{Hash: token(8), Migrate: func(_ context.Context, dsn string) error {
		config, err := pgx.ParseConfig(dsn)
		database = config.Database
		return errors.Join(broken, err)
	}}
	for range 2 { // the second time as the first: it is not taken to be there
		_, _, err := template.New(t.Context())
		if !errors.Is(err, broken) {
			t.Fatalf("got %v", err)
		}
		if query[bool](t, connect(t, h.admin), "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", database) {
			t.Error("what was begun is still there")
		}
	}
}

func TestStale(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	tests := []struct {
		name string
		want bool
	}{
		{fmt.Sprintf("foundling_test_t%d_0a1b", now.Add(-7*time.Hour).Unix()), true},
		{fmt.Sprintf("foundling_test_t%d_0a1b", now.Add(-5*time.Hour).Unix()), false},
		{fmt.Sprintf("foundling_template_0123abcd_t%d", now.Add(-15*24*time.Hour).Unix()), true},
		{fmt.Sprintf("foundling_template_0123abcd_t%d", now.Add(-13*24*time.Hour).Unix()), false},
		{fmt.Sprintf("foundling_kept_t%d_0a1b", now.Add(-2*time.Minute).Unix()), true},
		{fmt.Sprintf("foundling_kept_t%d_0a1b", now.Add(-30*time.Second).Unix()), false},
		{"foundling_test_of_mine", false},
		{"foundling_test_t99999999999999999999_0a1b", false},
		{"foundling", false},
	}
	for _, test := range tests {
		if got := stale(test.name, now); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func TestDatabasesOfKilledProcessesAreSweptUnlessTheyAreUsed(t *testing.T) {
	h := shared(t)
	long := time.Now().Add(-24 * time.Hour).Unix()
	unused, used := fmt.Sprintf("foundling_test_t%d_%s", long, token(6)), fmt.Sprintf("foundling_test_t%d_%s", long, token(6))
	for _, name := range []string{unused, used} {
		if err := h.exec(t.Context(), h.createSQL(name, "template0")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := h.exec(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
				t.Error(err)
			}
		})
	}
	dsn, err := h.dsn(used)
	if err != nil {
		t.Fatal(err)
	}
	connect(t, dsn)
	if _, err := newHost(t.Context(), h.admin); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, h.admin)
	there := query[[]string](t, conn, "SELECT array_agg(datname::text) FROM pg_database WHERE datname = ANY ($1)", []string{unused, used})
	if strings.Join(there, " ") != used {
		t.Errorf("%v are left, want %s", there, used)
	}
}

func TestServerThatIsOfNoUseIsRefusedWithoutItsPassword(t *testing.T) {
	h := shared(t)
	plain, err := h.dsn("postgres")
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := change{user: "nobody_here", password: "verysecret"}.of(h.admin)
	if err != nil {
		t.Fatal(err)
	}
	nowhere, err := change{user: "nobody_here", password: "verysecret", address: "127.0.0.1:1"}.of(h.admin)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, dsn, want string }{
		{"role", plain, "ALTER ROLE … CREATEDB"},
		{"password", wrong, "nobody_here"},
		{"address", nowhere, "connection refused"},
		{"form", "postgres://me:verysecret@[", "cannot parse"},
	}
	for _, test := range tests {
		if test.name == "role" && h.owner == "" {
			continue // ours is as plain as it may be
		}
		_, err := newHost(t.Context(), test.dsn)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if strings.Contains(err.Error(), "verysecret") || h.password != "" && strings.Contains(err.Error(), h.password) {
			t.Errorf("%s shows the password: %v", test.name, err)
		}
	}
}
