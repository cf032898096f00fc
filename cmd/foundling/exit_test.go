//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// place makes what the exit codes need: a store with a dead letter, a message that is completed and one that waits, one that is damaged, one of a newer
// version, and files that are none. It gives what command lines name by a word.
func (h *host) place() map[string]string {
	h.t.Helper()
	s := filepath.Join(h.dir, "s.db")
	step := func(input string, code int, args ...string) string {
		got := h.run(input, append([]string{args[0], "--store", s}, args[1:]...)...)
		if got.code != code {
			h.t.Fatalf("%q: exit code %d\n%s", args, got.code, got.errout)
		}
		return strings.TrimSpace(got.out)
	}
	words := map[string]string{}
	step("one\n", 0, "enqueue", "bad", "--attempts", "1")
	step("", exitFinding, "work", "bad", "--until-empty", "--", "false")
	words["DONE"] = step("two\n", 0, "enqueue", "mail")
	step("", 0, "work", "mail", "--until-empty", "--", "true")
	words["OPEN"] = step("three\n", 0, "enqueue", "mail")
	var page struct {
		Next string `json:"next"`
	}
	if err := json.Unmarshal([]byte(step("", 0, "events", "--json", "--rows", "1")), &page); err != nil {
		h.t.Fatal(err)
	}
	words["AHEAD"] = strings.TrimSuffix(page.Next, "@1") + "@999"

	h.write("notes.db", strings.Repeat("notes and no database. ", 100))
	whole, err := os.ReadFile(s)
	if err != nil {
		h.t.Fatal(err)
	}
	h.write("cut.db", string(whole[:len(whole)/2]))
	for name, statement := range map[string]string{
		"newer.db":   "INSERT INTO schema_versions (version_id, is_applied) VALUES (99, 1)",
		"flipped.db": "UPDATE events SET body = CAST(substr(body, 1, length(body) - 1) || X'7C' AS BLOB) WHERE position = 2",
	} {
		if err := os.Rename(damaged(h.t, s, statement), filepath.Join(h.dir, name)); err != nil {
			h.t.Fatal(err)
		}
	}
	return words
}

func (h *host) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// Every exit code is reached by the built command, for every reason there is, and in JSON the error has its word.
func TestEveryExitCodeIsReached(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	words := h.place()
	on := func(file, line string) []string {
		args := append(strings.Fields(line), "--store", filepath.Join(h.dir, file))
		for i, arg := range args {
			if word, ok := words[arg]; ok {
				args[i] = word
			}
		}
		return args
	}
	for _, test := range []struct {
		why  string
		code int
		word string // of the error object; empty where all was said already
		args []string
	}{
		{"a list", 0, "", on("s.db", "topics")},
		{"no violation", 0, "", on("s.db", "verify")},
		{"a finding", exitFinding, "", on("s.db", "status")},
		{"a violation", exitFinding, "", on("flipped.db", "verify")},
		{"part of the plan could not be done", exitFinding, "", on("s.db", "cancel OPEN DONE --reason x --yes")},
		{"an unknown flag", exitUsage, "usage", on("s.db", "topics --nothere")},
		{"an unknown command", exitUsage, "usage", on("s.db", "nothere")},
		{"too many arguments", exitUsage, "usage", on("s.db", "status extra")},
		{"an unknown word in a filter", exitUsage, "usage", on("s.db", "messages --state eaten")},
		{"another store's cursor", exitUsage, "usage", on("s.db", "events --after 0d95ab43-495c-4d21-9235-f24f31ddfdff@3")},
		{"a cursor ahead of the log", exitUsage, "usage", on("s.db", "events --after AHEAD")},
		{"a store that cannot be reached", exitStore, "store_unavailable", on("notes.db/s.db", "enqueue mail")},
		{"no store", exitNotFound, "not_found", on("nothere.db", "topics")},
		{"no such topic", exitNotFound, "not_found", on("s.db", "topics nothere")},
		{"no such message", exitNotFound, "not_found", on("s.db", "trace 0123456789")},
		{"no reason", exitRefused, "refused", on("s.db", "pause mail --yes")},
		{"no terminal and no yes", exitRefused, "refused", on("s.db", "pause mail --reason x")},
		{"nothing that could be done", exitConflict, "conflict", on("s.db", "resume mail --reason x --yes")},
		{"a file that is no store", exitCorrupt, "corrupt", on("notes.db", "topics")},
		{"half a store", exitCorrupt, "corrupt", on("cut.db", "topics")},
		{"a store of a newer version", exitCorrupt, "corrupt", on("newer.db", "topics")},
		{"a flipped byte", exitCorrupt, "corrupt", on("flipped.db", "topics")},
	} {
		t.Run(test.why, func(t *testing.T) {
			if got := h.run("", test.args...); got.code != test.code || got.errout+got.out == "" {
				t.Errorf("%q: exit code %d, want %d\n%s%s", test.args, got.code, test.code, got.out, got.errout)
			}
			if test.word == "" {
				return
			}
			got := h.run("", append(test.args, "--json")...)
			var e jsonError
			if err := json.Unmarshal([]byte(got.errout), &e); err != nil || got.code != test.code || e.Error.Code != test.word {
				t.Errorf("in JSON: exit code %d, want %d: %v\n%s", got.code, test.code, err, got.errout)
			}
			if err := validate([]byte(got.errout)); err != nil {
				t.Error(err)
			}
		})
	}
}

// following begins to follow the log of a store, in some form, and waits until its first message was printed.
func (h *host) following(args ...string) (cmd *exec.Cmd, out, errout *voice) {
	h.t.Helper()
	cmd, out, errout = h.command(h.t.Context(), append([]string{"events", "--follow", "--store", filepath.Join(h.dir, "s.db")}, args...)...), &voice{}, &voice{}
	cmd.Stdout, cmd.Stderr = out, errout
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = cmd.Process.Kill() })
	out.await(h.t, "message.enqueued")
	return cmd, out, errout
}

