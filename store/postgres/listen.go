package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// hearing is what the listener has come to, for tests and for those who ask why nothing is heard.
type hearing struct {
	connected atomic.Int64 // how often it has begun to listen
	notes     atomic.Int64
}

// errDeaf is why a connection is given up that carries nothing any more, though nobody was told that it is gone: a firewall has forgotten it, or what
// stands between has given the server's end of it to somebody else.
var errDeaf = errors.New("the listener did not hear itself")

// listen hears of the commits of other processes until ctx ends.
func (h *hints) listen(ctx context.Context) {
	pace := reconnecting()
	for ctx.Err() == nil {
		_ = h.listenOn(ctx, pace.Reset) // whoever needs to know reads the tables
		if pause(ctx, pace.NextBackOff()) != nil {
			return
		}
	}
}

// listenOn hears on one connection until something fails.
func (h *hints) listenOn(ctx context.Context, fine func()) error {
	bounded, cancel := context.WithTimeout(ctx, h.waits.bound)
	defer cancel()
	conn, err := pgx.ConnectConfig(bounded, h.config.Copy())
	if err != nil {
		return err
	}
	defer hangUp(conn)
	if _, err := conn.Exec(bounded, "LISTEN "+pgx.Identifier{h.name}.Sanitize(), pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	h.heard.connected.Add(1)
	h.wakeAll() // what was committed before is not told
	for {
		if err := h.hear(ctx, conn); err != nil {
			return err
		}
		fine()
	}
}

// hear waits for the next note. Where none comes for long, it has one sent to itself.
func (h *hints) hear(ctx context.Context, conn *pgx.Conn) error {
	quiet, cancel := context.WithTimeout(ctx, h.waits.silence)
	err := h.hearOne(quiet, conn)
	cancel()
	if err == nil || ctx.Err() != nil || quiet.Err() == nil || conn.IsClosed() {
		return err
	}
	h.told.mu.Lock()
	h.told.echo = true
	h.told.mu.Unlock()
	h.teller()
	echo, cancel := context.WithTimeout(ctx, h.waits.echo)
	defer cancel()
	if err = h.hearOne(echo, conn); err != nil && echo.Err() != nil && ctx.Err() == nil {
		return errDeaf
	}
	return err
}

// hearOne waits for a note, whoever sent it, and wakes those whom it concerns. Those of this process are awake.
func (h *hints) hearOne(ctx context.Context, conn *pgx.Conn) error {
	got, err := conn.WaitForNotification(ctx)
	if err != nil {
		return err
	}
	h.heard.notes.Add(1)
	var n note
	switch {
	case json.Unmarshal([]byte(got.Payload), &n) != nil:
		h.wakeAll() // of a version that tells it otherwise
	case n.From == h.me:
	case n.All:
		h.wakeAll()
	default:
		h.wake(n.Topics)
	}
	return nil
}
