package main

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// console is where a command and its children write. Each piece is written whole under one lock, so that no two are mixed and a progress
// line can be drawn around them. Its hooks are set before it is used.
type console struct {
	mu             sync.Mutex
	stdout, stderr io.Writer

	clear, redraw func() // around each piece, with mu held; nil draws nothing

	// broken is told that this process cannot go on: its output is not taken, or no command can be started. It may be told by many
	// goroutines; nil tells nobody. Whoever sets it ends the work.
	broken func(error)
}

func newConsole(stdout, stderr io.Writer) *console { return &console{stdout: stdout, stderr: stderr} }

// piece writes one piece: whatever f writes to the console's writers.
func (c *console) piece(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clear != nil {
		c.clear()
	}
	if c.redraw != nil {
		defer c.redraw()
	}
	return f()
}

// say writes a line of the command's own to standard error. Where nobody can hear it, the work goes on.
func (c *console) say(format string, args ...any) {
	_ = c.piece(func() error {
		_, err := fmt.Fprintf(c.stderr, format+"\n", args...)
		return err
	})
}

// logger is the library's log of a command that has a console: warnings and errors, each a piece on standard error.
func (c *console) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(lineWriter{c}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// lineWriter writes each line of a log as a piece.
type lineWriter struct{ out *console }

// Write implements io.Writer.
func (w lineWriter) Write(line []byte) (n int, err error) {
	err = w.out.piece(func() error {
		n, err = w.out.stderr.Write(line)
		return err
	})
	return n, err
}
