package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// stage is a store with the processes that work on it.
type stage struct {
	*demo
	name      string
	path      string
	proofless bool
	store     store.Store
	client    *foundling.Client

	hands    []*hand
	provable bool      // the ends of its workers can be proven
	rescued  events.ID // a message whose worker is killed
}

// hand is a process that works.
type hand struct {
	topics []string
	at     int           // handlers at once
	takes  time.Duration // how long a handler takes

	cmd   *exec.Cmd
	stdin io.Closer // it ends when this is closed
	said  *voice
	gone  bool
}

// voice is what a process said on its standard error.
type voice struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (v *voice) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.text.Write(p)
}

func (v *voice) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.text.String()
}

func (h *hand) pid() int { return h.cmd.Process.Pid }

// say tells a part of the story. Where nobody reads it, the story goes on, and its end is the exit code.
func (d *demo) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.stdout, format+"\n", args...)
}

// hire starts a process of this program that works on the store.
func (st *stage) hire(ctx context.Context, h hand) (*hand, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{
		"demo-worker", "--store", "sqlite:" + st.path, "--jobs", strconv.Itoa(h.at), "--takes", h.takes.String(), "--orphan-reclaim-enabled=false",
		"--heartbeat-interval", demoHeartbeat.String(), "--orphan-reclaim-after", demoAfter.String(),
	}
	if st.proofless {
		args = append(args, "--without-proof")
	}
	h.cmd = exec.Command(program, append(args, h.topics...)...)
	h.said = &voice{}
	h.cmd.Stderr = h.said
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	st.hands = append(st.hands, &h)
	return &h, st.until(ctx, fmt.Sprintf("process %d works", h.pid()), func(l *look) bool {
		for _, w := range l.state.Workers.All() {
			if w.PID == h.pid() {
				st.provable = w.Proof
				return true
			}
		}
		return false
	})
}

// strike kills a process, as kill -9 does.
func (h *hand) strike() error {
	err := h.cmd.Process.Kill()
	_ = h.cmd.Wait() // it says that it was killed
	h.gone = true
	return err
}

// dismiss ends every process that is still there. Those that do not end by themselves are killed, and all of them where the story was cut short.
func (st *stage) dismiss(ctx context.Context) error {
	var errs error
	for _, h := range st.hands {
		if h.gone {
			continue
		}
		if ctx.Err() != nil {
			errs = errors.Join(errs, h.strike())
			continue
		}
		_ = h.stdin.Close() // it may have ended already
		timer := time.AfterFunc(5*time.Second, func() { _ = h.cmd.Process.Kill() })
		if err := h.cmd.Wait(); err != nil {
			errs = errors.Join(errs, fmt.Errorf("process %d: %w: %s", h.pid(), err, h.said.String()))
		}
		timer.Stop()
		h.gone = true
	}
	return errs
}

// shell runs a command line on the store, shows it with what it prints, and wants its exit code.
func (st *stage) shell(ctx context.Context, want int, args ...string) error {
	st.say("  $ foundling %s", strings.Join(args, " "))
	out := &indenter{to: st.stdout}
	errout := io.Writer(io.Discard) // where others say only how far they read
	if args[0] == "sweep" {
		errout = out
	}
	a := &app{stdin: strings.NewReader(""), stdout: out, stderr: errout, proofless: st.proofless, env: func(name string) string {
		if name == "FOUNDLING_STORE" {
			return "sqlite:" + st.path
		}
		return st.env(name)
	}}
	code := execute(ctx, a, args)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case code != want:
		return fmt.Errorf("foundling %s ended with %d, and %d was expected", args[0], code, want)
	case code != 0:
		st.say("  (exit status %d)", code)
	}
	st.say("")
	return nil
}

// indenter sets lines in, so that what commands print stands out of the story.
type indenter struct {
	to     io.Writer
	inside bool // a line was begun
}

// Write implements io.Writer.
func (w *indenter) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if !w.inside && len(bytes.TrimSpace(line)) > 0 {
			if _, err := io.WriteString(w.to, "  "); err != nil {
				return 0, err
			}
		}
		if _, err := w.to.Write(line); err != nil {
			return 0, err
		}
		w.inside = !bytes.HasSuffix(line, []byte("\n"))
	}
	return len(p), nil
}

// demoLook is how often the story looks whether it can go on.
const demoLook = 50 * time.Millisecond

// until waits until the store shows something.
func (st *stage) until(ctx context.Context, what string, shows func(*look) bool) error {
	ticker := time.NewTicker(demoLook)
	defer ticker.Stop()
	for {
		l, err := takeLook(ctx, st.store, demoAfter)
		if err != nil {
			return err
		}
		if shows(l) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for: %s: %w", what, errors.Join(ctx.Err(), st.complaints()))
		case <-ticker.C:
		}
	}
}

// complaints is what the processes said that is not part of the story.
func (st *stage) complaints() error {
	var errs error
	for _, h := range st.hands {
		if text := h.said.String(); text != "" {
			errs = errors.Join(errs, fmt.Errorf("process %d said: %s", h.pid(), text))
		}
	}
	return errs
}

// last is when an event of a type happened last.
func (st *stage) last(ctx context.Context, t events.Type) (time.Time, error) {
	var at time.Time
	for r, err := range logOf(ctx, st.store, store.Filter{Types: []events.Type{t}}) {
		if err != nil {
			return at, err
		}
		at = r.At()
	}
	return at, nil
}
