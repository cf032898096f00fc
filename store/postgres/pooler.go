package postgres

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pooler is whether something stands between this process and the server that gives its connections to others too.
type pooler struct {
	between atomic.Bool
	none    atomic.Bool // it is known that there is none
}

func (p *pooler) found(between bool) {
	p.between.Store(between)
	p.none.Store(!between)
}

// errNoCancel is why a statement is not called off.
var errNoCancel = errors.New("nothing is called off behind a pooler")

// patient is a copy of a configuration, for one connection, that sends a pooler no request to cancel a statement: PgBouncer 1.18 to 1.20 may end by
// one, with all its connections (pgbouncer/pgbouncer#822). What is not called off goes on for as long as its time-outs let it.
func (p *pooler) patient(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	p.hold(config)
	return config
}

// hold does so to a configuration of one connection. Whatever that dials after it was made is to cancel something.
func (p *pooler) hold(config *pgx.ConnConfig) {
	var made atomic.Bool
	dial, after := config.DialFunc, config.AfterConnect
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if made.Load() && p.between.Load() {
			return nil, errNoCancel
		}
		return dial(ctx, network, address)
	}
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		made.Store(true)
		if after == nil {
			return nil
		}
		return after(ctx, conn)
	}
}

const backendQuery = "SELECT pg_backend_pid()"

// findPooler finds out whether there is one: it says of itself another number than the server. Where there is none, connections are made anew, as this
// process's own.
func (s *Store) findPooler(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(conn)
	var pid uint32
	if err := conn.QueryRow(ctx, backendQuery, pgx.QueryExecModeExec).Scan(&pid); err != nil {
		return err
	}
	s.pooler.found(pid != conn.Conn().PgConn().PID())
	if s.pooler.none.Load() {
		s.pool.Reset()
	}
	return nil
}
