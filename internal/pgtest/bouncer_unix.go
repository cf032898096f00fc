//go:build unix

package pgtest

import (
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// bouncerScript ends a bouncer with the process that started it.
//
//go:embed bouncer.sh
var bouncerScript string

// start tries again where somebody else was quicker to take the port.
func (b *Bouncer) start(program string, settings func(port int) string) (err error) {
	for range 5 {
		port, err := freePort()
		if err != nil {
			return err
		}
		if err = b.launch(program, port, settings(port)); !errors.Is(err, errPort) {
			return err
		}
	}
	return errPort
}

func (b *Bouncer) launch(program string, port int, settings string) error {
	c := &cluster{}
	var err error
	if c.credential, err = servant(); err != nil { // PgBouncer, too, refuses to be root
		return err
	}
	if b.dir, err = c.newDir(); err != nil {
		return err
	}
	path := filepath.Join(b.dir, "pgbouncer.ini")
	if err := errors.Join(os.WriteFile(path, []byte(settings), 0o600), c.own(path)); err != nil {
		return errors.Join(err, os.RemoveAll(b.dir))
	}
	listen, lifeline, err := os.Pipe()
	if err != nil {
		return errors.Join(err, os.RemoveAll(b.dir))
	}
	defer listen.Close()
	cmd := exec.Command("/bin/sh", "-c", bouncerScript, "bouncer", program, b.dir)
	cmd.Dir, cmd.Stdin = "/", listen
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.credential}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, lifeline.Close(), os.RemoveAll(b.dir))
	}
	end := func() error {
		err := errors.Join(lifeline.Close(), cmd.Wait())
		return errors.Join(err, os.RemoveAll(b.dir)) // its parent may be none that the servant may write to
	}
	b.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := b.await(); err != nil {
		return errors.Join(err, end())
	}
	b.t.Cleanup(func() {
		if b.t.Failed() {
			text, _ := os.ReadFile(filepath.Join(b.dir, "log")) // it may be gone
			b.t.Logf("the end of the bouncer's log:\n%s", tail(string(text)))
		}
		if err := end(); err != nil {
			b.t.Errorf("pgtest: end the bouncer: %v", err)
		}
	})
	return nil
}

// await returns when the bouncer takes connections, as it says itself: on its port another may listen.
func (b *Bouncer) await() error {
	for range patience {
		text, _ := os.ReadFile(filepath.Join(b.dir, "log")) // not there before it says something
		said := string(text)
		switch {
		case strings.Contains(said, "process up"):
			return nil
		case strings.Contains(said, "in use"):
			return errPort
		case strings.Contains(said, "FATAL"), strings.Contains(said, "not found"):
			return fmt.Errorf("it does not start: %s", tail(said))
		}
		rest()
	}
	return errors.New("it takes no connections")
}
