package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// hearing is what the listener has come to.
type hearing struct {
	connected atomic.Int64 // how often it has begun to listen
	notes     atomic.Int64

	mu   sync.Mutex
	deaf int       // connections one after the other on which nothing was heard
	next time.Time // it does not listen before
}

// mostDeaf is how many connections may be deaf from the beginning, one after the other, before hints are given up for long: what stands between gives
// each transaction another connection of the server's.
const mostDeaf = 2

// errDeaf is why a connection is given up that carries nothing, though nobody was told that it is gone: a firewall has forgotten it, or what
// stands between has given the server's end of it to somebody else.
var errDeaf = errors.New("the listener did not hear itself")

// errUntold is why a connection is given up of which nobody knows whether it hears: there was no way to send it anything.
var errUntold = errors.New("the listener could not be sent anything")

// listen hears of the commits of other processes until ctx ends.
func (h *hints) listen(ctx context.Context) {
	pace := reconnecting()
	for {
		if pause(ctx, h.heard.wait()) != nil {
			return
		}
		heard, err := h.listenOn(ctx, pace.Reset) // whoever needs to know reads the tables
		if ctx.Err() != nil {
			return
		}
		if h.heard.judge(heard, err, h.waits.deaf) {
			h.log.WarnContext(ctx, "no hints of the work of other processes: this connection to the server carries none, as behind a pooler that"+
				" gives each transaction another; such work is found by polling. Options.Direct takes a connection string that leads past the pooler",
				"store", h.name)
		}
		if pause(ctx, pace.NextBackOff()) != nil {
			return
		}
	}
}

// wait is how long it is not to listen.
func (h *hearing) wait() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, time.Until(h.next))
}

// judge takes in how listening on a connection ended, and whether anything was heard on it. It is true where that is the first time that hints are
// given up.
func (h *hearing) judge(heard bool, err error, deaf time.Duration) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case heard:
		h.deaf = 0
	case errors.Is(err, errDeaf):
		h.deaf++
	}
	if h.deaf < mostDeaf {
		return false
	}
	first = h.next.IsZero()
	h.next = time.Now().Add(deaf)
	return first
}

// listenOn hears on one connection until something fails, and says whether anything was heard on it.
func (h *hints) listenOn(ctx context.Context, fine func()) (heard bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, h.waits.bound)
	defer cancel()
	conn, err := pgx.ConnectConfig(bounded, h.direct.Copy())
	if err != nil {
		return false, err
	}
	defer hangUp(conn)
	if _, err := conn.Exec(bounded, "LISTEN "+pgx.Identifier{h.name}.Sanitize()+"; LISTEN "+pgx.Identifier{h.stagedName}.Sanitize(),
		pgx.QueryExecModeSimpleProtocol); err != nil {
		return false, err
	}
	h.heard.connected.Add(1)
	h.wakeAll() // what was committed before is not told
	for err = h.hearItself(ctx, conn); err == nil; err = h.hear(ctx, conn) {
		heard = true
		fine()
	}
	return heard, err
}

// hear waits for the next note. Where none comes for long, it has one sent to itself.
func (h *hints) hear(ctx context.Context, conn *pgx.Conn) error {
	quiet, cancel := context.WithTimeout(ctx, h.waits.silence)
	err := h.hearOne(quiet, conn)
	cancel()
	if err == nil || ctx.Err() != nil || quiet.Err() == nil || conn.IsClosed() {
		return err
	}
	return h.hearItself(ctx, conn)
}

// hearItself has a note sent to itself, and waits for that or any other.
func (h *hints) hearItself(ctx context.Context, conn *pgx.Conn) error {
	h.told.mu.Lock()
	h.told.echo = true
	h.told.mu.Unlock()
	h.teller()
	echo, cancel := context.WithTimeout(ctx, h.waits.echo)
	defer cancel()
	err := h.hearOne(echo, conn)
	if err == nil || echo.Err() == nil || ctx.Err() != nil {
		return err
	}
	h.told.mu.Lock()
	defer h.told.mu.Unlock()
	if h.told.echo {
		return errUntold
	}
	return errDeaf
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
	case got.Channel == h.stagedName:
		h.wakeStaged()
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
