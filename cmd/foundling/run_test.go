//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// host is a place where the built command runs, with its own batches.
type host struct {
	t   *testing.T
	bin string
	dir string
	env []string
}

func newHost(t *testing.T) *host { return &host{t: t, bin: binary(t), dir: t.TempDir()} }

// newProoflessHost is a host on which nobody can prove that a process has ended.
func newProoflessHost(t *testing.T) *host {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &host{t: t, bin: self, dir: t.TempDir(), env: []string{prooflessEnv + "=1"}}
}

func (h *host) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.bin, args...)
	cmd.Env = append(append(os.Environ(), "XDG_STATE_HOME="+h.dir, "FOUNDLING_STORE="), h.env...)
	return cmd
}

// ended is how a command ended.
type ended struct {
	code        int
	out, errout string
}

// run runs the command to its end, for two minutes at most, which is no bound on anything but a test that hangs.
func (h *host) run(input string, args ...string) ended {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := h.command(ctx, args...)
	var out, errout bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errout
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	return ended{cmd.ProcessState.ExitCode(), out.String(), errout.String()}
}

// sorted is the lines of a text in order.
func sorted(text string) []string {
	list := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	slices.Sort(list)
	return list
}

func TestRunKeepsTheOrderOfItsInput(t *testing.T) {
	h := newHost(t)
	got := h.run("c\na\nb\na\n", "run", "-j", "1", "--", "echo", "line {}")
	if want := "line c\nline a\nline b\nline a\n"; got.code != 0 || got.out != want {
		t.Errorf("exit code %d, %q, want %q\n%s", got.code, got.out, want, got.errout)
	}
}

func TestTheSameInputAgainDoesOnlyWhatIsNew(t *testing.T) {
	h := newHost(t)
	first := h.run("a\nb\na\n", "run", "--batch", "x", "--", "echo")
	again := h.run("b\na\nc\na\na\n", "run", "--batch", "x", "--", "echo")
	if got, want := sorted(first.out), []string{"a", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("first: %q, want %q", got, want)
	}
	if got, want := sorted(again.out), []string{"a", "c"}; again.code != 0 || !slices.Equal(got, want) { // a third a, and c
		t.Errorf("again: exit code %d, %q, want %q\n%s", again.code, got, want, again.errout)
	}
	done := h.run("", "run", "--resume", "x")
	if done.code != 0 || done.out != "" || !strings.Contains(done.errout, "5 completed, nothing left to do") {
		t.Errorf("resume of what is done: %+v", done)
	}
}

func TestLinesAreKeptByteForByte(t *testing.T) {
	h := newHost(t)
	raw := "\xff\xfe \"quoted\" 'single' $HOME ;|&\t\r"
	got := h.run(raw+"\n", "run", "--", "printf", "%s|", "{}")
	if got.code != 0 || got.out != raw+"|" {
		t.Errorf("exit code %d, %q, want %q\n%s", got.code, got.out, raw+"|", got.errout)
	}
	if got := h.run("one\ntwo\x00three\x00", "run", "-0", "-j", "1", "--", "printf", "<%s>"); got.out != "<one\ntwo><three>" {
		t.Errorf("NUL-ended: %q\n%s", got.out, got.errout)
	}
	if got := h.run("a\x00b\n", "run", "--stdin", "--", "cat"); got.out != "a\x00b" {
		t.Errorf("as standard input: %q\n%s", got.out, got.errout)
	}
}

func TestALineWithANULIsADeadLetterAndNoOtherIsTouched(t *testing.T) {
	h := newHost(t)
	got := h.run("ok\nno\x00good\n", "run", "--batch", "x", "--", "echo")
	if got.code != exitFinding || got.out != "ok\n" || !strings.Contains(got.errout, "NUL") || strings.Contains(got.errout, "\x00") {
		t.Errorf("%+v", got)
	}
}

func TestALineThatIsTooLongIsNamedAndTheOthersRun(t *testing.T) {
	h := newHost(t)
	got := h.run("a\n"+strings.Repeat("x", 1<<20+1)+"\nb\n", "run", "-j", "1", "--", "echo")
	if got.code != exitFinding || got.out != "a\nb\n" || !strings.Contains(got.errout, "line 2") || !strings.Contains(got.errout, "1048576") {
		t.Errorf("exit code %d, %q\n%s", got.code, got.out, got.errout)
	}
}

// endless is an input whose reading would be seen.
type endless struct{ reads int }

