package foundling_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/google/uuid"
)

// stoppedEnv makes the test binary a worker on the store of this path, to be stopped and continued.
const stoppedEnv = "FOUNDLING_STOPPED_STORE"

// The settings of both processes: short, so that the story takes seconds.
var hasty = foundling.WorkerOptions{
	HeartbeatInterval: 300 * time.Millisecond, ReclaimAfter: 1500 * time.Millisecond, ReclaimInterval: 300 * time.Millisecond,
	ClaimGrace: foundling.None,
}

var (
	heeding  = foundling.NewTopic[string]("heeding", foundling.TopicOptions{})
	ignoring = foundling.NewTopic[string]("ignoring", foundling.TopicOptions{})
)

// workUntilStopped handles one message that heeds its context and one that ignores it until a line is read; it ends with its input.
func workUntilStopped(path string) error {
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	o := hasty
	o.Sweeps, o.Concurrency = foundling.SweepsOff, 2
	w, err := foundling.NewWorker(c, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	in, line := bufio.NewReader(os.Stdin), make(chan struct{})
	go func() { // ends with the input, and the process with it
		_, _ = in.ReadString('\n')
		close(line)
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	heeding.Handle(w, func(ctx context.Context, m foundling.Message[string]) error {
		fmt.Println("began", m.Payload)
		<-ctx.Done()
		fmt.Println("told", context.Cause(ctx))
		return ctx.Err()
	})
	ignoring.Handle(w, func(_ context.Context, m foundling.Message[string]) error {
		fmt.Println("began", m.Payload)
		<-line
		return nil
	})
	return w.Run(ctx)
}

// puppet is the process that is stopped and continued.
type puppet struct {
	*exec.Cmd
	in    io.WriteCloser
	lines chan string
}

func newPuppet(t *testing.T, path string) *puppet {
	t.Helper()
	p := &puppet{Cmd: exec.Command(os.Args[0]), lines: make(chan string, 16)}
	p.Env = append(os.Environ(), stoppedEnv+"="+path)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		p.in, err = p.StdinPipe()
	}
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			p.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p
}

func (p *puppet) line(t *testing.T) string {
	t.Helper()
	select {
	case line := <-p.lines:
		return line
	case <-time.After(30 * time.Second):
		t.Fatal("the other process says nothing")
		return ""
	}
}

// stop stops the process where it holds nothing that others wait for: one that is stopped inside a transaction stops every writer.
func (p *puppet) stop(t *testing.T, s *sqlite.Store) {
	t.Helper()
	probe := store.Beat{Worker: [16]byte{6: 0x70, 15: 1}, First: true, Interval: time.Second}
	for range 50 {
		p.signal(t, syscall.SIGSTOP)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, beat := s.Beat(ctx, probe)
		_, settled, err := s.Outcome(ctx, newCommitID(t))
		cancel()
		if beat == nil && err == nil && !settled {
			if err := s.Still(t.Context(), probe.Worker); err != nil {
				t.Fatal(err)
			}
			return
		}
		p.signal(t, syscall.SIGCONT)
	}
	t.Fatal("it was stopped inside a transaction each time")
}

func (p *puppet) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until the log satisfies a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s: it does not come to that", what)
		}
	}
}

func TestAProcessThatWasOnlyStoppedReleasesNothingTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := clientOf(t, s)
	var ids []foundling.ID
	for _, topic := range []foundling.Topic[string]{heeding, ignoring} {
		id, err := topic.Enqueue(t.Context(), c, topic.Name(), foundling.EnqueueOptions{Lock: "lock of " + topic.Name()})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	p := newPuppet(t, path)
	if a, b := p.line(t), p.line(t); a == b {
		t.Fatalf("it says %q twice", a)
	}
	p.stop(t, s)

	w := newWorker(t, c, hasty)
	for _, topic := range []foundling.Topic[string]{heeding, ignoring} {
		topic.Handle(w, func(context.Context, foundling.Message[string]) error { return nil })
	}
	stop := running(t, w)
	eventually(t, "its messages are given to another worker and completed", func() bool {
		return types(t, s, events.TypeMessageCompleted)[events.TypeMessageCompleted] == 2
	})
	p.signal(t, syscall.SIGCONT)
	told := p.line(t)
	if want := []string{"told " + foundling.ErrFenced.Error(), "told " + foundling.ErrClaimLost.Error()}; told != want[0] && told != want[1] {
		t.Errorf("its handler was told %q, want one of %q", told, want)
	}
	if _, err := io.WriteString(p.in, "go on\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its late results are refused, and it says that it lives", func() bool {
		n := types(t, s, events.TypeMessageRefused, events.TypeWorkerReturned)
		return n[events.TypeMessageRefused] == 2 && n[events.TypeWorkerReturned] == 1
	})
	stop()
	if err := errors.Join(p.in.Close(), p.Wait()); err != nil {
		t.Errorf("the process that was stopped: %v", err)
	}
	for _, id := range ids {
		if got := history(t, s, id); got != "enqueued claimed orphaned requeued:orphan claimed completed refused:wrong_state" {
			t.Errorf("message %s: %s", id, got)
		}
	}
	n := types(t, s, events.TypeWorkerLost, events.TypeLockAcquired, events.TypeLockReclaimed, events.TypeLockReleased)
	if n[events.TypeWorkerLost] != 1 || n[events.TypeLockAcquired] != 4 || n[events.TypeLockReclaimed] != 2 || n[events.TypeLockReleased] != 2 {
		t.Errorf("lost workers and permits: %v, want one, and each permit back once", n)
	}
	if got := evidence(t, s); got != events.ReasonSilent {
		t.Errorf("it was held to be dead by %q: its process lives", got)
	}
	if !falseAlarm(t, s) {
		t.Error("status does not show the false alarm")
	}
	clean(t, s)
}

// falseAlarm reports whether status shows that a worker was held to be lost, and lived.
func falseAlarm(t *testing.T, s store.Store) bool {
	t.Helper()
	state := findings.NewState()
	for r, err := range s.Read(t.Context(), "", store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		state.Apply(r)
	}
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(findings.List(state, findings.Facts{Now: now}), func(f findings.Finding) bool {
		return f.Code == findings.WorkerReturned
	})
}

// evidence is by which evidence the last worker was held to be lost.
func evidence(t *testing.T, s store.Store) events.Reason {
	t.Helper()
	var reason events.Reason
	for r, err := range s.Read(t.Context(), "", store.Filter{Types: []events.Type{events.TypeWorkerLost}}) {
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := r.Event.(*events.WorkerLost); ok {
			reason = e.Evidence.Reason
		}
	}
	return reason
}

func newCommitID(t *testing.T) store.CommitID {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return id
}
