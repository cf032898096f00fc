package pgtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// This file has databases that are used again. To make one, to drop it, and above all to open connections to one that nobody knows costs a server far
// more than what most tests ask of it. What a test is lent is as a new one: see reset.go for its contents, session.go for its connections.

const (
	mostKept     = 8 // databases of a template that wait to be lent
	mostSessions = 6 // connections that wait with each
)

// kept is a database that is lent to one test after the other.
type kept struct {
	host   *host
	name   string
	direct string     // its DSN, past whoever lends it
	begins *beginning // what it holds when it is lent
	idle   []*session
}

// Borrowed gives the DSN of a database that begins as the template says and may have been used before; no test can tell. It is for tests of what is
// in a database. Those that count its connections, or do what its role may not, take Database.
func (template Template) Borrowed(t testing.TB) string {
	t.Helper()
	shared(t)
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	dsn, giveBack, err := template.Borrow(ctx)
	if err != nil {
		t.Fatalf("pgtest: borrow a database: %v", err)
	}
	t.Cleanup(func() {
		if err := giveBack(); err != nil {
			t.Errorf("pgtest: give back the database: %v", err)
		}
	})
	return dsn
}

// Borrow is Borrowed for who has no test. Whoever is still connected at giveBack is cut after a moment. An error is ErrNone where there is no server.
func (template Template) Borrow(ctx context.Context) (dsn string, giveBack func() error, err error) {
	h, err := sharedHost()
	if err != nil {
		return "", nil, err
	}
	k, err := h.takeKept(ctx, template)
	if errors.Is(err, errUnlendable) {
		return h.create(ctx, template)
	}
	if err != nil {
		return "", nil, err
	}
	l, err := newLoan(k)
	if err != nil {
		return "", nil, errors.Join(err, k.drop())
	}
	return l.dsn, func() error { return h.putKept(template.Hash, l) }, nil
}

// takeKept is one that waits, or a new one.
func (h *host) takeKept(ctx context.Context, template Template) (*kept, error) {
	h.mu.Lock()
	if waiting := h.kept[template.Hash]; len(waiting) > 0 {
		k := waiting[len(waiting)-1]
		h.kept[template.Hash] = waiting[:len(waiting)-1]
		h.mu.Unlock()
		return k, nil
	}
	h.mu.Unlock()
	k := &kept{host: h, name: fmt.Sprintf("foundling_kept_t%d_%s", time.Now().Unix(), token(6))}
	if err := h.copyTo(ctx, k.name, template); err != nil {
		return nil, err
	}
	if err := k.learn(ctx); err != nil {
		return nil, errors.Join(err, k.drop())
	}
	return k, nil
}

// errUnlendable says that the server takes no connections as they are lent, without TLS for one.
var errUnlendable = errors.New("its connections cannot be lent")

// learn finds out what a new database holds.
func (k *kept) learn(ctx context.Context) (err error) {
	if k.direct, err = k.host.dsn(k.name); err != nil {
		return err
	}
	s, err := k.session(ctx, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnlendable, err)
	}
	if k.begins, err = learn(ctx, s.conn); err != nil {
		return errors.Join(err, s.conn.Close(ctx))
	}
	return k.put(ctx, s)
}

// putKept takes a database back, and drops it unless it can be made as it was.
func (h *host) putKept(hash string, l *loan) error {
	l.end()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	k := l.kept
	again, err := k.renew(ctx)
	if err != nil || !again {
		return errors.Join(err, k.drop())
	}
	h.mu.Lock()
	room := len(h.kept[hash]) < mostKept
	if room {
		h.kept[hash] = append(h.kept[hash], k)
	}
	h.mu.Unlock()
	if !room {
		return k.drop()
	}
	return nil
}

// renew makes the database as it was. It is false where that is not to be had, or not for less than a new one.
func (k *kept) renew(ctx context.Context) (again bool, err error) {
	alone, err := k.alone(ctx)
	if err != nil || !alone {
		return false, err
	}
	s, err := k.session(ctx, nil)
	if err != nil {
		return false, err
	}
	again, err = k.begins.restore(ctx, s.conn)
	if err != nil {
		return false, errors.Join(err, s.conn.Close(ctx))
	}
	return again, k.put(ctx, s)
}

// aloneSQL counts whoever is connected beside the sessions that wait. A connection that was cut has an end there too, which may still be at work.
const aloneSQL = `SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND coalesce(backend_type, 'client backend') = 'client backend' AND pid <> ALL ($2)`

// alone waits a moment for others to go.
func (k *kept) alone(ctx context.Context) (bool, error) {
	conn, err := k.host.takeAdmin(ctx)
	if err != nil {
		return false, err
	}
	defer k.host.putAdmin(conn)
	pids := []int32{}
	for _, s := range k.idle {
		pids = append(pids, int32(s.conn.PID()))
	}
	for range 50 {
		var others int
		if err := conn.QueryRow(ctx, aloneSQL, k.name, pids).Scan(&others); err != nil || others == 0 {
			return err == nil, err
		}
		if _, err := conn.Exec(ctx, "SELECT pg_sleep(0.02)"); err != nil {
			return false, err
		}
	}
	return false, nil
}

// drop hangs up and drops the database.
func (k *kept) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	for _, s := range k.idle {
		_ = s.conn.Close(ctx) // the server ends what is left of it
	}
	k.idle = nil
	return k.host.exec(ctx, "DROP DATABASE IF EXISTS "+k.name+" WITH (FORCE)")
}

// perform does statements one after the other.
func perform(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	_, err := conn.Exec(ctx, sql).ReadAll()
	return err
}
