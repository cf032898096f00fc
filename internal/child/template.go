package child

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// Placeholder stands for the payload in an argument.
const Placeholder = "{}"

var (
	// ErrNUL says that a payload holds a zero byte and so cannot be an
	// argument of any command. Trying again does not help.
	ErrNUL = errors.New("a payload with a NUL byte cannot be passed as an argument")
	// ErrTooLong says that the system takes no command line as long as this
	// one (on Linux, 128 KiB for one argument). Trying again does not help.
	ErrTooLong = errors.New("the payload is too long to be passed as an argument")
)

// Input says how a command gets the payload.
type Input int

const (
	// Argument replaces Placeholder in every argument by the payload, or
	// appends the payload where no argument holds it.
	Argument Input = iota
	// Stdin gives the payload as standard input and leaves the arguments as
	// they are.
	Stdin
)

// Template is a command with a place for the payload. It does not change, and
// may be used by many goroutines.
type Template struct {
	path  string
	argv  []string
	input Input
}

// NewTemplate returns the template of a command and its arguments. The error
// names the command where it cannot be found or run, or holds Placeholder
// itself, which would hide until a payload came whether it exists.
func NewTemplate(argv []string, in Input) (Template, error) {
	if in != Argument && in != Stdin {
		return Template{}, fmt.Errorf("input %d: want Argument (%d) or Stdin (%d)", in, Argument, Stdin)
	}
	if len(argv) == 0 || argv[0] == "" {
		return Template{}, errors.New("no command given")
	}
	if in == Argument && strings.Contains(argv[0], Placeholder) {
		return Template{}, fmt.Errorf("command %q: only its arguments may hold %s", argv[0], Placeholder)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		var lookup *exec.Error
		if errors.As(err, &lookup) {
			err = lookup.Err // it names the command too
		}
		return Template{}, fmt.Errorf("command %q: %w", argv[0], err)
	}
	argv = slices.Clone(argv)
	holds := func(arg string) bool { return strings.Contains(arg, Placeholder) }
	if in == Argument && !slices.ContainsFunc(argv[1:], holds) {
		argv = append(argv, Placeholder)
	}
	return Template{path: path, argv: argv, input: in}, nil
}

// Spec is one run of a command.
type Spec struct {
	// Path is the file to run, and Args its arguments, the name it is called
	// by first.
	Path string
	Args []string
	// Env is added to the environment of this process, as NAME=value.
	Env []string
	// Stdin is the child's standard input; the child may leave it unread.
	Stdin []byte
}

// Fill returns the command for one payload, which Stdin keeps a reference to.
// The error is ErrNUL.
func (t Template) Fill(payload []byte) (Spec, error) {
	if t.input == Stdin {
		return Spec{Path: t.path, Args: t.argv, Stdin: payload}, nil
	}
	if bytes.IndexByte(payload, 0) >= 0 {
		return Spec{}, ErrNUL
	}
	text := string(payload)
	args := slices.Clone(t.argv)
	for i := range args[1:] {
		args[i+1] = strings.ReplaceAll(args[i+1], Placeholder, text)
	}
	return Spec{Path: t.path, Args: args}, nil
}
