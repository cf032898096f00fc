package pgtest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// loan is a kept database while somebody has it: an address at which connections are sessions that were there before.
type loan struct {
	kept     *kept
	dsn      string
	password string
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex // guards the kept database's sessions too
	clients map[net.Conn]bool
	ended   bool
}

// farewell is how long a client has, after its test, to have hung up.
const farewell = time.Second

func newLoan(k *kept) (*loan, error) {
	config, err := pgconn.ParseConfig(k.direct)
	if err != nil {
		return nil, errDSN
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	dsn, err := change{address: listener.Addr().String()}.of(k.direct)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	l := &loan{kept: k, dsn: dsn, password: config.Password, listener: listener, clients: map[net.Conn]bool{}}
	l.running.Go(l.accept)
	return l, nil
}

// end waits for all clients to have hung up. Those that do not are cut, and what the server had for them ends.
func (l *loan) end() {
	_ = l.listener.Close() // nothing was buffered in it
	l.mu.Lock()
	l.ended = true
	for client := range l.clients {
		_ = client.SetReadDeadline(time.Now().Add(farewell)) // whoever reads meets the error
	}
	l.mu.Unlock()
	l.running.Wait()
}

func (l *loan) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.running.Go(func() { l.serve(client) })
	}
}

// serve runs one connection until it ends.
func (l *loan) serve(client net.Conn) {
	defer client.Close()
	if !l.admit(client) {
		return
	}
	defer l.dismiss(client)
	in := bufio.NewReader(client)
	begin, err := l.greet(in, client)
	if err != nil {
		return
	}
	if begin.settings == nil {
		l.forward(begin.bytes)
		return
	}
	s, err := l.session(begin.settings)
	if err != nil {
		_, _ = client.Write(failed(err)) // whoever asks for it meets it
		return
	}
	r := &relay{client: client, server: s.lane.lend()}
	_, err = client.Write(welcome(s.conn))
	clean := err == nil && r.run(in)
	s.lane.takeBack()
	if clean {
		l.put(s)
		return
	}
	_ = r.server.Close() // the server ends what is left
	_ = s.conn.Close(context.Background())
}

func (l *loan) session(settings map[string]string) (*session, error) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.session(ctx, settings)
}

func (l *loan) put(s *session) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept.put(ctx, s) != nil {
		_ = s.conn.Close(ctx) // the server ends what is left of it
	}
}

func (l *loan) admit(client net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clients[client] = true
	return !l.ended
}

func (l *loan) dismiss(client net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.clients, client)
}

// begun is how a connection begins: its settings, or nil for a request to cancel what another does.
type begun struct {
	bytes    []byte
	settings map[string]string
}

// What a client begins with, in the place of a protocol's version.
const codeCancel = 80877102

var errPassword = errors.New("wrong password")

// greet takes what a client begins with, and its password: nobody else on this machine is to come in.
func (l *loan) greet(in *bufio.Reader, client net.Conn) (begun, error) {
	for {
		r, err := read(in, Client, untyped)
		if err != nil || len(r.message.Body) < 4 {
			return begun{}, errors.Join(err, errDSN)
		}
		switch code(r.message.Body) {
		case codeTLS, codeGSS:
			if _, err := client.Write([]byte{'N'}); err != nil {
				return begun{}, err
			}
			continue
		case codeCancel:
			return begun{bytes: r.bytes}, nil
		}
		settings := map[string]string{}
		for fields := bytes.Split(r.message.Body[4:], []byte{0}); len(fields) >= 2 && len(fields[0]) > 0; fields = fields[2:] {
			settings[string(fields[0])] = string(fields[1])
		}
		delete(settings, "user")
		delete(settings, "database")
		return begun{settings: settings}, l.ask(in, client)
	}
}

// ask has the client say its password.
func (l *loan) ask(in *bufio.Reader, client net.Conn) error {
	if _, err := client.Write(message('R', []byte{0, 0, 0, 3})); err != nil { // in clear text: it goes to nobody but us
		return err
	}
	r, err := read(in, Client, typed)
	if err != nil {
		return err
	}
	said := bytes.TrimSuffix(r.message.Body, []byte{0})
	if subtle.ConstantTimeCompare(said, []byte(l.password)) != 1 {
		_, _ = client.Write(failed(errPassword)) // whoever it is
		return errPassword
	}
	return nil
}

// forward brings the server a request to cancel.
func (l *loan) forward(request []byte) {
	config, err := pgconn.ParseConfig(l.kept.direct)
	if err != nil {
		return
	}
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	server, err := net.Dial(network, address)
	if err != nil {
		return
	}
	defer server.Close()
	if _, err := server.Write(request); err == nil {
		_, _ = server.Read(make([]byte, 1)) // it closes when it has done so
	}
}

// message is one of a server's.
func message(typ byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{typ}, uint32(len(body)+4)), body...)
}

// reported are the settings that servers tell of, as far as they have them.
var reported = []string{"application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby", "integer_datetimes", "IntervalStyle",
	"is_superuser", "scram_iterations", "search_path", "server_encoding", "server_version", "session_authorization", "standard_conforming_strings", "TimeZone"}

// welcome is what a server says to a client that has come in.
func welcome(c *pgconn.PgConn) []byte {
	all := message('R', []byte{0, 0, 0, 0})
	for _, name := range reported {
		if value := c.ParameterStatus(name); value != "" {
			all = append(all, message('S', []byte(name+"\x00"+value+"\x00"))...)
		}
	}
	all = append(all, message('K', append(binary.BigEndian.AppendUint32(nil, c.PID()), c.SecretKey()...))...)
	return append(all, message('Z', []byte{'I'})...)
}

// failed is what a server says to a client that it does not take.
func failed(err error) []byte {
	return message('E', []byte("SFATAL\x00C08006\x00M"+err.Error()+"\x00\x00"))
}
