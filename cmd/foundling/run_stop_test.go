//go:build unix

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/internal/child"
)

// A child can get the signal that was meant for this process. Here it sends it to itself, which comes to the same.
func TestALineWhoseCommandTheInterruptEndedIsGivenBack(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			script := `echo "$1"; touch "$2/ready"; test -e "$2/again" && exit; while ! test -e "$2/stop"; do sleep 0.01; done; kill -$3 $$`
			number := map[syscall.Signal]string{syscall.SIGINT: "INT", syscall.SIGTERM: "TERM"}[signal]
			cmd, errout := h.started("a\n", "run", "--batch", "x", "--", "sh", "-c", script, "sh", "{}", h.dir, number)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			h.makeFile("stop")
			if code := exitCode(t, cmd.Wait()); code != exitInterrupted || !strings.Contains(errout.String(), "1 to go") {
				t.Fatalf("exit code %d\n%s", code, errout.String())
			}
			h.makeFile("again")
			if got := h.run("", "run", "--resume", "x"); got.code != 0 || got.out != "a\n" {
				t.Errorf("resume: %+v", got)
			}
		})
	}
}

// One Ctrl-C reaches every process of the group, children that are just being started among them.
func TestOneInterruptOfTheGroupSpendsNothing(t *testing.T) {
	h := newHost(t)
	for round := range 6 {
		ran := filepath.Join(h.dir, "ran")
		batch := strings.Repeat("x", round+1)
		cmd, errout := h.begin(strings.NewReader(numbered(1, 3000)), "run", "--batch", batch, "-j", "8", "--", "sh", "-c", `echo 1 >>"$1"`, "sh", ran)
		until(t, "lines run", func() bool { return len(numbers(t, ran)) > 20*(round+1) })
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if code := exitCode(t, cmd.Wait()); code != exitInterrupted {
			t.Fatalf("exit code %d\n%s", code, errout.String())
		}
		if status := h.run("", "status", "--batch", batch); status.code != 0 {
			t.Fatalf("round %d: status: exit code %d\n%s", round, status.code, status.out)
		}
	}
}

// timeout signals its child, and then the group that the child is in: one end of time, two signals.
func TestTheSameSignalAtOnceIsOneInterrupt(t *testing.T) {
	h := newHost(t)
	script := `touch "$2/ready"; sleep 0.4; echo "$1" >>"$2/ran"`
	cmd, errout := h.started(numbered(1, 8), "run", "--batch", "x", "-j", "2", "--", "sh", "-c", script, "sh", "{}", h.dir)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	errout.await(t, "once more aborts") // so that the system does not make one of the two
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != exitInterrupted || len(numbers(t, filepath.Join(h.dir, "ran"))) == 0 {
		t.Fatalf("exit code %d, and what ran was not finished\n%s", code, errout.String())
	}
}

// A run that was suspended for longer than others wait goes on with what it runs.
func TestASuspendedRunDoesNotBeginAgain(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	script := `echo "$1" >>"$2/ran"; touch "$2/ready"; until test -e "$2/stop"; do sleep 0.01; done`
	cmd, errout := h.started("a\n", "run", "--batch", "x", "--", "sh", "-c", script, "sh", "{}", h.dir)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(runReclaimAfter + runHeartbeat) // the silence is the test
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * runHeartbeat) // so that it notices
	h.makeFile("stop")
	if err := cmd.Wait(); err != nil || len(numbers(t, filepath.Join(h.dir, "ran"))) != 1 {
		t.Errorf("%v, %d runs\n%s", err, len(numbers(t, filepath.Join(h.dir, "ran"))), errout.String())
	}
}

func TestWhatACommandLeavesBehindIsSaid(t *testing.T) {
	runner, err := child.New(child.Options{Grace: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	template, err := child.NewTemplate([]string{"sh", "-c", "sleep 60 & echo up #"}, child.Argument)
	if err != nil {
		t.Fatal(err)
	}
	var out, errout bytes.Buffer
	c := &commander{template: template, runner: runner, out: newConsole(&out, &errout)}
	if err := c.handle(t.Context(), foundling.Message[[]byte]{Payload: []byte("line")}); err != nil {
		t.Error(err)
	}
	if out.String() != "up\n" || !strings.Contains(errout.String(), "line: something its command left behind held its output open") {
		t.Errorf("%q, %q", out.String(), errout.String())
	}
}
