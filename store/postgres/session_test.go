package postgres

import (
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
)

// session is what a connection of the pool says of itself between transactions.
func session(t *testing.T, s *Store) (plans string, names int) {
	t.Helper()
	read(t, s, "", store.Filter{})
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	const query = "SELECT current_setting('plan_cache_mode'), (SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%decisions%')"
	if err := conn.QueryRow(t.Context(), query).Scan(&plans, &names); err != nil {
		t.Fatal(err)
	}
	return plans, names
}

// A connection that nobody else is given keeps its pins, and its statements their names and plans. One of a pooler's keeps nothing.
func TestConnectionsOfOnesOwnKeepTheirPinsAndStatements(t *testing.T) {
	dsn := pgtest.Database(t)
	plans, names := session(t, openAt(t, dsn, Options{MaxConns: 1}))
	if plans != "force_generic_plan" || names == 0 {
		t.Errorf("of its own: plans are %s, %d statements have names", plans, names)
	}
	plans, names = session(t, openAt(t, pgtest.NewBouncer(t, dsn, 1).DSN(dsn), Options{MaxConns: 1, Direct: dsn}))
	if plans != "auto" || names > 0 {
		t.Errorf("of a pooler: plans are %s, %d statements have names", plans, names)
	}
}

// What was the server when the store was opened may be a pooler when it connects again.
func TestAPoolerThatComesLaterIsNoticed(t *testing.T) {
	dsn := pgtest.Database(t)
	bouncer := pgtest.NewBouncer(t, dsn, 1)
	s := openAt(t, bouncer.DSN(dsn), Options{MaxConns: 1, Direct: dsn})
	s.pooler.found(false)
	s.pool.Reset()
	plans, names := session(t, s)
	if plans != "auto" || names > 0 {
		t.Errorf("plans are %s, %d statements have names", plans, names)
	}
	if !s.pooler.between.Load() {
		t.Error("nobody has noticed")
	}
}

// Connections that are begun at the same time are each one of the server or one of a pooler, whoever notices first.
func TestOfManyNewConnectionsNoneIsTakenForTheServers(t *testing.T) {
	dsn := pgtest.Database(t)
	const many = 8
	s := openAt(t, pgtest.NewBouncer(t, dsn, 2).DSN(dsn), Options{MaxConns: many, Direct: dsn})
	for range 5 {
		s.pooler.found(false)
		s.pool.Reset()
		var all sync.WaitGroup
		for range many {
			all.Go(func() {
				if _, err := s.Now(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, conn := range s.pool.AcquireAllIdle(t.Context()) {
			if mode := conn.Conn().Config().DefaultQueryExecMode; mode != pgx.QueryExecModeCacheDescribe || isOwn(conn.Conn()) {
				t.Errorf("a connection is kept in mode %s", mode)
			}
			conn.Release()
		}
	}
}

// The largest views may take longer than any other commit, also where the server bounds transactions as a whole (Postgres 17).
func TestACheckpointMayTakeLongerThanOtherCommits(t *testing.T) {
	s := openAt(t, pgtest.Database(t), Options{MaxConns: 1, WriteTimeout: 200 * time.Millisecond, LockTimeout: 10 * time.Second})
	save := func(sequence int) error {
		_, err := s.Save(t.Context(), store.Checkpoint{CheckpointKey: store.CheckpointKey{Name: "totals", Version: 1, Sequence: sequence}, View: []byte("view")})
		return err
	}
	if err := save(1); err != nil { // its statements are known to the server from now on
		t.Fatal(err)
	}
	h := newHand(t, s)
	h.do("BEGIN")
	h.do("LOCK TABLE @checkpoints IN EXCLUSIVE MODE")
	saved := make(chan error, 1)
	go func() { saved <- save(2) }()
	_ = pause(t.Context(), 10*s.options.WriteTimeout)
	h.do("COMMIT")
	if err := <-saved; err != nil {
		t.Error(err)
	}
}
