package pgtest

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestChange(t *testing.T) {
	all := change{user: "it's", password: `p\s 'q`, database: "d", address: "127.0.0.1:99"}
	for _, dsn := range []string{
		"postgres://me:secret@server:5433/other?sslmode=prefer&application_name=a",
		"postgresql:///other?host=%2Ftmp&port=1&user=me&password=secret&sslmode=prefer&application_name=a",
		"host=server port=5433 user=me password=secret dbname=other sslmode=prefer application_name=a",
	} {
		changed, err := all.of(dsn)
		if err != nil {
			t.Fatal(err)
		}
		c, err := pgx.ParseConfig(changed)
		if err != nil {
			t.Fatalf("%s: %v", changed, err)
		}
		if c.User != all.user || c.Password != all.password || c.Database != "d" || c.Host != "127.0.0.1" || c.Port != 99 || c.TLSConfig != nil {
			t.Errorf("%s leads to %s %s %s %s %d", changed, c.User, c.Password, c.Database, c.Host, c.Port)
		}
		if c.RuntimeParams["application_name"] != "a" {
			t.Errorf("%s lost what it had besides", changed)
		}
	}
	same := "postgres://me:secret@server:5433/other"
	if got, err := (change{}).of(same); got != same || err != nil {
		t.Errorf("no change gives %s, %v", got, err)
	}
	if _, err := (change{}).of("postgres://me:secret@["); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a DSN that is none gives %v", err)
	}
}
