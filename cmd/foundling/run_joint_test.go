//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// ofBatch opens the store of a batch.
func (h *host) ofBatch(name string) *sqlite.Store {
	h.t.Helper()
	dir := filepath.Join(h.dir, "foundling")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	s, err := sqlite.Open(context.Background(), filepath.Join(dir, name+".db"), sqlite.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = s.Close() })
	return s
}

// open is how many messages of a topic have not ended.
func open(t *testing.T, s store.Store, topic string) int {
	t.Helper()
	n := 0
	for _, err := range s.Rows(t.Context(), store.RowFilter{Kind: events.KindMessage, Topic: topic}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// readsOn begins a process that has run one line and reads on.
func (h *host) readsOn() (cmd *exec.Cmd, input *os.File, errout *voice) {
	h.t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = write.Close() })
	cmd, errout = h.begin(read, "run", "--batch", "x", "-j", "1", "--", "sh", "-c", appends, "sh", "{}", h.dir)
	if err := read.Close(); err != nil {
		h.t.Fatal(err)
	}
	if _, err := io.WriteString(write, "a\n"); err != nil {
		h.t.Fatal(err)
	}
	h.awaitRan(1)
	return cmd, write, errout
}

// appends is a script that notes its line; the line "wait" takes until there is a file "stop".
const appends = `touch "$2/ready"; while test "$1" = wait && ! test -e "$2/stop"; do sleep 0.01; done; echo "$1" >>"$2/ran"`

func (h *host) awaitRan(n int) {
	h.t.Helper()
	until(h.t, fmt.Sprintf("%d lines run", n), func() bool { return len(numbers(h.t, filepath.Join(h.dir, "ran"))) == n })
}

// awaitInputRead waits until the store of a batch says that an input was read to its end: a kill does not cut it off any more.
func (h *host) awaitInputRead(batch string) {
	h.t.Helper()
	s := h.ofBatch(batch)
	until(h.t, "the input is read", func() bool { return open(h.t, s, topicInput) == 0 })
}

func TestTheBatchGoesOnWhileAnyProcessReads(t *testing.T) {
	h := newHost(t)
	first, told := h.started("wait\n", "run", "--batch", "x", "-j", "1", "--", "sh", "-c", appends, "sh", "{}", h.dir)
	cmd, input, errout := h.readsOn()
	h.makeFile("stop")
	if err := first.Wait(); err != nil { // which held the batch
		t.Fatalf("%v\n%s", err, told.String())
	}
	s := h.ofBatch("x")
	if open(t, s, topicBatch) != 1 {
		t.Fatalf("the batch was completed while one of its inputs is being read\n%s", told.String())
	}
	if got := h.run("b\n", "run", "--batch", "x", "-j", "1", "--", "sh", "-c", appends, "sh", "{}", h.dir); got.code != 0 {
		t.Fatalf("beside one that reads on: exit code %d\n%s", got.code, got.errout)
	}
	if got := h.run("", "run", "--resume", "x"); got.code != 0 {
		t.Fatalf("resume beside one that reads on: exit code %d\n%s", got.code, got.errout)
	}
	if open(t, s, topicBatch) != 1 || open(t, s, topicInput) != 1 {
		t.Fatalf("%d batches and %d inputs are open while one is being read", open(t, s, topicBatch), open(t, s, topicInput))
	}
	if _, err := io.WriteString(input, "c\n"); err != nil {
		t.Fatal(err)
	}
	h.awaitRan(4)
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the one that reads on: %v\n%s", err, errout.String())
	}
	if open(t, s, topicBatch) != 0 || open(t, s, topicInput) != 0 {
		t.Errorf("%d batches and %d inputs are open at the end", open(t, s, topicBatch), open(t, s, topicInput))
	}
}

