package postgres

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
)

// office is a server whose roles a test makes as it likes.
type office struct {
	t     *testing.T
	admin *pgx.Conn
	dsn   string
}

func newOffice(t *testing.T) *office {
	t.Helper()
	server := pgtest.NewServer(t, pgtest.Options{Settings: []string{"fsync = off"}})
	admin, err := pgx.Connect(t.Context(), server.Admin())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hangUp(admin) })
	o := &office{t: t, admin: admin, dsn: server.DSN()}
	o.do("REVOKE ALL ON SCHEMA public FROM PUBLIC")
	o.do("DO $$BEGIN EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()); END$$")
	return o
}

func (o *office) do(text string) {
	o.t.Helper()
	if _, err := o.admin.Exec(o.t.Context(), text); err != nil {
		o.t.Fatal(err)
	}
}

// role makes a role that may connect and no more, and gives its connection string.
func (o *office) role(name string) (dsn string) {
	o.t.Helper()
	o.do("CREATE ROLE " + name + " LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD 'secret'")
	o.do("DO $$BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO " + name + "', current_database()); END$$")
	u, err := url.Parse(o.dsn)
	if err != nil {
		o.t.Fatal(err)
	}
	u.User = url.UserPassword(name, "secret")
	return u.String()
}

// rights are what a role needs that enqueues, works, and owns nothing, as doc.go says.
var rights = []string{
	"GRANT USAGE ON SCHEMA foundling TO worker",
	"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA foundling TO worker",
	"GRANT SELECT, USAGE ON ALL SEQUENCES IN SCHEMA foundling TO worker",
}

// works ends the test unless a store can be worked with.
func works(t *testing.T, s *Store) {
	t.Helper()
	b := &beds{t: t, s: s}
	b.configure("mail", 0)
	b.enqueue("mail", "lock", 1)
	b.enqueue("mail", "", 3)
	worker := b.id()
	rows := b.claim(worker, "mail", 9)
	if len(rows) == 0 {
		t.Error("nothing was claimed")
	}
	b.settle(worker, rows)
	lives(t, s)
	if len(read(t, s, "", store.Filter{})) == 0 {
		t.Error("nothing can be read")
	}
}

func TestAPlainRoleThatOwnsItsSchemaNeedsNoMore(t *testing.T) {
	o := newOffice(t)
	owner := o.role("owner")
	o.do("CREATE SCHEMA foundling AUTHORIZATION owner")
	works(t, openAt(t, owner, Options{}))

	t.Run("a role with its rights alone works, and makes nothing", func(t *testing.T) {
		worker := o.role("worker")
		if _, err := Open(t.Context(), worker, Options{}); err == nil || !strings.Contains(err.Error(), "own schema foundling") {
			t.Errorf("a role without any right: error %v", err)
		}
		for _, right := range rights {
			o.do(right)
		}
		works(t, openAt(t, worker, Options{NoMigrate: true}))
		works(t, openAt(t, worker, Options{}))
		o.ranges(openAt(t, worker, Options{}), openAt(t, owner, Options{}))
	})
	t.Run("a role that may not make a schema is told what to do", func(t *testing.T) {
		_, err := Open(t.Context(), owner, Options{Schema: "other"})
		if err == nil || !strings.Contains(err.Error(), "own schema other") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a role that is read only", func(t *testing.T) {
		o.do("ALTER ROLE owner SET default_transaction_read_only = on")
		defer o.do("ALTER ROLE owner RESET default_transaction_read_only")
		s := openAt(t, owner, Options{})
		if len(read(t, s, "", store.Filter{})) == 0 {
			t.Error("nothing can be read")
		}
		readOnly(t, s)
	})
}

// ranges has a role that may make none go through all there are, and then through one that another has made.
func (o *office) ranges(worker, owner *Store) {
	o.t.Helper()
	b := &beds{t: o.t, s: worker}
	h := newHand(o.t, owner)
	last := owner.ranges.list[len(owner.ranges.list)-1].upper
	h.do("SELECT setval('@blocks', $1)", last-20)
	b.enqueue("mail", "", 1) // one of the last numbers
	var err error
	for try := 0; try < 25 && err == nil; try++ {
		_, err = worker.Decide(o.t.Context(), b.enqueueing("mail", "", 1))
	}
	if err == nil || !strings.Contains(err.Error(), "own schema foundling") {
		o.t.Errorf("behind the last range: error %v", err)
	}
	if err := owner.keepRanges(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	b.enqueue("mail", "", 1)
}

// readOnly ends the test unless writes are refused by an error that says why, and that nothing was done.
func readOnly(t *testing.T, s *Store) {
	t.Helper()
	b := &beds{t: t, s: s}
	_, decided := s.Decide(t.Context(), b.enqueueing("mail", "", 1))
	_, beaten := s.Beat(t.Context(), store.Beat{Worker: b.id(), First: true, Interval: 1})
	for what, err := range map[string]error{"an enqueue": decided, "a heartbeat": beaten} {
		if err == nil || errors.Is(err, store.ErrUnknown) || !strings.Contains(err.Error(), "takes no writes") ||
			!strings.Contains(err.Error(), "default_transaction_read_only") || !strings.Contains(err.Error(), "primary") {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

func TestAStandbyTakesNoWritesAndSaysSo(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{})
	s := openAt(t, server.DSN(), Options{})
	works(t, s)
	standby := server.Standby(t)
	readOnly(t, openAt(t, standby.DSN(), Options{}))
	if _, err := Open(t.Context(), standby.DSN(), Options{Schema: "other"}); !errors.As(err, new(*OlderError)) {
		t.Errorf("a standby without the store: error %v", err)
	}
}

func TestAnOldServerIsRefused(t *testing.T) {
	for _, test := range []struct {
		version int64
		name    string
	}{{90624, "Postgres 9.6,"}, {100023, "Postgres 10,"}, {130014, "Postgres 13,"}, {139999, "Postgres 13,"}} {
		err := checkServer(test.version)
		if !errors.Is(err, ErrServer) || !strings.Contains(err.Error(), test.name) || !strings.Contains(err.Error(), "14 or newer") {
			t.Errorf("%d: error %v", test.version, err)
		}
	}
	for _, version := range []int64{140000, 150018, 180000, 190001} {
		if err := checkServer(version); err != nil {
			t.Errorf("%d: error %v", version, err)
		}
	}
}
