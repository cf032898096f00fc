package foundling_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

func TestTwoProcessesFlatOutOnOneFile(t *testing.T) { twoFlatOut(t, 4000) }

func TestTwoProcessesFlatOutOnOneFileForLong(t *testing.T) {
	if os.Getenv("FOUNDLING_LONG") == "" {
		t.Skip("a minute, or several on a busy machine: left to ./test --long")
	}
	twoFlatOut(t, 20_000)
}

// twoFlatOut has two processes of 20 workers each enqueue and handle as fast as they can on one file, and folds the log itself to see
// what they did.
func twoFlatOut(t *testing.T, messages int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	half := fmt.Sprint(messages / 2)
	j := startJoint(t, []string{"work", path, "0", half}, []string{"work", path, half, half})
	j.workOff(t, messages)

	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	log := newLedger()
	for r, err := range s.Read(t.Context(), "", store.Filter{}) {
		if err == nil {
			err = log.add(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("claims %d, completed by process %v, most at once %v", log.claims, log.completed, log.most)
	if len(log.topic) != messages || len(log.ended) != messages {
		t.Errorf("%d messages in the log, %d of them ended, want %d", len(log.topic), len(log.ended), messages)
	}
	for topic, limit := range log.limit {
		if log.most[topic] != limit {
			t.Errorf("%s: at most %d ran at once, so that its limit of %d was never tried", topic, log.most[topic], limit)
		}
	}
	for _, pid := range j.pids {
		if n := log.completed[pid]; n < messages/4 {
			t.Errorf("process %d completed %d of %d messages, less than a quarter", pid, n, messages)
		}
	}
	report, err := replay.Verify(t.Context(), s, replay.Options{Payloads: true})
	if err != nil {
		t.Fatal(err)
	}
	if !report.Clean() || len(report.Unchecked) > 0 {
		t.Errorf("verify: %v, unchecked %q", report.Violations, report.Unchecked)
	}
}

// TestFirstOpeningsByThreeProcesses has three processes open a file that is not there yet at the same time, again and again.
func TestFirstOpeningsByThreeProcesses(t *testing.T) {
	open := []string{"open"}
	j := startJoint(t, open, open, open)
	dir := t.TempDir()
	for round := range 50 {
		path := filepath.Join(dir, fmt.Sprintf("%d.db", round))
		j.tell(t, path+"\n")
		for done := 0; done < len(j.pids); {
			switch h := j.next(t); {
			case h.Done == path:
				done++
			case h.ended:
				t.FailNow()
			}
		}
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{MustExist: true})
		if err != nil {
			t.Fatal(err)
		}
		messages := 0
		for _, err := range s.Read(t.Context(), "", store.Filter{Types: []events.Type{events.TypeMessageEnqueued}}) {
			if err != nil {
				t.Fatal(err)
			}
			messages++
		}
		if messages != len(j.pids) {
			t.Errorf("round %d: %d messages in the store, want one of each process", round, messages)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	j.end()
	for j.left > 0 {
		j.next(t)
	}
}

// ledger adds up the log of messages that only complete, apart from the folds of the engine and of verify.
type ledger struct {
	limit     map[string]int          // in force, by topic
	running   map[string]int          // by topic
	most      map[string]int          // the highest of running
	topic     map[events.ID]string    // of each message
	claimer   map[events.ID]events.ID // the incarnation that had a message last
	ended     map[events.ID]events.State
	process   map[events.ID]int // of each incarnation
	completed map[int]int       // by process
	claims    int
}

func newLedger() *ledger {
	return &ledger{
		limit: map[string]int{}, running: map[string]int{}, most: map[string]int{}, topic: map[events.ID]string{},
		claimer: map[events.ID]events.ID{}, ended: map[events.ID]events.State{}, process: map[events.ID]int{}, completed: map[int]int{},
	}
}

// add takes the next event. An error says how it breaks what two healthy processes must keep.
func (l *ledger) add(r events.Recorded) error {
	switch e := r.Event.(type) {
	case *events.WorkerStarted:
		l.process[r.Entity.ID] = e.PID
	case *events.TopicConfigured:
		l.limit[r.Entity.Name] = e.Limit
	case *events.MessageEnqueued:
		l.topic[r.Entity.ID] = e.Topic
	case *events.MessageClaimed:
		l.claims++
		l.claimer[r.Entity.ID] = e.Worker
	}
	if r.Entity.Kind != events.KindMessage || r.From == r.To {
		return nil
	}
	return l.move(r)
}

// move takes a message from one state to the next.
func (l *ledger) move(r events.Recorded) error {
	id, topic := r.Entity.ID, l.topic[r.Entity.ID]
	if state, ok := l.ended[id]; ok {
		return fmt.Errorf("position %d: %s of %s, which was %s", r.Position, r.Event.Type(), r.Entity, state)
	}
	if r.From == events.Running {
		l.running[topic]--
	}
	switch r.To {
	case events.Running:
		l.running[topic]++
		l.most[topic] = max(l.most[topic], l.running[topic])
		if l.running[topic] > l.limit[topic] {
			return fmt.Errorf("position %d: %d messages of %s run, its limit is %d", r.Position, l.running[topic], topic, l.limit[topic])
		}
	case events.Completed:
		l.ended[id] = r.To
		l.completed[l.process[l.claimer[id]]]++
	case events.Queued: // enqueued, or given back by a worker that did not know of it in time
	default:
		return fmt.Errorf("position %d: %s of %s, which nobody asked for", r.Position, r.Event.Type(), r.Entity)
	}
	return nil
}

// heard is a line of a process of internal/joint, or that the process has ended. Exactly one of the other fields is set.
type heard struct {
	from  int // the process, by its place
	ended bool
	err   error // of its end

	Ready bool
	Ran   *int
	Done  string
	Log   string
	Error string
	Beats *struct {
		Count        int
		Late, Engine time.Duration
	}
}

// joint is several processes of internal/joint.
type joint struct {
	inputs []io.WriteCloser
	pids   []int
	lines  chan heard
	left   int // that have not ended
}

// startJoint builds internal/joint without the race detector, whether this test has it or not, starts a process for each list of
// arguments and waits until all are ready. They are killed with the end of the test, and after a time in which they must be done.
func startJoint(t *testing.T, args ...[]string) *joint {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	program := filepath.Join(t.TempDir(), "joint.exe")
	build := exec.CommandContext(ctx, "go", "build", "-race=false", "-o", program, "./internal/joint")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	j := &joint{lines: make(chan heard)}
	t.Cleanup(func() {
		cancel()
		for j.left > 0 {
			j.next(t)
		}
	})
	for _, list := range args {
		j.start(t, exec.CommandContext(ctx, program, list...))
	}
	for range args {
		if h := j.next(t); !h.Ready {
			t.Fatalf("process %d is not ready", j.pids[h.from])
		}
	}
	return j
}

func (j *joint) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stderr = os.Stderr
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
	from := j.left
	j.inputs, j.pids, j.left = append(j.inputs, input), append(j.pids, cmd.Process.Pid), j.left+1
	go func() { // ends with the process, which the clean-up waits for
		lines := json.NewDecoder(output)
		for {
			h := heard{from: from}
			if err := lines.Decode(&h); errors.Is(err, io.EOF) {
				j.lines <- heard{from: from, ended: true, err: cmd.Wait()}
				return
			} else if err != nil {
				_ = cmd.Process.Kill()
				j.lines <- heard{from: from, ended: true, err: errors.Join(err, cmd.Wait())}
				return
			}
			j.lines <- h
		}
	}()
}

// next is what is heard next. Whatever a process says to be wrong is an error of the test, but for a deadline that it logs: its calls have
// none, and a step of the leader's beat has two short intervals, which a busy machine may not have for it.
func (j *joint) next(t *testing.T) heard {
	t.Helper()
	h := <-j.lines
	switch pid := j.pids[h.from]; {
	case h.Error != "":
		t.Errorf("process %d: %s", pid, h.Error)
	case strings.Contains(h.Log, "level=ERROR") && !strings.Contains(h.Log, context.DeadlineExceeded.Error()):
		t.Errorf("process %d logs: %s", pid, h.Log)
	case h.Log != "":
		t.Logf("process %d logs: %s", pid, h.Log)
	case h.ended:
		j.left--
		if h.err != nil {
			t.Errorf("process %d: %v", pid, h.err)
		}
	}
	return h
}

// tell writes a line to all processes.
func (j *joint) tell(t *testing.T, line string) {
	t.Helper()
	for _, input := range j.inputs {
		if _, err := io.WriteString(input, line); err != nil {
			t.Error(err)
		}
	}
}

// end ends the inputs, and with them the processes.
func (j *joint) end() {
	for _, input := range j.inputs {
		_ = input.Close() // it fails where the process has ended already
	}
}

// workOff lets the processes work until every message was handled, and checks their heartbeats.
func (j *joint) workOff(t *testing.T, messages int) {
	t.Helper()
	begun := time.Now()
	j.tell(t, "go\n")
	ran := map[int]bool{}
	for stop := false; j.left > 0; {
		h := j.next(t)
		if h.Ran != nil {
			ran[*h.Ran] = true
		}
		if h.Beats != nil {
			t.Logf("process %d: %+v", j.pids[h.from], *h.Beats)
			if h.Beats.Engine > time.Second {
				t.Errorf("process %d: a heartbeat was confirmed %s after it was due", j.pids[h.from], h.Beats.Engine)
			}
			if h.Beats.Count == 0 {
				t.Errorf("process %d has no heartbeats", j.pids[h.from])
			}
		}
		if !stop && (len(ran) == messages || h.ended) {
			stop = true
			j.end()
		}
	}
	t.Logf("%d messages handled in %s", len(ran), time.Since(begun).Round(time.Millisecond))
}
