package foundling_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/sqlite"
)

// residentEnv makes the test binary a process that works through so many messages and prints the most memory it had.
const residentEnv = "FOUNDLING_RESIDENT_MESSAGES"

func TestMain(m *testing.M) {
	var err error
	if n, notGiven := strconv.Atoi(os.Getenv(residentEnv)); notGiven == nil {
		err = workThrough(n)
	} else if path := os.Getenv(stoppedEnv); path != "" {
		err = workUntilStopped(path)
	} else {
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// workThrough enqueues n messages as fast as it can while a worker handles them, and prints the process's peak of resident memory.
func workThrough(n int) error {
	dir, err := os.MkdirTemp("", "foundling-resident-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := sqlite.Open(context.Background(), filepath.Join(dir, "store.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: quiet, Timeout: foundling.None})
	if err != nil {
		return err
	}
	topic := foundling.NewTopic[[]byte]("mail", foundling.TopicOptions{})
	w, err := foundling.NewWorker(c, foundling.WorkerOptions{Concurrency: 200})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var left atomic.Int64
	left.Store(int64(n))
	topic.Handle(w, func(context.Context, foundling.Message[[]byte]) error {
		if left.Add(-1) == 0 {
			cancel()
		}
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	const page = 500
	for i := 0; i < n; i += page {
		drafts := make([]foundling.Draft, min(page, n-i))
		for j := range drafts {
			drafts[j] = topic.Draft([]byte(`{"num":12345678901}`), foundling.EnqueueOptions{})
		}
		if _, err := c.EnqueueMany(context.Background(), drafts...); err != nil {
			return err
		}
	}
	if err := <-done; err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Println(strings.Fields(kib)[0])
		}
	}
	return nil
}

// peakKiB is the peak of a process that works through n messages.
func peakKiB(t *testing.T, n int) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", residentEnv, n))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%d messages: %v", n, err)
	}
	kib, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatalf("%d messages: %q: %v", n, out, err)
	}
	t.Logf("%d messages: %d KiB resident at most", n, kib)
	return kib
}

// TestMemoryDoesNotGrowWithTheBacklog compares the memory of two processes that enqueue faster than they handle.
func TestMemoryDoesNotGrowWithTheBacklog(t *testing.T) {
	if os.Getenv("FOUNDLING_LONG") == "" {
		t.Skip("minutes: left to ./test --long")
	}
	const few, many = 100_000, 1_000_000
	small, large := peakKiB(t, few), peakKiB(t, many)
	if ratio := float64(large) / float64(small); ratio > 1.2 {
		t.Errorf("resident memory at %d messages is %.2f times that at %d, want at most 1.2", many, ratio, few)
	}
}
