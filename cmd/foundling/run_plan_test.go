//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store"
	"github.com/google/go-cmp/cmp"
)

func cancel(t *testing.T, s store.Store, id foundling.ID) {
	t.Helper()
	client, err := foundling.NewClient(s, foundling.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Cancel(t.Context(), "test", id); err != nil {
		t.Fatal(err)
	}
}

// redriven gives all dead lines of a batch new attempts.
func (h *host) redriven(batch string) {
	h.t.Helper()
	if got := h.run("", "redrive", "--batch", batch, "--topic", topicLines, "--reason", "test", "--yes"); got.code != 0 {
		h.t.Fatalf("redrive: exit code %d\n%s", got.code, got.errout)
	}
}

func TestAPlanIsKeptByteForByte(t *testing.T) {
	p := plan{
		Command: []exact{"sh", "\xff\x00", "", "ü \"{}\"", `{"bytes":"/w=="}`}, Dir: "/d\xfe", Jobs: 3, Attempts: 2, Timeout: time.Second,
		Null: true, Stdin: true,
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var got plan
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, got); diff != "" {
		t.Errorf("%s: %s", b, diff)
	}
	for _, bad := range []string{`7`, `{}`, `{"bytes":7}`} {
		if err := json.Unmarshal([]byte(bad), new(exact)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestArgumentsThatAreNotUTF8SurviveAResume(t *testing.T) {
	h := newHost(t)
	script := `printf "<%s%s>" "$1" "$2"; test -e "$3/well"`
	first := h.run("a\n", "run", "--batch", "x", "--", "sh", "-c", script, "sh", "\xff\xfe", "{}", h.dir)
	h.makeFile("well")
	h.redriven("x")
	again := h.run("", "run", "--resume", "x")
	if want := "<\xff\xfea>"; first.out != want || again.out != want || again.code != 0 {
		t.Errorf("%q, then %q, want %q\n%s", first.out, again.out, want, again.errout)
	}
}

func TestOtherFlagsReplaceThePlan(t *testing.T) {
	h := newHost(t)
	if got := h.run("gone\n", "run", "--batch", "x", "--", "cat"); got.code != exitFinding { // there is no such file
		t.Fatalf("exit code %d, %q", got.code, got.out)
	}
	got := h.run("b\n", "run", "--batch", "x", "--stdin", "--attempts", "2", "--timeout", "1m", "--", "cat")
	if got.out != "b" || !strings.Contains(got.errout, "lines it knows keep --attempts 1 --timeout 0s") {
		t.Errorf("%q\n%s", got.out, got.errout)
	}
	h.redriven("x")
	if got := h.run("", "run", "--resume", "x"); got.code != 0 || got.out != "gone" {
		t.Errorf("resume: exit code %d, %q, want the line as standard input\n%s", got.code, got.out, got.errout)
	}
}

func TestAResumeTakesFlags(t *testing.T) {
	h := newHost(t)
	if got := h.run("a\nb\n", "run", "--batch", "x", "--limit", "1", "--", "cat"); got.code != exitFinding {
		t.Fatalf("exit code %d", got.code)
	}
	h.redriven("x")
	if got := h.run("", "run", "--resume", "x", "--stdin", "-j", "1", "--limit", "0"); got.code != 0 || got.out != "ab" {
		t.Errorf("exit code %d, %q\n%s", got.code, got.out, got.errout)
	}
	if got := h.run("", "status", "--batch", "x"); !regexp.MustCompile(`(?m)^lines +0 +0 +0 +– `).MatchString(got.out) {
		t.Errorf("the limit was not lifted:\n%s", got.out)
	}
}

func TestAResumeRunsInTheDirectoryOfTheRun(t *testing.T) {
	h := newHost(t)
	place := filepath.Join(h.dir, "place")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	in := func(dir, input string, args ...string) (*exec.Cmd, *bytes.Buffer) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		t.Cleanup(cancel)
		cmd := h.command(ctx, args...)
		var out bytes.Buffer
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, strings.NewReader(input), &out, &out
		return cmd, &out
	}
	store := filepath.Join("..", "my store.db") // relative, and with something for a shell to take apart
	cmd, out := in(place, "a\n", "run", "--store", store, "--", "sh", "-c", `test -e here && echo ran "$1"`, "sh", "{}")
	if code := exitCode(t, cmd.Run()); code != exitFinding {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	_, again, _ := strings.Cut(out.String(), "again:")
	if err := os.WriteFile(filepath.Join(place, "here"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The command that was printed is for a shell, anywhere.
	shell := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(again, "foundling", h.bin))
	shell.Dir, shell.Env = "/", cmd.Env
	if got, err := shell.CombinedOutput(); err != nil || !strings.Contains(string(got), "ran a\n") {
		t.Errorf("%s: %v\n%s", again, err, got)
	}

	if cmd, out = in(place, "b\n", "run", "--store", store, "--", "false"); exitCode(t, cmd.Run()) != exitFinding {
		t.Fatal(out)
	}
	if err := os.RemoveAll(place); err != nil {
		t.Fatal(err)
	}
	cmd, out = in(h.dir, "", "run", "--store", "my store.db")
	if code := exitCode(t, cmd.Run()); code != exitRefused || !strings.Contains(out.String(), place) {
		t.Errorf("its directory is gone: exit code %d\n%s", code, out)
	}
}

func TestMoreDeadLettersThanAreNamedCanBeRedriven(t *testing.T) {
	h := newHost(t)
	got := h.run(numbered(1, deadShown+3), "run", "--batch", "x", "--", "sh", "-c", `test -e "$1/well" && echo "$2"`, "sh", h.dir, "{}")
	_, again, _ := strings.Cut(got.errout, "again:")
	redrive, resume, ok := strings.Cut(strings.TrimSpace(again), " && ")
	if !ok || !strings.Contains(got.errout, "and 3 more") {
		t.Fatalf("no command to go on with:\n%s", got.errout)
	}
	h.makeFile("well")
	if did := h.run("", strings.Fields(redrive)[1:]...); did.code != 0 || !strings.HasSuffix(did.out, "\nredriven: 13\n") {
		t.Fatalf("%s: exit code %d, %q\n%s", redrive, did.code, did.out, did.errout)
	}
	if did := h.run("", strings.Fields(resume)[1:]...); did.code != 0 || len(strings.Fields(did.out)) != deadShown+3 {
		t.Errorf("%s: exit code %d, %q\n%s", resume, did.code, did.out, did.errout)
	}
}

func TestTheBarReachesItsEnd(t *testing.T) {
	var terminal bytes.Buffer
	p := &progress{out: newConsole(&terminal, &terminal), began: time.Now()}
	p.drawOn(&terminal)
	shown := func(c counted) string {
		terminal.Reset()
		p.drawn = time.Time{}
		p.draw(c)
		return terminal.String()
	}
	for _, step := range []struct {
		now  counted
		want string
	}{
		{counted{running: 1}, " 0% "},
		{counted{done: 1, waiting: 1}, " 50% "},
		{counted{done: 1, dead: 1}, "100% "},
		{counted{done: 1, dead: 1, waiting: 2}, " 50% "}, // more came in
		{counted{done: 3, dead: 1}, "100% "},
	} {
		if got := shown(step.now); !strings.Contains(got, step.want) {
			t.Errorf("%+v: %q, want %q", step.now, got, step.want)
		}
	}
}
