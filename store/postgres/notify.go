package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/jackc/pgx/v5"
)

// This file tells other processes of commits, and hears of theirs. All of it is a hint: what is lost is found by polling.

// hintWaits is the times that hints go by.
type hintWaits struct {
	gather  time.Duration // what comes within it is told at once
	silence time.Duration // after which a listener finds out whether it still hears
	echo    time.Duration // within which it must hear itself
	bound   time.Duration // of one statement
	deaf    time.Duration // after which it listens again where it has never heard anything
}

var usualWaits = hintWaits{gather: 5 * time.Millisecond, silence: 15 * time.Second, echo: 2 * time.Second, bound: 5 * time.Second, deaf: 10 * time.Minute}

// note is what one process tells the others.
type note struct {
	From   string   `json:"from"`
	Topics []string `json:"topics,omitempty"`
	All    bool     `json:"all,omitempty"`  // of more topics than there is room for
	Echo   bool     `json:"echo,omitempty"` // for the sender itself: it hears
}

// mostTold is how many bytes of topics a note has at most; the server takes 8000 in all.
const mostTold = 7000

// someName is a name that nobody else has.
func someName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never returns an error
	return hex.EncodeToString(b[:])
}

// flat is an id as part of a name.
func flat(id events.ID) string { return hex.EncodeToString(id[:]) }

// telling is what is still to be told.
type telling struct {
	mu      sync.Mutex
	topics  map[string]struct{}
	echo    bool
	running bool
	work    chan struct{} // there is something
}

// tell has others told of topics, soon.
func (h *hints) tell(woken []string) {
	h.told.mu.Lock()
	if h.told.topics == nil {
		h.told.topics = map[string]struct{}{}
	}
	for _, topic := range woken {
		h.told.topics[topic] = struct{}{}
	}
	h.told.mu.Unlock()
	h.teller()
}

// teller makes sure that what is to be told is.
func (h *hints) teller() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.told.mu.Lock()
	defer h.told.mu.Unlock()
	if !h.told.running {
		h.told.running = true
		h.runs.Go(h.tellAll)
	}
	select {
	case h.told.work <- struct{}{}:
	default:
	}
}

// tellAll tells what there is until the store is closed. What cannot be told is kept for the next connection.
func (h *hints) tellAll() {
	pace := reconnecting()
	for {
		err := h.tellOn(pace.Reset)
		if h.ends.Err() != nil || err == nil {
			return
		}
		if pause(h.ends, pace.NextBackOff()) != nil {
			return
		}
	}
}

// tellOn tells on one connection until something fails.
func (h *hints) tellOn(fine func()) error {
	var conn *pgx.Conn
	defer func() { hangUp(conn) }()
	for {
		select {
		case <-h.ends.Done():
			return nil
		case <-h.told.work:
		}
		if err := pause(h.ends, h.waits.gather); err != nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(h.ends, h.waits.bound)
		err := h.tellNow(ctx, &conn)
		cancel()
		if err != nil {
			h.teller() // it is still to be told
			return err
		}
		fine()
	}
}

// tellNow sends what there is.
func (h *hints) tellNow(ctx context.Context, conn **pgx.Conn) (err error) {
	if *conn == nil {
		if *conn, err = pgx.ConnectConfig(ctx, h.pooler.patient(h.config)); err != nil {
			return err
		}
	}
	n, taken := h.take()
	text, err := json.Marshal(n)
	if err == nil {
		var batch pgx.Batch
		batch.Queue("BEGIN")
		batch.Queue("SET LOCAL synchronous_commit = off") // nobody waits for the disk
		batch.Queue("SELECT pg_notify($1, $2)", h.name, string(text))
		batch.Queue("COMMIT")
		err = (*conn).SendBatch(ctx, &batch).Close()
	}
	if err != nil {
		h.putBack(taken, n.Echo)
	}
	return err
}

// take is a note of what is to be told.
func (h *hints) take() (n note, taken map[string]struct{}) {
	h.told.mu.Lock()
	defer h.told.mu.Unlock()
	n, taken = note{From: h.me, Echo: h.told.echo}, h.told.topics
	h.told.topics, h.told.echo = nil, false
	size := 0
	for topic := range taken {
		text, _ := json.Marshal(topic) // a text can always be told
		size += len(text) + 1
	}
	if n.All = size > mostTold; !n.All {
		n.Topics = slices.Sorted(maps.Keys(taken))
	}
	return n, taken
}

// putBack keeps what could not be told.
func (h *hints) putBack(taken map[string]struct{}, echo bool) {
	h.told.mu.Lock()
	defer h.told.mu.Unlock()
	if h.told.topics == nil {
		h.told.topics = map[string]struct{}{}
	}
	maps.Copy(h.told.topics, taken)
	h.told.echo = h.told.echo || echo
}

// hangUp closes a connection of which nobody expects anything any more.
func hangUp(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the server finds out by itself
}
