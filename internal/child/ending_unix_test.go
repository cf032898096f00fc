//go:build unix

package child

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStop(t *testing.T) {
	tests := []struct {
		name, script  string
		grace         time.Duration
		ended, stdout string
	}{
		{"at once", "echo up; exec sleep 60", time.Minute, "signal: terminated", "up\n"},
		{"in its own way", "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done", time.Minute, "exit status 3", "up\nbye\n"},
		{"not at all", "trap '' TERM; echo up; sleep 60; sleep 60", 50 * time.Millisecond, "signal: killed", "up\n"},
		{"but not what it started", "(trap '' TERM; echo up; sleep 60; sleep 60) & wait", 50 * time.Millisecond, "signal: terminated", "up\n"},
		{"but not what gave up its output", "exec >/dev/null 2>&1; (trap '' TERM; echo up; sleep 60; sleep 60) & wait", time.Minute, "signal: terminated", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRunner(t, Options{Grace: tt.grace})
			reason := errors.New("time is up")
			ctx, cancel := context.WithCancelCause(t.Context())
			alive := newCanary(t)
			go func() {
				alive.awaitFirst()
				cancel(reason)
			}()
			result, err := r.Run(ctx, alive.shell(tt.script))
			if !errors.Is(err, reason) {
				t.Errorf("got %v, want the cause", err)
			}
			alive.awaitDeath(time.Second)
			stdout, _ := outputs(t, result)
			if result.Ended != tt.ended || stdout != tt.stdout || result.LeftBehind {
				t.Errorf("got %+v, %q", result, stdout)
			}
		})
	}
}

// What a child leaves in the background goes on, unless it holds the output.
func TestBackground(t *testing.T) {
	r := newRunner(t, Options{Grace: 50 * time.Millisecond})
	holding := newCanary(t)
	result, err := r.Run(t.Context(), holding.shell("sleep 60 & echo up"))
	if err != nil || !result.OK() || !result.LeftBehind {
		t.Errorf("got %+v, %v, want it left behind", result, err)
	}
	if stdout, _ := outputs(t, result); stdout != "up\n" {
		t.Errorf("stdout %q", stdout)
	}
	holding.awaitDeath(time.Second)

	r = newRunner(t, Options{})
	quiet := newCanary(t)
	spec := quiet.shell("exec 8<&0; sleep 60 >/dev/null 2>&1 & echo $!")
	spec.Stdin = make([]byte, 1<<20) // more than a pipe takes, and unread
	result, err = r.Run(t.Context(), spec)
	if err != nil || !result.OK() || result.LeftBehind {
		t.Errorf("got %+v, %v, want nothing left behind", result, err)
	}
	if err := r.Close(); err != nil { // by then the watcher has done its last
		t.Error(err)
	}
	quiet.checkAlive()
	killPrinted(t, result)
	quiet.awaitDeath(time.Second)
}

// killPrinted kills the process whose number the run printed.
func killPrinted(t *testing.T, r Result) {
	t.Helper()
	stdout, _ := outputs(t, r)
	pid, err := strconv.Atoi(strings.TrimSpace(stdout))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// One that left the group and holds the output does not hold up its Run.
func TestOutputHeldFromOutsideTheGroup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs setsid")
	}
	r := newRunner(t, Options{Grace: 50 * time.Millisecond})
	away := newCanary(t)
	result, err := r.Run(t.Context(), away.shell("setsid sleep 60 & echo $!"))
	if err != nil || !result.LeftBehind {
		t.Errorf("got %+v, %v, want it left behind", result, err)
	}
	away.checkAlive()
	killPrinted(t, result)
	away.awaitDeath(time.Second)
}
