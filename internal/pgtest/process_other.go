//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
)

// errUnix says that a server is started on Unix systems only.
var errUnix = errors.New("tests start a server on Unix systems only: let DATABASE_URL name one")

// process is nothing where no server is started.
type process struct{}

func (c *cluster) settle() error    { return errUnix }
func (c *cluster) own(string) error { return errUnix }
func (c *cluster) start() error     { return errUnix }
func (c *cluster) stop() error      { return errUnix }
func (c *cluster) kill() error      { return errUnix }
func (c *cluster) remove() error    { return nil }

func (c *cluster) command(program string, args ...string) *exec.Cmd {
	return exec.Command(c.path(program), args...)
}