// Who looks after the inputs of the dead may have the message of a living one's whenever that one asks for it.
func TestAnInputThatWasReadIsNotMissedForItsMessage(t *testing.T) {
	h := newHost(t)
	cmd, input, _ := h.readsOn()
	if got := h.run("", "pause", "input", "--reason", "nobody comes by it", "--yes", "--batch", "x"); got.code != 0 {
		t.Fatal(got.errout)
	}
	for range 2 {
		if got := h.run("b\n", "run", "--batch", "x", "-j", "1", "--", "sh", "-c", appends, "sh", "{}", h.dir); got.code != 0 || got.errout == "" {
			t.Errorf("exit code %d\n%s", got.code, got.errout)
		}
	}
	if got := h.run("", "resume", "input", "--reason", "x", "--yes", "--batch", "x"); got.code != 0 {
		t.Fatal(got.errout)
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if s := h.ofBatch("x"); open(t, s, topicInput) != 0 || open(t, s, topicBatch) != 0 {
		t.Errorf("%d inputs and %d batches are open", open(t, s, topicInput), open(t, s, topicBatch))
	}
}

func TestAnInputOfAProcessThatIsGoneIsMissed(t *testing.T) {
	h := newHost(t)
	cmd, _, _ := h.readsOn()
	if got := h.run("b\n", "run", "--batch", "x", "-j", "1", "--", "sh", "-c", appends, "sh", "{}", h.dir); got.code != 0 {
		t.Fatalf("beside one that reads on: exit code %d\n%s", got.code, got.errout)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for range 2 { // and it stays so
		if got := h.run("", "run", "--resume", "x"); got.code != exitFinding || !strings.Contains(got.errout, "not read to its end") {
			t.Fatalf("resume: exit code %d\n%s", got.code, got.errout)
		}
	}
	got := h.run("a\nb\nc\n", "run", "--batch", "x", "-j", "1", "--", "sh", "-c", appends, "sh", "{}", h.dir)
	if s := h.ofBatch("x"); got.code != 0 || open(t, s, topicInput) != 0 || open(t, s, topicBatch) != 0 {
		t.Errorf("the input again: exit code %d\n%s", got.code, got.errout)
	}
	h.awaitRan(3)
}

// The end of the input must be in the store before the process ends, or the next one misses the rest of it.
func TestAFinishedInputIsNeverMissed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	s := h.ofBatch("same")
	var all sync.WaitGroup
	for _, series := range []struct{ input, batch string }{{"", ""}, {"a\n", "same"}} {
		all.Go(func() {
			for round := range 15 {
				args := []string{"run", "--", "echo", "{}"}
				if series.batch != "" {
					args = []string{"run", "--batch", series.batch, "--", "echo", "{}"}
				}
				if got := h.run(series.input, args...); got.code != 0 {
					t.Errorf("input %q, round %d: exit code %d\n%s", series.input, round, got.code, got.errout)
				}
				if series.batch != "" && open(t, s, topicBatch) > 0 {
					t.Errorf("round %d: the batch was left open", round)
				}
			}
		})
	}
	all.Wait()
}

func TestTheBatchSurvivesAnyNumberOfKills(t *testing.T) {
	h := newHost(t)
	script := `touch "$2/ready"; test -e "$2/well" || sleep 60`
	args := []string{"run", "--batch", "x", "-j", "1", "--", "sh", "-c", script, "sh", "{}", h.dir}
	for range 7 { // each spends an attempt of the batch, and of one line or the other
		_ = os.Remove(filepath.Join(h.dir, "ready"))
		cmd, _ := h.started("a\nb\n", args...)
		h.awaitInputRead("x")
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		args = []string{"run", "--resume", "x"}
	}
	h.makeFile("well")
	got := h.run("", "run", "--resume", "x")
	if got.code != 0 || !strings.Contains(got.errout, "2 completed,") {
		t.Errorf("exit code %d\n%s", got.code, got.errout)
	}
}

func TestABatchWithNothingLeftIsCompleted(t *testing.T) {
	h := newHost(t)
	if got := h.run("a\n", "run", "--batch", "x", "--", "false"); got.code != exitFinding {
		t.Fatal(got.errout)
	}
	h.redriven("x")
	s := h.ofBatch("x")
	for row, err := range s.Rows(t.Context(), store.RowFilter{Kind: events.KindMessage, Topic: topicLines}) {
		if err != nil {
			t.Fatal(err)
		}
		cancel(t, s, row.Entity.ID)
	}
	if got := h.run("", "run", "--resume", "x"); got.code != 0 || open(t, s, topicBatch) != 0 {
		t.Errorf("exit code %d, %d batches are open\n%s", got.code, open(t, s, topicBatch), got.errout)
	}
}

func TestABatchWithoutItsCommandAsksForIt(t *testing.T) {
	h := newHost(t)
	if got := h.run("a\nb\n", "run", "--batch", "x", "--", "false"); got.code != exitFinding {
		t.Fatal(got.errout)
	}
	s := h.ofBatch("x")
	for row, err := range s.Rows(t.Context(), store.RowFilter{Kind: events.KindMessage, Topic: topicBatch}) {
		if err != nil {
			t.Fatal(err)
		}
		cancel(t, s, row.Entity.ID)
	}
	if got := h.run("", "redrive", "--batch", "x", "--topic", topicLines, "--reason", "again", "--yes"); got.code != 0 {
		t.Fatal(got.errout)
	}
	got := h.run("", "run", "--resume", "x")
	if got.code != exitFinding || !strings.Contains(got.errout, "2 lines to go") || !strings.Contains(got.errout, "foundling run --resume x -- COMMAND") {
		t.Errorf("exit code %d\n%s", got.code, got.errout)
	}
	if got := h.run("", "run", "--resume", "x", "-j", "1", "--", "echo"); got.code != 0 || got.out != "a\nb\n" {
		t.Errorf("with a COMMAND: exit code %d, %q\n%s", got.code, got.out, got.errout)
	}
}

func TestABatchThatWasNeverRecordedAsksForItsInput(t *testing.T) {
	h := newHost(t)
	h.ofBatch("x") // made, and nothing more
	for _, args := range [][]string{{"run", "--resume", "x"}, {"run", "--resume", "x", "--", "echo"}} {
		got := h.run("", args...)
		if got.code != exitNotFound || !strings.Contains(got.errout, "no input was read yet: give it again") {
			t.Errorf("%q: exit code %d\n%s", args, got.code, got.errout)
		}
	}
	missing := filepath.Join(h.dir, "missing.db")
	if got := h.run("", "run", "--store", missing); got.code != exitNotFound {
		t.Errorf("a store that is not there: exit code %d\n%s", got.code, got.errout)
	}
}

func TestAnotherCommandBesideALiveProcessIsRefused(t *testing.T) {
	h := newHost(t)
	script := `touch "$2/ready"; echo "$1" >>"$2/ran"; while ! test -e "$2/stop"; do sleep 0.01; done`
	command := []string{"--", "sh", "-c", script, "sh", "{}", h.dir}
	cmd, errout := h.started("a\n", append([]string{"run", "--batch", "x", "-j", "1"}, command...)...)
	got := h.run("b\n", "run", "--batch", "x", "--", "echo", "other")
	if got.code != exitRefused || got.out != "" || !strings.Contains(got.errout, fmt.Sprintf("process %d", cmd.Process.Pid)) {
		t.Errorf("another command: exit code %d, %q\n%s", got.code, got.out, got.errout)
	}
	joined, told := h.begin(strings.NewReader("b\n"), append([]string{"run", "--batch", "x", "-j", "1"}, command...)...)
	h.awaitRan(2)
	h.makeFile("stop")
	for _, c := range []*exec.Cmd{cmd, joined} {
		if err := c.Wait(); err != nil {
			t.Errorf("%v\n%s\n%s", err, errout.String(), told.String())
		}
	}
}

func TestARunSaysWhatItWaitsFor(t *testing.T) {
	h := newHost(t)
	script := `touch "$2/ready"; while ! test -e "$2/stop"; do sleep 0.01; done`
	cmd, errout := h.started("a\n", "run", "--batch", "x", "--", "sh", "-c", script, "sh", "{}", h.dir)
	waits, told := h.begin(nil, "run", "--resume", "x")
	told.await(t, fmt.Sprintf("waiting for 1 line of process %d: it is alive, or stopped", cmd.Process.Pid))
	h.makeFile("stop")
	for _, c := range []*exec.Cmd{cmd, waits} {
		if err := c.Wait(); err != nil {
			t.Errorf("%v\n%s\n%s", err, errout.String(), told.String())
		}
	}
	if n := strings.Count(told.String(), "waiting for"); n != 1 {
		t.Errorf("it was said %d times:\n%s", n, told.String())
	}
}

// A process whose proof of life is gone, with its file, can be told by its silence alone, which takes a few seconds.
func TestARunSaysWhereAnEndCannotBeProven(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	script := `touch "$1/ready"; test -e "$1/well" || sleep 60`
	cmd, _ := h.started("a\n", "run", "--batch", "x", "--", "sh", "-c", script, "sh", h.dir)
	h.awaitInputRead("x")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := os.RemoveAll(filepath.Join(h.dir, "foundling", "x.db-workers")); err != nil {
		t.Fatal(err)
	}
	h.makeFile("well")
	waits, told := h.begin(nil, "run", "--resume", "x")
	told.await(t, fmt.Sprintf("waiting for 1 line of process %d: its end cannot be proven, for the file", cmd.Process.Pid))
	if err := waits.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, told.String())
	}
	if want := fmt.Sprintf("1 were running in process %d, silent for ", cmd.Process.Pid); !strings.Contains(told.String(), want) {
		t.Errorf("no %q in\n%s", want, told.String())
	}
}

