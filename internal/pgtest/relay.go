package pgtest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// relay passes on what a client and a server say, until the client hangs up.
type relay struct {
	client, server net.Conn

	mu     sync.Mutex
	trips  trips
	status byte // of the transaction, as the server said last
}

// run is true where the server's connection is as good as when it came: the client took its leave, everything it asked was answered, and no
// transaction is open.
func (r *relay) run(in *bufio.Reader) (clean bool) {
	r.status = 'I'
	answered := make(chan bool, 1)
	go func() { answered <- r.answers() }()
	left := r.asks(in)
	r.mu.Lock()
	idle := left && !r.trips.open && r.status == 'I'
	r.mu.Unlock()
	if !idle {
		_ = r.server.Close() // the server ends what it was about
	}
	_ = r.server.SetReadDeadline(time.Unix(1, 0)) // it answers no more; or it is closed
	return <-answered && idle && r.server.SetReadDeadline(time.Time{}) == nil
}

// asks passes on what the client says, and tells whether it took its leave.
func (r *relay) asks(in *bufio.Reader) bool {
	out := bufio.NewWriter(r.server)
	for {
		head, err := in.Peek(int(typed))
		if err != nil || head[0] == 'X' {
			return err == nil && out.Flush() == nil
		}
		r.mu.Lock()
		r.trips.sent(Message{From: Client, Type: head[0]})
		r.mu.Unlock()
		if pass(in, out) != nil {
			return false
		}
	}
}

// answers passes on what the server says until it has no more to say, and tells whether it ended between two messages. Where the server hangs up, or
// cannot be heard, so does the client's end.
func (r *relay) answers() bool {
	in, out := bufio.NewReader(r.server), bufio.NewWriter(r.client)
	for {
		if _, err := in.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
			return true
		}
		head, err := in.Peek(int(typed))
		if err == nil && head[0] == 'Z' {
			head, err = in.Peek(int(typed) + 1)
		}
		if err != nil {
			_ = r.client.Close() // it will see that nobody is there
			return false
		}
		r.mu.Lock()
		r.trips.received(Message{From: Backend, Type: head[0]})
		if head[0] == 'Z' {
			r.status = head[typed]
		}
		r.mu.Unlock()
		if pass(in, out) != nil {
			_ = r.client.Close() // as above
			return false
		}
	}
}

// pass passes on a message, piece by piece where it is large: its beginning was seen.
func pass(in *bufio.Reader, out *bufio.Writer) error {
	head, err := in.Peek(int(typed))
	if err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length < 4 || length > largest {
		return fmt.Errorf("a message of %d bytes", length)
	}
	if _, err := io.CopyN(out, in, int64(length)+1); err != nil || in.Buffered() > 0 {
		return err
	}
	return out.Flush()
}
