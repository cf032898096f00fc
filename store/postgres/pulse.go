package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
)

// pulse is a connection that heartbeats and leases have to themselves: commits that have taken all others, or wait for them, delay none. It is made
// when it is first needed, and made anew, ever more slowly, where it was lost.
type pulse struct {
	config *pgx.ConnConfig
	pooler *pooler
	turn   chan struct{} // its one seat is taken by whoever uses what follows
	conn   *pgx.Conn
	pace   *backoff.ExponentialBackOff
	next   time.Time // no connection is tried before
	closed bool
}

// beatTimeout bounds a statement on the pulse: a connection that is silent for so long is given up.
const beatTimeout = 5 * time.Second

func newPulse(config *pgx.ConnConfig, pooler *pooler) *pulse {
	return &pulse{config: config, pooler: pooler, turn: make(chan struct{}, 1), pace: reconnecting()}
}

// reconnecting is the pace at which a lost connection is tried again.
func reconnecting() *backoff.ExponentialBackOff {
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = 50*time.Millisecond, 5*time.Second
	return pace
}

// do runs statements in their turn. Where the connection is lost under them they run again on another: they must be such that this does no harm.
func (p *pulse) do(ctx context.Context, run func(context.Context, *pgx.Conn) error) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for attempt := 1; ; attempt++ {
		err := p.attempt(ctx, run)
		if err == nil || ctx.Err() != nil || attempt == 2 || p.conn != nil {
			return err
		}
	}
}

func (p *pulse) attempt(ctx context.Context, run func(context.Context, *pgx.Conn) error) error {
	if p.closed {
		return store.ErrClosed
	}
	bounded, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	if err := p.connect(bounded); err != nil {
		return err
	}
	err := run(bounded, p.conn)
	if p.conn.IsClosed() || p.conn.PgConn().TxStatus() != 'I' {
		p.drop()
	}
	return err
}

// connect makes sure that there is a connection.
func (p *pulse) connect(ctx context.Context) error {
	if p.conn != nil && !p.conn.IsClosed() {
		return nil
	}
	if wait := time.Until(p.next); wait > 0 {
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, p.pooler.patient(p.config))
	if err != nil {
		p.next = time.Now().Add(p.pace.NextBackOff())
		return err
	}
	p.conn = conn
	p.pace.Reset()
	return nil
}

// drop lets go of a connection.
func (p *pulse) drop() error {
	conn := p.conn
	p.conn = nil
	if conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return conn.Close(ctx)
}

// close waits for whoever uses it.
func (p *pulse) close() error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	p.closed = true
	if err := p.drop(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// beating runs statements on the pulse, as part of a call.
func (s *Store) beating(ctx context.Context, fill func(*pipeline)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.classed(s.powers.pulse.do(ctx, func(ctx context.Context, conn *pgx.Conn) error { return s.onPulse(ctx, conn, fill) }))
}

// onPulse runs statements as one transaction, in one round trip.
func (s *Store) onPulse(ctx context.Context, conn *pgx.Conn, fill func(*pipeline)) error {
	p := s.pipeline()
	p.begin(beginWrite)
	fill(p)
	p.exec("COMMIT")
	err := p.run(ctx, conn)
	if err != nil && !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		_, _ = conn.Exec(ctx, "ROLLBACK") // else the connection is dropped
	}
	return err
}