// An interrupt ends with 130. What was printed until then is whole, says that it was cut short, and says how to go on.
func TestAnInterruptIsExitCode130AndFlagsItsOutput(t *testing.T) {
	h := newHost(t)
	store := filepath.Join(h.dir, "s.db")
	if got := h.run("one\n", "enqueue", "mail", "--store", store); got.code != 0 {
		t.Fatal(got.errout)
	}
	for _, form := range []string{"table", "json", "jsonl", "csv"} {
		cmd, out, errout := h.following("-o", form)
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if code := exitCode(t, cmd.Wait()); code != exitInterrupted {
			t.Fatalf("%s: exit code %d\n%s", form, code, errout.String())
		}
		cursor := regexp.MustCompile(`go on with --after ([0-9a-f-]{36}@2)`).FindStringSubmatch(errout.String())
		if cursor == nil {
			t.Errorf("%s: no cursor in\n%s", form, errout.String())
		}
		if form == "json" {
			var d document[jsonEvent]
			if err := json.Unmarshal([]byte(out.String()), &d); err != nil || !d.Truncated || d.Next == nil || len(d.Items) != 2 {
				t.Errorf("%v: truncated %t, next %v, %d items\n%s", err, d.Truncated, d.Next, len(d.Items), out.String())
			}
			if err := validate([]byte(out.String())); err != nil {
				t.Error(err)
			}
		}
		if form == "json" || form == "jsonl" {
			if err := validate([]byte(errout.String())); err != nil || !strings.Contains(errout.String(), `"code":"interrupted"`) {
				t.Errorf("%s: %v\n%s", form, err, errout.String())
			}
		}
	}
}

// A follower sees each event once, whichever process writes it, and goes on where it was stopped.
func TestAFollowerSeesEachEventOnceOverStopsAndWriters(t *testing.T) {
	h := newHost(t)
	store := filepath.Join(h.dir, "s.db")
	write := func() {
		if got := h.run("one\ntwo\n", "enqueue", "mail", "--store", store); got.code != 0 {
			t.Fatal(got.errout)
		}
	}
	write()
	var seen []string
	after := ""
	for round := range 4 {
		args := []string{"-o", "jsonl"}
		if after != "" {
			args = append(args, "--after", after)
		}
		cmd, out, errout := h.command(t.Context(), append([]string{"events", "--follow", "--store", store}, args...)...), &voice{}, &voice{}
		cmd.Stdout, cmd.Stderr = out, errout
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		write()
		want := 3 + 2*(round+1) // all that there is
		until(t, fmt.Sprintf("%d events", want), func() bool { return len(seen)+strings.Count(out.String(), "\n") >= want })
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := exitCode(t, cmd.Wait()); code != exitInterrupted {
			t.Fatalf("exit code %d\n%s", code, errout.String())
		}
		for line := range strings.Lines(out.String()) {
			var e jsonEvent
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			seen, after = append(seen, e.Position), e.Cursor
		}
	}
	for i, position := range seen {
		if position != fmt.Sprint(i+1) {
			t.Fatalf("positions %q", seen)
		}
	}
}

// Whoever has read enough closes the pipe: the command ends quietly, and its code says what it has found and done, not who heard it.
func TestAConsumerThatClosesItsPipeIsNoFault(t *testing.T) {
	h := newHost(t)
	store := filepath.Join(h.dir, "s.db")
	if got := h.run(numbered(1, 3000), "enqueue", "bad", "--attempts", "1", "--store", store); got.code != 0 {
		t.Fatal(got.errout)
	}
	for _, test := range []struct {
		line string
		code int
	}{
		{"events -o jsonl", 0},
		{"events --json", 0},
		{"events", 0},
		{"events --follow -o jsonl", 0},
		{"messages --rows 0 -o csv", 0},
		{"topics --json", 0},
		{"pause bad --reason x --yes --json", 0},
		{"status --json", exitFinding}, // the topic is paused
		{"resume bad --reason x --yes", 0},
		{"topics nothere --json", exitNotFound},
	} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := h.command(t.Context(), append(strings.Fields(test.line), "--store", store)...)
		var errout bytes.Buffer
		cmd.Stdout, cmd.Stderr = write, &errout
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(test.line, "events") { // it reads a little first
			if _, err := io.ReadFull(read, make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(write.Close(), read.Close()); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != test.code || strings.Contains(errout.String(), "pipe") {
			t.Errorf("%s: %s, want exit code %d\n%s", test.line, cmd.ProcessState, test.code, errout.String())
		}
	}
	if got := h.run("", "verify", "--store", store); got.code != 0 {
		t.Errorf("verify: %s", got.out)
	}
}

// What a run's children print is what its lines count by: where nobody takes it, the lines are not done, and nothing is lost.
func TestARunWhoseOutputNobodyTakesLosesNothing(t *testing.T) {
	h := newHost(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := h.command(t.Context(), "run", "--batch", "x", "-j", "2", "--", "echo")
	var errout bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(numbered(1, 9)), write, &errout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write.Close(), read.Close()); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitStore || !strings.Contains(errout.String(), "resume with: foundling run --resume x") {
		t.Fatalf("%s, want exit code %d\n%s", cmd.ProcessState, exitStore, errout.String())
	}
	got := h.run(numbered(1, 9), "run", "--batch", "x", "--", "echo")
	if lines := sorted(got.out); got.code != 0 || len(lines) != 9 {
		t.Errorf("exit code %d, %q\n%s", got.code, lines, got.errout)
	}
}
