//go:build unix

package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// watcherName is what the watcher is called by. It is not this program's
	// name, so that a pkill of that name spares it: it ends by itself.
	watcherName = "lifeline"
	// watcherReady is what a watcher says when it listens.
	watcherReady = '\x06'
	// watcherWait bounds each wait for the watcher.
	watcherWait = 10 * time.Second
)

// MaybeWatcher does nothing, except in the process that a Runner starts to
// watch over its children: there it does that work and exits. Call it first
// thing in main, and in TestMain, where a Runner may be used.
func MaybeWatcher() {
	if len(os.Args) == 0 || os.Args[0] != watcherName {
		return
	}
	// What ends the others must leave it its work; it ends with the pipe.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	// On Linux the name that ps and pkill go by; elsewhere there is no such file.
	_ = os.WriteFile("/proc/self/comm", []byte(watcherName), 0)
	_, _ = os.Stdout.Write([]byte{watcherReady})
	os.Stdout.Close()
	watch(os.Stdin, findGroup, func(group int) { signalGroup(group, syscall.SIGKILL) })
	syscall.Exit(0) // os.Exit would wait a second in a race-detecting build
}

// watch reads what a lifeline tells, line by line, until that ends: "?mark" of
// a child about to start, "+group" of one that has, "-group" of one that has
// ended. Then it kills the groups that are left, and that of the mark where no
// group has followed. A line that is cut short could be another group's number:
// it is passed over, as is anything else.
func watch(in io.Reader, find func(mark string) (group int), kill func(group int)) {
	groups, mark := make(map[int]bool), ""
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		verb, rest := line[0], strings.TrimSuffix(line[1:], "\n")
		if verb == '?' {
			mark = rest
			continue
		}
		group, err := strconv.Atoi(rest)
		switch {
		case err != nil:
		case verb == '+':
			groups[group], mark = true, ""
		case verb == '-':
			delete(groups, group)
		}
	}
	for group := range groups {
		kill(group)
	}
	if mark != "" {
		kill(find(mark)) // last, since it can take a while
	}
}

// lifeline is the watcher as its Runner sees it.
type lifeline struct {
	cmd  *exec.Cmd
	pipe *os.File // its other end is the watcher's standard input
}

func newLifeline() (*lifeline, error) {
	if len(os.Args) > 0 && os.Args[0] == watcherName {
		// This is a watcher that came past MaybeWatcher, and would start another.
		return nil, fmt.Errorf("%w: call child.MaybeWatcher first thing in main", ErrWatcher)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWatcher, err)
	}
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		program = "/proc/self/exe" // works even when the file has been replaced
	}
	listen, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer listen.Close()
	l := &lifeline{pipe: pipe, cmd: &exec.Cmd{
		Path:        program,
		Args:        []string{watcherName, "of", strconv.Itoa(os.Getpid())},
		Dir:         "/",
		Env:         []string{}, // a mark of our own parent's, above all, must not reach it
		Stdin:       listen,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // out of reach of the terminal's signals
	}}
	if err := l.start(); err != nil {
		pipe.Close()
		return nil, fmt.Errorf("%w: %w", ErrWatcher, err)
	}
	return l, nil
}

// start starts the watcher and waits until it listens.
func (l *lifeline) start() error {
	answer, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer answer.Close()
	l.cmd.Stdout = write
	err = l.cmd.Start()
	write.Close()
	if err != nil {
		return err
	}
	said := make([]byte, 1)
	err = answer.SetReadDeadline(time.Now().Add(watcherWait))
	if err == nil {
		_, err = io.ReadFull(answer, said)
	}
	if err == nil && said[0] == watcherReady {
		return nil
	}
	signalGroup(l.cmd.Process.Pid, syscall.SIGKILL) // its session's first group
	_ = l.cmd.Wait()                                // killed, as wanted
	return errors.Join(errors.New("it does not answer; call child.MaybeWatcher first thing in main"), err)
}

// expect has the child that carries the mark killed when this process dies
// before add; "" is for no child.
func (l *lifeline) expect(mark string) error { return l.tell("?" + mark) }

// add has a group killed when this process dies.
func (l *lifeline) add(group int) error { return l.tell("+" + strconv.Itoa(group)) }

// remove takes that back.
func (l *lifeline) remove(group int) error { return l.tell("-" + strconv.Itoa(group)) }

func (l *lifeline) tell(line string) error {
	if err := l.pipe.SetWriteDeadline(time.Now().Add(watcherWait)); err != nil {
		return err
	}
	// One short write to a pipe arrives whole, whoever else writes.
	_, err := l.pipe.WriteString(line + "\n")
	return err
}

// close ends the watcher and waits for it.
func (l *lifeline) close() error {
	err := l.pipe.Close()
	late := time.AfterFunc(watcherWait, func() { _ = l.cmd.Process.Kill() })
	defer late.Stop()
	return errors.Join(err, l.cmd.Wait())
}
