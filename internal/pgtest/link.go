package pgtest

import (
	"bufio"
	"errors"
	"io"
	"net"
)

// link is one connection through a proxy: the client's to us, and ours to the server.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	broken         chan struct{}     // closed by cut
	texts          map[string]string // of the client's statements, by their names; of whoever passes on what the client says

	// Guarded by the proxy's mutex.
	trips   trips
	passing chan struct{} // closed while messages pass
	isCut   bool
}

func newLink(p *Proxy, client, server net.Conn) *link {
	l := &link{proxy: p, client: client, server: server, texts: map[string]string{}, broken: make(chan struct{}), passing: make(chan struct{})}
	close(l.passing)
	return l
}

// cut closes both connections. What was written before arrives.
func (l *link) cut() {
	if l.isCut {
		return
	}
	l.isCut = true
	close(l.broken)
	_ = l.client.Close() // whoever uses them meets it
	_ = l.server.Close()
}

func (l *link) hold() { l.passing = make(chan struct{}) }

func (l *link) resume() {
	select {
	case <-l.passing:
	default:
		close(l.passing)
	}
}

// pump passes on what comes from one side. Where that side ends, the other is told so, and may still answer; a server's last words
// would be lost otherwise.
func (l *link) pump(from Side) {
	source, sink := l.client, l.server
	if from == Backend {
		source, sink = sink, source
	}
	in, out := bufio.NewReader(source), bufio.NewWriter(sink)
	err := l.passAll(in, out, from)
	if errors.Is(err, io.EOF) && out.Flush() == nil && closeWrite(sink) == nil {
		return
	}
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	l.cut()
}

func closeWrite(c net.Conn) error {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// passAll ends with io.EOF where the side has.
func (l *link) passAll(in *bufio.Reader, out *bufio.Writer, from Side) error {
	if from == Client {
		if err := l.login(in, out); err != nil {
			return err
		}
	}
	for {
		if err := l.pass(in, out, from, typed); err != nil {
			return err
		}
	}
}

// login passes on what a client begins with. A wish for TLS is declined.
func (l *link) login(in *bufio.Reader, out *bufio.Writer) error {
	for {
		head, err := in.Peek(8)
		if err != nil {
			return err
		}
		if c := code(head[4:]); c != codeTLS && c != codeGSS {
			return l.pass(in, out, Client, untyped) // a request to cancel is followed by nothing
		}
		_, _ = in.Discard(len(head)) // it was peeked
		if _, err := l.client.Write([]byte{'N'}); err != nil {
			return err
		}
	}
}

// pass takes one message and does with it what the proxy says.
func (l *link) pass(in *bufio.Reader, out *bufio.Writer, from Side, begins header) error {
	r, err := read(in, from, begins)
	if err != nil {
		return err
	}
	if name, text, ok := r.message.parsed(); ok {
		l.texts[name] = text
	}
	if name := r.message.bound(); name != "" {
		r.message.named = l.texts[name]
	}
	f := l.proxy.struck(l, r)
	if f != nil {
		if err := out.Flush(); err != nil { // what came before goes first
			return err
		}
		if f.Do != Stall {
			return l.end(out, f, r)
		}
		close(f.hit)
	}
	if err := l.await(); err != nil {
		return err
	}
	if _, err := out.Write(r.bytes); err != nil || in.Buffered() > 0 {
		return err
	}
	return out.Flush()
}

// end cuts the connection for a fault, after as much of the message as it says.
func (l *link) end(out *bufio.Writer, f *fault, r raw) error {
	_, _ = out.Write(r.bytes[:f.passes(len(r.bytes))]) // Flush says it
	err := out.Flush()
	l.proxy.mu.Lock()
	l.cut()
	l.proxy.mu.Unlock()
	close(f.hit)
	return errors.Join(net.ErrClosed, err)
}

// await returns when messages pass, or the connection is cut.
func (l *link) await() error {
	all, one := l.proxy.gate(l)
	for _, gate := range []<-chan struct{}{all, one} {
		select {
		case <-gate:
		case <-l.broken:
			return net.ErrClosed
		}
	}
	return nil
}