func (e *endless) Read(p []byte) (int, error) { e.reads++; return copy(p, "line\n"), nil }

func TestACommandThatDoesNotExistIsSaidOnceBeforeTheInputIsRead(t *testing.T) {
	var out bytes.Buffer
	input := &endless{}
	a := &app{stdin: input, stdout: &out, stderr: &out, env: func(name string) string {
		return map[string]string{"XDG_STATE_HOME": filepath.Join(t.TempDir(), "state")}[name]
	}}
	code := execute(t.Context(), a, []string{"run", "--", "no-such-command-anywhere", "{}"})
	if code != exitUsage || input.reads > 0 || strings.Count(out.String(), "no-such-command-anywhere") != 1 {
		t.Errorf("exit code %d after %d reads:\n%s", code, input.reads, out.String())
	}
}

func TestDeadLettersAreNamedRedrivenAndRunAgain(t *testing.T) {
	h := newHost(t)
	flag := filepath.Join(h.dir, "fixed")
	script := `echo "said $1"; test "$1" = ok || test -e "$2" || { echo "reason for $1" >&2; exit 3; }`
	got := h.run("ok\nbad\n", "run", "--batch", "x", "--attempts", "2", "--", "sh", "-c", script, "sh", "{}", flag)
	if got.code != exitFinding {
		t.Fatalf("exit code %d, want %d\n%s", got.code, exitFinding, got.errout)
	}
	for _, want := range []string{"1 completed", "1 dead-lettered", "bad", "after 2 attempts", "exit status 3", "reason for bad",
		"foundling redrive", "foundling run --resume x"} {
		if !strings.Contains(got.errout, want) {
			t.Errorf("standard error does not say %q:\n%s", want, got.errout)
		}
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, again, _ := strings.Cut(got.errout, "again:")
	redrive, resume, ok := strings.Cut(strings.TrimSpace(again), " && ")
	if !ok {
		t.Fatalf("no command to go on with:\n%s", got.errout)
	}
	for _, line := range []string{redrive, resume} {
		words := strings.Fields(line)
		if did := h.run("", words[1:]...); did.code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", line, did.code, did.out, did.errout)
		}
	}
	if status := h.run("", "status", "--batch", "x"); status.code != 0 {
		t.Errorf("status: exit code %d\n%s", status.code, status.out)
	}
}

func TestATimeoutEndsTheCommand(t *testing.T) {
	h := newHost(t)
	got := h.run("a\n", "run", "--timeout", "100ms", "--", "sh", "-c", "sleep 60", "sh", "{}")
	if got.code != exitFinding || !strings.Contains(got.errout, "timed out after 100ms") {
		t.Errorf("exit code %d\n%s", got.code, got.errout)
	}
}

func TestChildrenAreToldWhichMessageTheyWorkOn(t *testing.T) {
	h := newHost(t)
	got := h.run("a\n", "run", "--", "sh", "-c", `echo "$FOUNDLING_MESSAGE $FOUNDLING_TOKEN $FOUNDLING_ATTEMPT" #`)
	words := strings.Fields(got.out)
	if len(words) != 3 || len(words[0]) != 36 || words[1] != "2" || words[2] != "1" {
		t.Errorf("%q\n%s", got.out, got.errout)
	}
}

// until polls for something that another process does: it has no other way to say so.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func (s *voice) await(t *testing.T, text string) {
	t.Helper()
	until(t, "it says "+text, func() bool { return strings.Contains(s.String(), text) })
}

// begin begins a run in a process group of its own, which the test ends.
func (h *host) begin(input io.Reader, args ...string) (*exec.Cmd, *voice) {
	h.t.Helper()
	cmd, errout := h.command(h.t.Context(), args...), &voice{}
	cmd.Stdin, cmd.Stderr = input, errout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, errout
}

// started begins a run whose lines make a file "ready", and waits until one of them has.
func (h *host) started(input string, args ...string) (*exec.Cmd, *voice) {
	h.t.Helper()
	cmd, errout := h.begin(strings.NewReader(input), args...)
	h.awaitFile("ready")
	return cmd, errout
}

func (h *host) awaitFile(name string) {
	h.t.Helper()
	until(h.t, "a file "+name, func() bool {
		_, err := os.Stat(filepath.Join(h.dir, name))
		return err == nil
	})
}

func (h *host) makeFile(name string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), nil, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("ended with %v", err)
	}
	return exit.ExitCode()
}

