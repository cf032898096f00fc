//go:build unix

package child

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	MaybeWatcher()
	if script := os.Getenv(victimScript); script != "" {
		runVictim(script)
	}
	goleak.VerifyTestMain(m)
}

func newRunner(t *testing.T, o Options) *Runner {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func shell(script string, args ...string) Spec {
	return Spec{Path: "/bin/sh", Args: append([]string{"sh", "-c", script}, args...)}
}

// outputs returns what the run printed, and closes it.
func outputs(t *testing.T, r Result) (stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	if _, e := r.WriteStdout(&out); e != nil {
		t.Error(e)
	}
	if _, e := r.WriteStderr(&err); e != nil {
		t.Error(e)
	}
	if e := r.Close(); e != nil {
		t.Error(e)
	}
	return out.String(), err.String()
}

func TestRun(t *testing.T) {
	r := newRunner(t, Options{})
	withEnv := shell(`echo "$FOUNDLING_ATTEMPT $PATH"`)
	withEnv.Env = []string{"FOUNDLING_ATTEMPT=2", "PATH=here"}
	fed := shell("cat")
	fed.Stdin = []byte("a\x00b\n")
	unread := shell("exit 0")
	unread.Stdin = make([]byte, 1<<20)

	tests := []struct {
		name           string
		spec           Spec
		code           int
		ended          string
		stdout, stderr string
	}{
		{"well", shell("echo hi"), 0, "exit status 0", "hi\n", ""},
		{"streams apart", shell("echo a; echo b >&2; echo c; exit 3"), 3, "exit status 3", "a\nc\n", "b\n"},
		{"by a signal", shell("kill -9 $$"), -1, "signal: killed", "", ""},
		{"environment, ours last", withEnv, 0, "exit status 0", "2 here\n", ""},
		{"no input", shell("cat; echo end"), 0, "exit status 0", "end\n", ""},
		{"payload as input", fed, 0, "exit status 0", "a\x00b\n", ""},
		{"input left unread", unread, 0, "exit status 0", "", ""},
		{"output closed early", shell("exec >&- 2>&-; exit 4"), 4, "exit status 4", "", ""},
		{"leads its group", shell(`test "$(ps -o pgid= -p $$ | tr -d ' ')" = $$ && echo yes`), 0, "exit status 0", "yes\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, err := r.Run(t.Context(), tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			stdout, stderr := outputs(t, result)
			if result.Code != tt.code || result.Ended != tt.ended || stdout != tt.stdout || stderr != tt.stderr || result.LeftBehind {
				t.Errorf("got %+v, %q, %q", result, stdout, stderr)
			}
			if result.OK() != (tt.code == 0) {
				t.Errorf("OK is %v", result.OK())
			}
		})
	}
}

func TestRunErrors(t *testing.T) {
	r := newRunner(t, Options{})
	long := Spec{Path: "/bin/echo", Args: []string{"echo", strings.Repeat("x", 8<<20)}}
	if result, err := r.Run(t.Context(), long); !errors.Is(err, ErrTooLong) || result.Close() != nil {
		t.Errorf("got %v, want ErrTooLong", err)
	}
	const want = "run /nosuch: no such file or directory"
	if _, err := r.Run(t.Context(), Spec{Path: "/nosuch", Args: []string{"x"}}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	reason := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := r.Run(ctx, shell("echo never")); !errors.Is(err, reason) {
		t.Errorf("got %v, want the context's cause", err)
	}
	if _, err := New(Options{Grace: -1}); err == nil || err.Error() != "new runner: grace -1ns: want 0 (the default, 5s) or more" {
		t.Errorf("got %v", err)
	}
	if _, err := New(Options{HoldBytes: -1}); err == nil {
		t.Error("hold bytes -1 taken")
	}
}

func TestClosedRunner(t *testing.T) {
	r := newRunner(t, Options{})
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Run(t.Context(), shell("echo never")); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// Both streams at once, far past the bound, come out byte for byte.
func TestRunHoldsMuchOutput(t *testing.T) {
	dir := t.TempDir()
	r := newRunner(t, Options{Dir: dir})
	result, err := r.Run(t.Context(), shell("head -c 3000000 /dev/zero & head -c 2000000 /dev/zero | tr '\\0' x >&2; wait"))
	if err != nil {
		t.Fatal(err)
	}
	if result.stdout.file == nil || result.stderr.file == nil || result.stdout.memory.Cap()+result.stderr.memory.Cap() > 0 {
		t.Error("output past the bound is in memory")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("files with names: %v, %v", left, err)
	}
	stdout, stderr := outputs(t, result)
	if stdout != strings.Repeat("\x00", 3_000_000) || stderr != strings.Repeat("x", 2_000_000) {
		t.Errorf("%d and %d bytes, not those that were written", len(stdout), len(stderr))
	}
}

// Output that cannot be held ends the child, which would print for ever.
func TestRunEndsAChildWhoseOutputCannotBeHeld(t *testing.T) {
	r := newRunner(t, Options{Dir: filepath.Join(t.TempDir(), "missing")})
	result, err := r.Run(t.Context(), shell("trap '' PIPE; echo reason >&2; while :; do echo more; done"))
	if !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "run /bin/sh: hold its output: ") {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
	if tail := result.Tail(1 << 20); result.Ended != "signal: killed" || !strings.HasPrefix(tail, "reason") {
		t.Errorf("got %+v with %q, want it killed", result, tail)
	}
	result.Close()
}

func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	name := filepath.Join(t.TempDir(), "full") // of no file: the real one would be removed
	h := &held{max: 3, create: func() (*os.File, error) {
		fd, err := syscall.Open("/dev/full", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
		return os.NewFile(uintptr(fd), name), err
	}}
	if _, err := h.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Write([]byte("d")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
	if got := (Result{stdout: h}).Tail(10); got != "abc" {
		t.Errorf("tail %q, want what was held", got)
	}
}

// Children live on when other threads of the process end.
func TestRunOutlivesThreads(t *testing.T) {
	r := newRunner(t, Options{})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			result, err := r.Run(t.Context(), shell("sleep 0.2"))
			if err != nil || !result.OK() {
				t.Errorf("got %+v, %v", result, err)
			}
			result.Close()
		})
		wg.Go(func() { runtime.LockOSThread() }) // its thread ends with it
	}
	wg.Wait()
}

func BenchmarkRun(b *testing.B) {
	r, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			result, err := r.Run(b.Context(), Spec{Path: "/bin/true", Args: []string{"true"}})
			if err != nil || !result.OK() {
				b.Fatal(result, err)
			}
			result.Close()
		}
	})
}
