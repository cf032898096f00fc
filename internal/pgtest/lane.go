package pgtest

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// lane is the connection below a session. Its reader, which may be waiting in it even while nothing was asked, is held up as long as it is lent to a
// client: else it would take what is the client's.
type lane struct {
	net.Conn

	mu      sync.Mutex
	changed *sync.Cond
	lent    bool
	reading int
}

// connectLane makes a session without TLS: what passes over it must be legible.
func connectLane(ctx context.Context, dsn string, settings map[string]string) (*session, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, errDSN
	}
	config.TLSConfig, config.Fallbacks = nil, nil
	maps.Copy(config.RuntimeParams, settings)
	s := &session{settings: settings}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s.lane = &lane{Conn: conn}
		s.lane.changed = sync.NewCond(&s.lane.mu)
		return s.lane, nil
	}
	s.conn, err = pgconn.ConnectConfig(ctx, config)
	return s, err
}

// Read implements net.Conn.
func (l *lane) Read(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for l.lent {
			l.changed.Wait()
		}
		l.reading++
		l.mu.Unlock()
		n, err := l.Conn.Read(b)
		l.mu.Lock()
		l.reading--
		l.changed.Broadcast()
		if !l.lent || n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

// lend gives the connection that is below, which nobody else reads until takeBack.
func (l *lane) lend() net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lent = true
	_ = l.Conn.SetReadDeadline(time.Unix(1, 0)) // where it is closed, nobody waits in it
	for l.reading > 0 {
		l.changed.Wait()
	}
	_ = l.Conn.SetReadDeadline(time.Time{}) // as above
	return l.Conn
}

// takeBack lets the session's own reader go on.
func (l *lane) takeBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lent = false
	_ = l.Conn.SetReadDeadline(time.Time{}) // whoever reads meets the error
	l.changed.Broadcast()
}
