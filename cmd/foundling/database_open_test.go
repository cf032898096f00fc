//go:build unix

package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/spf13/cobra"
)

// found reports whether a text has what a pattern wants.
func found(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

// asking runs a command line in this process, with a store in the environment.
func asking(t *testing.T, store, line string) ended {
	t.Helper()
	var out, errout bytes.Buffer
	a := &app{stdin: strings.NewReader("one\n"), stdout: &out, stderr: &errout, env: func(name string) string {
		return map[string]string{"FOUNDLING_STORE": store, "USER": "alice", suggestEnv: "50ms"}[name]
	}}
	code := execute(t.Context(), a, strings.Fields(line))
	return ended{code, out.String(), errout.String()}
}

// onStore is a line for every command that opens a store.
func onStore() []string {
	return []string{
		"run -- true", "enqueue mail", "work mail --until-empty -- true", "status", "topics", "topics mail", "topics set mail --limit 1 --reason x --yes",
		"messages", "messages 0123456789", "workers", "locks", "trace 0123456789", "events", "events --follow", "sweep", "sweep --dry-run",
		"requeue 0123456789 --reason x --yes", "redrive 0123456789 --reason x --yes", "cancel 0123456789 --reason x --yes",
		"release-lock door --reason x --yes", "pause mail --reason x --yes", "resume mail --reason x --yes", "erase 0123456789 --reason x --yes",
		"prune --dry-run", "projections", "projections drop totals --yes", "verify", "migrate", "migrate --print", "demo-worker mail",
	}
}

// Every command that opens a store is among those that the test of secrets runs.
func TestEveryCommandIsTriedWithAConnectionString(t *testing.T) {
	none := []string{"machines", "schema", "completion", "version", "demo", "help"} // open no store that is named
	var check func(*cobra.Command, string)
	check = func(cmd *cobra.Command, above string) {
		for _, c := range cmd.Commands() {
			path := strings.TrimSpace(above + " " + c.Name())
			check(c, path)
			tried := false
			for _, line := range append(onStore(), none...) {
				tried = tried || line == path || strings.HasPrefix(line, path+" ")
			}
			if !tried {
				t.Errorf("foundling %s is not tried", path)
			}
		}
	}
	check(newRoot(&app{env: func(string) string { return "" }}), "")
}

// A password was in an error, or in an output. None is in any, whatever is wrong with the connection string.
func TestNoCommandTellsAPassword(t *testing.T) {
	const secret = "hunter2sesame"
	dsns := map[string]int{
		"postgres://ann:" + secret + "@127.0.0.1:1/db":                                   exitStore,
		"postgresql://ann:" + secret + "@127.0.0.1:1/db?sslmode=disable":                 exitStore,
		"POSTGRES://ann:" + secret + "@127.0.0.1:1/db?sslmode=disable":                   exitStore,
		"postgres://127.0.0.1:1/db?sslmode=disable&user=ann&password=" + secret:          exitStore,
		"postgres://ann@127.0.0.1:1/db?sslmode=disable&sslpassword=" + secret:            exitStore,
		"postgres://ann:" + secret + "@127.0.0.1:1/db?sslmode=bogus":                     exitUsage,
		"postgres://ann:" + secret + "@127.0.0.1:port/db":                                exitUsage,
		"postgres://ann:" + secret + "%zz@127.0.0.1:1/db":                                exitUsage,
		"postgres://ann:12/" + secret + "@127.0.0.1:1/db":                                exitUsage,
		"postgres://ann:12?" + secret + "@127.0.0.1:1/db":                                exitUsage,
		"postgres://ann:12#" + secret + "@127.0.0.1:1/db":                                exitUsage,
		"postgres://ann:" + secret + "@[::1/db":                                          exitUsage,
		"postgres://ann:" + secret + "@127.0.0.1:1/db?schema=No-Name&password=" + secret: exitUsage,
		"host=127.0.0.1 user=ann password=" + secret:                                     exitUsage,
		"host=127.0.0.1 sslpassword='" + secret + "'":                                    exitUsage,
		"sqlite:host=127.0.0.1 password=" + secret:                                       exitUsage,
		"postgres:ann:" + secret + "@127.0.0.1/db":                                       exitUsage,
		"postgres:/ann:" + secret + "@127.0.0.1/db":                                      exitUsage,
		"ann:" + secret + "@127.0.0.1/db":                                                exitUsage,
		"mysql://ann:" + secret + "@127.0.0.1/db":                                        exitUsage,
	}
	t.Setenv("PGPASSWORD", secret)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for dsn, code := range dsns {
		for _, line := range onStore() {
			objects := strings.Contains(line, " -- ") && !strings.Contains(line, "--print")
			for _, form := range []string{"", " -v", " --json"} {
				if form == " --json" && (strings.Contains(line, "--print") || strings.HasPrefix(line, "demo-worker")) {
					continue
				}
				words, command, _ := strings.Cut(line, " -- ")
				full := words + form
				if objects {
					full += " -- " + command
				}
				got := tried(t, dsn, full)
				if got.code != code || got.errout == "" {
					t.Errorf("%s: exit code %d, want %d\n%s", full, got.code, code, strings.ReplaceAll(got.errout, secret, "SECRET"))
				}
				if strings.Contains(got.out+got.errout, "hunter2") || strings.Contains(got.out+got.errout, "sesame") {
					t.Fatalf("%s tells the password of %s:\n%s%s", full, dsn, got.out, got.errout)
				}
			}
		}
		for _, words := range []string{"__complete pause ", "__complete topics --store " + dsn + " "} {
			if got := asking(t, dsn, words); strings.Contains(got.out+got.errout, secret) || got.errout != "" {
				t.Errorf("%s: %s%s", words, got.out, got.errout)
			}
		}
	}
}

// tried runs a line with a store that --store names.
func tried(t *testing.T, dsn, line string) ended {
	t.Helper()
	var out, errout bytes.Buffer
	a := &app{stdin: strings.NewReader("one\n"), stdout: &out, stderr: &errout, env: func(string) string { return "" }}
	args := append([]string{"--store", dsn}, strings.Fields(line)...)
	code := execute(t.Context(), a, args)
	return ended{code, out.String(), errout.String()}
}

// A shell that completes from a server that does not answer waits no longer than it may, and hears nothing.
func TestAShellDoesNotWaitForAServerThatIsSilent(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections, and says nothing on them
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, dsn := range []string{"postgres://ann@" + silent.Addr().String() + "/db", "postgres://ann@127.0.0.1:1/db"} {
		began := time.Now()
		got := asking(t, dsn, "__complete pause ma")
		if got.code != 0 || got.errout != "" || strings.Contains(got.out, "mail") || !strings.Contains(got.out, ":4") {
			t.Errorf("exit code %d\n%s%s", got.code, got.out, got.errout)
		}
		if took := time.Since(began); took > 8*time.Second { // less than the time-out of a connection, and far above its own
			t.Errorf("it took %s", took)
		}
	}
}

// doing runs a statement as the role of a connection string, as psql does.
func doing(t *testing.T, dsn, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// Each reason why a store in a database is not opened has its exit code, and says what to do.
func TestWhyAStoreInADatabaseIsNotOpened(t *testing.T) {
	dsn := pgtest.Database(t)
	doing(t, dsn, "CREATE SCHEMA others; CREATE TABLE others.things (id int); CREATE SCHEMA fake;"+
		"CREATE FUNCTION fake.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT '130011' $$")
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*url.URL)) string {
		other := *u
		change(&other)
		return other.String()
	}
	setting := func(name, value string) func(*url.URL) {
		return func(u *url.URL) { q := u.Query(); q.Set(name, value); u.RawQuery = q.Encode() }
	}
	for _, test := range []struct {
		why, dsn, line string
		code           int
		says           string
	}{
		{"no store yet", dsn, "status", exitNotFound, "no store in schema foundling of postgres://.*: foundling migrate makes one"},
		{"something else", with(setting("schema", "others")), "enqueue mail", exitCorrupt, "schema others holds something else"},
		{"an old server", with(setting("search_path", "fake,pg_catalog")), "enqueue mail", exitCorrupt, "it is Postgres 13, want 14 or newer"},
		{"a wrong password", with(func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "sesame") }), "status", exitStore, "password is looked for"},
		{"no database", with(func(u *url.URL) { u.Path = "/nothere" }), "status", exitNotFound, "nothere"},
		{"no server", with(func(u *url.URL) { u.Host = "127.0.0.1:1" }), "status", exitStore, "connection refused"},
		{"read only", with(setting("default_transaction_read_only", "on")), "enqueue mail", exitRefused, "takes no writes"},
	} {
		got := asking(t, test.dsn, test.line)
		if got.code != test.code || !found(test.says, got.errout) || strings.Contains(got.errout, "sesame") || strings.Contains(got.errout, secretOf(t, dsn)) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s", test.why, got.code, test.code, test.says, got.errout)
		}
	}
}

