package pgtest

import (
	"errors"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Proxy stands between clients and a server. It counts what passes and can cut and stall connections. All methods may be called at
// any time from any goroutine.
type Proxy struct {
	direct, dsn      string // to the server and to here
	network, address string // of the server
	listener         net.Listener
	running          sync.WaitGroup

	mu       sync.Mutex
	counts   Counts
	faults   []*fault
	links    map[*link]bool
	refusing bool
	passing  chan struct{} // closed while messages pass; replaced by Stall
	ended    bool
}

// NewProxy makes a proxy for the server of dsn, which must not insist on TLS. It is closed after the test.
func NewProxy(t testing.TB, dsn string) *Proxy {
	t.Helper()
	p, err := newProxy(dsn)
	if err != nil {
		t.Fatalf("pgtest: proxy: %v", err)
	}
	t.Cleanup(p.close)
	return p
}

func newProxy(dsn string) (*Proxy, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	through, err := change{address: listener.Addr().String()}.of(dsn)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	p := &Proxy{direct: dsn, dsn: through, listener: listener, links: map[*link]bool{}, passing: make(chan struct{})}
	close(p.passing)
	p.network, p.address = pgconn.NetworkAddress(config.Host, config.Port)
	p.running.Go(p.accept)
	return p, nil
}

// DSN leads to the same database through the proxy.
func (p *Proxy) DSN() string { return p.dsn }

// Counts is what has passed since the beginning, over all connections.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Since is what has passed after an earlier Counts.
func (p *Proxy) Since(before Counts) Counts {
	now := p.Counts()
	return Counts{Trips: now.Trips - before.Trips, Connections: now.Connections - before.Connections, Statements: now.Statements - before.Statements,
		Sent: now.Sent - before.Sent, Received: now.Received - before.Received}
}

// Inject has a fault happen when its message comes. Faults that wait for the same one happen in the order of their Inject. The
// channel is closed when it has happened.
func (p *Proxy) Inject(f Fault) (hit <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := &fault{Fault: f, left: f.Skip, hit: make(chan struct{})}
	p.faults = append(p.faults, waiting)
	return waiting.hit
}

// Forget drops the faults that have not happened.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Cut closes all connections there are, and returns how many.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
	return len(p.links)
}

// Refuse has new connections closed at once, until Resume.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = true
}

// Stall holds everything back on all connections, as a network that has lost its route would, until Resume.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.passing:
		p.passing = make(chan struct{})
	default: // it is held back already
	}
}

// Resume ends Stall, the stalls of faults, and Refuse: what was held back goes on.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = false
	p.resume()
}

func (p *Proxy) resume() {
	select {
	case <-p.passing:
	default:
		close(p.passing)
	}
	for l := range p.links {
		l.resume()
	}
}

// close cuts all connections and waits for what runs here.
func (p *Proxy) close() {
	_ = p.listener.Close() // nothing was buffered in it
	p.mu.Lock()
	p.ended = true
	for l := range p.links {
		l.cut()
	}
	p.resume()
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// serve runs one connection until it ends.
func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial(p.network, p.address)
	if err != nil {
		_ = client.Close() // as the server's own refusal looks like
		return
	}
	l := newLink(p, client, server)
	if !p.admit(l) {
		l.cut()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.pump(Client) })
	both.Go(func() { l.pump(Backend) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	l.cut() // each may have closed one half only
	delete(p.links, l)
}

func (p *Proxy) admit(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.refusing {
		return false
	}
	p.links[l] = true
	p.counts.Connections++
	return true
}

// struck gives the fault that a message brings about, and counts one that passes whole.
func (p *Proxy) struck(l *link, r raw) *fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.faults {
		if f.strikes(r.message) {
			p.faults = slices.Delete(p.faults, i, i+1)
			l.hold() // an answer must not overtake a cut
			if f.Do == Stall || f.Do == CutAfter {
				p.count(l, r)
			}
			return f
		}
	}
	p.count(l, r)
	return nil
}

func (p *Proxy) count(l *link, r raw) {
	m := r.message
	if m.From == Backend {
		l.trips.received(m)
		p.counts.Received += int64(len(r.bytes))
		return
	}
	if l.trips.sent(m) {
		p.counts.Trips++
	}
	if m.Type == 'Q' || m.Type == 'E' {
		p.counts.Statements++
	}
	p.counts.Sent += int64(len(r.bytes))
}

// gate gives what a message has to wait for.
func (p *Proxy) gate(l *link) (all, one <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passing, l.passing
}
