//go:build unix

package child

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// canary tells when a child and all it started have ended: they hold the one
// end of a named pipe, and the test reads the other.
type canary struct {
	t    *testing.T
	path string
	read *os.File
	hold *os.File // keeps the pipe from ending before a child has opened it
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	path := filepath.Join(t.TempDir(), "canary")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	hold, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		read.Close()
		hold.Close()
	})
	return &canary{t: t, path: path, read: read, hold: hold}
}

// script makes whatever the script starts hold the pipe, and writes to it
// whatever the script prints.
func (c *canary) script(script string) string {
	return "exec 7>" + c.path + "; echo() { command echo \"$@\"; command echo \"$@\" >&7; }; " + script
}

func (c *canary) shell(script string) Spec { return shell(c.script(script)) }

// awaitFirst returns when something has been printed.
func (c *canary) awaitFirst() {
	c.read.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.read.Read(make([]byte, 100)); err != nil {
		c.t.Errorf("nothing printed: %v", err)
	}
}

// awaitDeath returns when everything that held the pipe has ended.
func (c *canary) awaitDeath(bound time.Duration) {
	c.t.Helper()
	c.hold.Close()
	c.read.SetReadDeadline(time.Now().Add(bound))
	if _, err := io.Copy(io.Discard, c.read); err != nil {
		c.t.Errorf("something lives on: %v", err)
	}
}

// checkAlive fails the test where everything that held the pipe has ended.
func (c *canary) checkAlive() {
	c.t.Helper()
	c.hold.Close()
	c.read.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := io.Copy(io.Discard, c.read); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("got %v: it has ended", err)
	}
}
