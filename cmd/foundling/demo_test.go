//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// demonstration begins the built command's demonstration, with its temporary directory in dir.
func demonstration(t *testing.T, dir string, args ...string) (*exec.Cmd, *voice, *voice) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	t.Cleanup(cancel)
	cmd, out, errout := exec.CommandContext(ctx, binary(t), append([]string{"demo"}, args...)...), &voice{}, &voice{}
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "FOUNDLING_STORE=")
	cmd.Stdout, cmd.Stderr = out, errout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out, errout
}

// TestTheDemonstrationShowsWhatItPromises runs it, built, within 45 seconds: each phrase proves a point of it, in this order.
func TestTheDemonstrationShowsWhatItPromises(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, out, errout := demonstration(t, dir, "--keep")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), errout.String())
	}
	rest := out.String()
	for _, want := range []string{
		`heartbeat_interval +500ms +15s`, `orphan_reclaim_after +3s +2m00s`, // its settings first
		`1 · Where silence is the only evidence`, `without proof of death`,
		`receipts +2 +2 +4 +0 +[0-9.]+m?s +full`, // busy
		`Both, \d+ and \d+, are killed with SIGKILL`,
		`letters +– +0 +0 +1 `, `receipts +2 +2 +4 +0 +[0-9.]+s +full`, // the same counts, wedged
		`Wedged, and looking busy: 2 of 2 are running`,
		`\(\d+ on .*\) +dead: silent for [0-9.]+s, more than 3s +1 +user:ann`, `\(\d+ on .*\) +dead: silent for [0-9.]+s, more than 3s +1 +user:bob`,
		`user:ann +1 +1 +1 +[0-9.]+s +letters \(1\)`,
		`\$ foundling sweep .*--wait 0s`, `✖ refused: liveness_unproven`, `the caller has beaten for .*, it must have for 3s`, `\(exit status 5\)`,
		`it waits [0-9.]+s for proof, and beats meanwhile`, `✔ gave back 2 messages and 2 locks of 2 dead workers`, `more than 3s \(silent\)`,
		`receipts +0 +0 +0 +2 +– +6 `, `nothing is wrong|● info worker_gap`, // all of it was finished; a busy machine may have held up a heartbeat
		`\$ foundling trace …`, `claimed +1 `, `orphaned +1 .*silent for`, `requeued +1 `, `claimed +2 `, `completed +2 `,
		`\$ foundling verify`, `verified \d+ events of \d+ entities in \d+ commits: clean`,
		`2 · The same with proof of death`, `✔ gave back 2 messages and 2 locks of 2 dead workers`, `its process has ended \(process_gone\)`,
		`after the kill, by the store's clock`, `receipts +0 +0 +0 +2 +– +6 `, `: clean`,
	} {
		at := regexp.MustCompile(want).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("no %q in the rest:\n%s\nof the story:\n%s", want, rest, out.String())
		}
		rest = rest[at[1]:]
	}
	refusedThenFinished(t, kept(t, dir, "silence.db"))
	t.Logf("%s", out.String())
}

// kept is the store of an act that was kept.
func kept(t *testing.T, dir, name string) store.Store {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "foundling-demo-*", name))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q: %v", found, err)
	}
	s, err := sqlite.Open(t.Context(), found[0], sqlite.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// refusedThenFinished fails unless the log has a refusal of a guard, and later a sweep that gave everything back by the evidence of silence.
func refusedThenFinished(t *testing.T, s store.Store) {
	t.Helper()
	var refused, finished int64
	for r, err := range s.Read(t.Context(), "", store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := r.Event.(type) {
		case *events.WorkerStarted:
			if e.Proof {
				t.Errorf("%s says that its end can be proven", r.Entity)
			}
		case *events.SweepRefused:
			if refused = r.Position; e.Reason != events.ReasonLivenessUnproven || e.Thresholds.After != demoAfter || e.Liveness.Live != 2 {
				t.Errorf("refused by %s after %s with %d live", e.Reason, e.Thresholds.After, e.Liveness.Live)
			}
		case *events.SweepFinished:
			if finished = r.Position; len(e.Dead) != 2 || e.Requeued != 2 || e.LocksReleased != 2 {
				t.Errorf("finished with %d dead, %d requeued, %d locks released", len(e.Dead), e.Requeued, e.LocksReleased)
			}
		case *events.WorkerLost:
			if e.Evidence.Reason != events.ReasonSilent || refused == 0 {
				t.Errorf("%s lost by %s at %d, refused at %d", r.Entity, e.Evidence.Reason, r.Position, refused)
			}
		}
	}
	if refused == 0 || finished < refused {
		t.Errorf("refused at %d, finished at %d", refused, finished)
	}
}

// An interrupt ends the demonstration with all its processes, and nothing is left behind.
func TestAnInterruptedDemonstrationLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, out, errout := demonstration(t, dir)
	out.await(t, "are killed with SIGKILL")
	out.await(t, "A third worker is started, process ")
	_, tail, _ := strings.Cut(out.String(), "A third worker is started, process ")
	third, err := strconv.Atoi(tail[:strings.IndexByte(tail, ',')])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil { // as a terminal does
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Fatalf("%v\n%s\n%s", err, out.String(), errout.String())
	}
	if alive(third) {
		t.Errorf("process %d outlived it", third)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A process of the demonstration ends with whoever started it, also where that was killed.
func TestAProcessOfTheDemonstrationEndsWithItsParent(t *testing.T) {
	h := newHost(t)
	if got := h.run("", "enqueue", "receipts", "--store", filepath.Join(h.dir, "s.db")); got.code != 0 {
		t.Fatal(got.errout)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := h.command(t.Context(), "demo-worker", "receipts", "--without-proof", "--store", filepath.Join(h.dir, "s.db"))
	var errout bytes.Buffer
	cmd.Stdin, cmd.Stderr = read, &errout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = read.Close()
	_ = write.Close() // as the kernel does for one that is killed
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, errout.String())
	}
}
