package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// askAttempts is how often a read is sent where the connection is lost under it: those in a pool were all lost when the server was started again.
const askAttempts = 4

// ask runs queries that fill adds to a pipeline, in one round trip. What their rows are read into, fill must begin anew: it may run again.
func (s *Store) ask(ctx context.Context, fill func(*pipeline)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.asking(ctx, fill)
}

func (s *Store) asking(ctx context.Context, fill func(*pipeline)) error {
	for attempt := 1; ; attempt++ {
		err := s.askOnce(ctx, fill)
		if err == nil || attempt == askAttempts || ctx.Err() != nil || !isLost(err) {
			return s.classed(err)
		}
		s.suspect(attempt)
	}
}

// suspect gives up all connections of the pool where a second one in a row was lost: the others were most likely lost with them.
func (s *Store) suspect(lost int) {
	if lost == 2 {
		s.pool.Reset()
	}
}

func (s *Store) askOnce(ctx context.Context, fill func(*pipeline)) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(conn)
	p := s.pipeline()
	p.begin(beginLook)
	fill(p)
	p.exec("COMMIT")
	err = p.run(ctx, conn.Conn())
	if err != nil && conn.Conn().IsClosed() {
		return lostError{err}
	}
	return err
}

// lostError is that of a connection which was lost.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

// isLost tells that a connection was lost, as against a statement that failed.
func isLost(err error) bool {
	var lost lostError
	return errors.As(err, &lost) || pgconn.SafeToRetry(err)
}