func TestAnInterruptFinishesWhatRunsAndBeginsNothing(t *testing.T) {
	h := newHost(t)
	ran := filepath.Join(h.dir, "ran")
	script := `touch "$2/ready"; sleep 0.3; echo "$1" >>"$2/ran"`
	cmd, errout := h.started(numbered(1, 20), "run", "--batch", "x", "-j", "2", "--", "sh", "-c", script, "sh", "{}", h.dir)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != exitInterrupted {
		t.Fatalf("exit code %d, want %d\n%s", code, exitInterrupted, errout.String())
	}
	if n := len(numbers(t, ran)); n == 0 || n > 4 {
		t.Errorf("%d lines ran, want those that were running", n)
	}
	if got := h.run("", "run", "--resume", "x"); got.code != 0 {
		t.Fatalf("resume: exit code %d\n%s", got.code, got.errout)
	}
	lines := numbers(t, ran)
	slices.Sort(lines)
	if len(lines) != 20 || len(slices.Compact(lines)) != 20 {
		t.Errorf("%d runs of 20 lines: an interrupt must not run one twice", len(lines))
	}
}

func TestASecondInterruptAborts(t *testing.T) {
	h := newHost(t)
	script := `echo $$ >>"$1/pids"; touch "$1/ready"; sleep 60`
	cmd, errout := h.started(numbered(1, 4), "run", "--batch", "x", "-j", "2", "--", "sh", "-c", script, "sh", h.dir, "{}")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	errout.await(t, "once more aborts")
	time.Sleep(2 * interruptEcho) // two signals at once would be one
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != exitInterrupted {
		t.Fatalf("exit code %d, want %d\n%s", code, exitInterrupted, errout.String())
	}
	outlived(t, filepath.Join(h.dir, "pids"), time.Now().Add(time.Second))
	status := h.run("", "verify", "--batch", "x")
	if status.code != 0 {
		t.Errorf("verify: %s%s", status.out, status.errout)
	}
}

// cutOff kills a run of a batch in the middle of its input: lines a and b have run, and c to come never does.
func (h *host) cutOff(batch string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	cmd := h.command(ctx, "run", "--batch", batch, "--", "sh", "-c", `echo "$1" >>"$2/ran"`, "sh", "{}", h.dir)
	input, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	if _, err := io.WriteString(input, "a\nb\n"); err != nil {
		h.t.Fatal(err)
	}
	for len(numbers(h.t, filepath.Join(h.dir, "ran"))) < 2 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond) // polling a file: the child has no other way to say so
	}
	if err := cmd.Process.Kill(); err != nil {
		h.t.Fatal(err)
	}
	_ = cmd.Wait()
}

func TestAnInputThatWasCutOffIsSaidAtTheEnd(t *testing.T) {
	h := newHost(t)
	h.cutOff("x")
	got := h.run("", "run", "--resume", "x")
	if got.code != exitFinding || !strings.Contains(got.errout, "not read to its end") {
		t.Errorf("resume: exit code %d\n%s", got.code, got.errout)
	}
	got = h.run("a\nb\nc\n", "run", "--batch", "x", "--", "echo")
	if got.code != 0 || got.out != "c\n" {
		t.Errorf("the input again: exit code %d, %q\n%s", got.code, got.out, got.errout)
	}
}

func TestOldFinishedBatchesAreRemoved(t *testing.T) {
	h := newHost(t)
	for _, name := range []string{"done", "young"} {
		if got := h.run("a\n", "run", "--batch", name, "--", "echo"); got.code != 0 {
			t.Fatalf("%s: %s", name, got.errout)
		}
	}
	if got := h.run("a\n", "run", "--batch", "open", "--", "false"); got.code != exitFinding {
		t.Fatalf("open: %s", got.errout)
	}
	old := time.Now().Add(-8 * 24 * time.Hour)
	for _, name := range []string{"done", "open"} {
		if err := os.Chtimes(filepath.Join(h.dir, "foundling", name+".db"), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.run("a\n", "run", "--batch", "next", "--", "echo"); got.code != 0 {
		t.Fatalf("next: %s", got.errout)
	}
	files, err := filepath.Glob(filepath.Join(h.dir, "foundling", "*.db"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".db"))
	}
	if want := []string{"next", "open", "young"}; !slices.Equal(names, want) {
		t.Errorf("batches %q, want %q", names, want)
	}
}

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}