// Where no death can be proven, heartbeats must do: what a killed process ran is taken back since it is silent, and the batch goes on.
func TestAKilledRunIsResumedWhereNoDeathCanBeProven(t *testing.T) {
	t.Parallel()
	h := newProoflessHost(t)
	script := `echo "$1" >>"$2/ran"; touch "$2/ready"; test -e "$2/well" || sleep 60`
	cmd, _ := h.started(numbered(1, 9), "run", "--batch", "x", "-j", "3", "--", "sh", "-c", script, "sh", "{}", h.dir)
	h.awaitRan(3)
	h.awaitInputRead("x")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	h.makeFile("well")
	got := h.run("", "run", "--resume", "x")
	want := fmt.Sprintf(`(?m)^x: 3 were running in process %d, silent for \d+s: taken back$`, cmd.Process.Pid)
	if got.code != 0 || !regexp.MustCompile(want).MatchString(got.errout) || strings.Contains(got.errout, "gone") {
		t.Errorf("exit code %d, want %s\n%s", got.code, want, got.errout)
	}
	h.awaitRan(12)
	s := h.ofBatch("x")
	for r, err := range s.Read(t.Context(), "", store.Filter{Types: []events.Type{events.TypeMessageOrphaned, events.TypeWorkerStarted}}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := r.Event.(type) {
		case *events.MessageOrphaned:
			if e.Evidence.Reason != events.ReasonSilent || e.Evidence.Age < runReclaimAfter {
				t.Errorf("%s was orphaned by %s after %s", r.Entity, e.Evidence.Reason, e.Evidence.Age)
			}
		case *events.WorkerStarted:
			if e.Proof {
				t.Errorf("%s says that its end can be proven", r.Entity)
			}
		}
	}
	clean(t, filepath.Join(h.dir, "foundling", "x.db"), 9)
}

