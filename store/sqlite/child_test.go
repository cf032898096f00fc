package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/google/uuid"
)

// The roles of a child.
const (
	roleAttest = "attest" // PATH ID: attests, starts a child of its own, says so, and waits for its input to end
	roleIdle   = "idle"   // waits for its input to end
	roleWrite  = "write"  // PATH TOPIC DURATION: enqueues flat out, and says what it counted
	rolePrune  = "prune"  // PATH TOPIC: lets messages live and prunes what is a moment old, and says each time that it will, until it is killed
	roleLock   = "lock"   // PATH: claims and settles messages with locks flat out, and says each time that it has, until it is killed
)

// playChild is the life of a child process.
func playChild(role string, args []string) int {
	if err := playRole(role, args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func playRole(role string, args []string) error {
	if role == roleIdle {
		fmt.Println("ready")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	s, err := sqlite.Open(context.Background(), args[0], sqlite.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	switch role {
	case roleAttest:
		return attestAndWait(s, args[1])
	case roleLock:
		return lockOn(s)
	case rolePrune:
		fmt.Println("ready")
		return pruneOn(s, args[1], func() bool { fmt.Println("prunes"); return true })
	}
	length, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	tally, err := flatOut(s, args[1], length)
	fmt.Println(tally.commits, tally.longest)
	return err
}

func attestAndWait(s *sqlite.Store, id string) error {
	worker, err := uuid.Parse(id)
	if err != nil {
		return err
	}
	if _, err := s.Attest(context.Background(), worker); err != nil {
		return err
	}
	grandchild := exec.Command(os.Args[0])
	grandchild.Env = append(os.Environ(), asChild+"="+roleIdle)
	grandchild.Stdin = os.Stdin
	out, err := grandchild.StdoutPipe()
	if err != nil {
		return err
	}
	if err := grandchild.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// lockOn lets messages live that take locks of which there are fewer, so that some are blocked, some have one and some are sent to try.
func lockOn(s store.Store) error {
	var rows []store.Row
	fmt.Println("ready")
	for i := 0; ; i++ {
		list := []store.Call{locking("mail", fmt.Sprint("l", i%5), 1), locking("press", fmt.Sprint("l", i%3), 1)}
		if len(rows) > 2 {
			call, err := settlingAll(worker, rows[:3])
			if err != nil {
				return err
			}
			list, rows = append(list, call), rows[3:]
		}
		receipts, err := s.Decide(context.Background(), append(list, claimingBy(worker, "mail", 2), claimingBy(worker, "press", 2))...)
		if err != nil {
			return err
		}
		for _, r := range receipts {
			if r.Err != nil {
				return r.Err
			}
			rows = append(rows, running(r)...)
		}
		fmt.Println(i)
	}
}

type tally struct {
	commits int
	longest time.Duration
}

// flatOut enqueues small batches for some time.
func flatOut(s store.Store, topic string, length time.Duration) (tally, error) {
	var t tally
	for end := time.Now().Add(length); time.Now().Before(end); t.commits++ {
		begin := time.Now()
		receipts, err := s.Decide(context.Background(), enqueueing(topic, 10))
		if err == nil {
			err = receipts[0].Err
		}
		if err != nil {
			return t, err
		}
		t.longest = max(t.longest, time.Since(begin))
	}
	return t, nil
}

// child is another process.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startChild starts a child and waits until it is ready.
func startChild(t *testing.T, role string, args ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0], args...)}
	c.Env = append(os.Environ(), asChild+"="+role)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.in.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	c.out = bufio.NewReader(out)
	if line := c.line(t); line != "ready" {
		t.Fatalf("the child says %q", line)
	}
	return c
}

// line is the next line that the child says.
func (c *child) line(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
