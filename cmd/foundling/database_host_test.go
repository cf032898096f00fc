//go:build unix

package main

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/foundling-go/foundling/internal/pgtest"
)

// Several processes that open a database for the first time at once make one store.
func TestSeveralProcessesMakeOneStoreInADatabase(t *testing.T) {
	h := newHost(t)
	dsn := pgtest.Database(t)
	results := make([]ended, 5)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i] = h.run("one\ntwo\n", "enqueue", "mail", "--store", dsn) })
	}
	all.Wait()
	for _, got := range results {
		if got.code != 0 || strings.Count(got.out, "\n") != 2 || got.errout != "" {
			t.Errorf("exit code %d\n%s%s", got.code, got.out, got.errout)
		}
	}
	if got := h.run("", "topics", "--store", dsn); !found(`(?m)^mail +– +0 +10 `, got.out) {
		t.Errorf("%s", got.out)
	}
	if got := h.run("", "verify", "--store", dsn); got.code != 0 {
		t.Errorf("%s%s", got.out, got.errout)
	}
}

// What a killed worker held is taken back by the next one on the evidence of silence, once its heartbeat is old.
func TestAKilledWorkerOfADatabaseIsTakenBackBySilence(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dsn := migrated(t).Database(t)
	if got := h.run("one\n", "enqueue", "mail", "--store", dsn, "--lock", "door"); got.code != 0 {
		t.Fatal(got.errout)
	}
	settings := []string{"--store", dsn, "--heartbeat-interval", "500ms", "--orphan-reclaim-after", "3s", "--orphan-claim-grace", "0s", "--orphan-reclaim-interval", "1s"}
	script := `touch "$1/ready"; test -e "$1/well" || sleep 60`
	work := append([]string{"work", "mail", "-j", "1"}, settings...)
	cmd, _ := h.started("", append(work, "--", "sh", "-c", script, "sh", h.dir)...)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	h.makeFile("well")
	if got := h.run("", append(append(work, "--until-empty"), "--", "sh", "-c", script, "sh", h.dir)...); got.code != 0 {
		t.Errorf("exit code %d\n%s", got.code, got.errout)
	}
	got := h.run("", "events", "--store", dsn, "--type", "message.orphaned", "--type", "message.completed", "--type", "lock.reclaimed")
	if !found(`message.orphaned .*silent`, got.out) || strings.Count(got.out, "message.completed") != 1 || strings.Count(got.out, "lock.reclaimed") != 1 {
		t.Errorf("%s", got.out)
	}
	if got := h.run("", "verify", "--store", dsn); got.code != 0 {
		t.Errorf("%s%s", got.out, got.errout)
	}
}

// A run of lines on a database says that nobody can prove there that a process has ended, waits for its silence and goes on.
func TestARunOnADatabaseGoesByHeartbeats(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dsn := migrated(t).Database(t)
	script := `touch "$2/ready"; test -e "$2/well" || sleep 60`
	run := []string{"run", "--store", dsn, "-j", "2", "--", "sh", "-c", script, "sh", "{}", h.dir}
	cmd, _ := h.started(numbered(1, 5), run...)
	until(t, "the input is read", func() bool {
		return found(`message.completed`, h.run("", "events", "--topic", "input", "--store", dsn).out)
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	h.makeFile("well")
	got := h.run("", "run", "--store", dsn)
	want := fmt.Sprintf(`2 were running in process %d, silent for \d+s: taken back`, cmd.Process.Pid)
	said := fmt.Sprintf(`waiting for 2 lines of process %d: its end cannot be proven, for a database knows no processes; `, cmd.Process.Pid)
	if got.code != 0 || !found(want, got.errout) && !found(said, got.errout) || strings.Contains(got.errout, secretOf(t, dsn)) {
		t.Errorf("exit code %d, want %s or %s\n%s", got.code, want, said, got.errout)
	}
	if got := h.run("", "topics", "lines", "--store", dsn); !found(`(?m)^lines +– +0 +0 `, got.out) {
		t.Errorf("%s", got.out)
	}
	if got := h.run("", "verify", "--store", dsn); got.code != 0 {
		t.Errorf("%s%s", got.out, got.errout)
	}
}

// An interrupt ends who follows the log of a database, and says how to go on.
func TestAFollowerOfADatabaseIsInterrupted(t *testing.T) {
	h := newHost(t)
	dsn := migrated(t).Database(t)
	cmd, out, errout := h.command(t.Context(), "events", "--follow", "--store", dsn, "-o", "jsonl"), &voice{}, &voice{}
	cmd.Stdout, cmd.Stderr = out, errout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for range 3 { // of another process, while it follows
		if got := h.run("one\n", "enqueue", "mail", "--store", dsn); got.code != 0 {
			t.Fatal(got.errout)
		}
	}
	until(t, "three messages", func() bool { return strings.Count(out.String(), "message.enqueued") >= 3 })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != exitInterrupted || !found(`go on with --after [0-9a-f-]{36}@[0-9]+`, errout.String()) {
		t.Errorf("exit code %d\n%s", code, errout.String())
	}
	if n := strings.Count(out.String(), "message.enqueued"); n != 3 {
		t.Errorf("%d messages, want 3\n%s", n, out.String())
	}
	if strings.Contains(out.String()+errout.String(), secretOf(t, dsn)) {
		t.Error("it tells the password")
	}
}
