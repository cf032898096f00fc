package main

import (
	"fmt"
	"io"
	"sync"
)

// console is where a command and its children write. Each piece is written whole under one lock, so that no two are mixed and a progress
// line can be drawn around them. Its hooks are set before it is used.
type console struct {
	mu             sync.Mutex
	stdout, stderr io.Writer
	own            io.Writer // where the command itself speaks, on standard error
	speak          func(text string) string
	quiet          bool // only what is wrong is said

	clear, redraw func() // around each piece, with mu held; nil draws nothing

	// broken is told that this process cannot go on: its output is not taken, or no command can be started. It may be told by many
	// goroutines; nil tells nobody. Whoever sets it ends the work.
	broken func(error)
}

func newConsole(stdout, stderr io.Writer) *console {
	return &console{stdout: stdout, stderr: stderr, own: newScreen(stderr), speak: func(text string) string { return text }}
}

// console is where a command and its children write. What the command says itself is an object where errors are.
func (a *app) console() *console {
	c := newConsole(a.raw.stdout, a.raw.stderr)
	c.quiet = a.quiet
	if c.own = a.stderr; a.objects() {
		c.speak = func(text string) string { return `{"note":` + string(quotedJSON(text)) + "}" }
	}
	return c
}

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

// say writes a line of the command's own to standard error, unless only what is wrong is to be said.
func (c *console) say(format string, args ...any) {
	if !c.quiet {
		c.warn(format, args...)
	}
}

// warn writes a line about what is wrong to standard error. Where nobody can hear it, the work goes on.
func (c *console) warn(format string, args ...any) {
	_ = c.piece(func() error {
		_, err := io.WriteString(c.own, c.speak(fmt.Sprintf(format, args...))+"\n")
		return err
	})
}

// lineWriter writes each line of a log as a piece.
type lineWriter struct{ out *console }

// Write implements io.Writer.
func (w lineWriter) Write(line []byte) (n int, err error) {
	err = w.out.piece(func() error {
		n, err = w.out.own.Write(line)
		return err
	})
	return n, err
}
