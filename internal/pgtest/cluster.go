package pgtest

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// superuser is the name of a cluster's first role.
const superuser = "postgres"

// errPort says that somebody else listens on the cluster's port.
var errPort = errors.New("the port is taken")

// cluster is a server that was started here, with all it has in one folder.
type cluster struct {
	binaries
	dir      string
	port     int
	password string // of the superuser
	process
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

// admin is the DSN of the superuser.
func (c *cluster) admin() string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(superuser, c.password), Path: "/postgres", RawQuery: "sslmode=disable",
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port))}
	return u.String()
}

// newCluster makes a server of its own and starts it. The settings are lines of postgresql.conf; the last of a name holds.
func newCluster(settings []string) (*cluster, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	c := &cluster{binaries: bin, password: token(16)}
	if err := c.settle(); err != nil {
		return nil, err
	}
	if err := c.initialize(); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	if err := c.startOnFreePort(settings); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

// initialize makes the data directory, by preference one whose texts are not ordered by their bytes.
func (c *cluster) initialize() error {
	secret := filepath.Join(c.dir, "secret")
	if err := os.WriteFile(secret, []byte(c.password), 0o600); err != nil {
		return err
	}
	if err := c.own(secret); err != nil {
		return err
	}
	args := []string{"-D", c.data(), "-U", superuser, "--pwfile", secret, "--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--no-sync"}
	locales := [][]string{{"--locale=C", "--locale-provider=icu", "--icu-locale=en-US"}, {"--locale=C"}}
	if c.major == oldest {
		locales = locales[1:] // it has no default of ICU's
	}
	var said []byte
	for _, locale := range locales {
		out, err := c.command("initdb", append(args, locale...)...).CombinedOutput()
		if err == nil {
			return os.Remove(secret)
		}
		said = append(said, out...)
	}
	return fmt.Errorf("initdb: %s", said)
}

// startOnFreePort tries again where somebody else was quicker.
func (c *cluster) startOnFreePort(settings []string) error {
	path := filepath.Join(c.data(), "postgresql.conf")
	defaults, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for range 5 {
		if c.port, err = freePort(); err != nil {
			return err
		}
		lines := append([]string{string(defaults),
			"port = " + strconv.Itoa(c.port),
			"listen_addresses = '127.0.0.1'",
			"unix_socket_directories = '" + c.dir + "'",
			"dynamic_shared_memory_type = mmap", // goes with the folder, also when the server was killed
			"max_connections = 200",
			"timezone = UTC",
			"log_timezone = UTC",
			"log_line_prefix = '%m %a %d '",
		}, settings...)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			return err
		}
		if err = c.start(); !errors.Is(err, errPort) {
			return err
		}
	}
	return err
}

// freePort finds one that nobody listens on, below those that systems give to outgoing connections: a server that is
// restarted must find it free again.
func freePort() (int, error) {
	for range 100 {
		port := 12000 + mathrand.IntN(20000)
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("no free port on loopback")
}

// logFile is where the server writes what it has to say.
func (c *cluster) logFile() string { return filepath.Join(c.dir, "log") }

// complaint says why a start came to nothing, by what it wrote after the given offset.
func (c *cluster) complaint(offset int64) error {
	text, err := os.ReadFile(c.logFile())
	if err != nil {
		return err
	}
	said := string(text[min(offset, int64(len(text))):])
	if strings.Contains(said, "could not create any TCP/IP sockets") {
		return errPort
	}
	return fmt.Errorf("postgres does not start: %s", tail(said))
}

// token is n random bytes as text.
func token(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
