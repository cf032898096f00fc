package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"iter"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// cutStore is a store at whose log somebody interrupts after some events.
type cutStore struct {
	store.Store
	after     int
	interrupt func()
}

func (c cutStore) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		n := 0
		for r, err := range c.Store.Read(ctx, after, f) {
			if n == c.after {
				c.interrupt()
				yield(events.Recorded{}, ctx.Err())
				return
			}
			if n++; !yield(r, err) {
				return
			}
		}
	}
}

// An answer that an interrupt cut short is as of where the log was read to; it says so, and it is exit code 130.
func TestAnInterruptedLookIsAsOfWhereItCame(t *testing.T) {
	d := newDesk(t)
	d.enqueue(3, "")
	var errout bytes.Buffer
	d.app.stderr = &errout
	for _, form := range []format{formatTable, formatJSON} {
		d.app.format = form
		d.out.Reset()
		ctx, cancel := context.WithCancel(t.Context())
		l, err := takeLook(ctx, cutStore{d.store, 2, cancel}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if !l.cut || l.mark().Position != 2 {
			t.Errorf("cut short is %t, as of %d", l.cut, l.mark().Position)
		}
		if err := d.app.topics(l); err != nil {
			t.Fatal(err)
		}
		if err := d.app.footer(l); codeOf(err) != exitInterrupted {
			t.Errorf("%v is exit code %d", err, codeOf(err))
		}
		if form == formatJSON && !bytes.Contains(d.out.Bytes(), []byte(`"as_of":{"position":"2",`)) || form == formatJSON && !bytes.Contains(d.out.Bytes(), []byte(`"truncated":true`)) {
			t.Errorf("%s", d.out.String())
		}
	}
	if !bytes.Contains(errout.Bytes(), []byte("as of position 2")) {
		t.Errorf("%s", errout.String())
	}
}

// An interrupt while enqueue waited for input left half an object behind.
func TestAnInterruptedEnqueueEndsItsObject(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes are not interrupted so there")
	}
	cmd := exec.CommandContext(t.Context(), binary(t), "enqueue", "mail", "--json")
	cmd.Env = append(os.Environ(), "FOUNDLING_STORE="+t.TempDir()+"/store.db")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(input, strings.Repeat("line\n", 2000)); err != nil { // more than a page, so that some is enqueued
		t.Fatal(err)
	}
	out := bufio.NewReader(output)
	var text []byte
	for n := 0; n < 2; n++ { // the head, and the first message: the rest of the input is being waited for
		line, err := out.ReadBytes('\n')
		if text = append(text, line...); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, rest...)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("it ended with %v", err)
	}
	if err := validate(text); err != nil || !bytes.Contains(text, []byte(`"truncated":true`)) {
		t.Errorf("%v\n%s", err, text[max(0, len(text)-300):])
	}
}

// What is not understood is told as JSON, however that was asked for.
func TestWhoAsksForObjectsGetsObjects(t *testing.T) {
	for line, want := range map[string]bool{
		"status --json": true, "status -ojson": true, "status -o=json": true, "status -o json": true, "status --output=jsonl": true, "status -ojsonl": true,
		"status -ocsv": false, "status -o table": false, "run -- cmd -ojson": false, "status": false, "status -o": false,
	} {
		if got := wantsObjects(strings.Fields(line)); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}

// brokenPipe is an output that nobody reads any more.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestAScriptThatNobodyReadsIsNoError(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var errout bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: brokenPipe{}, stderr: &errout, env: func(string) string { return "" }}
		if code := execute(t.Context(), a, []string{"completion", shell}); code != 0 || errout.Len() > 0 {
			t.Errorf("%s: exit code %d, %s", shell, code, &errout)
		}
	}
}
