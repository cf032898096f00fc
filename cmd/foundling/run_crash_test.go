//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/lines"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// numbers is the lines of a file.
func numbers(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// TestAKilledRunIsResumed is the story of the README: 120 lines, four at once, SIGKILL when all are read and some have run, resume. Every
// line is printed; what ran twice is at most what ran at the kill, and none of it had been completed; no child outlives the killed process
// by a second.
func TestAKilledRunIsResumed(t *testing.T) {
	const jobs, total = 4, 120
	h := newHost(t)
	ran, pids, first := filepath.Join(h.dir, "ran"), filepath.Join(h.dir, "pids"), filepath.Join(h.dir, "first")
	script := `echo $$ >>"$2"; sleep 0.1; echo "$1" >>"$3"; echo "$1"`
	cmd := h.command(t.Context(), "run", "--batch", "night", "-j", strconv.Itoa(jobs), "--", "sh", "-c", script, "sh", "{}", pids, ran)
	cmd.Stdin = strings.NewReader(numbered(1, total))
	printed, err := os.Create(first)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = printed, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "lines run", func() bool { return len(numbers(t, ran)) > 2*jobs })
	h.awaitInputRead("night")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	outlived(t, pids, time.Now().Add(time.Second))
	path := filepath.Join(h.dir, "foundling", "night.db")
	before, created := completedLines(t, path)
	if len(before) == 0 || len(before) >= total {
		t.Fatalf("%d of %d lines were completed at the kill: nothing was tested\n%s", len(before), total, said.String())
	}

	resumed := h.run("", "run", "--resume", "night")
	if resumed.code != 0 {
		t.Fatalf("resume: exit code %d\n%s", resumed.code, resumed.errout)
	}
	if !strings.Contains(resumed.errout, "taken back") {
		t.Errorf("nothing was said of what was taken back:\n%s", resumed.errout)
	}

	prints, runs := map[string]int{}, map[string]int{}
	for _, line := range append(numbers(t, first), strings.Fields(resumed.out)...) {
		prints[line]++
	}
	for _, line := range numbers(t, ran) {
		runs[line]++
	}
	twice := 0
	for i := 1; i <= total; i++ {
		line := strconv.Itoa(i)
		if prints[line] == 0 || runs[line] == 0 {
			t.Errorf("line %s: printed %d times in %d runs", line, prints[line], runs[line])
		}
		if runs[line] > 1 || prints[line] > 1 {
			twice++
			if before[foundling.ID(lines.Name(created, []byte(line), 0))] {
				t.Errorf("line %s was completed before the kill and ran again", line)
			}
		}
	}
	if twice > jobs {
		t.Errorf("%d lines ran twice, at most %d were running", twice, jobs)
	}
	clean(t, path, total)
}

// outlived fails if one of the processes is there at the deadline.
func outlived(t *testing.T, pids string, deadline time.Time) {
	t.Helper()
	for _, word := range numbers(t, pids) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("child %d outlived the killed process by a second", pid)
			}
			time.Sleep(10 * time.Millisecond) // polling the kernel: there is nothing to wait on for a process that is not ours
		}
	}
}

// alive reports whether a process runs. One that has ended and that nobody has reaped does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) || runtime.GOOS != "linux"
	}
	_, state, _ := strings.Cut(string(stat), ") ") // behind the name, which may hold anything
	return !strings.HasPrefix(state, "Z")
}

// completedLines is which messages a store has as completed, and when its log began.
func completedLines(t *testing.T, path string) (map[foundling.ID]bool, time.Time) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	completed, created := map[foundling.ID]bool{}, time.Time{}
	for r, err := range s.Read(t.Context(), "", store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if created.IsZero() {
			created = r.At()
		}
		if r.Event.Type() == events.TypeMessageCompleted {
			completed[r.Entity.ID] = true
		}
	}
	return completed, created
}

// clean fails unless the store verifies and every line of it is completed.
func clean(t *testing.T, path string, total int) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	report, err := replay.Verify(t.Context(), s, replay.Options{})
	if err != nil || len(report.Violations) > 0 {
		t.Fatalf("verify: %v %v", err, report.Violations)
	}
	done := 0
	for r, err := range s.Read(t.Context(), "", store.Filter{Types: []events.Type{events.TypeMessageCompleted}}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.To == events.Completed {
			done++
		}
	}
	if done != total+2 { // the batch and its input are messages too
		t.Errorf("%d messages were completed, want %d lines, the batch and its input", done, total)
	}
}
