//go:build unix

package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// victimScript is set in a process that is to be killed while it runs that
// script many times at once.
const victimScript = "CHILD_TEST_VICTIM_SCRIPT"

func runVictim(script string) {
	r, err := New(Options{})
	if err != nil {
		panic(err)
	}
	fmt.Print(r.lifeline.cmd.Process.Pid)
	os.Stdout.Close()
	done := make(chan error)
	for range 8 {
		go func() {
			_, err := r.Run(context.Background(), shell(script))
			done <- err
		}()
	}
	panic(<-done) // none of them ends
}

// startVictim starts such a process and returns it with its watcher's number.
func startVictim(t *testing.T, script string) (victim *os.Process, watcher int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimScript+"="+script)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	said, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	watcher, err = strconv.Atoi(string(said))
	if err != nil {
		t.Fatal(err)
	}
	return cmd.Process, watcher
}

// Everything dies with a process that is killed: children, and theirs.
func TestChildrenEndWithUs(t *testing.T) {
	scripts := map[string]string{
		"the child itself":        "echo up; exec sleep 60",
		"what it waits for":       "echo up; sleep 60; sleep 60",
		"what it left behind":     "sleep 60 & (sleep 60; echo) & echo up; sleep 60; echo",
		"what is deaf to signals": "trap '' TERM INT HUP PIPE; echo up; while :; do sleep 1; done",
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			alive := newCanary(t)
			victim, _ := startVictim(t, alive.script(script))
			alive.awaitFirst()
			if err := victim.Kill(); err != nil {
				t.Fatal(err)
			}
			alive.awaitDeath(time.Second)
		})
	}
}

// Signals that are meant for the program do not end its watcher.
func TestWatcherIsDeafToSignals(t *testing.T) {
	alive := newCanary(t)
	victim, watcher := startVictim(t, alive.script("echo up; sleep 60; echo"))
	alive.awaitFirst()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if err := syscall.Kill(watcher, signal); err != nil {
			t.Fatal(err)
		}
	}
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	alive.awaitDeath(time.Second)
}

// On Linux the kernel ends the children themselves, watcher or not.
func TestParentDeathSignal(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux only")
	}
	alive := newCanary(t)
	victim, watcher := startVictim(t, alive.script("echo up; exec sleep 60"))
	alive.awaitFirst()
	if err := syscall.Kill(watcher, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	alive.awaitDeath(time.Second)
}

// Without its watcher a Runner starts nothing more.
func TestWatcherGone(t *testing.T) {
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.lifeline.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.lifeline.cmd.Process.Wait()
	alive := newCanary(t)
	if _, err := r.Run(t.Context(), alive.shell("sleep 60; echo")); !errors.Is(err, ErrWatcher) {
		t.Errorf("got %v, want ErrWatcher", err)
	}
	alive.awaitDeath(time.Second)
	if err := r.Close(); err == nil {
		t.Error("closed without a word on the watcher")
	}
}

func TestWatch(t *testing.T) {
	tests := []struct {
		name, in string
		want     []int
	}{
		{"nothing", "", nil},
		{"those that run", "+11\n+12\n-11\n+13\n", []int{12, 13}},
		{"again", "+11\n-11\n+11\n", []int{11}},
		{"not one cut short", "+11\n+12", []int{11}},
		{"nor what it does not know", "\n+\n+x\n*14\n15\n+16\n", []int{16}},
		{"the one that was starting", "?a\n+11\n?b\n", []int{11, 99}},
		{"not one that has started", "?b\n+11\n-11\n", nil},
		{"nor one that did not", "?b\n?\n", nil},
	}
	for _, tt := range tests {
		var killed []int
		find := func(mark string) int { return map[string]int{"b": 99}[mark] }
		watch(strings.NewReader(tt.in), find, func(group int) { killed = append(killed, group) })
		slices.Sort(killed)
		if diff := cmp.Diff(tt.want, killed); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
