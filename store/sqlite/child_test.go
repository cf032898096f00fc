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
	if role == roleAttest {
		return attestAndWait(s, args[1])
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