// A store in a database is made by migrate, or by an administrator by what migrate prints. Nothing that only looks makes one.
func TestMigrateOfADatabase(t *testing.T) {
	dsn, other := pgtest.Database(t), pgtest.Database(t)
	for _, line := range []string{"status", "topics", "verify", "prune --dry-run", "pause mail --yes --reason why", "sweep --dry-run"} {
		if got := asking(t, dsn, line); got.code != exitNotFound {
			t.Errorf("%s: exit code %d\n%s", line, got.code, got.errout)
		}
	}
	text := asking(t, dsn, "migrate --print")
	if text.code != 0 || !strings.Contains(text.out, "CREATE TABLE events") {
		t.Fatalf("exit code %d\n%s%s", text.code, text.out, text.errout)
	}
	for _, want := range []struct{ line, out string }{
		{"migrate", fmt.Sprintf("made a store with schema %d\n", postgres.SchemaVersion)},
		{"migrate", fmt.Sprintf("nothing to do: the store has schema %d\n", postgres.SchemaVersion)},
		{"status", "no topics yet\n\n✔ nothing is wrong\n"},
		{"migrate --print", ""},
	} {
		if got := asking(t, dsn, want.line); got.code != 0 || got.out != want.out {
			t.Errorf("%s: exit code %d, want %q\n%s%s", want.line, got.code, want.out, got.out, got.errout)
		}
	}
	doing(t, other, text.out)
	for _, line := range []string{"status", "enqueue mail", "work mail --until-empty -- true", "verify"} {
		if got := asking(t, other, line); got.code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", line, got.code, got.out, got.errout)
		}
	}
}