// Only lines are told of, not the batch and its input, which the process held too.
func TestWhatIsTakenBackIsCountedInLines(t *testing.T) {
	h := newHost(t)
	script := `echo "$1" >>"$2/ran"; touch "$2/ready"; test -e "$2/well" || sleep 60`
	cmd, _ := h.started(numbered(1, 9), "run", "--batch", "x", "-j", "3", "--", "sh", "-c", script, "sh", "{}", h.dir)
	h.awaitRan(3)
	h.awaitInputRead("x")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	h.makeFile("well")
	got := h.run("", "run", "--resume", "x")
	want := fmt.Sprintf(`(?m)^x: (\d done · )?3 were running in process %d, gone: taken back( · \d waiting)?$`, cmd.Process.Pid) // it may be found a moment later
	if got.code != 0 || !regexp.MustCompile(want).MatchString(got.errout) {
		t.Errorf("exit code %d, want %s\n%s", got.code, want, got.errout)
	}
}

// TestAnotherInputDoesNotStandForOneThatWasCutOff kills a process in the middle of its input and gives the batch something else: the
// cut-off input stays said until it is given again.
func TestAnotherInputDoesNotStandForOneThatWasCutOff(t *testing.T) {
	h := newHost(t)
	h.cutOff("x")
	for _, step := range []struct {
		input string
		args  []string
		code  int
	}{
		{"extra\n", []string{"run", "--batch", "x", "--", "true"}, exitFinding},
		{"", []string{"run", "--resume", "x"}, exitFinding},
		{"a\nb\nc\n", []string{"run", "--batch", "x", "--", "true"}, 0},
		{"", []string{"run", "--resume", "x"}, 0},
	} {
		got := h.run(step.input, step.args...)
		if said := strings.Contains(got.errout, "not read to its end"); got.code != step.code || said != (step.code != 0) {
			t.Errorf("%q: exit code %d, want %d\n%s", step.args, got.code, step.code, got.errout)
		}
	}
}
