package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// process is one child, from its pipes to its reaping.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr stream
	stdin          *os.File // nil: the child reads nothing
	payload        []byte
	childEnds      []*os.File // of the pipes
	reaped         bool
	reapErr        error
}

// stream is the output that is read from one pipe.
type stream struct {
	from *os.File
	held *held
}

func newProcess(spec Spec, o Options) (*process, error) {
	p := &process{payload: spec.Stdin}
	p.cmd = &exec.Cmd{
		Path:        spec.Path,
		Args:        spec.Args,
		Env:         append(os.Environ(), spec.Env...),
		SysProcAttr: attributes(),
	}
	if err := p.connect(o); err != nil {
		p.abandon()
		return nil, err
	}
	return p, nil
}

// connect makes the pipes.
func (p *process) connect(o Options) error {
	create := func() (*os.File, error) { return os.CreateTemp(o.Dir, "foundling-output-*") }
	p.stdout.held = &held{max: o.HoldBytes, create: create}
	p.stderr.held = &held{max: o.HoldBytes, create: create}
	var err error
	var write *os.File
	if p.stdout.from, write, err = os.Pipe(); err != nil {
		return err
	}
	p.childEnds, p.cmd.Stdout = append(p.childEnds, write), write
	if p.stderr.from, write, err = os.Pipe(); err != nil {
		return err
	}
	p.childEnds, p.cmd.Stderr = append(p.childEnds, write), write
	if len(p.payload) == 0 {
		return nil // the null device, as for a payload in an argument
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	p.childEnds, p.cmd.Stdin, p.stdin = append(p.childEnds, read), read, write
	return nil
}

// abandon closes the pipes of a child that did not start.
func (p *process) abandon() {
	p.closeChildEnds()
	for _, end := range []*os.File{p.stdout.from, p.stderr.from, p.stdin} {
		if end != nil {
			end.Close()
		}
	}
}

func (p *process) closeChildEnds() {
	for _, end := range p.childEnds {
		end.Close()
	}
	p.childEnds = nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// feed writes the payload; the channel closes when that is over. A child that
// leaves its input unread does no wrong, so there is no error to tell.
func (p *process) feed() <-chan struct{} {
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		if p.stdin == nil {
			return
		}
		_, _ = io.Copy(p.stdin, bytes.NewReader(p.payload))
		p.stdin.Close()
	}()
	return fed
}

func (p *process) closeStdin() {
	if p.stdin != nil {
		p.stdin.Close() // again, mostly
	}
}

// giveUpOutput ends the copying, whoever still holds the other ends.
func (p *process) giveUpOutput() {
	p.stdout.from.Close()
	p.stderr.from.Close()
}

// copy reads the stream to its end, or until it is given up.
func (s stream) copy() error {
	defer s.from.Close()
	_, err := io.Copy(s.held, s.from)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("hold its output: %w", err)
	}
	return nil
}

// reap takes the child's end from the system, once; its number is free then.
func (p *process) reap() (*os.ProcessState, error) {
	if p.reaped {
		return p.cmd.ProcessState, p.reapErr
	}
	p.reaped = true
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) { // that the state tells
		p.reapErr = err
	}
	return p.cmd.ProcessState, p.reapErr
}
