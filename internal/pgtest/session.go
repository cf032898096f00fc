package pgtest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// session is a connection to a server that one client has after the other, as if each had made it.
type session struct {
	conn     *pgconn.PgConn
	lane     *lane
	settings map[string]string // with which it was made, and to which it goes back
}

// session is one that waits, or a new one. The first that fits is taken which still answers.
func (k *kept) session(ctx context.Context, settings map[string]string) (*session, error) {
	for i := len(k.idle) - 1; i >= 0; i-- {
		s := k.idle[i]
		if !maps.Equal(s.settings, settings) {
			continue
		}
		k.idle = slices.Delete(k.idle, i, i+1)
		if s.conn.Ping(ctx) == nil {
			return s, nil
		}
		_ = s.conn.Close(ctx) // somebody has ended it, or the server was started anew
	}
	return connectLane(ctx, k.direct, settings)
}

// put takes back a session that has no transaction. What its client has left in it goes: settings, locks, channels, temporary tables.
func (k *kept) put(ctx context.Context, s *session) error {
	if len(k.idle) >= mostSessions {
		return s.conn.Close(ctx)
	}
	if err := perform(ctx, s.conn, "DISCARD ALL"); err != nil {
		return fmt.Errorf("a session that ended: %w", err)
	}
	k.idle = append(k.idle, s)
	return nil
}
